// How long jobs that ended are remembered; that callers who wait for their ends get the results; and that what was cancelled or moved leaves the queue.
#include "jobs_support.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lockstep::test {
namespace {

using text = std::string;
using testing::ElementsAre;

class job_retention : public testing::Test {
protected:
    static text key(text const& part, text const& type = "mail") { return "lockstep:{name}:jobs:q:" + type + ":" + part; }
    static text number_of(text const& id) { return id.substr(id.find('/') + 1); }

    std::vector<begun<std::optional<job_outcome>>> wait_for_all(std::vector<scheduled> const& all) {
        std::vector<begun<std::optional<job_outcome>>> waits;
        waits.reserve(all.size());
        for (auto const& one : all) waits.emplace_back(jobs.async_wait(one.id, 60s));
        return waits;
    }
    std::int64_t size_of(text const& type = "mail") {
        return server.must({"LLEN", key("ready", type)}).integer + server.must({"ZCARD", key("ranked", type)}).integer +
               server.must({"ZCARD", key("later", type)}).integer;
    }
    /// As if these had ended so long ago.
    void age(text const& state, std::chrono::milliseconds by) {
        server.must({"EVAL",
                     "local t = redis.call('TIME') local at = t[1] * 1000 - ARGV[1] "
                     "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZADD', KEYS[1], string.format('%.0f', at), id) end return 1",
                     "1", key(state), std::to_string(by.count())});
    }
    std::unique_ptr<job_worker> rejecting_worker(job_worker_options const& options, std::vector<text> const& types = {"mail"}) {
        auto made = std::make_unique<job_worker>(near, "name", options);
        for (auto const& type : types) made->handle<text>(type, [](text const&) -> task<void> { throw reject("gone"); co_return; });
        return made;
    }
    std::unique_ptr<job_worker> echoing_worker(job_worker_options const& options, std::vector<text> const& types = {"mail"}) {
        auto made = std::make_unique<job_worker>(near, "name", options);
        for (auto const& type : types) made->handle<text>(type, [](text const& what) -> task<text> { co_return what; });
        return made;
    }

    redis_server server;
    client near{server.url()};
    job_client jobs{near, "name"};
};

// ---- results for callers that wait

TEST_F(job_retention, all_of_4000_jobs_that_are_scheduled_together_tell_their_results_to_who_waits) {
    std::vector<text> payloads;
    for (int i = 0; i < 4000; ++i) payloads.push_back(std::to_string(i));
    auto const worker = echoing_worker({.concurrency = 50});
    worker->start();
    auto const all = jobs.schedule_many<text>("mail", payloads);
    auto waits = wait_for_all(all);
    for (std::size_t i = 0; i != all.size(); ++i) {
        auto const end = waits[i].get();
        ASSERT_TRUE(end);
        ASSERT_EQ(to_string(end->state), "completed") << i;
        ASSERT_EQ(end->result, payloads[i]);
    }
}

TEST_F(job_retention, a_job_that_is_not_to_be_remembered_tells_its_result_to_who_waits_for_it) {
    std::vector<text> payloads;
    for (int i = 0; i < 300; ++i) payloads.push_back(std::to_string(i));
    payloads.emplace_back(100'000, 'x');  // too long for a message
    auto const all = jobs.schedule_many<text>("mail", payloads);
    auto waits = wait_for_all(all);
    ASSERT_TRUE(eventually([&] { return server.must({"HLEN", key("waiters")}).integer == 301; }));
    jobs.schedule_many<text>("mail", std::vector<text>(300, "for nobody"));
    auto const worker = echoing_worker({.concurrency = 5, .completed_retention = 0ms});
    worker->start();
    for (std::size_t i = 0; i != all.size(); ++i) {
        auto const end = waits[i].get();
        ASSERT_TRUE(end);
        ASSERT_EQ(to_string(end->state), "completed") << i;
        ASSERT_EQ(end->result, payloads[i]);
    }
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_completed == 601; }));
    EXPECT_EQ(jobs.counts("mail").completed, 301) << "these for a minute, in case that it was not heard";
}

