// A program that takes something when it is told to, so that a test can stop or kill it meanwhile.
//   holder <kind> <url> <name> <ttl ms> <claim window ms>
// The kinds are those of support/holdable.hpp, and event: then to acquire is to wait for a signal; and multi_lock: then it holds
// <name>, <name>-2 and <name>-3 until it ends, and says "held 0".
// Answers each line of its input with one of its own:
//   acquire   "held <fence>", when it has it
//   crowd <n> "waiting": so many more of this process stand in line, each with a place of its own, until it ends
//   release   "released"
//   check     "valid" or "invalid"
//   work      acts for as long as it may: "working" when it begins; "last <ns>" when it may not any more, the steady clock's time before
//             it last found its lease valid; and "stopped" when the stop token has tripped
// or with "failed: <why>". The end of its input ends it, in order.
#include "../holdable.hpp"

#include <lockstep/client.hpp>
#include <lockstep/event.hpp>
#include <lockstep/multi_lock.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

void say(std::string const& line) { std::cout << line << std::endl; }

void work(lockstep::lease const& held) {
    auto const stop = held.stop_token();
    say("working");
    steady_clock::time_point last{};
    for (auto now = steady_clock::now(); held.valid(); now = steady_clock::now()) last = now;
    say("last " + std::to_string(last.time_since_epoch().count()));
    while (!stop.stop_requested()) std::this_thread::sleep_for(milliseconds{1});
    say("stopped");
}

/// Those who stand in line for as long as the process lives.
class crowd {
public:
    crowd(std::string const& kind, lockstep::client& by, std::string const& name, lockstep::lease_options options)
        : make_([&by, kind, name, options]() mutable {
              options.cohort_passes = 0;
              return lockstep::test::holdable{lockstep::test::kind_called(kind), by, name, options};
          }) {}
    void grow(int by) {
        if (!of_) of_.emplace(make_());
        for (int i = 0; i < by; ++i) lockstep::start(of_->async_acquire(), [](std::exception_ptr, std::optional<lockstep::lease>) {});
    }

private:
    std::function<lockstep::test::holdable()> make_;
    std::optional<lockstep::test::holdable> of_;
};

void obey(std::string const& order, std::function<lockstep::lease()> const& acquire, lockstep::lease& held, crowd& others) {
    if (order == "acquire") {
        held = acquire();
        say("held " + std::to_string(held.fence()));
    } else if (order.starts_with("crowd ")) {
        others.grow(std::stoi(order.substr(6)));
        say("waiting");
    } else if (order == "release") {
        held.release();
        say("released");
    } else if (order == "check") {
        say(held.valid() ? "valid" : "invalid");
    } else if (order == "work") {
        work(held);
    } else {
        say("failed: there is no order " + order);
    }
}

std::function<lockstep::lease()> way_to_acquire(std::string const& kind, lockstep::client& by, std::string const& name,
                                                lockstep::lease_options const& options) {
    if (kind == "event") {
        return [of = std::make_shared<lockstep::event>(by, name, options)] {
            of->wait();
            return lockstep::lease{};
        };
    }
    if (kind == "multi_lock") {
        return [of = std::make_shared<lockstep::multi_lock>(by, std::vector{name, name + "-2", name + "-3"}, options),
                held = std::make_shared<lockstep::leases>()] {
            *held = of->acquire();
            return lockstep::lease{};
        };
    }
    using lockstep::test::holdable;
    return [of = std::make_shared<holdable>(lockstep::test::kind_called(kind), by, name, options)] {
        return of->acquire();
    };
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 6) return 2;
    lockstep::client client{{.url = arguments[2], .name = "holder"}};
    lockstep::lease_options const options{.ttl = milliseconds{std::stoi(arguments[4])},
                                          .claim_window = milliseconds{std::stoi(arguments[5])}};
    auto const acquire = way_to_acquire(arguments[1], client, arguments[3], options);
    crowd others{arguments[1], client, arguments[3], options};
    lockstep::lease held;
    for (std::string order; std::getline(std::cin, order);) {
        try {
            obey(order, acquire, held, others);
        } catch (std::exception const& failure) {
            say(std::string{"failed: "} + failure.what());
        }
    }
    return 0;
} catch (std::exception const& failure) {
    say(std::string{"failed: "} + failure.what());
    return 1;
}
