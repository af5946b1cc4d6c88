// An election over independent nodes.
#include "election_support.hpp"
#include "support/failures.hpp"
#include "support/log_lines.hpp"

#include <lockstep/redlock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class election_over_nodes : public testing::Test {
protected:
    /// Both are connected: a test may allow less time than that takes on a busy machine.
    election_over_nodes() {
        for (auto* const which : {&of_a, &of_b}) {
            EXPECT_TRUE(eventually([&] { return outcome([&] { static_cast<void>(election{*which, "connected"}.leader()); }) == std::nullopt; }));
        }
    }

    redlock_nodes nodes() const {
        std::vector<std::string> urls;
        for (auto const& one : servers) urls.push_back(one.url());
        return redlock_nodes{urls};
    }
    static election_options brief(std::string_view id) {
        return {.id = id, .ttl = 900ms, .renew_deadline = 600ms, .retry_period = 100ms, .heartbeat_interval = 20ms};
    }

    log_lines lines;
    std::array<redis_server, 3> servers;
    redlock_nodes of_a = nodes();
    redlock_nodes of_b = nodes();
};

TEST_F(election_over_nodes, refuses_to_start_with_too_few_of_them) {
    client one{servers[0].url()};
    EXPECT_THAT(failure<invalid_argument_error>([&] { election(one, "name", {.require_quorum = true}); }),
                AllOf(HasSubstr("3 independent nodes"), HasSubstr("redlock_nodes")));
    redlock_nodes two{servers[0].url(), servers[1].url()};
    EXPECT_THAT(failure<invalid_argument_error>([&] { election(two, "name", {.require_quorum = true}); }),
                AllOf(HasSubstr("it has 2 nodes"), HasSubstr("needs 3")));
    EXPECT_THAT(failure<invalid_argument_error>([&] { election(of_a, "name", {.minimum_nodes = 5}); }), HasSubstr("needs 5"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { election(of_a, "name", {.priority = 1}); }), HasSubstr("priorit"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { election(of_a, "name", {.min_replicas = 1}); }), HasSubstr("min_replicas"));
    EXPECT_NO_THROW(election(two, "name", {.require_quorum = true, .minimum_nodes = 2}));
}

TEST_F(election_over_nodes, has_one_leader_at_a_time_and_growing_terms) {
    election in_a{of_a, "name", {.id = "a", .heartbeat_interval = 20ms, .require_quorum = true}};
    election in_b{of_b, "name", {.id = "b", .heartbeat_interval = 20ms, .require_quorum = true}};
    EXPECT_FALSE(in_b.leader());
    auto leads = in_a.campaign();
    EXPECT_TRUE(leads.valid());
    EXPECT_LE(leads.remaining(), 10s) << "renew_deadline";
    EXPECT_FALSE(in_b.try_campaign());
    ASSERT_TRUE(eventually([&] { return in_b.leader().has_value(); }));
    auto const seen = *in_b.leader();
    EXPECT_EQ(seen.id, "a");
    EXPECT_EQ(seen.term, leads.term());
    EXPECT_EQ(seen.pid, ::getpid());
    EXPECT_GT(seen.remaining, 5s);
    auto const term = leads.term();
    begun next{in_b.async_campaign()};
    leads.resign();
    auto second = next.get();
    EXPECT_GT(second.term(), term);
    EXPECT_TRUE(eventually([&] {
        auto const now = in_a.leader();
        return now && now->id == "b";
    }));
    second = leadership{};
    EXPECT_TRUE(eventually([&] { return !in_a.leader(); }));
}