TEST_F(job_retention, the_reason_of_a_failure_is_told_to_who_waits) {
    auto const job = jobs.schedule("mail", text{"x"});
    begun waiting{jobs.async_wait(job.id, 60s)};
    ASSERT_TRUE(eventually([&] { return server.must({"HLEN", key("waiters")}).integer == 1; }));
    auto const worker = rejecting_worker({.failed_retention = 0ms});
    worker->start();
    auto const end = waiting.get();
    ASSERT_TRUE(end);
    EXPECT_EQ(to_string(end->state), "failed");
    EXPECT_EQ(end->reason, "gone");
}

// ---- what is remembered

TEST_F(job_retention, jobs_that_failed_are_remembered_for_14_days_however_many_there_are) {
    for (int i = 0; i != 3; ++i) jobs.schedule_many<text>("mail", std::vector<text>(4000, "x"));
    auto worker = rejecting_worker({.concurrency = 50});
    worker->start();
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_failed == 12'000; }, 60s));
    age("failed", 13 * 24h);
    worker = rejecting_worker({});
    worker->start();  // it looks, and forgets what it should
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", key("waiting")}).integer == 1; }));
    EXPECT_EQ(jobs.counts("mail").failed, 12'000);
    age("failed", 15 * 24h);
    worker = rejecting_worker({});
    worker->start();
    EXPECT_TRUE(eventually([&] { return jobs.counts("mail").failed == 0; }, 30s));
    EXPECT_EQ(jobs.counts("mail").dropped_failed, 0) << "their time was over";
}

TEST_F(job_retention, jobs_that_are_dropped_because_there_are_too_many_are_counted) {
    std::mutex mutex;
    std::vector<text> lines;
    set_log_hook([&](log_level, std::string_view line) {
        std::lock_guard const guard{mutex};
        if (line.find("forgotten before") != text::npos) lines.emplace_back(line);
    });
    jobs.schedule_many<text>("mail", std::vector<text>(300, "x"));
    {
        auto const worker = rejecting_worker({.keep_failed = 10});
        worker->start();
        ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_failed == 300; }));
        EXPECT_EQ(jobs.counts("mail").failed, 300) << "within a minute none is too many";
        age("failed", 61s);
        jobs.schedule_many<text>("mail", std::vector<text>(64, "x"));
        ASSERT_TRUE(eventually([&] { return jobs.counts("mail").dropped_failed > 0; }));
    }
    auto const worker = rejecting_worker({});  // it gives no limits of its own: those that were given count
    worker->start();
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").dropped_failed == 300; }));
    EXPECT_EQ(jobs.counts("mail").failed, 64);
    set_log_hook({});
    std::lock_guard const guard{mutex};
    ASSERT_FALSE(lines.empty());
    EXPECT_THAT(lines.front(), testing::HasSubstr("failed or cancelled ones were forgotten"));
    EXPECT_LE(lines.size(), 2U) << "once a minute, of each worker";
}

TEST_F(job_retention, a_worker_without_settings_of_its_own_does_not_forget_what_others_keep) {
    {
        auto const worker = echoing_worker({.completed_retention = 48h});
        worker->start();
        ASSERT_TRUE(jobs.wait(jobs.schedule("mail", text{"x"}).id, 30s));
    }
    server.must({"DEL", key("awaited")});
    age("completed", 47h);
    auto worker = echoing_worker({});
    worker->start();
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", key("waiting")}).integer == 1; }));
    EXPECT_EQ(jobs.counts("mail").completed, 1);
    age("completed", 49h);
    worker = echoing_worker({});
    worker->start();
    EXPECT_TRUE(eventually([&] { return jobs.counts("mail").completed == 0; }));
}

TEST_F(job_retention, jobs_that_end_because_of_their_parents_are_forgotten_too) {
    auto const worker = rejecting_worker({.concurrency = 20, .failed_retention = 0ms}, {"fetch", "parse"});
    worker->start();
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", key("waiting", "parse")}).integer == 1; }));
    for (int i = 0; i != 640; ++i) {
        job_flow flow;
        flow.add("a", "fetch", text{"x"}).add("b", "parse", text{"y"}).after("b", "a");
        jobs.add_flow(flow);
    }
    ASSERT_TRUE(eventually([&] { return jobs.counts("parse").ever_failed == 640; }));
    EXPECT_LT(jobs.counts("parse").failed, 192);
}

