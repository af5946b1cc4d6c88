// run(), health gates, giving way, replicas: what a candidate does besides standing in line.
#include "election_support.hpp"
#include "lease_fault_support.hpp"
#include "support/failures.hpp"
#include "support/log_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stop_token>
#include <thread>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class a_candidate : public testing::Test {
protected:
    redis_server server;
    client a{server.url()};
    client b{server.url()};
};

/// Waits as the leader-only work of a test, until it must stop.
void work_until_stopped(leadership const& leads) {
    auto const token = leads.stop_token();
    while (!token.stop_requested()) std::this_thread::sleep_for(1ms);
}

TEST_F(a_candidate, ends_its_work_and_resigns_when_it_is_stopped) {
    election of_a{a, "name", {.id = "a"}};
    election of_b{b, "name", {.id = "b"}};
    std::atomic<bool> works{false};
    std::jthread const runs{[&](std::stop_token const& stop) {
        of_a.run(
            [&](leadership const& leads) {
                works = true;
                work_until_stopped(leads);
                works = false;
            },
            [](leadership const&) { ADD_FAILURE() << "nothing was lost"; }, stop);
    }};
    ASSERT_TRUE(eventually([&] { return works.load(); }));
    const_cast<std::jthread&>(runs).request_stop();
    auto const next = of_b.campaign();
    EXPECT_FALSE(works) << "it ended before the next one leads";
}

TEST_F(a_candidate, stands_again_after_it_was_told_to_resign) {
    election of_a{a, "name", {.id = "a"}};
    election of_b{b, "name", {.id = "b"}};
    std::atomic<int> times{0};
    std::jthread runs{[&](std::stop_token const& stop) {
        of_a.run(
            [&](leadership const& leads) {
                ++times;
                work_until_stopped(leads);
                EXPECT_FALSE(leads.valid());
                EXPECT_THROW(leads.check(), leadership_lost_error);
            },
            stop);
    }};
    ASSERT_TRUE(eventually([&] { return times == 1; }));
    begun next{of_b.async_campaign()};
    ASSERT_TRUE(eventually([&] { return candidates_at(server) == 1; }));
    of_a.resign();
    auto leads = next.get();
    EXPECT_EQ(leads.id(), "b");
    ASSERT_TRUE(eventually([&] { return candidates_at(server) == 1; }));
    leads.resign();
    EXPECT_TRUE(eventually([&] { return times == 2; }));
}

TEST_F(a_candidate, says_so_when_its_work_throws_and_does_not_keep_the_seat) {
    election of_a{a, "name"};
    EXPECT_THROW(of_a.run([](leadership const&) { throw std::runtime_error{"no"}; }), std::runtime_error);
    EXPECT_TRUE(election(b, "name").try_campaign_for(10s));
}

TEST_F(a_candidate, calls_on_lost_when_the_leadership_was_lost) {
    log_lines lines;
    std::atomic<bool> works{false}, lost{false};
    {
        client c{server.url()};
        election of_c{c, "name", {.id = "c", .ttl = 600ms, .renew_deadline = 400ms, .retry_period = 50ms}};
        std::jthread runs{[&](std::stop_token const& stop) {
            of_c.run(
                [&](leadership const& leads) {
                    works = true;
                    work_until_stopped(leads);
                },
                [&](leadership const& was) {
                    lost = true;
                    EXPECT_GT(was.term(), 0U);
                },
                stop);
        }};
        ASSERT_TRUE(eventually([&] { return works.load(); }));
        server.stop();
        EXPECT_TRUE(eventually([&] { return lost.load(); }));
        server.cont();
    }
    EXPECT_GE(lines.count("lost the leadership of 'name'"), 1U);
}

