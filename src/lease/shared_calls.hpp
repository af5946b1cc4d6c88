#pragma once

// Requests that come in the same turn and leave in one call, because a call costs the server as much as several of them.
//
// A `passenger` waits for its part of a call; `shared_calls` puts those who came in this turn into calls and sends these. What one may not have is
// no fault of the others: a call must say so for each, or be sent again with each alone. In turns, except construction.

#include "lease/awaiter.hpp"

#include <lockstep/task.hpp>

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

namespace lockstep::engine {

class passenger;

struct shared_call {
    std::vector<passenger*> aboard;  ///< null: it does not wait any more
    std::stop_source unwanted;       ///< nobody does

    void leave(passenger const& who) noexcept;
    void fail_all(std::exception_ptr const& why) noexcept;
};

class shared_calls : public std::enable_shared_from_this<shared_calls> {
public:
    shared_calls(shared_calls const&) = delete;

    std::shared_ptr<detail::core> const& owner() const noexcept { return owner_; }
    void enter(passenger& who);

protected:
    using line = boost::intrusive::list<passenger, boost::intrusive::base_hook<redis::list_hook>, boost::intrusive::constant_time_size<false>>;

    explicit shared_calls(std::shared_ptr<detail::core> owner) noexcept : owner_(std::move(owner)) {}
    ~shared_calls() = default;

    /// How many of these, from the first on, go together; one at least.
    virtual std::size_t count_together(line const& waiting) const = 0;
    /// Finishes or fails all that are aboard; what it throws, those fail with that are left. `what` and this outlive it.
    virtual task<void> send(shared_call& what) = 0;
    /// Each that is still aboard in a call of its own.
    void send_each(shared_call& what);

private:
    static task<void> send_waiting(std::shared_ptr<shared_calls> self);
    static task<void> carry(std::shared_ptr<shared_calls> self, std::shared_ptr<shared_call> what);
    void dispatch(std::shared_ptr<shared_call> const& what) noexcept;

    std::shared_ptr<detail::core> owner_;
    line waiting_;
};

class passenger : public awaiter {
public:
    /// It has what it came for.
    void finish() noexcept { resume_soon(); }

protected:
    explicit passenger(std::shared_ptr<shared_calls> of) noexcept : of_(std::move(of)) {}
    ~passenger() = default;

private:
    friend shared_calls;

    std::shared_ptr<detail::core> const& owner() const noexcept final { return of_->owner(); }
    void enter() final { of_->enter(*this); }
    void leave() noexcept final;

    std::shared_ptr<shared_calls> of_;
    std::shared_ptr<shared_call> in_;  // since it is on its way
};

}  // namespace lockstep::engine