TEST_F(election_over_nodes, goes_on_without_a_minority_and_steps_down_without_the_majority) {
    election in_a{of_a, "name", brief("a")};
    election in_b{of_b, "name", brief("b")};
    auto leads = in_a.campaign();
    auto const token = leads.stop_token();
    servers[0].stop();
    EXPECT_FALSE(eventually([&] { return token.stop_requested(); }, 2s)) << "two of three are enough";
    EXPECT_TRUE(leads.valid());
    servers[1].stop();
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(leads.valid());
    EXPECT_THROW(leads.check(), leadership_lost_error);
    EXPECT_EQ(outcome([&] { static_cast<void>(in_b.leader()); }), errc::unavailable);
    EXPECT_NE(outcome([&] { return in_b.try_campaign().has_value() ? throw invalid_argument_error("it leads") : 0; }), errc::invalid_argument);
    servers[0].cont();
    servers[1].cont();
    leads = leadership{};
    auto const next = in_b.try_campaign_for(20s);
    ASSERT_TRUE(next) << "and recovers when they are back";
}

TEST_F(election_over_nodes, keeps_no_seat_for_one_that_is_gone) {
    auto gone = std::make_unique<redlock_nodes>(nodes());
    {
        election in_c{*gone, "name", {.id = "c", .ttl = 1500ms, .renew_deadline = 800ms, .retry_period = 100ms}};
        auto leads = in_c.campaign();
        for (auto& one : servers) one.must({"SET", "lockstep:{name}:seat", "somebody else", "PX", "500"});  // as if it had run out
        auto const token = leads.stop_token();
        EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
        EXPECT_EQ(outcome([&] { leads.resign(); }), errc::leadership_lost);
    }
    EXPECT_TRUE(election(of_b, "name", brief("b")).try_campaign_for(20s));
}

TEST_F(election_over_nodes, shows_changes_to_those_who_look) {
    election in_a{of_a, "name", brief("a")};
    election in_b{of_b, "name", brief("b")};
    seen_changes seen;
    auto const watching = in_b.observe(seen.handler());
    auto leads = in_a.campaign();
    ASSERT_TRUE(seen.becomes("elected a")) << seen.text();
    leads.resign();
    ASSERT_TRUE(seen.becomes("elected a, resigned a")) << seen.text();
    leads = in_a.campaign();
    ASSERT_TRUE(seen.becomes("elected a, resigned a, elected a")) << seen.text();
    for (auto& one : servers) one.must({"SET", "lockstep:{name}:seat", "somebody else", "PX", "500"});
    ASSERT_TRUE(eventually([&] { return seen.all().size() >= 4; }));
    EXPECT_EQ(seen.all()[3].what, leader_change::kind::lost);
    EXPECT_EQ(outcome([&] { static_cast<void>(in_b.observe(seen.handler(), {.after = "0"})); }), errc::invalid_argument);
}

TEST_F(election_over_nodes, tells_of_a_resignation_though_the_next_leads_already) {
    auto how = brief("b");
    how.heartbeat_interval = 1s;  // how often observers look
    election in_a{of_a, "name", brief("a")};
    election in_b{of_b, "name", how};
    seen_changes seen;
    auto leads = in_a.campaign();
    ASSERT_TRUE(eventually([&] { return in_b.leader().has_value(); }));
    auto const watching = in_b.observe(seen.handler());
    begun standing{in_b.async_campaign()};
    leads.resign();
    auto const next = standing.get();
    EXPECT_TRUE(seen.becomes("resigned a, elected b")) << seen.text();
}

TEST_F(election_over_nodes, tells_of_a_leader_that_is_gone_when_nobody_follows) {
    election in_b{of_b, "name", brief("b")};
    seen_changes seen;
    auto const watching = in_b.observe(seen.handler());
    election in_a{of_a, "name", brief("a")};
    auto const leads = in_a.campaign();
    ASSERT_TRUE(seen.becomes("elected a")) << seen.text();
    for (auto& one : servers) one.must({"FLUSHALL"});
    for (auto& one : servers) one.must({"SET", "lockstep:{name}:seat", "somebody else", "PX", "60000"});
    EXPECT_TRUE(eventually([&] { return seen.all().size() >= 2; }));
    EXPECT_EQ(seen.all().at(1).what, leader_change::kind::lost) << seen.text();
}

