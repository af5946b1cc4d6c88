#pragma once

// Behind a `circuit_breaker`.
//
// Calls touch atomics only: `gate_` says whether they may go, stripes count how they went. In turns the counts are gathered and reported, one
// report at a time, and what the server says, in its answers and by pushes, is adopted. Where the server is silent or refuses, `local_` decides
// by what was counted here, until the server takes a write: who only reads is answered by a server, too, that was never told. What is known is
// under `mutex_`, so that calls that may not simply go can look at it from any thread.

#include "state/breaker_rules.hpp"
#include "state/state_object.hpp"

#include <lockstep/circuit_breaker.hpp>
#include <lockstep/subscription.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace lockstep::detail {

class breaker_state : public std::enable_shared_from_this<breaker_state> {
public:
    using clock = std::chrono::steady_clock;

    breaker_state(client& by, std::string_view name, circuit_breaker_options options);

    keyed const& object() const noexcept { return object_; }
    circuit_breaker_options const& how() const noexcept { return how_; }

    // From any thread, of calls:

    /// The generation to call under; nothing: `judge`.
    std::optional<std::uint64_t> passes() const noexcept {
        auto const now = gate_.load(std::memory_order_acquire);
        if ((now & 1U) == 0) return std::nullopt;
        return now >> 1U;
    }
    void count(std::uint64_t generation, bool ok) noexcept;

    enum class verdict { go, refused, look, probe };
    struct judgement {
        verdict what = verdict::go;
        breaker_pass pass{};                        ///< go
        std::chrono::milliseconds retry_after{-1};  ///< refused; -1: not known
    };
    judgement judge();
    [[noreturn]] void refuse(judgement const& why) const;
    /// Of a probe.
    void settle(std::string const& probe, breaker_outcome how) noexcept;
    circuit_status status() const;

    // Coroutines, begun from any thread:

    static task<breaker_pass> admit(std::shared_ptr<breaker_state> self);
    static task<void> look(std::shared_ptr<breaker_state> self);
    static task<void> set(std::shared_ptr<breaker_state> self, std::string_view to, std::int64_t span_ms);
    static task<void> flush(std::shared_ptr<breaker_state> self);
    bool has_counts() const noexcept { return counted().all() != 0; }

private:
    struct seen {
        circuit state = circuit::closed;
        std::uint64_t version = 0;
        clock::time_point reopens{};  ///< open: when it may be probed
        bool held = false;
        bool is_known = false;      ///< somebody was asked, or it was found that nobody can be
        clock::time_point heard{};  ///< from the server
        clock::time_point changed{};
    };
    /// Numbers of calls, by threads, so that these do not wait for each other.
    struct alignas(64) stripe {
        std::atomic<std::int64_t> ok{0};
        std::atomic<std::int64_t> failed{0};
    };
    /// A report that was sent; the same again until it is answered.
    struct batch {
        std::int64_t sequence = 0;  ///< 0: none
        std::uint64_t version = 0;
        outcome_counts counts{};
        bool is_bad = false;
        clock::time_point made{};
    };

    seen& effective() noexcept { return is_local_ ? local_ : server_; }
    seen const& effective() const noexcept { return is_local_ ? local_ : server_; }
    static stripe& mine(std::array<stripe, 8>& all) noexcept;
    outcome_counts counted() const noexcept;
    void report_soon() noexcept;

    // In turns:
    void begin() noexcept;
    static task<void> listen(std::shared_ptr<core> owner, std::weak_ptr<breaker_state> which);
    void heard(std::string_view payload) noexcept;
    /// `wrote`: the server has taken a write for that, so it is there again.
    void adopt(seen said, std::optional<clock::time_point> asked, bool wrote) noexcept;
    void adopt_reply(reply_view said, clock::time_point asked, bool wrote = false) noexcept;
    /// The server is silent or refuses.
    void go_local(error const& problem) noexcept;
    /// By what was counted here.
    void decide_here() noexcept;
    void decide_if_local() noexcept;
    /// Says once what the server refuses with.
    void note(error const& problem) noexcept;
    bool is_local() const noexcept;
    static task<void> read(std::shared_ptr<breaker_state> self, std::chrono::milliseconds within);
    static task<void> ask(std::shared_ptr<breaker_state> self, std::chrono::milliseconds within);
    static task<void> recover(std::shared_ptr<core> owner, std::weak_ptr<breaker_state> which);
    /// `is_later`: the server's state has changed since what was counted here.
    circuit_status follow(circuit_status const& before, bool is_later = false) noexcept;
    void tell(circuit_status const& before, circuit_status const& now) noexcept;
    void gather() noexcept;
    void report_now() noexcept;
    void report_early() noexcept;
    static task<void> report(std::shared_ptr<breaker_state> self);
    static task<void> report_later(std::shared_ptr<core> owner, std::weak_ptr<breaker_state> which);
    static task<void> send(std::shared_ptr<breaker_state> self);
    static task<void> tell_result(std::shared_ptr<breaker_state> self, std::string probe, std::string_view how);
    static constexpr std::string_view local_probe = "local ";  // begins the id of one that the server does not know; those of the server have no space
    void settle_local(std::string const& probe, breaker_outcome how) noexcept;
    circuit_status status_here() const;

    state_object object_;
    circuit_breaker_options how_;
    std::string rules_;
    std::string session_;
    std::string host_;

    // Calls:
    std::atomic<std::uint64_t> gate_{0};  ///< generation * 2 + (1: calls may go)
    std::array<stripe, 8> stripes_;
    std::atomic<bool> is_due_{false};     ///< the time of the next report is set
    std::atomic<clock::rep> urgent_from_{0};    ///< no report comes ahead of its time before this
    std::atomic<bool> is_reported_bad_{false};  ///< the server knows it of this process, counts enough failures, and did not open
    std::atomic<std::int64_t> server_ok_{0}, server_failed_{0};  ///< of all, as last heard

    mutable std::mutex mutex_;
    seen server_;
    seen local_;
    bool is_local_ = false;
    std::map<std::string, clock::time_point> local_probes_;  ///< under way, with the ends of their leases
    int local_successes_ = 0;
    int asking_ = 0;           ///< for probes, now
    clock::time_point no_probe_before_{};
    bool looks_ = false;       ///< in the background
    bool recovering_ = false;
    std::uint64_t probes_made_ = 0;

    // Turns:
    bool begun_ = false;
    subscription ear_;
    bool reporting_ = false;
    bool again_ = false;
    outcome_counts pending_;  ///< gathered, in no batch yet
    batch sent_;
    std::int64_t sequence_ = 0;
    outcome_window window_;
    static constexpr std::size_t most_refusals = 100;
    std::set<std::string, std::less<>> refusals_;  ///< that were said since the server took a write
};

}  // namespace lockstep::detail
