#pragma once

/// `leadership`: a term of office, until it is resigned, lost or destroyed. An `election` gives it.
///
///     auto leadership = election.campaign();
///     scheduler.run(leadership.stop_token());          // trips before another one can lead, even when Redis can't be reached
///     database.write(plan, leadership.term());         // the resource refuses smaller terms than it has seen
///
/// It belongs to whoever has the object, not to a thread. Its client renews it in the background. Destruction resigns: the request is
/// queued and the destructor returns; `resign()` waits for it. The next in line is then offered it at once.
///
/// A leader is told to step down (its stop token trips, and it is not `valid` any more) when it could not renew for `renew_deadline`, when
/// somebody ended it by force, when its health gate says so, or when it gives way to a higher priority. In the latter two cases it
/// still has the seat while it finishes: resign, or destroy the object, when the work has ended. After `renew_deadline` it is taken.
///
/// Threads: const functions from any thread; of the others one at a time.

#include <lockstep/task.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

namespace detail {
class seat;
}

class [[nodiscard]] leadership {
public:
    /// Leads nothing.
    leadership() noexcept = default;
    leadership(leadership&&) noexcept = default;
    leadership& operator=(leadership&& other) noexcept;
    ~leadership();

    /// False when there is nothing to resign from: default, moved from, resigned. A lost one is still true: see `valid`.
    explicit operator bool() const noexcept { return seat_ != nullptr; }

    /// Its fence: grows with every leader of this election, also after failover and expiry.
    std::uint64_t term() const;
    /// Of the candidate, and of the election.
    std::string const& id() const;
    std::string const& name() const;

    /// May this one act as the leader, as far as can be known here?
    bool valid() const noexcept;
    /// How long it stays so if no renewal succeeds any more; 0 when it is not valid.
    std::chrono::milliseconds remaining() const noexcept;
    /// Throws `leadership_lost_error` unless it is valid: before a step that only the leader may take.
    void check() const;
    /// Trips when it is not valid any more, but for `resign`. Callbacks run on a thread of Lockstep's own.
    std::stop_token stop_token() const;

    /// Gives it to the next in line and waits until the server has done so. Throws `leadership_lost_error` if it was lost before;
    /// `not_held_error` when empty; otherwise as `lease::release`. It is empty afterwards, whatever was thrown.
    void resign();
    task<void> async_resign();

private:
    friend class election;
    friend class detail::seat;
    explicit leadership(std::shared_ptr<detail::seat> has) noexcept : seat_(std::move(has)) {}
    detail::seat& required() const;

    std::shared_ptr<detail::seat> seat_;
};

/// Who leads.
struct leader_info {
    std::string id;                                ///< as the candidate called itself
    std::string host;
    std::int64_t pid = 0;
    std::uint64_t term = 0;
    std::chrono::system_clock::time_point since{};  ///< by the server's clock
    std::chrono::milliseconds remaining{0};         ///< until the lease would run out; it is renewed
    std::size_t candidates = 0;                     ///< that stand in line
};

/// A change of leadership.
struct leader_change {
    enum class kind : std::uint8_t {
        elected,
        resigned,  ///< gave it back
        lost,      ///< died, hung, or could not reach the server: known when its lease had run out, or when it came back
        removed,   ///< ended by force
    };
    kind what{};
    std::string id;  ///< of the one who was elected, or who does not lead any more
    std::string host;
    std::int64_t pid = 0;
    std::uint64_t term = 0;
    std::chrono::system_clock::time_point at{};  ///< by the server's clock
    std::string position;                        ///< of this change in the stream: where `observe` can go on
};
std::string_view to_string(leader_change::kind what) noexcept;

}  // namespace lockstep