// Somebody else may have led meanwhile: it has a smaller term than was given then.
TEST_F(election_over_nodes, steps_down_when_most_nodes_forgot_it_though_nobody_has_the_seat) {
    election in_a{of_a, "name", brief("a")};
    election in_b{of_b, "name", brief("b")};
    auto const leads = in_a.campaign();
    auto const token = leads.stop_token();
    for (std::size_t i = 1; i != 3; ++i) servers[i].must({"FLUSHALL"});
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(leads.valid());
    auto const next = in_b.try_campaign_for(20s);
    ASSERT_TRUE(next);
    EXPECT_GT(next->term(), leads.term());
}

// One is silent and one has forgotten. The two may be a majority, so nobody can say that it does not lead; and it does.
TEST_F(election_over_nodes, does_not_call_a_leader_lost_that_leads_on) {
    election_options const how{.id = "a", .ttl = 9s, .renew_deadline = 6s, .retry_period = 100ms, .heartbeat_interval = 50ms};
    election in_a{of_a, "name", how};
    election in_b{of_b, "name", how};
    seen_changes seen;
    auto const watching = in_b.observe(seen.handler());
    auto const leads = in_a.campaign();
    ASSERT_TRUE(seen.becomes("elected a")) << seen.text();
    ASSERT_TRUE(eventually([&] {
        return std::all_of(servers.begin(), servers.end(), [](auto& one) { return one.must({"EXISTS", "lockstep:{name}:seat"}).integer == 1; });
    }));
    auto const says_that_nobody_leads = [&] {
        try {
            return !in_b.leader();
        } catch (unavailable_error const&) {
            return false;  // a busy machine
        }
    };
    servers[2].stop();
    for (int i = 0; i != 2; ++i) {
        servers[1].must({"DEL", "lockstep:{name}:seat"});
        EXPECT_FALSE(eventually(says_that_nobody_leads, 2s));
        EXPECT_TRUE(eventually([&] { return servers[1].must({"EXISTS", "lockstep:{name}:seat"}).integer == 1; })) << "it is not taken again";
    }
    servers[2].cont();
    EXPECT_TRUE(leads.valid());
    EXPECT_EQ(seen.text(), "elected a");
}

TEST_F(election_over_nodes, refuses_two_addresses_of_one_server) {
    redis_server both{{.tcp = true}};
    redlock_nodes const two{both.url(), "unix://" + both.socket_path(), servers[0].url()};
    // One of the addresses and the other server are a majority, and may answer first.
    std::string problem;
    EXPECT_TRUE(eventually([&] {
        try {
            static_cast<void>(election(two, "name", brief("a")).try_campaign_for(1s));
        } catch (invalid_argument_error const& refused) {
            problem = refused.what();
        }
        return !problem.empty();
    }));
    EXPECT_THAT(problem, AllOf(HasSubstr("are the same server"), HasSubstr(both.socket_path())));
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(redlock(two, "lock").try_acquire()); }), HasSubstr("are the same server"));
    EXPECT_TRUE(eventually([&] { return both.must({"EXISTS", "lock"}).integer == 0; }));
}

TEST_F(election_over_nodes, runs_the_work_of_a_leader) {
    election in_a{of_a, "name", brief("a")};
    std::atomic<int> works{0}, lost{0};
    std::jthread runs{[&](std::stop_token const& stop) {
        in_a.run(
            [&](leadership const& leads) {
                ++works;
                while (!leads.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
            },
            [&](leadership const&) { ++lost; }, stop);
    }};
    ASSERT_TRUE(eventually([&] { return works == 1; }));
    servers[0].stop();
    servers[1].stop();
    EXPECT_TRUE(eventually([&] { return lost == 1; }));
    servers[0].cont();
    servers[1].cont();
    EXPECT_TRUE(eventually([&] { return works == 2; }, 20s));
}

}  // namespace
}  // namespace lockstep::test
