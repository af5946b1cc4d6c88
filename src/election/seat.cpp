#include "election/seat.hpp"

#include "lease/alarm_clock.hpp"
#include "lease/pause.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

namespace lockstep {
namespace detail {

using std::chrono::milliseconds;

// Users' callbacks may block: they run on the alarm's threads, so that nobody who destroys a seat waits for them.
void seat::trip::operator()() const noexcept { engine::alarm_clock::instance().stop(source); }

seat::seat(place where, std::unique_ptr<tenure> held)
    : where_(std::move(where)), term_(held->term()), held_(std::move(held)) {
    on_loss_.emplace(held_->stop_token(), trip{stop_});
}

milliseconds seat::left() const noexcept {
    if (!held_ || over_) return milliseconds::zero();
    auto const time = held_->remaining();
    over_ = time == milliseconds::zero();
    return time;
}

milliseconds seat::remaining() const noexcept {
    std::lock_guard const guard{mutex_};
    return stepped_down_.empty() ? left() : milliseconds::zero();
}

bool seat::is_lost() const noexcept {
    std::lock_guard const guard{mutex_};
    return left() == milliseconds::zero();
}

bool seat::is_gone() const noexcept {
    std::lock_guard const guard{mutex_};
    return !held_;
}

std::string seat::lost_text() const {
    std::lock_guard const guard{mutex_};
    return fmt::format("'{}' is not led by {} any more (term {}): {}", name(), id(), term_,
                       stepped_down_.empty() ? "its lease is lost" : stepped_down_);
}

void seat::check() const {
    if (remaining() == milliseconds::zero()) throw leadership_lost_error(lost_text());
}

std::unique_ptr<tenure> seat::take() noexcept {
    std::lock_guard const guard{mutex_};
    on_loss_.reset();
    return std::move(held_);
}

void seat::step_down(std::string_view why) noexcept {
    {
        std::lock_guard const guard{mutex_};
        if (!held_ || !stepped_down_.empty()) return;
        stepped_down_ = why;
    }
    log(log_level::info, fmt::format("{} steps down as the leader of '{}' (term {}): {}", id(), name(), term_, why));
    trip{stop_}();
    start(take_away(where_.owner, weak_from_this(), where_.grace), [](std::exception_ptr) {});
}

task<void> seat::take_away(std::shared_ptr<core> owner, std::weak_ptr<seat> which, milliseconds after) {
    engine::pause rest{std::move(owner), after};
    co_await rest;
    auto const self = which.lock();
    if (!self) co_return;
    auto held = self->take();
    if (!held) co_return;
    log(log_level::warning, fmt::format("the leadership of '{}' (term {}) was taken from {}, which stepped down {} ms ago and has not resigned",
                                        self->name(), self->term(), self->id(), after.count()));
    auto giving = held->release();
    co_await std::move(giving);
}

task<void> seat::resign(std::shared_ptr<seat> self) {
    auto held = self->take();
    if (!held) throw leadership_lost_error(self->lost_text());
    try {
        auto giving = held->release();
        co_await std::move(giving);
    } catch (lease_lost_error const&) {
        throw leadership_lost_error(self->lost_text());
    }
    log(log_level::info, fmt::format("{} resigned as the leader of '{}' (term {})", self->id(), self->name(), self->term()));
}

void seat::leave() noexcept { take(); }

}  // namespace detail

leadership& leadership::operator=(leadership&& other) noexcept {
    if (this == &other) return *this;
    if (seat_) seat_->leave();
    seat_ = std::move(other.seat_);
    return *this;
}

leadership::~leadership() {
    if (seat_) seat_->leave();
}

detail::seat& leadership::required() const {
    if (!seat_) throw not_held_error("the leadership is empty: it was resigned from, or moved from");
    return *seat_;
}

std::uint64_t leadership::term() const { return required().term(); }
std::string const& leadership::id() const { return required().id(); }
std::string const& leadership::name() const { return required().name(); }
bool leadership::valid() const noexcept { return remaining() > std::chrono::milliseconds::zero(); }
std::chrono::milliseconds leadership::remaining() const noexcept {
    return seat_ && seat_->owner()->same_process() ? seat_->remaining() : std::chrono::milliseconds::zero();
}
void leadership::check() const { required().check(); }
std::stop_token leadership::stop_token() const { return required().stop_token(); }

void leadership::resign() {
    required().owner()->require_blocking_is_allowed();
    sync_wait(async_resign());
}

task<void> leadership::async_resign() {
    required().owner()->require_same_process();
    return detail::seat::resign(std::move(seat_));
}

std::string_view to_string(leader_change::kind what) noexcept {
    switch (what) {
        case leader_change::kind::elected: return "elected";
        case leader_change::kind::resigned: return "resigned";
        case leader_change::kind::lost: return "lost";
        case leader_change::kind::removed: return "removed";
    }
    return "";
}

}  // namespace lockstep
