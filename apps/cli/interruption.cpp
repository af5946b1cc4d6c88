#include "cli/interruption.hpp"

#include <lockstep/error.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace lockstep::cli {
namespace {

using clock = std::chrono::steady_clock;

/// One wish may come as two signals: timeout(1) sends its to the program, and then to the group.
constexpr std::chrono::milliseconds same_wish{500};

}  // namespace

exit_code interruptible(std::function<exit_code(std::stop_token)> const& work, interruption_habits const& habits) {
    std::function<void()> const suffer = [] { signals::suffer(SIGTSTP, false); };
    signals from;
    std::stop_source stop;
    std::atomic<int> by{0};
    clock::time_point since;
    int const over = ::eventfd(0, EFD_CLOEXEC);
    std::thread watching{[&] {
        std::array<pollfd, 2> ready{{{from.descriptor(), POLLIN, 0}, {over, POLLIN, 0}}};
        while (::poll(ready.data(), ready.size(), -1) < 0 || ready[1].revents == 0) {
            while (auto const number = from.next()) {
                if (*number == SIGTSTP) habits.pause ? habits.pause(suffer) : suffer();
                if (*number != SIGTERM && *number != SIGINT && *number != SIGHUP && *number != SIGQUIT) continue;
                if (by == 0) {
                    by = *number;
                    since = clock::now();
                    stop.request_stop();
                } else if (habits.hurry && *number != SIGHUP && clock::now() - since > same_wish) {
                    habits.hurry(*number);
                }
            }
        }
    }};
    auto const finish = [&] {
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(over, &one, sizeof one);
        watching.join();
        ::close(over);
    };
    try {
        auto const code = work(stop.get_token());
        finish();
        return code;
    } catch (cancelled_error const&) {
        finish();
        if (by != 0) return static_cast<exit_code>(static_cast<int>(exit_code::signalled) + by);
        throw;
    } catch (...) {
        finish();
        throw;
    }
}

}  // namespace lockstep::cli
