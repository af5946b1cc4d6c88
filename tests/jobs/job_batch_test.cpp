// What batches promise, in both forms on every topology.
#include "jobs_support.hpp"

#include <lockstep/consumer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace lockstep::test {
namespace {

using text = std::string;

class job_batch_contract : public contract {
protected:
    job_batch make(text const& id, std::int64_t total, batch_options const& how = {}) {
        return run(
            a, [&] { return jobs.batch(id, total, how); }, [&] { return jobs.async_batch(id, total, how); });
    }
    job_batch make_then(text const& id, std::int64_t total, batch_options const& how) {
        return run(
            a, [&] { return jobs.batch(id, total, how, "other", text{"then"}); }, [&] { return jobs.async_batch(id, total, how, "other", text{"then"}); });
    }
    batch_info end_of(job_batch& which, std::chrono::milliseconds time = 20s) {
        auto const end = run(
            a, [&] { return which.wait(time); }, [&] { return which.async_wait(time); });
        return end.value_or(batch_info{});
    }
    batch_info info(job_batch& of) {
        return run(
            a, [&] { return of.info(); }, [&] { return of.async_info(); });
    }
    std::vector<text> schedule(text const& batch, std::vector<text> const& all) {
        auto const done = run(
            a, [&] { return jobs.schedule_many<text>("mail", all, {.batch = batch}); }, [&] { return jobs.async_schedule_many<text>("mail", all, {.batch = batch}); });
        std::vector<text> ids;
        for (auto const& one : done) ids.push_back(one.id);
        return ids;
    }
    /// One whose payload begins with ! fails, as long as it is to.
    void start() {
        for (text const type : {"mail", "other"}) {
            worker.handle<text>(type, [this](text const& what) -> task<text> {
                seen.add(what);
                if (what[0] == '!' && is_bad) throw reject("bad");
                co_return what;
            });
        }
        worker.start();
    }
    long ttl(text const& id) { return static_cast<long>(server.must({"PTTL", "lockstep:{name}:jobs:batch:" + id}).integer); }

