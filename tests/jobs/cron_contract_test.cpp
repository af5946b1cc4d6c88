// What schedules of jobs promise, in both forms on every topology.
#include "jobs_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using text = std::string;
using time = std::chrono::system_clock::time_point;

class cron_contract : public contract {
protected:
    time put(text const& id, cron_options const& how, text const& payload = "x") {
        return run(
            a, [&] { return jobs.cron(id, "mail", payload, how); }, [&] { return jobs.async_cron(id, "mail", payload, how); });
    }
    bool drop(text const& id) {
        return run(
            a, [&] { return jobs.drop_cron(id); }, [&] { return jobs.async_drop_cron(id); });
    }
    bool pause(text const& id) {
        return run(
            a, [&] { return jobs.pause_cron(id); }, [&] { return jobs.async_pause_cron(id); });
    }
    bool resume(text const& id) {
        return run(
            a, [&] { return jobs.resume_cron(id); }, [&] { return jobs.async_resume_cron(id); });
    }
    std::vector<cron_info> all() {
        return run(
            a, [&] { return jobs.crons(); }, [&] { return jobs.async_crons(); });
    }
    std::vector<text> ids() {
        std::vector<text> found;
        for (auto const& one : all()) found.push_back(one.id);
        return found;
    }
    /// As if it had been due so long ago, and nobody was there.
    void miss(text const& id, std::chrono::seconds since) {
        auto const due = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now() - since);
        server.must({"ZADD", "lockstep:{name}:jobs:crons", "XX", std::to_string(due.time_since_epoch().count() * 1000), id});
    }
    /// Hourly, and as far from now as it can be, so that no due time falls into the test.
    static text half_past() {
        auto const minute = std::chrono::system_clock::now().time_since_epoch() / 1min;
        return std::to_string((minute + 30) % 60) + " * * * *";
    }
    /// The jobs that schedules made, in the order in which they came.
    std::vector<job_info> made() { return jobs.list("mail", job_state::waiting, 0, 1'000); }
    /// A worker that fires schedules, and runs nothing.
    std::unique_ptr<job_worker> keeper() {
        auto made = std::make_unique<job_worker>(b, "name");
        made->start();
        return made;
    }

    job_client jobs{a, "name"};
};
LOCKSTEP_CONTRACT(cron_contract);

TEST_P(cron_contract, are_run_at_their_due_times) {
    auto const seen = std::make_shared<diary>();
    job_worker worker{b, "name"};
    worker.handle<text>("mail", [seen](job_context& job, text const& what) {
        seen->add(what + ' ' + std::to_string(job.due().time_since_epoch() / 1s));
        return what;
    });
    worker.start();
    auto const first = put("tick", {.expression = "* * * * * *"}, "hello");
    EXPECT_GT(first, std::chrono::system_clock::now() - 10s);
    ASSERT_TRUE(eventually([&] { return seen->size() >= 2; }));
    ASSERT_TRUE(drop("tick"));
    auto const first_second = first.time_since_epoch() / 1s;
    EXPECT_EQ(seen->all()[0], "hello " + std::to_string(first_second));
    EXPECT_EQ(seen->all()[1], "hello " + std::to_string(first_second + 1));
    auto const done = jobs.list("mail", job_state::completed);
    ASSERT_GE(done.size(), 1U);
    EXPECT_EQ(done.back().cron, "tick");
    EXPECT_EQ(done.back().due, first);
    EXPECT_EQ(done.back().payload, "hello");
}

TEST_P(cron_contract, are_listed_replaced_and_dropped) {
    put("late", {.expression = "@yearly", .zone = "Europe/Berlin", .missed = missed_runs::all}, "a");
    put("soon", {.expression = "* * * * * *", .job = {.priority = 3, .key = "k"}}, "b");
    EXPECT_THAT(ids(), ElementsAre("soon", "late"));
    auto const found = all();
    EXPECT_EQ(found[1].type, "mail");
    EXPECT_EQ(found[1].expression, "@yearly");
    EXPECT_EQ(found[1].zone, "Europe/Berlin");
    EXPECT_EQ(found[1].missed, missed_runs::all);
    EXPECT_EQ(found[1].payload, "a");
    EXPECT_EQ(found[0].payload, "b");
    EXPECT_FALSE(found[0].last);
    ASSERT_TRUE(found[0].next);
    EXPECT_GT(*found[0].next, std::chrono::system_clock::now() - 10s);
    auto const monthly = put("late", {.expression = "@monthly"}, "c");
    EXPECT_EQ(monthly, *all()[1].next);
    EXPECT_EQ(all().size(), 2U);
    EXPECT_EQ(all()[1].payload, "c");
    EXPECT_TRUE(drop("late"));
    EXPECT_FALSE(drop("late")) << "there is none any more";
    EXPECT_THAT(ids(), ElementsAre("soon"));
    EXPECT_TRUE(drop("soon"));
    EXPECT_EQ(server.must({"EXISTS", "lockstep:{name}:jobs:crons", "lockstep:{name}:jobs:crons:specs", "lockstep:{name}:jobs:crons:last"}).integer, 0);
}

TEST_P(cron_contract, that_are_put_again_as_they_are_keep_the_time_when_they_are_due) {
    put("nightly", {.expression = "@daily", .missed = missed_runs::once}, "a");
    miss("nightly", 7200s);
    auto const due = *all()[0].next;
    EXPECT_EQ(put("nightly", {.expression = "@daily", .missed = missed_runs::once}, "b"), due) << "it was missed, and is to be made up for";
    EXPECT_GT(put("nightly", {.expression = "@hourly"}, "c"), due);
}

TEST_P(cron_contract, that_are_paused_are_not_run_until_they_are_resumed) {
    put("tick", {.expression = "* * * * * *"});
    EXPECT_TRUE(pause("tick"));
    EXPECT_FALSE(all()[0].next);
    EXPECT_EQ(put("tick", {.expression = "*/2 * * * * *"}), time{}) << "it stays paused";
    put("other", {.expression = "* * * * * *"}, "other");
    auto const worker = keeper();
    ASSERT_TRUE(eventually([&] { return made().size() >= 2; }));
    for (auto const& one : made()) EXPECT_EQ(one.cron, "other");
    EXPECT_TRUE(drop("other"));
    EXPECT_TRUE(resume("tick"));
    EXPECT_FALSE(resume("tick")) << "it goes on already";
    EXPECT_FALSE(pause("none"));
    EXPECT_FALSE(resume("none"));
    ASSERT_TRUE(eventually([&] { return made().back().cron == "tick"; }));
    ASSERT_TRUE(all()[0].last);
    EXPECT_TRUE(all()[0].last_job.starts_with("mail/"));
}

TEST_P(cron_contract, that_were_missed_are_made_up_for_as_their_policy_says) {
    auto const hourly = half_past();
    put("skip", {.expression = hourly});
    put("once", {.expression = hourly, .missed = missed_runs::once, .job = {.attempts = 7}});
    put("all", {.expression = hourly, .missed = missed_runs::all, .job = {.priority = 1}});
    put("late", {.expression = hourly, .late = 4h});
    for (auto const* const id : {"skip", "once", "all", "late"}) miss(id, 3h - 1s);
    auto const worker = keeper();
    ASSERT_TRUE(eventually([&] {
        auto const now = all();
        return std::all_of(now.begin(), now.end(), [](cron_info const& one) { return *one.next > std::chrono::system_clock::now() - 1s; });
    }));
    std::map<text, int> count;
    for (auto const& one : made()) ++count[one.cron];
    EXPECT_EQ(count["skip"], 0);
    EXPECT_EQ(count["once"], 1);
    EXPECT_EQ(count["all"], 4) << "the one that was missed, and those since";
    EXPECT_EQ(count["late"], 4);
    auto const first = made().front();
    EXPECT_EQ(first.cron, "all") << "its priority is larger";
    for (auto const& one : made()) EXPECT_EQ(one.attempts, one.cron == "once" ? 7 : 20);
}

TEST_P(cron_contract, with_a_key_make_no_second_job_while_the_first_one_waits) {
    put("tick", {.expression = "* * * * * *", .missed = missed_runs::all, .job = {.key = "k"}});
    put("other", {.expression = "* * * * * *", .missed = missed_runs::all});
    for (auto const* const id : {"tick", "other"}) miss(id, 100s);
    auto const worker = keeper();
    ASSERT_TRUE(eventually([&] { return made().size() > 100; }));
    auto const found = made();
    EXPECT_EQ(std::count_if(found.begin(), found.end(), [](job_info const& one) { return one.cron == "tick"; }), 1);
    EXPECT_TRUE(drop("tick"));
    EXPECT_TRUE(drop("other"));
    EXPECT_EQ(jobs.schedule("mail", text{"y"}, {.key = "k"}).is_new, false);
}

TEST_P(cron_contract, of_which_one_at_a_time_is_run_skip_queue_or_replace) {
    std::pair<char const*, single_policy> const policies[] = {{"skip", single_policy::skip}, {"queue", single_policy::queue}, {"replace", single_policy::replace}};
    for (auto const& [id, policy] : policies) {
        auto const expression = half_past();
        put(id, {.expression = expression, .missed = missed_runs::all, .job = {.single = id, .when_running = policy, .tags = "night"}});
        miss(id, 5h - 1s);
    }
    auto const worker = keeper();
    auto const in = [&](job_state state) {
        std::map<text, int> count;
        for (auto const& one : jobs.list("mail", state, 0, 1'000)) ++count[one.cron];
        return count;
    };
    ASSERT_TRUE(eventually([&] { return in(job_state::waiting).size() == 3; }));
    ASSERT_TRUE(eventually([&] { return in(job_state::blocked)["queue"] >= 4; }));
    ASSERT_TRUE(eventually([&] { return in(job_state::cancelled)["replace"] >= 4; }));
    for (auto const& one : policies) EXPECT_EQ(in(job_state::waiting)[one.first], 1) << one.first;
    EXPECT_EQ(in(job_state::blocked)["skip"] + in(job_state::blocked)["replace"], 0);
    EXPECT_EQ(in(job_state::cancelled)["skip"] + in(job_state::cancelled)["queue"], 0);
    auto const blocked = in(job_state::blocked)["queue"];
    for (auto const& one : jobs.tagged("mail", "night")) EXPECT_THAT(one.tags, ElementsAre("night"));

    std::mutex mutex;
    std::map<text, int> runs;
    std::atomic<int> at_once{0};
    job_worker runner{b, "name", {.concurrency = 8, .fires_crons = false}};
    runner.handle<text>("mail", [&](job_context& job, text const&) {
        auto const from = jobs.find(job.id())->cron;
        bool const is_queued = from == "queue";
        EXPECT_LE(at_once += is_queued, 1);
        std::lock_guard const guard{mutex};
        ++runs[from];
        at_once -= is_queued;
    });
    runner.start();
    ASSERT_TRUE(eventually([&] {
        auto const now = jobs.counts("mail");
        return now.waiting + now.blocked + now.running == 0;
    }));
    runner.stop();
    EXPECT_EQ(runs["queue"], blocked + 1) << "one after the other";
    EXPECT_EQ(runs["skip"], 1);
    EXPECT_EQ(runs["replace"], 1);
}

TEST_P(cron_contract, that_could_not_be_are_refused) {
    EXPECT_THROW(put("x", {.expression = "61 * * * *"}), invalid_argument_error);
    EXPECT_THROW(put("x", {.expression = ""}), invalid_argument_error);
    EXPECT_THROW(put("x", {.expression = "0 0 30 2 *"}), invalid_argument_error) << "it would never be due";
    EXPECT_THROW(put("x", {.expression = "@daily", .zone = "Europe/Nowhere"}), invalid_argument_error);
    EXPECT_THROW(put("x", {.expression = "@daily", .late = 1ms}), invalid_argument_error);
    EXPECT_THROW(put("x", {.expression = "@daily", .job = {.delay = 1s}}), invalid_argument_error);
    EXPECT_THROW(put("x", {.expression = "@daily", .job = {.attempts = 0}}), invalid_argument_error);
    EXPECT_THROW(put("x", {.expression = "@daily", .job = {.batch = "b"}}), invalid_argument_error);
    EXPECT_THROW(put("x", {.expression = "@daily", .job = {.key = "k", .single = "s"}}), invalid_argument_error);
    EXPECT_THROW(put("", {.expression = "@daily"}), invalid_argument_error);
    EXPECT_THROW(put("a b", {.expression = "@daily"}), invalid_argument_error);
    EXPECT_THROW(jobs.cron("x", "a:b", text{}, {.expression = "@daily"}), invalid_argument_error);
    EXPECT_THROW(drop("a\nb"), invalid_argument_error);
    EXPECT_THROW((job_worker{b, "name", {.cron_takeover = 1ms}}), invalid_argument_error);
    EXPECT_TRUE(all().empty());
}

}  // namespace
}  // namespace lockstep::test
