#include "chaos_guardian.hpp"

#include <chrono>
#include <thread>

namespace lockstep::chaos {

using namespace std::chrono_literals;

bool guardian::is_sure(std::function<bool()> const& valid) {
    auto const time = boot_ns();
    if (!valid()) return false;
    self_.report_at(time, "sure");
    return true;
}

void guardian::guard(std::function<bool()> const& valid, std::stop_token const& lost, std::string const& mode) {
    auto const kind = self_.below(100);
    auto const length = kind < 3 ? self_.up_to(2'500) : kind < 40 ? self_.up_to(12) : 0ms;
    auto const& name = self_.about().name;
    // Those who share it come in any order, and items and jobs have no fences.
    bool const fenced = !name.starts_with("semaphore") && !name.starts_with("plain") && !name.starts_with("queue") && !name.starts_with("job");
    auto const end = std::chrono::steady_clock::now() + length;
    do {
        if (!is_sure(valid)) return expect_to_be_told(lost);
        if (fenced) static_cast<void>(self_.ask("access", mode));
        if (length != 0ms) std::this_thread::sleep_for(2ms);
    } while (std::chrono::steady_clock::now() < end);
    is_sure(valid);
}

/// Whoever relies on the token must hear of the loss too. Counted in sleeps: this process may be stopped meanwhile.
void guardian::expect_to_be_told(std::stop_token const& lost) {
    for (int i = 0; i < 400 && !lost.stop_requested(); ++i) std::this_thread::sleep_for(5ms);
    if (!lost.stop_requested()) self_.report("untold");
}

}  // namespace lockstep::chaos
