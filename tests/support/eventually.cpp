#include "eventually.hpp"

#include <algorithm>
#include <thread>

namespace lockstep::test {

bool eventually(std::function<bool()> const& condition, std::chrono::milliseconds timeout) {
    using namespace std::chrono_literals;
    auto const deadline = std::chrono::steady_clock::now() + timeout;
    std::chrono::microseconds pause = 500us;
    while (true) {
        // Read the clock before the condition: a condition that came true during the last sleep still counts.
        auto const late = std::chrono::steady_clock::now() >= deadline;
        if (condition()) return true;
        if (late) return false;
        std::this_thread::sleep_for(pause);
        pause = std::min<std::chrono::microseconds>(pause + pause / 4, 20ms);
    }
}

std::int64_t now_ms() {
    auto const since_start = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since_start).count();
}

}  // namespace lockstep::test