TEST_F(job_retention, jobs_whose_place_was_taken_are_forgotten_too) {
    auto const worker = rejecting_worker({.failed_retention = 0ms}, {"mail"});
    worker->start();
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", key("waiting")}).integer == 1; }));
    worker->stop();
    for (int i = 0; i != 640; ++i) jobs.schedule("mail", text{"x"}, {.delay = 1h, .single = "a", .when_running = single_policy::replace});
    EXPECT_EQ(jobs.counts("mail").ever_cancelled, 639);
    EXPECT_LT(jobs.counts("mail").cancelled, 128);
    EXPECT_EQ(size_of(), 1) << "they do not stand in the queue any longer";
}

// ---- what was cancelled or moved

TEST_F(job_retention, jobs_that_were_cancelled_leave_the_queue_at_once) {
    std::vector<scheduled> all;
    for (auto const& options : {job_options{}, job_options{.delay = 1h}, job_options{.priority = 3}, job_options{.delay = 1h, .priority = -2}}) {
        auto const some = jobs.schedule_many<text>("mail", std::vector<text>(1200, "x"), options);
        all.insert(all.end(), some.begin(), some.end());
    }
    for (int i = 0; i != 50; ++i) {
        auto const name = std::to_string(i);
        all.push_back(jobs.schedule("mail", text{"x"}, {.priority = i % 2, .key = name}));
        auto const delayed = "d" + name;
        all.push_back(jobs.schedule("mail", text{"x"}, {.delay = 1h, .key = delayed}));
        all.push_back(jobs.schedule("mail", text{"x"}, {.priority = i % 2, .single = name}));
        all.push_back(jobs.schedule("mail", text{"x"}, {.delay = 1h, .priority = 7, .batch = "b"}));
    }
    std::shuffle(all.begin(), all.end(), std::mt19937_64{7});
    for (std::size_t i = 0; i < all.size(); i += 500) {
        std::vector<begun<bool>> some;
        some.reserve(500);
        for (std::size_t n = i; n < std::min(i + 500, all.size()); ++n) some.emplace_back(jobs.async_cancel(all[n].id));
        for (auto& one : some) EXPECT_TRUE(one.get());
    }
    EXPECT_EQ(size_of(), 0);
    EXPECT_EQ(jobs.counts("mail").waiting + jobs.counts("mail").delayed, 0);
}

TEST_F(job_retention, a_job_that_is_moved_stands_in_the_queue_once) {
    jobs.schedule_many<text>("mail", std::vector<text>(1500, "x"), {.delay = 1h});
    auto const job = jobs.schedule("mail", text{"x"}, {.delay = 1h});
    for (int i = 0; i != 20; ++i) {
        EXPECT_TRUE(jobs.move(job.id, std::chrono::hours{1 + i % 3}, i % 5));
        EXPECT_TRUE(jobs.move(job.id, 0ms, i % 3));
        EXPECT_EQ(size_of(), 1501);
    }
    EXPECT_EQ(jobs.counts("mail").waiting, 1);
}

TEST_F(job_retention, a_job_that_waits_for_its_next_try_leaves_the_queue_when_it_is_cancelled) {
    jobs.schedule_many<text>("mail", std::vector<text>(1500, "x"), {.delay = 1h});
    std::vector<scheduled> all;
    for (int i = 0; i != 4; ++i) {
        auto const key = i < 2 ? text{} : std::to_string(i);
        all.push_back(jobs.schedule("mail", text{"x"}, {.priority = i % 2, .attempts = 9, .backoff = 10min, .key = key}));
    }
    job_worker worker{near, "name"};
    handle_options const how{.backoff = [](std::int32_t failures, std::string_view) { return failures < 3 ? 0ms : 1h; }};
    worker.handle<text>("mail", [](text const&) { throw std::runtime_error("x"); }, how);
    worker.start();
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_retried == 12 && jobs.counts("mail").delayed == 1504; }));
    for (auto const& one : all) EXPECT_TRUE(jobs.cancel(one.id));
    EXPECT_EQ(size_of(), 1500);
}

TEST_F(job_retention, entries_of_jobs_that_are_gone_are_passed_over_many_in_a_call) {
    std::vector<text> words{"RPUSH", key("ready")};
    for (int i = 1; i <= 3000; ++i) words.push_back("1000-" + std::to_string(i) + " 0\n0 0");  // as 0.1 left them
    server.must(words);
    auto const job = jobs.schedule("mail", text{"x"});
    auto const before = calls_of(server, "evalsha");
    auto const worker = echoing_worker({.concurrency = 1});
    worker->start();
    ASSERT_TRUE(jobs.wait(job.id, 30s));
    EXPECT_LT(calls_of(server, "evalsha") - before, 60);
    EXPECT_EQ(jobs.counts("mail").waiting, 0);
}

