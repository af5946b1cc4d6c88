// How long the next one waits when somebody before it dies or is paused: the longest of some times.

#include "base/names.hpp"
#include "sync/cases.hpp"
#include "sync/members.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

namespace lockstep::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto name_of_lock = "bench:mortal";
constexpr double claim_window_ms = 500;  // the default

/// A holder and two who wait for it, in this order, each a process.
class queue_of_three {
public:
    queue_of_three(stand& all, std::chrono::milliseconds ttl)
        : redis_(all.redis), key_(base::key_name("lockstep", name_of_lock, "lock")) {
        for (auto* const one : {&holder, &first, &second}) {
            *one = std::make_unique<process>(
                member_command("person", redis_.where(), {name_of_lock, std::to_string(ttl.count())}),
                all.where.client);
            if (auto const said = (*one)->hear(); said != "ready") throw std::runtime_error("a waiter says " + said);
        }
        holder->tell("acquire");
        holder->hear();
        first->tell("acquire");
        until([&] { return field("l") == "1"; });
        second->tell("acquire");
        until([&] { return field("l") == "2"; });
    }

    double release() {
        holder->tell("release");
        return std::stod(holder->hear());
    }
    static double acquired(process& who) { return std::stod(who.hear()); }
    static void destroy(std::unique_ptr<process>& who) { who.reset(); }  // SIGKILL, and waits for its end
    void wait_for_offer() {
        until([&] { return field("s") == "offered"; });
    }
    double lease_end_ms() { return std::stod(field("e")); }

    std::unique_ptr<process> holder;
    std::unique_ptr<process> first;
    std::unique_ptr<process> second;

private:
    std::string field(char const* name) { return redis_.command({"HGET", key_, name}); }
    static void until(std::function<bool()> const& condition) {
        for (int look = 0; look != 5000; ++look) {
            if (condition()) return;
            std::this_thread::sleep_for(1ms);
        }
        throw std::runtime_error("the queue did not form");
    }

    server& redis_;
    std::string key_;
};

double ms_since(double called, double acquired) { return (acquired - called) * 1e3; }

/// The server's clock and the monotonic one of the same machine.
double monotonic_at(double server_ms) {
    auto const now = std::chrono::duration<double, std::milli>(std::chrono::system_clock::now().time_since_epoch());
    return wall_seconds() + (server_ms - now.count()) * 1e-3;
}

double waiter_killed_before_release(stand& all) {
    queue_of_three queue{all, 30s};
    queue.destroy(queue.first);
    auto const called = queue.release();
    return ms_since(called, queue.acquired(*queue.second));
}

double waiter_killed_after_offer(stand& all) {
    queue_of_three queue{all, 30s};
    queue.first->signal(SIGSTOP);  // or it would claim before we can kill it
    auto const called = queue.release();
    queue.wait_for_offer();
    queue.destroy(queue.first);
    return ms_since(called, queue.acquired(*queue.second));
}

double waiter_paused_after_offer(stand& all) {
    queue_of_three queue{all, 30s};
    queue.first->signal(SIGSTOP);
    auto const called = queue.release();
    return ms_since(called, queue.acquired(*queue.second));
}

double holder_killed(stand& all) {
    queue_of_three queue{all, 1s};
    queue.destroy(queue.holder);
    std::this_thread::sleep_for(5ms);  // a renewal that was on its way
    auto const end = monotonic_at(queue.lease_end_ms());
    return ms_since(end, queue.acquired(*queue.first));
}

}  // namespace

void deaths(stand& all, std::string const& name) {
    pin_this_thread(all.where.client);
    auto const times = all.chosen.is_quick() ? 1 : 5;
    auto const add = [&](std::string const& what, double (*run)(stand&), double bar) {
        double longest = 0;
        for (int i = 0; i != times; ++i) {
            longest = std::max(longest, run(all));
            all.redis.command({"FLUSHALL"});
        }
        all.rows.add(
            {.name = name + ", " + what, .value = longest, .unit = "ms", .kind = bar_kind::value_at_most, .bar = bar});
    };
    add("waiter killed before the release", waiter_killed_before_release, 50);
    add("waiter killed after the offer", waiter_killed_after_offer, claim_window_ms + 50);
    add("waiter paused after the offer", waiter_paused_after_offer, claim_window_ms + 50);
    add("holder killed, beyond its ttl", holder_killed, 200);
}

}  // namespace lockstep::bench