TEST_F(a_candidate, steps_down_when_it_could_not_renew_for_so_long_though_its_lease_lasts_longer) {
    log_lines lines;
    client c{server.url()};
    election of_c{c, "name", {.id = "c", .ttl = 6s, .renew_deadline = 2s, .retry_period = 100ms}};
    auto const leads = of_c.campaign();
    EXPECT_LE(leads.remaining(), 2s);
    auto const token = leads.stop_token();
    auto const end = [&] { return std::stoll(server.must({"HGET", "lockstep:{name}:election", "e"}).text); };
    auto const first = end();
    ASSERT_TRUE(eventually([&] { return end() > first + 2'000; })) << "it is renewed";
    ASSERT_FALSE(token.stop_requested());
    // By what it knows: the server may have renewed it once more and been stopped before it said so.
    auto const now = std::chrono::system_clock::now();
    auto const rest_ends = now + leads.remaining() + (6s - 2s);
    server.stop();
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_THROW(leads.check(), leadership_lost_error);
    server.cont();
    auto const next = election(b, "name").try_campaign_for(20s);
    ASSERT_TRUE(next);
    auto const term = std::chrono::system_clock::time_point{std::chrono::microseconds{next->term()}};  // terms are the server's time
    EXPECT_GE(term, rest_ends) << "the rest of its ttl is there to stop in";
}

TEST_F(a_candidate, stands_again_when_its_work_finds_out_that_it_leads_no_more) {
    for (bool const blocking : {true, false}) {
        election of_a{a, "name", {.id = "a"}};
        std::atomic<int> times{0};
        std::stop_source stop;
        auto const begin = [&](leadership const& leads) {
            if (++times > 1) return true;
            of_a.resign();
            leads.check();
            ADD_FAILURE() << "it was asked to resign";
            return false;
        };
        if (blocking) {
            of_a.run([&](leadership const& leads) { if (begin(leads)) stop.request_stop(); }, stop.get_token());
        } else {
            std::function<task<void>(leadership const&)> const work = [&](leadership const& leads) -> task<void> {
                if (begin(leads)) stop.request_stop();
                co_return;
            };
            EXPECT_EQ(outcome([&] { sync_wait(of_a.async_run(work), stop.get_token()); }), errc::cancelled);
        }
        EXPECT_EQ(times, 2);
    }
}

TEST_F(a_candidate, has_heard_its_gate_before_it_says_that_it_does_not_lead) {
    election of_a{a, "name", {.id = "a", .healthy = [] { return true; }}};
    EXPECT_TRUE(of_a.try_campaign());
    election sick{b, "other", {.id = "b", .healthy = [] { return false; }}};
    EXPECT_FALSE(sick.try_campaign());
}

TEST_F(a_candidate, does_not_stand_while_it_is_unhealthy) {
    std::atomic<bool> healthy{false};
    election of_a{a, "name", {.id = "a", .healthy = [&] { return healthy.load(); }, .health_interval = 10ms}};
    begun leads{of_a.async_campaign()};
    EXPECT_FALSE(of_a.try_campaign_for(100ms));
    EXPECT_FALSE(leads.done());
    healthy = true;
    EXPECT_TRUE(leads.get().valid());
}

TEST_F(a_candidate, leaves_the_line_when_it_becomes_unhealthy_and_comes_back) {
    election of_b{b, "name", {.id = "b"}};
    auto leads = of_b.campaign();
    std::atomic<bool> healthy{true};
    election of_a{a, "name", {.id = "a", .healthy = [&] { return healthy.load(); }, .health_interval = 10ms}};
    begun standing{of_a.async_campaign()};
    ASSERT_TRUE(eventually([&] { return candidates_at(server) == 1; }));
    healthy = false;
    ASSERT_TRUE(eventually([&] { return candidates_at(server) == 0; }));
    healthy = true;
    ASSERT_TRUE(eventually([&] { return candidates_at(server) == 1; }));
    leads.resign();
    EXPECT_EQ(standing.get().id(), "a");
}

TEST_F(a_candidate, resigns_when_it_is_unhealthy_or_its_gate_hangs_or_throws) {
    enum class how { well, sick, hanging, throwing };
    log_lines lines;
    std::atomic<how> is{how::well};
    auto const gate = [&] {
        while (is == how::hanging) std::this_thread::sleep_for(1ms);
        if (is == how::throwing) throw std::runtime_error{"no answer"};
        return is != how::sick;
    };
    client c{server.url()};
    election of_c{c, "name", {.id = "c", .healthy = gate, .health_interval = 10ms, .health_timeout = 50ms}};
    election of_b{b, "name", {.id = "b"}};
    std::atomic<bool> works{false};
    std::jthread runs{[&](std::stop_token const& stop) {
        of_c.run(
            [&](leadership const& leads) {
                works = true;
                work_until_stopped(leads);
                works = false;
            },
            stop);
    }};
    for (auto const next : {how::sick, how::hanging, how::throwing}) {
        is = how::well;
        ASSERT_TRUE(eventually([&] { return works.load(); }));
        is = next;
        auto leads = of_b.try_campaign_for(20s);
        ASSERT_TRUE(leads);
        EXPECT_FALSE(works);
    }
    EXPECT_GE(lines.count("no answer"), 1U);
    runs.request_stop();
    runs.join();
}

TEST_F(a_candidate, that_stepped_down_keeps_the_seat_for_a_while_only) {
    log_lines lines;
    client c{server.url()};
    election of_c{c, "name", {.id = "c", .ttl = 1200ms, .renew_deadline = 500ms, .retry_period = 100ms}};
    election of_b{b, "name", {.id = "b"}};
    auto leads = of_c.campaign();
    auto const token = leads.stop_token();
    of_c.resign();
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(leads.valid());
    EXPECT_FALSE(of_b.try_campaign()) << "it may still finish";
    EXPECT_TRUE(of_b.try_campaign_for(20s));
    EXPECT_EQ(outcome([&] { leads.resign(); }), errc::leadership_lost);
    EXPECT_EQ(lines.count("was taken from c"), 1U);
}

TEST_F(a_candidate, gives_way_to_a_higher_priority_where_it_is_asked_to) {
    election low{a, "name", {.id = "low", .priority = 1, .give_way = true, .heartbeat_interval = 20ms}};
    election equal{b, "name", {.id = "equal", .priority = 1}};
    election high{b, "name", {.id = "high", .priority = 2}};
    std::atomic<bool> works{false};
    std::jthread runs{[&](std::stop_token const& stop) {
        low.run(
            [&](leadership const& leads) {
                works = true;
                work_until_stopped(leads);
                works = false;
            },
            stop);
    }};
    ASSERT_TRUE(eventually([&] { return works.load(); }));
    EXPECT_FALSE(equal.try_campaign_for(300ms));
    EXPECT_TRUE(works);
    auto leads = high.try_campaign_for(10s);
    ASSERT_TRUE(leads);
    EXPECT_FALSE(works);
    leads->resign();
    EXPECT_TRUE(eventually([&] { return works.load(); })) << "and stands again";
}

TEST_F(a_candidate, leads_only_when_enough_replicas_have_heard_of_it) {
    log_lines lines;
    redis_server primary{{.tcp = true}};
    client c{primary.url()};
    election of_c{c, "name", {.id = "c", .retry_period = 50ms, .min_replicas = 1, .replica_timeout = 50ms}};
    begun standing{of_c.async_campaign()};
    ASSERT_TRUE(eventually([&] { return lines.count("replicas must hear of it") >= 2; })) << lines.text();
    EXPECT_FALSE(standing.done());
    EXPECT_FALSE(of_c.try_campaign_for(10ms));
    redis_server replica{{.tcp = true, .replica_of = primary.address()}};
    auto leads = standing.get();
    EXPECT_TRUE(leads.valid());
    EXPECT_NE(replica.must({"HGET", "lockstep:{name}:election", "n"}).text.find("c"), std::string::npos);
    EXPECT_EQ(of_c.leader()->term, leads.term());
}

TEST_F(a_candidate, steps_down_when_its_replicas_do_not_hear_of_it_any_more) {
    log_lines lines;
    redis_server primary{{.tcp = true}};
    redis_server replica{{.tcp = true, .replica_of = primary.address()}};
    client c{primary.url()};
    election of_c{c, "name", {.id = "c", .ttl = 3s, .renew_deadline = 2s, .retry_period = 50ms, .min_replicas = 1, .replica_timeout = 100ms}};
    auto const leads = of_c.campaign();
    auto const token = leads.stop_token();
    replica.stop();
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }, 20s));
    EXPECT_FALSE(leads.valid());
    EXPECT_EQ(lines.count("fewer than 1 replicas have heard of it"), 1U) << lines.text();
    replica.cont();
}

