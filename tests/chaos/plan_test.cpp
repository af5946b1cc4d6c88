// The nemesis' choices.
#include "plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;

TEST(chaos_plan, is_the_same_for_the_same_seed_and_another_for_another) {
    auto const plan = make_plan(7, topology::standalone, 60s, 5);
    EXPECT_EQ(plan, make_plan(7, topology::standalone, 60s, 5));
    EXPECT_NE(plan, make_plan(8, topology::standalone, 60s, 5));
    EXPECT_GT(plan.size(), 300U);
}

TEST(chaos_plan, wakes_and_heals_before_the_end) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        std::set<std::uint64_t> asleep, faulty;
        auto last = 0ms;
        for (auto const& one : make_plan(seed, topology::standalone, 20s, 4)) {
            EXPECT_GE(one.at, last);
            last = one.at;
            EXPECT_LT(one.whom, 4U);
            bool in_turn = true;
            if (one.what == deed::nap || one.what == deed::nap_holder) in_turn = asleep.insert(one.whom).second;
            if (one.what == deed::wake) in_turn = asleep.erase(one.whom) == 1;
            if (one.what == deed::refuse || one.what == deed::lag) in_turn = faulty.insert(one.whom).second;
            if (one.what == deed::heal) in_turn = faulty.erase(one.whom) == 1;
            EXPECT_TRUE(in_turn) << name_of(one.what) << " at " << one.at.count();
        }
        EXPECT_TRUE(asleep.empty() && faulty.empty());
        EXPECT_LE(last, 20s);
    }
}

TEST(chaos_plan, does_what_the_topology_can_bear) {
    auto const kinds = [](topology where) {
        std::set<std::string> found;
        for (auto const& one : make_plan(1, where, 300s, 5)) found.insert(name_of(one.what));
        return found;
    };
    EXPECT_EQ(kinds(topology::standalone),
              (std::set<std::string>{"kill", "kill_holder", "nap", "nap_holder", "wake", "cut", "drop_reply", "refuse", "heal", "lag", "script_flush", "client_kill",
                                     "server_nap", "clock_back", "clock_forward"}));
    EXPECT_EQ(kinds(topology::cluster), (std::set<std::string>{"kill", "kill_holder", "nap", "nap_holder", "wake", "script_flush", "client_kill", "migrate"}));
    EXPECT_TRUE(kinds(topology::sentinel).contains("failover") && kinds(topology::cluster_failover).contains("kill_master"));
}

}  // namespace
}  // namespace lockstep::chaos
