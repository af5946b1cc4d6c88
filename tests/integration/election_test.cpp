// What an election promises, in both forms on every topology. Processes that die, pause or lose their connection: election_fault_test.cpp.
#include "election_support.hpp"
#include "support/failures.hpp"

#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::Gt;
using testing::HasSubstr;
using testing::Le;

class election_contract : public contract {
protected:
    leadership campaign(client& by, election& in) {
        return run(
            by, [&] { return in.campaign(); }, [&] { return in.async_campaign(); });
    }
    std::optional<leadership> try_campaign(client& by, election& in) {
        return run(
            by, [&] { return in.try_campaign(); }, [&] { return in.async_try_campaign(); });
    }
    void resign(client& by, leadership& which) {
        run(
            by, [&] { which.resign(); }, [&] { return which.async_resign(); });
    }
    std::optional<leader_info> leader(client& by, election& of) {
        return run(
            by, [&] { return of.leader(); }, [&] { return of.async_leader(); });
    }
    observation observe(client& by, election& of, seen_changes& into, std::string_view after = {}) {
        return run(
            by, [&] { return of.observe(into.handler(), {.after = after}); },
            [&] { return of.async_observe(into.handler(), {.after = after}); });
    }
    bool stand_in_line(int count) {
        return eventually([&] { return candidates_at(server) == count; });
    }

    election of_a{a, "name", {.id = "a"}};
    election of_b{b, "name", {.id = "b"}};
};
LOCKSTEP_CONTRACT(election_contract);

TEST_P(election_contract, has_one_leader_at_a_time_and_growing_terms) {
    auto first = campaign(a, of_a);
    EXPECT_TRUE(first.valid());
    EXPECT_NO_THROW(first.check());
    EXPECT_GT(first.term(), 0U);
    EXPECT_EQ(first.id(), "a");
    EXPECT_EQ(first.name(), "name");
    EXPECT_FALSE(try_campaign(b, of_b));
    auto const term = first.term();
    resign(a, first);
    EXPECT_FALSE(first);
    EXPECT_FALSE(first.valid());
    EXPECT_THROW(first.resign(), not_held_error);
    auto second = try_campaign(b, of_b);
    ASSERT_TRUE(second);
    EXPECT_GT(second->term(), term);
}

TEST_P(election_contract, passes_to_the_next_in_line_when_the_leader_resigns_or_is_dropped) {
    auto first = campaign(a, of_a);
    auto const term = first.term();
    begun next{of_b.async_campaign()};
    ASSERT_TRUE(stand_in_line(1));
    EXPECT_FALSE(next.done());
    resign(a, first);
    auto second = next.get();
    EXPECT_TRUE(second.valid());
    EXPECT_GT(second.term(), term);
    begun third{of_a.async_campaign()};
    ASSERT_TRUE(stand_in_line(1));
    second = leadership{};
    EXPECT_TRUE(third.get().valid());
}

TEST_P(election_contract, does_not_meet_a_mutex_of_the_same_name) {
    auto const leads = campaign(a, of_a);
    EXPECT_TRUE(mutex(b, "name").try_acquire());
}

TEST_P(election_contract, says_who_leads) {
    EXPECT_FALSE(leader(b, of_b));
    auto leads = campaign(a, of_a);
    begun next{of_b.async_campaign()};
    ASSERT_TRUE(stand_in_line(1));
    auto const seen = leader(b, of_b);
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->id, "a");
    EXPECT_EQ(seen->pid, ::getpid());
    EXPECT_FALSE(seen->host.empty());
    EXPECT_EQ(seen->term, leads.term());
    EXPECT_EQ(seen->candidates, 1U);
    EXPECT_GT(seen->remaining, 5s);
    EXPECT_LE(seen->remaining, 15s);
    auto const age = std::chrono::system_clock::now() - seen->since;
    EXPECT_LT(age, 60s);
    EXPECT_GT(age, -60s);
    resign(a, leads);
    auto second = next.get();
    EXPECT_EQ(leader(a, of_a)->id, "b");
    resign(b, second);
    EXPECT_FALSE(leader(a, of_a));
}

