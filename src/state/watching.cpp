#include "state/watching.hpp"

#include "base/backoff.hpp"
#include "base/random.hpp"
#include "core/subscription.hpp"
#include "lease/pause.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace lockstep {
namespace detail {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

void watch_state::stop() noexcept {
    if (!what_->owner()->same_process()) return;
    over_.request_stop();
    ear_.unsubscribe();
    std::lock_guard const guard{running_};  // until the handler has returned
}

void watch_state::guarded(std::function<void()> const& call) noexcept {
    std::lock_guard const guard{running_};
    if (is_stopped()) return;
    try {
        call();
    } catch (std::exception const& problem) {
        log(log_level::error, fmt::format("the handler of {} '{}' threw: {}", what_->kind(), what_->name(), problem.what()));
    } catch (...) {
        log(log_level::error, fmt::format("the handler of {} '{}' threw", what_->kind(), what_->name()));
    }
}

task<subscription> watch_state::listen() {
    auto const weak = weak_from_this();
    subscription_options how;
    how.channel = what_->key();
    how.kind = what_->owner()->is_cluster() ? subscription_kind::shard : subscription_kind::channel;
    how.handler = [weak](message const& what) {
        if (auto const self = weak.lock()) self->heard(what.payload);
    };
    how.on_gap = [weak] {
        if (auto const self = weak.lock()) self->missed();
    };
    return open_subscription(what_->owner(), std::move(how));
}

void watch_state::look() noexcept {
    again_ = true;
    if (is_stopped()) return;
    if (std::exchange(looking_, true)) return bell_.ring();  // it may rest, after one that failed
    start(with_stop_token(look_until_done(shared_from_this()), over_.get_token()), [self = shared_from_this()](std::exception_ptr) { self->looking_ = false; });
}

/// A look that fails is tried again: what was not seen may never be told otherwise.
task<void> watch_state::look_until_done(std::shared_ptr<watch_state> self) {
    base::backoff rests{100ms, 10s};
    bool has_failed = false;
    while (std::exchange(self->again_, false) && !self->is_stopped()) {
        try {
            auto looking = self->look_once();
            co_await std::move(looking);
            rests.reset();
            has_failed = false;
            continue;
        } catch (error const& problem) {
            if (self->is_stopped() || problem.reason() == errc::cancelled) throw;
            auto const& what = *self->what_;
            if (!std::exchange(has_failed, true)) {
                log(log_level::warning, fmt::format("{} '{}' could not be looked at, which is tried again: {}", what.kind(), what.name(), problem.what()));
            }
        }
        if (!self->again_) {  // else it was asked for meanwhile
            auto resting = doorbell::wait(self->what_->owner(), self->bell_, std::chrono::ceil<milliseconds>(rests.next()));
            co_await std::move(resting);
        }
        self->again_ = true;
    }
}

task<void> watch_state::look_now_and_then(std::shared_ptr<core> owner, std::weak_ptr<watch_state> which) {
    while (true) {
        engine::pause rest{owner, milliseconds{45'000 + base::random_below(30'000)}};
        co_await rest;
        auto const self = which.lock();
        if (!self || self->is_stopped()) co_return;
        self->look();
    }
}

task<watching> watch_state::begin(std::shared_ptr<watch_state> self) {
    watching made{self};  // ended if this does not come to its end
    auto listening = self->listen();
    self->ear_ = co_await std::move(listening);
    self->looking_ = true;  // what is heard meanwhile may ask for another look
    auto first = self->look_once();
    try {
        co_await std::move(first);
    } catch (...) {
        self->looking_ = false;
        throw;
    }
    self->looking_ = false;
    if (self->again_) self->look();
    start(with_stop_token(look_now_and_then(self->what_->owner(), self), self->over_.get_token()), [](std::exception_ptr) {});
    co_return made;
}

}  // namespace detail

watching::watching(std::shared_ptr<detail::watch_state> state) noexcept : state_(std::move(state)) {}
watching& watching::operator=(watching&& other) noexcept {
    if (this == &other) return *this;
    stop();
    state_ = std::exchange(other.state_, nullptr);
    return *this;
}
watching::~watching() { stop(); }

void watching::stop() noexcept {
    if (auto const state = std::exchange(state_, nullptr)) state->stop();
}

}  // namespace lockstep