    job_client jobs{a, "name"};
    diary seen;
    std::atomic<bool> is_bad{true};
    job_worker worker{b, "name", {.concurrency = 4}};
};
LOCKSTEP_CONTRACT(job_batch_contract);

TEST_P(job_batch_contract, ends_when_all_its_jobs_have_completed) {
    auto batch = make("b", 500);
    EXPECT_FALSE(batch.wait(0ms));
    std::vector<text> some(300, "x");
    schedule("b", some);
    start();
    ASSERT_TRUE(eventually([&] { return info(batch).completed == 300; }));
    EXPECT_EQ(info(batch).state, job_state::running);
    schedule("b", std::vector<text>(200, "y"));
    auto const end = end_of(batch);
    EXPECT_EQ(end.state, job_state::completed);
    EXPECT_EQ(end.total, 500);
    EXPECT_EQ(end.completed, 500);
    EXPECT_EQ(end.failed + end.cancelled, 0);
    EXPECT_EQ(seen.size(), 500);
}

TEST_P(job_batch_contract, may_be_named_after_its_jobs_have_ended_and_twice) {
    start();
    auto const ids = schedule("b", {"1", "2", "3"});
    for (auto const& id : ids) ASSERT_TRUE(jobs.wait(id, 10s));
    EXPECT_GT(ttl("b"), 0) << "nobody is left who could end it";
    auto batch = make("b", 3);
    EXPECT_EQ(end_of(batch).state, job_state::completed);
    auto again = make("b", 3);
    EXPECT_EQ(end_of(again).completed, 3);
    EXPECT_THROW(make("b", 4), invalid_argument_error);
    EXPECT_THROW(make("b", 3, {.policy = batch_policy::fail_at_once}), invalid_argument_error);
}

TEST_P(job_batch_contract, waits_for_all_or_fails_at_once_as_it_says) {
    auto all = make_then("all", 3, {.keep = 1h});
    auto once = make_then("once", 3, {.policy = batch_policy::fail_at_once, .keep = 1h});
    schedule("all", {"!1", "2"});
    schedule("once", {"!1", "2"});
    start();
    auto const failed = end_of(once);
    EXPECT_EQ(failed.state, job_state::failed);
    EXPECT_EQ(failed.failed, 1);
    EXPECT_LE(ttl("once"), 3'600'000);
    EXPECT_GT(ttl("once"), 3'000'000);
    EXPECT_FALSE(all.wait(50ms));
    auto const last = schedule("all", {"3"});
    auto const end = end_of(all);
    EXPECT_EQ(end.state, job_state::failed);
    EXPECT_EQ(end.completed, 2);
    EXPECT_EQ(end.failed, 1);
    EXPECT_EQ(jobs.wait(end.then, 10s)->result, "then") << "all have ended";
    schedule("once", {"3"});
    ASSERT_TRUE(eventually([&] { return info(once).completed == 2; }));
    EXPECT_EQ(info(once).then, "") << "one of its jobs failed";
    EXPECT_EQ(jobs.counts("other").ever_added, 1);
}

TEST_P(job_batch_contract, schedules_a_job_once_when_it_ends) {
    auto batch = make_then("b", 3, {.policy = batch_policy::fail_at_once});
    start();
    schedule("b", {"1", "2", "3"});
    auto const end = end_of(batch);
    EXPECT_EQ(end.state, job_state::completed);
    EXPECT_EQ(jobs.wait(end.then, 10s)->result, "then");
    EXPECT_EQ(make_then("b", 3, {.policy = batch_policy::fail_at_once}).info().then, end.then);
    auto const more = schedule("b", {"4"});
    ASSERT_TRUE(jobs.wait(more[0], 10s));
    EXPECT_EQ(jobs.counts("other").ever_added, 1);
}

TEST_P(job_batch_contract, counts_jobs_that_are_cancelled_and_waits_again_for_those_that_are_requeued) {
    auto batch = make("b", 3);
    auto const ids = schedule("b", {"!1", "2", "3"});
    EXPECT_TRUE(jobs.cancel(ids[2]));
    EXPECT_EQ(info(batch).cancelled, 1);
    EXPECT_TRUE(jobs.requeue(ids[2], 1h));
    EXPECT_EQ(info(batch).cancelled, 0);
    start();
    EXPECT_EQ(jobs.wait(ids[0], 10s)->state, job_state::failed);
    EXPECT_EQ(info(batch).failed, 1);
    is_bad = false;
    EXPECT_TRUE(jobs.requeue(ids[0]));
    EXPECT_EQ(jobs.wait(ids[0], 10s)->state, job_state::completed);
    EXPECT_TRUE(jobs.move(ids[2], 0ms));
    auto const end = end_of(batch);
    EXPECT_EQ(end.state, job_state::completed);
    EXPECT_EQ(end.completed, 3);
}

TEST_P(job_batch_contract, counts_jobs_of_flows_also_those_that_came_to_nothing) {
    auto batch = make("b", 4);
    job_flow flow;
    flow.add("a", "mail", text{"!a"}, {.batch = "b"}).add("b", "other", text{"b"}, {.batch = "b"}).after("b", "a");
    flow.add("c", "mail", text{"c"}, {.batch = "b", .on_parent_failure = parent_failure::skip}).after("c", "b").add("d", "mail", text{"d"}, {.batch = "b"});
    jobs.add_flow(flow);
    start();
    auto const end = end_of(batch);
    EXPECT_EQ(end.state, job_state::failed);
    EXPECT_EQ(end.completed, 1);
    EXPECT_EQ(end.failed, 2);
    EXPECT_EQ(end.cancelled, 1);
}

TEST_P(job_batch_contract, is_forgotten_after_it_has_ended) {
    auto batch = make("b", 1, {.keep = 300ms});
    start();
    schedule("b", {"1"});
    EXPECT_EQ(end_of(batch).state, job_state::completed);
    EXPECT_TRUE(eventually([&] { return info(batch).state == job_state::unknown; }));
    EXPECT_EQ(end_of(batch).state, job_state::unknown);
}

TEST_P(job_batch_contract, of_a_bad_kind_is_refused) {
    EXPECT_THROW(make("", 1), invalid_argument_error);
    EXPECT_THROW(make(text(513, 'x'), 1), invalid_argument_error);
    EXPECT_THROW(make("b", 0), invalid_argument_error);
    EXPECT_THROW(make("b", 1, {.keep = 0ms}), invalid_argument_error);
    EXPECT_THROW(jobs.schedule("mail", text{"x"}, {.key = "k", .batch = "b"}), invalid_argument_error);
    EXPECT_THROW(jobs.batch("b", 1, {}, "ot:her", text{}), invalid_argument_error);
    EXPECT_THROW(jobs.batch("b", 1, {}, "other", text{}, {.batch = "b"}), invalid_argument_error);
    EXPECT_EQ(ttl("b"), -2);
}

class batch_faults : public testing::Test {
protected:
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    job_client jobs{near, "name"};
};

TEST_F(batch_faults, a_batch_ends_once_though_replies_are_lost_and_workers_are_killed) {
    job_client there{far, "name"};
    there.schedule("other", text{"x"});
    std::vector<text> const some(50, "x");
    for (int i = 0; i < 4; ++i) {
        proxy.drop_replies(1);
        there.schedule_many<text>("mail", some, {.batch = "b"});
    }
    EXPECT_EQ(proxy.counters().struck, 4U);
    auto batch = jobs.batch("b", 200, {}, "then", text{"then"});
    for (int i = 0; i < 3; ++i) {
        child_process dying{{program_path("job_runner"), server.url(), "name", "300", "run"}};
        for (int n = 0; n < 20; ++n) ASSERT_TRUE(dying.read_line(20s));
        dying.kill();
    }
    job_worker worker{far, "name", {.concurrency = 4, .lease = 300ms}};
    std::atomic<int> runs{0};
    worker.handle<text>("mail", [&](text const&) -> task<void> {
        if (++runs % 40 == 0) proxy.drop_replies(1);
        co_return;
    });
    worker.start();
    auto const end = batch.wait(40s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->completed, 200);
    EXPECT_EQ(jobs.counts("mail").ever_added, 200);
    EXPECT_EQ(jobs.counts("then").ever_added, 1);
}

TEST_F(batch_faults, a_wait_hears_of_the_end_though_it_was_cut_off_then) {
    job_client there{far, "name"};
    auto batch = there.batch("b", 1);
    auto const job = jobs.schedule("mail", text{"x"}, {.batch = "b"});
    begun waiting_one{batch.async_wait(60s)};
    ASSERT_TRUE(eventually([&] { return server.must({"PUBSUB", "NUMSUB", "lockstep:{name}:jobs:batch:b:ended"}).elements.at(1).integer == 1; }));
    proxy.refuse();
    proxy.cut();
    EXPECT_TRUE(jobs.cancel(job.id));
    proxy.heal();
    auto const end = waiting_one.get(20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->cancelled, 1);
}

}  // namespace
}  // namespace lockstep::test
