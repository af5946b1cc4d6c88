// Elections when the server's clock is set: forward under a leader, and back by a failover.
#include "election_support.hpp"
#include "script_support.hpp"
#include "support/clock_file.hpp"
#include "support/fault_proxy.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep::test {
namespace {

class election_clocks : public testing::Test {
protected:
    std::string field(std::string const& name) { return server.must({"HGET", "lockstep:{name}:election", name}).text; }

    clock_file clock;
    redis_server server{{.clock = &clock}};
    client a{server.url()};
    client b{server.url()};
};

// By its own clock it is valid for another while, so nobody else may lead.
TEST_F(election_clocks, give_a_leader_that_can_be_reached_a_renewal_before_its_seat_is_taken) {
    election of_a{a, "name", {.id = "a", .ttl = 15s, .renew_deadline = 12s, .retry_period = 6s}};
    election of_b{b, "name", {.id = "b"}};
    seen_changes seen;
    auto const watching = of_b.observe(seen.handler());
    auto leads = of_a.campaign();
    begun standing{of_b.async_campaign()};
    ASSERT_TRUE(eventually([&] { return candidates_at(server) == 1; }));
    for (int i = 0; i != 3; ++i) {
        clock.step(20s);  // more than its ttl
        EXPECT_FALSE(eventually([&] { return of_b.try_campaign().has_value(); }, 1s)) << "two lead";  // twice its claim window
        EXPECT_TRUE(of_b.leader().has_value());
        EXPECT_FALSE(standing.done());
        EXPECT_TRUE(leads.valid());
        EXPECT_TRUE(eventually([&] { return field("j").empty(); })) << "it has not renewed";
    }
    leads.resign();
    auto const next = standing.get();
    EXPECT_TRUE(next.valid());
    EXPECT_TRUE(seen.becomes("elected a, resigned a, elected b")) << seen.text();
}

TEST_F(election_clocks, give_the_seat_of_one_that_does_not_renew_to_the_next) {
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    election of_far{far, "name", {.id = "far"}};
    election of_b{b, "name", {.id = "b"}};
    auto const leads = of_far.campaign();
    proxy.half_open();
    clock.step(20s);
    begun standing{of_b.async_campaign()};
    EXPECT_TRUE(eventually([&] { return !field("j").empty(); })) << "it was not asked";
    EXPECT_TRUE(standing.get().valid()) << "a claim window later";
    EXPECT_EQ(field("j"), "");
}

TEST_F(election_clocks, give_the_seat_of_one_that_is_gone_to_the_next_at_once) {
    run_script(server, scripts::election_acquire, {"lockstep:{name}:election", "lockstep:{name}:changes"},
               {"dead.1", "60000", "99999999999999", "1", "100", "500 3600000 lockstep:wake:", "1 host dead", "0"});
    clock.step(61s);
    election of_b{b, "name", {.id = "b"}};
    EXPECT_TRUE(of_b.try_campaign());
}

// Its server forgot the latest changes, and its clock is behind: what comes then stands before what was read last.
TEST_F(election_clocks, do_not_hide_changes_from_an_observer_after_a_failover) {
    election of_b{b, "name", {.id = "b"}};
    seen_changes seen;
    auto const add = [&](std::string const& position, std::string const& what, std::string const& term, std::string const& id) {
        server.must({"XADD", "lockstep:{name}:changes", position, "what", what, "term", term, "ms", "1", "who", "1 host " + id});
    };
    add("5000-0", "elected", "1", "old");
    auto const watching = of_b.observe(seen.handler());
    auto const tell = [&] { server.must({"PUBLISH", "lockstep:{name}:changes", "changed"}); };
    add("6000-0", "lost", "1", "old");
    add("7000-0", "elected", "2", "forgotten");
    tell();
    ASSERT_TRUE(seen.becomes("lost old, elected forgotten")) << seen.text();
    server.must({"DEL", "lockstep:{name}:changes"});
    add("5000-0", "elected", "1", "old");
    add("6000-0", "lost", "1", "old");
    add("6500-0", "elected", "2", "new");  // of the same term: that one was forgotten, too
    add("6600-0", "resigned", "2", "new");
    add("6700-0", "elected", "3", "newer");
    server.must({"CLIENT", "KILL", "TYPE", "pubsub"});
    server.must({"CLIENT", "KILL", "TYPE", "normal"});
    EXPECT_TRUE(eventually([&] { return seen.text().ends_with("elected newer"); }, 20s)) << seen.text();
    EXPECT_EQ(seen.text(), "lost old, elected forgotten, resigned new, elected newer") << "each once";
    add("6800-0", "lost", "3", "newer");
    EXPECT_TRUE(eventually([&] { return seen.text().ends_with("lost newer"); }, 20s)) << "it goes on from there";
}

TEST_F(election_clocks, do_not_hide_changes_when_everything_was_forgotten) {
    election of_b{b, "name", {.id = "b"}};
    seen_changes seen;
    auto const watching = of_b.observe(seen.handler());
    auto const first = election{a, "name", {.id = "a"}}.campaign().term();
    ASSERT_TRUE(eventually([&] { return seen.all().size() >= 1; }));
    clock.step(-30s);
    server.restart();
    client c{server.url()};
    auto const leads = election{c, "name", {.id = "c"}}.campaign();
    EXPECT_LT(leads.term(), first) << "the clock is behind";
    EXPECT_TRUE(eventually([&] { return seen.text().ends_with("elected c"); }, 20s)) << seen.text();
}

}  // namespace
}  // namespace lockstep::test
