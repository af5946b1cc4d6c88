// Many jobs that are cancelled or run again at once.
#include "jobs_support.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/job_batch.hpp>
#include <lockstep/job_flow.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace lockstep::test {
namespace {

using text = std::string;

class job_bulk_contract : public contract {
protected:
    std::int64_t retry_all(job_filter const& which = {}) {
        return run(
            a, [&] { return jobs.retry_all(which); }, [&] { return jobs.async_retry_all(which); });
    }
    std::int64_t cancel_all(job_filter const& which = {}) {
        return run(
            a, [&] { return jobs.cancel_all(which); }, [&] { return jobs.async_cancel_all(which); });
    }
    std::vector<text> schedule(text const& type, int count, job_options const& how = {}) {
        std::vector<text> payloads(static_cast<std::size_t>(count), "x");
        std::vector<text> ids;
        for (auto const& one : jobs.schedule_many<text>(type, payloads, how)) ids.push_back(one.id);
        return ids;
    }
    /// Runs all there is of a type until that has failed.
    void fail(text const& type) {
        job_worker worker{b, "name", {.concurrency = 50}};
        worker.handle<text>(type, [](text const&) { throw reject{"no"}; });
        worker.start();
        EXPECT_TRUE(eventually([&] {
            auto const now = jobs.counts(type);
            return now.waiting + now.running + now.delayed == 0;
        }));
        worker.stop();
    }
    job_state state_of(text const& id) { return jobs.find(id)->state; }

