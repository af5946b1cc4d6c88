#include "dashboard/login_throttle.hpp"

#include <algorithm>
#include <cstddef>

namespace lockstep::dashboard {

namespace {

constexpr double most_failures = 11;  // the longest delay is reached; more would only take longer to be forgotten
constexpr std::size_t most_networks = 4'096;

}  // namespace

std::chrono::milliseconds login_throttle::backoff(double excess, std::chrono::milliseconds longest) const {
    if (excess < 1) return std::chrono::milliseconds{0};
    return std::min(longest, delays_.first * (1 << std::min(static_cast<int>(excess) - 1, 10)));
}

void login_throttle::forget(clock::time_point now) {
    for (auto& [network, entry] : failures_) {
        auto const passed = std::chrono::duration<double>(std::max(now - entry.as_of, clock::duration::zero()));
        entry.count -= passed / std::chrono::duration<double>(forgets_one_in);
        entry.as_of = now;
    }
    std::erase_if(failures_, [](auto const& entry) { return entry.second.count <= 0; });
}

std::chrono::milliseconds login_throttle::delay(std::string const& network, clock::time_point now) {
    std::lock_guard const lock{mutex_};
    forget(now);
    double shared = 0;
    for (auto const& [other, entry] : failures_) shared += std::min(entry.count, free_failures);
    auto const own = failures_.find(network);
    // Half a failure of tolerance: what was counted has been fading since.
    auto const excess = own == failures_.end() ? 0 : own->second.count - free_failures + 0.5;
    return std::max(backoff(excess, delays_.longest), backoff((shared - free_shared_failures) / free_failures, delays_.longest_shared));
}

void login_throttle::note_failure(std::string const& network, clock::time_point now) {
    std::lock_guard const lock{mutex_};
    forget(now);
    if (failures_.size() >= most_networks && !failures_.contains(network)) {
        auto const least = std::ranges::min_element(failures_, {}, [](auto const& entry) { return entry.second.count; });
        failures_.erase(least);
    }
    auto& entry = failures_.try_emplace(network, failures{.as_of = now}).first->second;
    entry.count = std::min(entry.count + 1, most_failures);
}

}  // namespace lockstep::dashboard