// ---- keys

TEST_F(job_retention, a_job_that_is_requeued_has_its_key_again) {
    auto const job = jobs.schedule("mail", text{"x"}, {.key = "k"});
    {
        auto const worker = rejecting_worker({});
        worker->start();
        ASSERT_TRUE(jobs.wait(job.id, 30s));
    }
    EXPECT_TRUE(jobs.requeue(job.id, 1h));
    EXPECT_EQ(jobs.schedule("mail", text{"y"}, {.key = "k"}).id, job.id);
    EXPECT_TRUE(jobs.move(job.id, 0ms));
    auto const worker = echoing_worker({});
    worker->start();
    EXPECT_EQ(to_string(jobs.wait(job.id, 30s)->state), "completed");
    EXPECT_TRUE(jobs.schedule("mail", text{"z"}, {.delay = 1h, .key = "k"}).is_new) << "it is free again";
}

TEST_F(job_retention, a_job_whose_key_another_one_has_is_not_requeued) {
    auto const job = jobs.schedule("mail", text{"x"}, {.key = "k"});
    EXPECT_TRUE(jobs.cancel(job.id));
    auto const other = jobs.schedule("mail", text{"y"}, {.key = "k"});
    EXPECT_TRUE(other.is_new);
    EXPECT_FALSE(jobs.requeue(job.id));
    EXPECT_TRUE(jobs.cancel(other.id));
    EXPECT_TRUE(jobs.requeue(job.id));
    EXPECT_FALSE(jobs.requeue(other.id));
    EXPECT_EQ(jobs.counts("mail").waiting, 1);
}

TEST_F(job_retention, a_batch_that_is_forgotten_does_not_come_back_when_one_of_its_jobs_is_requeued) {
    auto const job = jobs.schedule("mail", text{"x"}, {.batch = "b"});
    EXPECT_TRUE(jobs.cancel(job.id));
    server.must({"DEL", "lockstep:{name}:jobs:batch:b"});
    EXPECT_TRUE(jobs.requeue(job.id));
    EXPECT_TRUE(jobs.cancel(job.id));
    EXPECT_EQ(server.must({"EXISTS", "lockstep:{name}:jobs:batch:b"}).integer, 0);
}

// ---- large ones

TEST_F(job_retention, large_jobs_are_listed_without_all_of_their_payloads) {
    std::vector<scheduled> all;
    for (int i = 0; i != 60; ++i) all.push_back(jobs.schedule("mail", text(1'000'000, 'x'), {.tags = "large"}));
    client small{{.url = server.url(), .max_reply_bytes = 4U << 20}};
    job_client there{small, "name"};
    auto const listed = there.list("mail", job_state::waiting, 0, 1000);
    ASSERT_EQ(listed.size(), 60);
    for (std::size_t i = 0; i != 60; ++i) {
        EXPECT_EQ(listed[i].id, all[i].id);
        EXPECT_EQ(listed[i].payload, text(4096, 'x'));
        EXPECT_TRUE(listed[i].is_cut);
    }
    EXPECT_EQ(there.tagged("mail", "large").size(), 60);
    EXPECT_FALSE(jobs.find(all[0].id)->is_cut);
    EXPECT_EQ(jobs.find(all[0].id)->payload.size(), 1'000'000);
    EXPECT_TRUE(there.find(all[0].id)->is_cut) << "it is larger than a part of what that client takes in";
    auto const small_job = jobs.schedule("other", text{"x"});
    EXPECT_FALSE(there.list("other", job_state::waiting).at(0).is_cut);
}

TEST_F(job_retention, a_result_that_is_larger_than_a_client_takes_in_does_not_break_its_connection) {
    auto const job = jobs.schedule("mail", text(3'000'000, 'x'));
    auto const worker = echoing_worker({});
    worker->start();
    ASSERT_EQ(jobs.wait(job.id, 30s)->result.size(), 3'000'000);
    client small{{.url = server.url(), .max_reply_bytes = 1U << 20}};
    job_client there{small, "name"};
    EXPECT_THROW(there.wait(job.id, 10s), protocol_error);
    EXPECT_EQ(small.command<text>("PING"), "PONG");
}

}  // namespace
}  // namespace lockstep::test
