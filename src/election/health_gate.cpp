#include "election/health_gate.hpp"

#include "base/quiet_thread.hpp"

#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace lockstep::detail {

void health_verdict::begin() noexcept {
    std::lock_guard const guard{mutex_};
    asking_ = true;
    since_ = clock::now();
}

void health_verdict::end(bool healthy) noexcept {
    std::lock_guard const guard{mutex_};
    asking_ = false;
    healthy_ = healthy;
    spoke_ = true;
}

bool health_verdict::is_healthy() const noexcept {
    std::lock_guard const guard{mutex_};
    return healthy_ && !(asking_ && clock::now() - since_ > patience_);
}

bool health_verdict::has_spoken() const noexcept {
    std::lock_guard const guard{mutex_};
    return spoke_;
}

namespace {

bool ask(health_check const& check, std::stop_token const& stop) noexcept {
    try {
        return check(stop);
    } catch (std::exception const& problem) {
        log(log_level::warning, fmt::format("the health gate of a candidate threw, which counts as unhealthy: {}", problem.what()));
    } catch (...) {
        log(log_level::warning, "the health gate of a candidate threw, which counts as unhealthy");
    }
    return false;
}

}  // namespace

health_gate::health_gate(health_check check, std::chrono::milliseconds interval, std::chrono::milliseconds patience, std::shared_ptr<health_verdict> found)
    : patience_(patience) {
    thread_ = base::quiet_thread([mine = shared_, check = std::move(check), interval, found = std::move(found), stop = stop_.get_token()]() mutable {
        while (!stop.stop_requested()) {
            found->begin();
            found->end(ask(check, stop));
            std::unique_lock guard{mine->mutex};
            mine->wakes.wait_for(guard, stop, interval, [] { return false; });
        }
        check = {};  // what it holds goes before whoever waits for the end goes on
        std::lock_guard const guard{mine->mutex};
        mine->has_ended = true;
        mine->wakes.notify_all();
    });
}

health_gate::~health_gate() {
    stop_.request_stop();
    bool ended = false;
    if (thread_.get_id() != std::this_thread::get_id()) {  // or the check itself destroys it
        std::unique_lock guard{shared_->mutex};
        ended = shared_->wakes.wait_for(guard, patience_, [this] { return shared_->has_ended; });
    }
    if (ended) {
        thread_.join();
        return;
    }
    log(log_level::warning, "the health gate of a candidate that goes has not returned, and its thread is left behind");
    thread_.detach();
}

}  // namespace lockstep::detail