// A replica that is promoted gives the seat away when the ttl of the last renewal it heard of is over, however long an answer may take.
TEST_F(a_candidate, steps_down_at_its_deadline_while_it_waits_for_its_replicas) {
    redis_server primary{{.tcp = true}};
    redis_server replica{{.tcp = true, .replica_of = primary.address()}};
    client c{primary.url()};
    election of_c{c, "name", {.id = "c", .ttl = 4s, .renew_deadline = 3s, .retry_period = 200ms, .min_replicas = 1, .replica_timeout = 2500ms}};
    auto const leads = of_c.campaign();
    auto const token = leads.stop_token();
    ASSERT_TRUE(eventually([&] { return calls_of(primary, "wait") >= 3; }));
    replica.stop();
    auto const begin = now_ms();
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }, 20s));
    EXPECT_LE(now_ms() - begin, 3'000 + load_slack.count());
    EXPECT_GE(now_ms() - begin, 3'000 - 200 * 12 / 10 - load_slack.count());
    EXPECT_FALSE(leads.valid());
    replica.cont();
}

TEST_F(a_candidate, refuses_replica_times_that_leave_no_time_to_ask) {
    election_options how{.ttl = 10s, .renew_deadline = 5s, .retry_period = 1s, .min_replicas = 1, .replica_timeout = 4s};
    EXPECT_NO_THROW(election(a, "name", how));
    how.replica_timeout = 4001ms;
    EXPECT_THAT(failure<invalid_argument_error>([&] { election(a, "name", how); }), AllOf(HasSubstr("replica_timeout"), HasSubstr("4000 ms")));
    how.min_replicas = 0;
    EXPECT_NO_THROW(election(a, "name", how));
}

TEST_F(a_candidate, does_not_wait_for_a_health_check_that_hangs_when_it_goes) {
    auto const go_on = std::make_shared<std::atomic<bool>>(false);
    auto const asked = std::make_shared<std::atomic<bool>>(false);
    auto const ended = std::make_shared<std::atomic<bool>>(false);
    auto const hangs = [=] {
        asked->store(true);
        while (!*go_on) std::this_thread::sleep_for(1ms);
        ended->store(true);
        return true;
    };
    {
        election const of_a{a, "name", {.id = "a", .healthy = hangs, .health_interval = 10ms, .health_timeout = 50ms}};
        ASSERT_TRUE(eventually([&] { return asked->load(); }));
    }
    EXPECT_FALSE(*ended) << "the destructor waited for it";
    go_on->store(true);
    EXPECT_TRUE(eventually([&] { return ended->load() && go_on.use_count() == 2; })) << "its thread goes on for ever";
}

TEST_F(a_candidate, tells_a_health_check_that_its_answer_is_not_wanted_any_more) {
    std::atomic<bool> asked{false}, ended{false};
    auto const looks = [&](std::stop_token const& stop) {
        asked = true;
        while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
        ended = true;
        return true;
    };
    {
        election const of_a{a, "name", {.id = "a", .healthy = looks, .health_timeout = 30s}};
        ASSERT_TRUE(eventually([&] { return asked.load(); }));
    }
    EXPECT_TRUE(ended);
}

TEST_F(a_candidate, may_stand_twice_in_one_election) {
    election of_a{a, "name", {.id = "a"}};
    election watches{b, "name", {.id = "b"}};
    seen_changes seen;
    auto const watching = watches.observe(seen.handler());
    begun first{of_a.async_campaign()};
    begun second{of_a.async_campaign()};
    ASSERT_TRUE(eventually([&] { return first.done() || second.done(); }));
    ASSERT_TRUE(eventually([&] { return candidates_at(server) == 1; }));
    auto& ahead = first.done() ? first : second;
    auto& behind = first.done() ? second : first;
    auto leads = ahead.get();
    auto const term = leads.term();
    EXPECT_TRUE(seen.becomes("elected a")) << seen.text();
    leads.resign();
    EXPECT_GT(behind.get().term(), term);
    EXPECT_TRUE(eventually([&] { return seen.text().starts_with("elected a, resigned a, elected a"); })) << seen.text();
}

}  // namespace
}  // namespace lockstep::test