    job_client jobs{a, "name"};
};
LOCKSTEP_CONTRACT(job_bulk_contract);

TEST_P(job_bulk_contract, that_failed_are_run_again_and_all_who_look_are_told_of_each) {
    auto const ids = schedule("mail", 450);
    fail("mail");
    schedule("other", 2);
    fail("other");
    diary seen;
    auto const looking = jobs.observe("mail", [&](job_event const& one) {
        if (one.what == "requeued") seen.add(one.id);
    });
    EXPECT_EQ(retry_all({.type = "mail"}), 450);
    auto const now = jobs.counts("mail");
    EXPECT_EQ(now.waiting, 450);
    EXPECT_EQ(now.failed, 0);
    EXPECT_TRUE(eventually([&] { return seen.size() == 450; }));
    auto const told = seen.all();
    EXPECT_EQ(std::set<text>(told.begin(), told.end()), std::set<text>(ids.begin(), ids.end()));
    EXPECT_EQ(retry_all({.type = "mail"}), 0) << "none is left";
    EXPECT_EQ(jobs.counts("other").failed, 2);
    EXPECT_EQ(retry_all(), 2) << "of all types";
}

TEST_P(job_bulk_contract, that_have_not_ended_are_cancelled_wherever_they_are) {
    std::atomic<bool> has_stopped = false;
    job_worker worker{b, "name", {.concurrency = 1}};
    worker.handle<text>("mail", [&](job_context& job, text const&) {
        while (!job.stop_token().stop_requested()) std::this_thread::sleep_for(2ms);
        has_stopped = true;
    });
    worker.start();
    auto const running = schedule("mail", 1)[0];
    ASSERT_TRUE(eventually([&] { return state_of(running) == job_state::running; }));
    jobs.pause("mail");
    schedule("mail", 300);
    schedule("mail", 250, {.delay = 1h});
    schedule("mail", 230, {.priority = 3});
    job_flow flow;
    flow.add("one", "mail", text{}).add("two", "mail", text{});
    flow.after("two", "one");
    jobs.add_flow(flow);
    EXPECT_EQ(cancel_all({.type = "mail"}), 783);
    auto const now = jobs.counts("mail");
    EXPECT_EQ(now.cancelled, 783);
    EXPECT_EQ(now.ever_cancelled, 783);
    EXPECT_EQ(now.blocked, 0);
    EXPECT_TRUE(eventually([&] { return has_stopped.load(); }));
    auto const later = schedule("mail", 1)[0];
    jobs.resume("mail");
    EXPECT_TRUE(eventually([&] { return state_of(later) == job_state::running; })) << "those that come afterwards are run";
    EXPECT_EQ(cancel_all(), 1);
}

TEST_P(job_bulk_contract, are_those_with_a_tag) {
    auto const one = schedule("mail", 3, {.tags = "red blue"});
    auto const other = schedule("mail", 2, {.tags = "blue"});
    EXPECT_EQ(cancel_all({.type = "mail", .tag = "red"}), 3);
    for (auto const& id : one) EXPECT_EQ(state_of(id), job_state::cancelled);
    for (auto const& id : other) EXPECT_EQ(state_of(id), job_state::waiting);
    fail("mail");
    EXPECT_EQ(retry_all({.tag = "red"}), 0) << "they did not fail";
    EXPECT_EQ(retry_all({.tag = "red", .state = job_state::cancelled}), 3);
    EXPECT_EQ(retry_all({.tag = "blue"}), 2);
    EXPECT_EQ(jobs.counts("mail").waiting, 5);
}

TEST_P(job_bulk_contract, are_those_of_an_age_and_a_state) {
    schedule("mail", 2);
    fail("mail");
    EXPECT_EQ(retry_all({.older_than = 1min}), 0);
    EXPECT_EQ(retry_all({.older_than = 1ms}), 2);
    schedule("mail", 1, {.delay = 1h});
    EXPECT_EQ(cancel_all({.state = job_state::running}), 0);
    EXPECT_EQ(cancel_all({.older_than = 1h}), 0);
    EXPECT_EQ(cancel_all({.state = job_state::waiting}), 3);
}

TEST_P(job_bulk_contract, refuse_states_that_make_no_sense_and_tags_that_cannot_be) {
    EXPECT_THROW(cancel_all({.state = job_state::failed}), invalid_argument_error);
    EXPECT_THROW(retry_all({.state = job_state::running}), invalid_argument_error);
    EXPECT_THROW(retry_all({.type = "a b"}), invalid_argument_error);
    EXPECT_THROW(retry_all({.tag = "a b"}), invalid_argument_error);
    EXPECT_THROW(retry_all({.older_than = -1ms}), invalid_argument_error);
}

TEST_P(job_bulk_contract, of_a_flow_wait_for_their_parents_again) {
    job_flow flow;
    flow.add("fetch", "fetch", text{}).add("parse", "mail", text{}).add("store", "mail", text{});
    flow.after("parse", "fetch").after("store", "parse");
    auto const ids = jobs.add_flow(flow);
    fail("fetch");
    ASSERT_EQ(state_of(ids.at("store")), job_state::failed);
    EXPECT_EQ(retry_all({.type = "mail"}), 0) << "they failed because of their parents";
    EXPECT_EQ(retry_all(), 1);
    EXPECT_EQ(state_of(ids.at("fetch")), job_state::waiting);
    EXPECT_EQ(state_of(ids.at("parse")), job_state::blocked);
    EXPECT_EQ(state_of(ids.at("store")), job_state::blocked);
    EXPECT_EQ(cancel_all(), 3);
    EXPECT_EQ(jobs.counts("mail").cancelled, 2);
}

TEST_P(job_bulk_contract, of_one_single_name_all_go) {
    for (int i = 0; i < 5; ++i) jobs.schedule("mail", text{}, {.single = "name"});
    EXPECT_EQ(cancel_all(), 5);
    auto const next = jobs.schedule("mail", text{}, {.single = "name"}).id;
    EXPECT_EQ(state_of(next), job_state::waiting) << "nobody is in front of it";
    auto const now = jobs.counts("mail");
    EXPECT_EQ(now.blocked, 0);
    EXPECT_EQ(now.waiting, 1);
}

TEST_P(job_bulk_contract, count_in_their_batch) {
    auto batch = jobs.batch("all", 30);
    schedule("mail", 30, {.batch = "all"});
    EXPECT_EQ(cancel_all(), 30);
    EXPECT_EQ(batch.info().cancelled, 30);
    EXPECT_EQ(batch.info().state, job_state::failed);
}

class job_bulk : public testing::Test {
protected:
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    job_client jobs{near, "name"};
    job_client distant{far, "name"};
};

TEST_F(job_bulk, are_counted_once_though_replies_are_lost) {
    std::vector<text> const payloads(700, "x");
    jobs.schedule_many<text>("mail", payloads);
    distant.counts("mail");
    proxy.drop_replies(2);
    EXPECT_EQ(distant.cancel_all(), 700);
    EXPECT_EQ(jobs.counts("mail").ever_cancelled, 700);
}

// Others are served between its steps; and those that come meanwhile do not keep it from coming to an end.
TEST_F(job_bulk, are_done_in_steps_while_others_come) {
    std::vector<text> const payloads(4000, "x");
    jobs.schedule_many<text>("mail", payloads);
    std::atomic<bool> is_over = false;
    std::atomic<int> came = 0;
    std::thread adding{[&] {
        while (!is_over) {
            distant.schedule("mail", text{"y"});
            ++came;
        }
    }};
    auto const before = came.load();
    EXPECT_TRUE(eventually([&] { return came > before; }));
    auto const done = jobs.cancel_all();
    is_over = true;
    adding.join();
    EXPECT_GE(done, 4000);
    EXPECT_LT(done, 4000 + came) << "the last one came later";
    EXPECT_EQ(jobs.counts("mail").ever_cancelled, done);
}

/// The next job of the type is taken by a worker that dies at once, and its lease is over.
void die_with_next(redis_server& server, text const& key) {
    server.must({"EVAL",
                 "local entry = redis.call('LPOP', KEYS[1] .. ':ready') local id = string.match(entry, '^%S+') "
                 "redis.call('HSET', KEYS[1] .. ':items', id .. '.1', entry) redis.call('ZADD', KEYS[1] .. ':held', 1000, id .. '.1') "
                 "redis.call('HSET', KEYS[1] .. ':running', id, '1 900 worker') return 1",
                 "1", key});
}

TEST_F(job_bulk, are_those_whose_worker_has_died_too_and_their_children_are_told) {
    job_flow flow;
    flow.add("first", "mail", text{}).add("second", "leaf", text{}).after("second", "first");
    auto const ids = jobs.add_flow(flow);
    jobs.schedule("mail", text{});
    for (int i = 0; i != 2; ++i) die_with_next(server, mail_key);
    jobs.pause("mail");
    EXPECT_EQ(jobs.find(ids.at("first"))->state, job_state::waiting);
    EXPECT_EQ(jobs.cancel_all({.type = "mail"}), 2);
    EXPECT_EQ(jobs.find(ids.at("first"))->state, job_state::cancelled);
    EXPECT_EQ(jobs.find(ids.at("second"))->state, job_state::failed);
    EXPECT_EQ(server.must({"EXISTS", mail_key + ":held", mail_key + ":items"}).integer, 0);
}

// What is not among those that are ready is not counted as if it were.
TEST_F(job_bulk, one_whose_worker_has_died_leaves_the_number_of_those_that_wait_as_it_is) {
    auto const id = jobs.schedule("mail", text{}).id;
    die_with_next(server, mail_key);
    std::vector<text> const payloads(1100, "x");
    jobs.schedule_many<text>("mail", payloads);
    ASSERT_TRUE(jobs.cancel(id));
    EXPECT_EQ(jobs.counts("mail").waiting, 1100);
}

TEST_F(job_bulk, nothing_is_left_of_a_wrong_number_of_entries_when_none_is_ready) {
    jobs.schedule("mail", text{"x"});
    server.must({"HSET", mail_key + ":stats", "stale", "5"});
    job_worker worker{near, "name"};
    worker.handle<text>("mail", [](text const&) {});
    worker.start();
    EXPECT_TRUE(eventually([&] { return server.must({"HEXISTS", mail_key + ":stats", "stale"}).integer == 0; }));
}

}  // namespace
}  // namespace lockstep::test