TEST_P(election_contract, shows_every_change_in_order_to_those_who_never_stand) {
    seen_changes seen;
    {
        auto first = campaign(a, of_a);
        auto const watching = observe(b, of_b, seen);
        begun next{of_b.async_campaign()};
        ASSERT_TRUE(stand_in_line(1));
        resign(a, first);
        auto second = next.get();
        ASSERT_TRUE(seen.becomes("resigned a, elected b")) << seen.text();
        resign(b, second);
        ASSERT_TRUE(seen.becomes("resigned a, elected b, resigned b")) << seen.text();
    }
    auto const all = seen.all();
    EXPECT_LT(all[0].term, all[1].term);
    EXPECT_EQ(all[1].term, all[2].term);
    EXPECT_EQ(all[0].pid, ::getpid());
    seen_changes from_start;
    auto const again = observe(a, of_a, from_start, "0");
    EXPECT_TRUE(from_start.becomes("elected a, resigned a, elected b, resigned b")) << from_start.text();
    seen_changes rest;
    auto const later = observe(a, of_a, rest, all[1].position);
    EXPECT_TRUE(rest.becomes("resigned b")) << rest.text();
    EXPECT_EQ(outcome([&] { static_cast<void>(observe(a, of_a, rest, "yesterday")); }), errc::invalid_argument);
}

TEST_P(election_contract, tells_of_a_leader_that_was_removed_by_force) {
    seen_changes seen;
    auto const watching = observe(b, of_b, seen);
    auto leads = campaign(a, of_a);
    auto const token = leads.stop_token();
    begun next{of_b.async_campaign()};
    ASSERT_TRUE(stand_in_line(1));
    monitor watch{b};
    auto const held = watch.active("name");
    ASSERT_EQ(held.size(), 1U);
    EXPECT_EQ(held[0].kind, "election");
    EXPECT_EQ(held[0].use, "leader");
    EXPECT_EQ(held[0].fence, leads.term());
    EXPECT_TRUE(watch.release(held[0], {.force = true}));
    auto const second = next.get();
    EXPECT_GT(second.term(), leads.term());
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(leads.valid());
    EXPECT_THROW(leads.check(), leadership_lost_error);
    EXPECT_EQ(ending_of([&] { resign(a, leads); }).reason, errc::leadership_lost);
    EXPECT_TRUE(seen.becomes("elected a, removed a, elected b")) << seen.text();
}

TEST_P(election_contract, stops_standing_when_it_is_told_to) {
    auto first = campaign(a, of_a);
    std::stop_source stop;
    begun next{with_stop_token(of_b.async_campaign(), stop.get_token())};
    ASSERT_TRUE(stand_in_line(1));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { static_cast<void>(next.get()); }).reason, errc::cancelled);
    EXPECT_TRUE(stand_in_line(0));
    EXPECT_FALSE(run(
        b, [&] { return of_b.try_campaign_for(50ms); }, [&] { return of_b.async_try_campaign_for(50ms); }));
    EXPECT_TRUE(stand_in_line(0));
}

TEST_P(election_contract, prefers_the_highest_priority_and_then_the_first) {
    auto leads = campaign(a, of_a);
    election low{b, "name", {.id = "low", .priority = 1}};
    election high{b, "name", {.id = "high", .priority = 7}};
    election also_high{a, "name", {.id = "also high", .priority = 7}};
    std::vector<election*> const order{&of_b, &low, &high, &also_high};
    std::vector<std::unique_ptr<begun<leadership>>> standing;
    for (auto* const one : order) {
        standing.push_back(std::make_unique<begun<leadership>>(one->async_campaign()));
        ASSERT_TRUE(stand_in_line(static_cast<int>(standing.size())));
    }
    for (std::size_t const next : {2U, 3U, 1U, 0U}) {
        resign(a, leads);
        leads = standing[next]->get();
        EXPECT_EQ(leads.id(), order[next]->id());
    }
}

TEST_P(election_contract, leaves_nothing_that_does_not_expire) {
    auto leads = campaign(a, of_a);
    resign(a, leads);
    seen_changes seen;
    auto const watching = observe(b, of_b, seen, "0");
    ASSERT_TRUE(seen.becomes("elected a, resigned a"));
    EXPECT_GT(server.must({"PTTL", "lockstep:{name}:election"}).integer, 0);
    EXPECT_GT(server.must({"PTTL", "lockstep:{name}:changes"}).integer, 0);
}

TEST_P(election_contract, runs_the_work_while_it_leads_and_resigns_afterwards) {
    std::atomic<int> runs{0};
    std::stop_source stop;
    std::vector<std::uint64_t> terms;
    auto const work = [&](leadership const& leads) {
        EXPECT_TRUE(leads.valid());
        terms.push_back(leads.term());
        if (++runs == 3) stop.request_stop();
    };
    if (GetParam().how == form::blocking) {
        of_a.run(work, stop.get_token());
    } else {
        std::function<task<void>(leadership const&)> const coroutine = [&](leadership const& leads) -> task<void> {
            work(leads);
            co_return;
        };
        begun running{as_true(with_stop_token(of_a.async_run(coroutine), stop.get_token()))};
        EXPECT_EQ(ending_of([&] { running.get(); }).reason, errc::cancelled);
    }
    EXPECT_EQ(runs, 3);
    EXPECT_TRUE(std::ranges::is_sorted(terms, std::less_equal{})) << "each is larger";
    EXPECT_TRUE(try_campaign(b, of_b)) << "it has resigned";
}

