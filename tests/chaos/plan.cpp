#include "plan.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

namespace lockstep::chaos {
namespace {

using std::chrono::milliseconds;

// How often each is chosen, relative to the others.
using weights = std::vector<std::pair<deed, unsigned>>;

weights deeds_of(topology where) {
    weights common{{deed::kill, 4},        {deed::kill_holder, 4},  {deed::nap, 4},
                   {deed::nap_holder, 14}, {deed::script_flush, 3}, {deed::client_kill, 3}};
    auto const add = [&](weights const& more) { common.insert(common.end(), more.begin(), more.end()); };
    switch (where) {
        case topology::standalone:
            add({{deed::cut, 8},
                 {deed::drop_reply, 12},
                 {deed::refuse, 4},
                 {deed::lag, 6},
                 {deed::server_nap, 2},
                 {deed::clock_back, 3},
                 {deed::clock_forward, 2}});
            break;
        case topology::sentinel: add({{deed::failover, 1}, {deed::kill_master, 1}}); break;
        case topology::cluster: add({{deed::migrate, 16}}); break;
        case topology::cluster_failover: add({{deed::migrate, 10}, {deed::failover, 1}, {deed::kill_master, 1}}); break;
        case topology::quorum:
            add({{deed::cut, 8}, {deed::drop_reply, 12}, {deed::refuse, 8}, {deed::lag, 8}, {deed::server_nap, 6}, {deed::kill_node, 6}});
            break;
    }
    return common;
}

class drawing {
public:
    explicit drawing(std::uint64_t seed) : engine_{seed} {}
    // Not a standard distribution: those differ between libraries, and a seed must mean the same everywhere.
    std::uint64_t below(std::uint64_t limit) { return engine_() % limit; }
    milliseconds between(int least, int most) {
        return milliseconds{least + static_cast<int>(below(static_cast<std::uint64_t>(most - least + 1)))};
    }

private:
    std::mt19937_64 engine_;
};

deed pick(drawing& draw, weights const& from) {
    unsigned sum = 0;
    for (auto const& [what, weight] : from) sum += weight;
    auto at = draw.below(sum);
    for (auto const& [what, weight] : from) {
        if (at < weight) return what;
        at -= weight;
    }
    return from.back().first;
}

milliseconds amount_of(drawing& draw, deed what) {
    switch (what) {
        case deed::nap:
        case deed::nap_holder: return draw.between(50, 1'800);
        case deed::refuse: return draw.between(50, 1'200);
        case deed::lag: return draw.between(10, 150);
        case deed::server_nap: return draw.between(20, 900);
        case deed::clock_back: return draw.between(100, 20'000);
        case deed::clock_forward: return draw.between(100, 8'000);
        default: return milliseconds{0};
    }
}

}  // namespace

char const* name_of(deed what) {
    constexpr std::array names{"kill",         "kill_holder", "nap",        "nap_holder", "wake",
                               "cut",          "drop_reply",  "refuse",     "heal",       "lag",
                               "script_flush", "client_kill", "server_nap", "clock_back", "clock_forward",
                               "failover",     "kill_master", "migrate",     "kill_node"};
    static_assert(names.size() == static_cast<std::size_t>(deed::kill_node) + 1);
    return names.at(static_cast<std::size_t>(what));
}

std::vector<step> make_plan(std::uint64_t seed, topology where, milliseconds length, std::size_t workers) {
    drawing draw{seed};
    auto const deeds = deeds_of(where);
    std::vector<step> plan;
    std::vector<milliseconds> asleep(workers), faulty(workers);  // until when
    for (auto at = draw.between(100, 300); at < length; at += draw.between(20, 250)) {
        step next{.at = at, .what = pick(draw, deeds), .whom = draw.below(workers), .name = draw.below(1'000)};
        next.amount = amount_of(draw, next.what);
        auto const until = std::min(at + (next.what == deed::lag ? draw.between(100, 1'000) : next.amount), length);
        bool const sleeps = next.what == deed::nap || next.what == deed::nap_holder;
        bool const ends = sleeps || next.what == deed::refuse || next.what == deed::lag;
        auto& busy = sleeps ? asleep[next.whom] : faulty[next.whom];
        if (ends && busy > at) continue;  // one such thing at a time
        plan.push_back(next);
        if (!ends) continue;
        busy = until;
        plan.push_back({.at = until, .what = sleeps ? deed::wake : deed::heal, .whom = next.whom});
    }
    std::stable_sort(plan.begin(), plan.end(), [](step const& a, step const& b) { return a.at < b.at; });
    return plan;
}

}  // namespace lockstep::chaos
