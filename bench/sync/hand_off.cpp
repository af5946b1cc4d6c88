// From the call of release in one process to the return of acquire in another, which waits. All on the server's core, where every step costs
// CPU time of the same core; and the two on another one, where all wait for wake-ups most of the time, as between machines.

#include "scripts/all.hpp"
#include "support/bare_lock.hpp"
#include "support/redis_benchmark.hpp"
#include "sync/cases.hpp"
#include "support/crew.hpp"
#include "sync/members.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace lockstep::bench {
namespace {

struct turn_of : turn {
    int who = 0;
};

class pair_of_processes {
public:
    pair_of_processes(stand& all, std::string_view role, int core)
        : first_(member_command(role, all.redis.where()), core), second_(member_command(role, all.redis.where()), core) {
        for (auto* const one : both())
            if (auto const said = one->hear(); said != "ready") throw std::runtime_error("a relay says " + said);
    }

    /// The median of all hand-offs, as the time of one.
    measurement run(std::size_t times) {
        for (auto* const one : both()) one->tell(std::to_string(times));
        std::vector<turn_of> turns;
        int who = 0;
        for (auto* const one : both()) {
            std::istringstream words{one->hear()};
            for (turn_of next{{}, who}; words >> next.acquired >> next.released;) turns.push_back(next);
            ++who;
        }
        std::sort(turns.begin(), turns.end(), [](turn const& a, turn const& b) { return a.acquired < b.acquired; });
        std::vector<double> times_taken;
        for (std::size_t i = 1; i < turns.size(); ++i)
            if (turns[i].who != turns[i - 1].who) times_taken.push_back(turns[i].acquired - turns[i - 1].released);
        if (times_taken.size() < times) throw std::runtime_error("the relay did not alternate");
        return {.operations = 1, .seconds = summarize(times_taken).median};
    }

private:
    std::array<process*, 2> both() { return {&first_, &second_}; }
    process first_;
    process second_;
};

/// It tells the average only, and whatever else runs on the core is in that: the fastest of three. Ours is a median.
measurement round_trip(stand& all, int core) {
    measurement fastest;
    for (int i = 0; i != 3; ++i) {
        auto const one = run_redis_benchmark(all.redis.where(), core, {1, 2000, {"SET", "bench:key", token}});
        if (i == 0 || one.micros() < fastest.micros()) fastest = one;
    }
    return fastest;
}

void hand_off_on(stand& all, std::string const& name, int core) {
    pin_this_thread(core);
    for (auto const* const script : {&scripts::lock_acquire, &scripts::lock_claim, &scripts::lock_release})
        all.redis.command({"SCRIPT", "LOAD", script->text});
    pair_of_processes relay{all, "relay", core};
    pair_of_processes raw{all, "script-relay", core};
    auto const times = static_cast<std::size_t>(all.chosen.length.count());  // of half a ms or so each
    relay.run(20);
    raw.run(20);
    rounds const seen{{{"ours", [&] { return relay.run(times); }},
                       {"redis-benchmark", [&] { return round_trip(all, core); }},
                       {"raw loop", [&] { return raw.run(times); }}},
                      all.chosen};
    constexpr auto micros = &measurement::micros;
    all.rows.add({.name = name + ", median, in round trips of redis-benchmark",
                  .value = seen.of(0, micros).median,
                  .unit = "us",
                  .baseline = seen.of(1, micros).median,
                  .ratio = seen.ratio(0, 1, micros),
                  .kind = bar_kind::ratio_at_most,
                  .bar = 3.5});
    all.rows.add({.name = name + ", raw loop over the scripts, in round trips of redis-benchmark",
                  .value = seen.of(2, micros).median,
                  .unit = "us",
                  .baseline = seen.of(1, micros).median,
                  .ratio = seen.ratio(2, 1, micros)});
}

}  // namespace

void hand_off(stand& all, std::string const& name) {
    hand_off_on(all, name, all.where.server);
    if (all.where.distinct()) hand_off_on(all, name + ", server on a core of its own", all.where.client);
}

}  // namespace lockstep::bench