TEST_P(election_contract, shows_itself_to_a_monitor) {
    auto leads = campaign(a, of_a);
    begun standing{election{b, "name", {.id = "b", .priority = 3}}.async_campaign()};
    ASSERT_TRUE(stand_in_line(1));
    monitor eye{a};
    auto const holds = eye.active("name");
    ASSERT_EQ(holds.size(), 1U);
    EXPECT_EQ(holds[0].kind, "election");
    EXPECT_EQ(holds[0].use, "leader");
    EXPECT_EQ(holds[0].candidate, "a");
    EXPECT_EQ(holds[0].fence, leads.term());
    auto const waits = eye.waiters("name");
    ASSERT_EQ(waits.size(), 1U);
    EXPECT_EQ(waits[0].priority, 3);
    EXPECT_EQ(waits[0].permits, 1);
    resign(a, leads);
    auto const next = standing.get();
    auto const changes = [&] {
        return run(
            a, [&] { return eye.changes("name"); }, [&] { return eye.async_changes("name"); });
    };
    ASSERT_TRUE(eventually([&] { return changes().size() == 3; }));
    auto const all = changes();
    EXPECT_EQ(to_string(all[0].what), "elected") << "the newest first";
    EXPECT_EQ(all[0].id, "b");
    EXPECT_EQ(all[0].term, next.term());
    EXPECT_EQ(to_string(all[1].what), "resigned");
    EXPECT_EQ(all[2].id, "a");
    EXPECT_TRUE(eye.changes("no such name").empty());
}

TEST(election_options, are_refused_with_what_is_allowed) {
    redis_server server;
    client by{server.url()};
    auto const refusal = [&](election_options const& how) {
        return failure<invalid_argument_error>([&] { election(by, "scheduler", how); });
    };
    EXPECT_THAT(refusal({.ttl = 5s, .renew_deadline = 10s}), AllOf(HasSubstr("scheduler"), HasSubstr("ttl > renew_deadline > retry_period"),
                                                                   HasSubstr("5000 ms > 10000 ms > 666 ms")));
    EXPECT_THAT(refusal({.renew_deadline = 1s, .retry_period = 2s}), HasSubstr("15000 ms > 1000 ms > 2000 ms"));
    EXPECT_THAT(refusal({.ttl = 1min, .retry_period = 1min}), HasSubstr("60000 ms > 54000 ms > 60000 ms"));
    EXPECT_THAT(refusal({.retry_period = 0ms}), HasSubstr("retry_period"));
    EXPECT_THAT(refusal({.priority = -1}), HasSubstr("0 to 1000"));
    EXPECT_THAT(refusal({.id = "two\nlines"}), HasSubstr("control characters"));
    EXPECT_THAT(refusal({.healthy = [] { return true; }, .health_interval = 0ms}), HasSubstr("health_interval"));
    EXPECT_THAT(election(by, "scheduler").id(), HasSubstr(std::to_string(::getpid())));
}

TEST(election_options, that_are_left_out_follow_from_those_that_are_set) {
    redis_server server;
    client by{server.url()};
    auto leads_for = [&, names = 0](election_options options) mutable {
        options.id = "me";
        auto const name = "scheduler-" + std::to_string(++names);  // the one before may not have been given back yet
        election in{by, name, options};
        auto const leads = in.try_campaign();
        if (!leads) ADD_FAILURE() << "does not lead";
        return leads ? leads->remaining() : 0ms;
    };
    auto const about = [](std::chrono::milliseconds time) { return AllOf(Gt(time - 2s), Le(time)); };
    EXPECT_THAT(leads_for({}), about(10s));
    EXPECT_THAT(leads_for({.ttl = 1min, .retry_period = 30s}), about(54s)) << "a minute, renewed every half of it: nine tenths of ttl, for clocks that differ";
    EXPECT_THAT(leads_for({.ttl = 1min}), about(40s));
    EXPECT_THAT(leads_for({.ttl = 5s}), about(3333ms));
    EXPECT_THAT(leads_for({.renew_deadline = 30s}), about(30s));
    EXPECT_THAT(leads_for({.renew_deadline = 3s}), about(3s));
    EXPECT_THAT(leads_for({.retry_period = 30s}), about(60s));
    EXPECT_THAT(leads_for({.ttl = 900ms, .min_replicas = 0}), AllOf(Gt(0ms), Le(600ms)));
}

}  // namespace
}  // namespace lockstep::test
