#include "redis/operation.hpp"

#include "redis/request_queue.hpp"
#include "redis/router.hpp"

#include <fmt/format.h>

#include <utility>

namespace lockstep::redis {

bool operation::begin(reactor::clock::time_point deadline, detail::cancel_state* cancel) {
    if (cancel != nullptr && cancel->requested()) return false;
    cancel_ = cancel;
    preset_due(deadline);
    redirects_ = 0;
    reply_lost_ = unheard_ = put_off_ = false;
    place_ = place::arriving;
    begun_ = true;
    if (router_->home().hand_in(*this)) return true;
    place_ = place::idle;
    begun_ = false;
    return false;
}

void operation::arrive() noexcept {
    place_ = place::idle;
    // Registered here and not in begin(): from a turn on, cancellation and completion are on one thread and can't cross.
    if (cancel_ != nullptr) {
        if (!cancel_->park(*this)) return end(errc::cancelled, "the request was cancelled before it was sent");
        parked_ = true;
    }
    if (due() != reactor::clock::time_point::max()) router_->home().arm(*this, due());
    router_->submit(*this);
}

void operation::fire() noexcept {
    if (place_ == place::delayed) {
        end(errc::unavailable, fmt::format("the server could not take the request in its time; it answered: {}", router_->last_refusal()));
    } else if (queue_ != nullptr) {
        queue_->run_out_of_time(*this);
    } else {
        end(errc::timeout, "the request could not be sent in its time");
    }
}

void operation::cancel_requested(std::shared_ptr<detail::cancel_state> state) noexcept {
    router_->home().post([state = std::move(state)] { state->deliver(); });
}

void operation::cancel_here() noexcept {
    parked_ = false;  // it has let go of us already
    end(errc::cancelled, "the request was cancelled");
}

void operation::leave() noexcept {
    switch (place_) {
        case place::idle: break;
        case place::arriving: router_->home().take_back(*this); break;
        case place::waiting:
        case place::sent: queue_->leave(*this); break;
        case place::delayed: unlink(); break;
    }
    place_ = place::idle;
}

void operation::finish() noexcept {
    leave();
    begun_ = false;
    if (router_ == nullptr) return;  // a connection's own: no deadline, no cancellation
    router_->home().disarm(*this);
    if (!parked_) return;
    parked_ = false;
    cancel_->unpark();
}

void operation::end(reply_view answer) noexcept {
    finish();
    complete(answer);
}

void operation::end(errc reason, std::string_view why) noexcept {
    finish();
    // "unavailable" promises that it did not run.
    if (reason != errc::unavailable || !reply_lost_) return fail(reason, why);
    fail(errc::timeout, fmt::format("{}; it was sent before and its reply was lost, so it may have run", why));
}

void operation::abandon() noexcept {
    if (router_ == nullptr) return finish();
    router_->home().locked([this] { finish(); });
}

}  // namespace lockstep::redis
