// From the call of release in one process to the return of acquire in another, which waits. All on the server's core.

#include "support/bare_lock.hpp"
#include "support/redis_benchmark.hpp"
#include "sync/cases.hpp"
#include "sync/members.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace lockstep::bench {
namespace {

struct turn {
    std::uint64_t fence;
    double acquired;
    double released;
    int who;
};

class pair_of_processes {
public:
    explicit pair_of_processes(stand& all)
        : first_(member_command("relay", all.redis.where()), all.where.server),
          second_(member_command("relay", all.redis.where()), all.where.server) {
        for (auto* const one : both())
            if (auto const said = one->hear(); said != "ready") throw std::runtime_error("a relay says " + said);
    }

    /// The median of all hand-offs, as the time of one.
    measurement run(std::size_t times) {
        for (auto* const one : both()) one->tell(std::to_string(times));
        std::vector<turn> turns;
        int who = 0;
        for (auto* const one : both()) {
            std::istringstream words{one->hear()};
            for (turn next{.who = who}; words >> next.fence >> next.acquired >> next.released;) turns.push_back(next);
            ++who;
        }
        std::sort(turns.begin(), turns.end(), [](turn const& a, turn const& b) { return a.fence < b.fence; });
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

}  // namespace

void hand_off(stand& all, std::string const& name) {
    auto const core = all.where.server;
    pin_this_thread(core);
    pair_of_processes relay{all};
    auto const times = static_cast<std::size_t>(all.chosen.length.count()) ;  // of half a ms or so each
    relay.run(20);
    rounds const seen{{{"ours", [&] { return relay.run(times); }},
                       {"redis-benchmark",
                        [&] {
                            return all.warm_then_measure(2000, 1, [&](std::size_t n) {
                                return run_redis_benchmark(all.redis.where(), core, {1, n, {"SET", "bench:key", token}});
                            });
                        }}},
                      all.chosen};
    constexpr auto micros = &measurement::micros;
    all.rows.add({.name = name + ", median, in round trips of redis-benchmark",
                  .value = seen.of(0, micros).median,
                  .unit = "us",
                  .baseline = seen.of(1, micros).median,
                  .ratio = seen.ratio(0, 1, micros),
                  .kind = bar_kind::ratio_at_most,
                  .bar = 3.5});
}

}  // namespace lockstep::bench
