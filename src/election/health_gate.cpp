#include "election/health_gate.hpp"

#include "base/quiet_thread.hpp"

#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace lockstep::detail {

void verdict::begin() noexcept {
    std::lock_guard const guard{mutex_};
    asking_ = true;
    since_ = clock::now();
}

void verdict::end(bool healthy) noexcept {
    std::lock_guard const guard{mutex_};
    asking_ = false;
    healthy_ = healthy;
    spoke_ = true;
}

bool verdict::is_healthy() const noexcept {
    std::lock_guard const guard{mutex_};
    return healthy_ && !(asking_ && clock::now() - since_ > patience_);
}

bool verdict::has_spoken() const noexcept {
    std::lock_guard const guard{mutex_};
    return spoke_;
}

namespace {

bool ask(std::function<bool()> const& check) noexcept {
    try {
        return check();
    } catch (std::exception const& problem) {
        log(log_level::warning, fmt::format("the health gate of a candidate threw, which counts as unhealthy: {}", problem.what()));
    } catch (...) {
        log(log_level::warning, "the health gate of a candidate threw, which counts as unhealthy");
    }
    return false;
}

}  // namespace

health_gate::health_gate(std::function<bool()> check, std::chrono::milliseconds interval, std::shared_ptr<verdict> found) {
    thread_ = base::quiet_thread([this, check = std::move(check), interval, found = std::move(found), stop = stop_.get_token()] {
        while (!stop.stop_requested()) {
            found->begin();
            found->end(ask(check));
            std::unique_lock guard{mutex_};
            wakes_.wait_for(guard, stop, interval, [] { return false; });
        }
    });
}

health_gate::~health_gate() {
    stop_.request_stop();
    thread_.join();
}

}  // namespace lockstep::detail
