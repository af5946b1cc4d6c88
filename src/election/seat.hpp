#pragma once

// What a leader sits on. Whoever has the `leadership` has the seat; the election knows it too, to have it step down.

#include "core/core.hpp"

#include <lockstep/leadership.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace lockstep::detail {

class seat;

/// What is held while somebody leads: a lease at one server, or locks at a majority of several. Given back by its destructor.
class tenure {
public:
    /// Tells others that this seat is taken, for as long as it is. Nobody waits for that.
    using announcement = std::function<void(std::shared_ptr<seat> const&)>;

    virtual ~tenure() = default;
    virtual std::uint64_t term() const noexcept = 0;
    virtual std::chrono::milliseconds remaining() const noexcept = 0;  ///< 0: lost
    virtual std::stop_token stop_token() const = 0;                    ///< trips when it is lost
    virtual announcement announce() const = 0;                         ///< to be called once, when it has a seat
    virtual task<void> release() = 0;                                  ///< throws `lease_lost_error` if it was lost
};

class seat final : public std::enable_shared_from_this<seat> {
public:
    struct place {
        std::shared_ptr<core> owner;
        std::string name;
        std::string id;
        std::chrono::milliseconds grace;  ///< from stepping down to being taken away
    };
    seat(place where, std::unique_ptr<tenure> held);
    static leadership make_leadership(std::shared_ptr<seat> of) noexcept { return leadership{std::move(of)}; }

    std::string const& name() const noexcept { return where_.name; }
    std::string const& id() const noexcept { return where_.id; }
    std::uint64_t term() const noexcept { return term_; }
    std::shared_ptr<core> const& owner() const noexcept { return where_.owner; }

    std::chrono::milliseconds remaining() const noexcept;  ///< 0 also once it steps down
    std::stop_token stop_token() const noexcept { return stop_.get_token(); }
    void check() const;
    /// Not given back by whoever has it: it has run out, was ended by force, or was taken away.
    bool is_lost() const noexcept;
    /// Given back, by whoever had it or because its time to finish was over.
    bool is_gone() const noexcept;

    /// From any thread; the first reason counts.
    void step_down(std::string_view why) noexcept;
    /// Given back; `leadership_lost_error` if there is nothing left to give back.
    static task<void> resign(std::shared_ptr<seat> self);
    /// Given back without waiting for it.
    void leave() noexcept;

private:
    struct trip {
        std::stop_source source;
        void operator()() const noexcept;
    };

    std::chrono::milliseconds left() const noexcept;  // under the lock
    std::unique_ptr<tenure> take() noexcept;
    static task<void> take_away(std::shared_ptr<core> owner, std::weak_ptr<seat> which, std::chrono::milliseconds after);
    std::string lost_text() const;

    place const where_;
    std::uint64_t const term_;
    std::stop_source stop_;
    mutable std::mutex mutex_;
    std::unique_ptr<tenure> held_;
    std::optional<std::stop_callback<trip>> on_loss_;
    std::string stepped_down_;  // why; empty: it has not
    mutable bool over_ = false;  // its time was found to be over, and stays so
};

}  // namespace lockstep::detail
