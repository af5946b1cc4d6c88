// Jobs under faults: lost replies, killed and paused workers; and what workers promise besides.
#include "jobs_support.hpp"

#include "support/executor_thread.hpp"

#include <lockstep/asio.hpp>
#include <lockstep/circuit_breaker.hpp>
#include <lockstep/rate_limiter.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

namespace lockstep::test {
namespace {

using text = std::string;

class job_faults : public testing::Test {
protected:
    child_process runner(char const* mode, int lease = 300) {
        return child_process{{program_path("job_runner"), server.url(), "name", std::to_string(lease), mode}};
    }
    text key(char const* part) const { return mail_key + ":" + part; }

    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    job_client jobs{near, "name"};
};

TEST_F(job_faults, a_job_whose_reply_is_lost_is_scheduled_once) {
    job_client there{far, "name"};
    there.schedule("mail", text{"0"});
    for (int i = 1; i <= 3; ++i) {
        proxy.drop_replies(1);
        there.schedule("mail", std::to_string(i));
        EXPECT_EQ(proxy.counters().struck, static_cast<std::uint64_t>(i));
    }
    EXPECT_EQ(jobs.counts("mail").waiting, 4);
    EXPECT_EQ(jobs.counts("mail").ever_added, 4);
}

TEST_F(job_faults, jobs_that_many_schedule_at_once_are_there_once_each_though_replies_are_lost) {
    job_client there{far, "name"};
    there.schedule("mail", text{"first"});
    std::set<text> names;
    for (int round = 1; round <= 5; ++round) {
        proxy.drop_replies(1);
        std::vector<begun<scheduled>> all;
        sync_wait(in_turn_of(far, [&] {
            for (int i = 0; i < 100; ++i) all.emplace_back(there.async_schedule("mail", std::to_string(i)));
            return true;
        }));
        for (std::size_t i = 0; i != all.size(); ++i) {
            auto const made = all[i].get();
            names.insert(made.id);
            EXPECT_EQ(jobs.find(made.id)->payload, std::to_string(i));
        }
        EXPECT_EQ(proxy.counters().struck, static_cast<std::uint64_t>(round));
    }
    EXPECT_EQ(names.size(), 500U);
    EXPECT_EQ(jobs.counts("mail").waiting, 501);
    EXPECT_EQ(jobs.counts("mail").ever_added, 501);
}

TEST_F(job_faults, what_is_there_is_run_and_cancelled_when_the_server_is_out_of_memory) {
    auto const done = jobs.schedule("mail", text{"done"});
    auto const cancelled = jobs.schedule("mail", text{"cancelled"}, {.delay = 1h});
    server.must({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_EQ(ending_of([&] { jobs.schedule("mail", text{"more"}); }).reason, errc::server);
    std::atomic<int> runs{0};
    job_worker worker{near, "name"};
    worker.handle<text>("mail", [&](text const&) { ++runs; });
    worker.start();
    EXPECT_TRUE(eventually([&] { return jobs.find(done.id)->state == job_state::completed; }));
    EXPECT_TRUE(jobs.cancel(cancelled.id));
    worker.stop();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(jobs.find(cancelled.id)->state, job_state::cancelled);
    server.must({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(job_faults, a_change_whose_reply_is_lost_is_made_once_and_says_so) {
    job_client there{far, "name"};
    auto const job = there.schedule("mail", text{"x"});
    auto const other = there.schedule("mail", text{"y"});
    EXPECT_TRUE(there.cancel(other.id)) << "the server knows the script";
    proxy.drop_replies(1);
    EXPECT_TRUE(there.cancel(job.id));
    proxy.drop_replies(1);
    EXPECT_TRUE(there.requeue(job.id));
    EXPECT_EQ(proxy.counters().struck, 2U);
    EXPECT_EQ(jobs.counts("mail").ever_cancelled, 2);
    EXPECT_EQ(jobs.find(job.id)->state, job_state::waiting);
}

TEST_F(job_faults, a_job_that_comes_together_with_one_that_is_put_off_is_the_one_that_is_run) {
    diary seen;
    job_worker worker{near, "name", {.concurrency = 1}};
    worker.handle<text>("mail", [&](text const& what) { seen.add(what); });
    worker.start();
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", key("waiting")}).integer == 1; }));
    client other{server.url()};
    job_client by_other{other, "name"};
    by_other.counts("mail");
    std::vector<begun<scheduled>> both;
    sync_wait(in_turn_of(other, [&] {
        both.emplace_back(by_other.async_schedule("mail", text{"later"}, {.delay = 1h}));
        both.emplace_back(by_other.async_schedule("mail", text{"now"}));
        return true;
    }));
    auto const end = jobs.wait(both[1].get().id, 10s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::completed);
    EXPECT_THAT(seen.all(), testing::ElementsAre("now"));
    EXPECT_EQ(jobs.find(both[0].get().id)->state, job_state::waiting);
}

TEST_F(job_faults, a_job_that_was_moved_gives_its_key_back_when_it_is_done) {
    auto const job = jobs.schedule("mail", text{"x"}, {.delay = 1h, .key = "k"});
    EXPECT_TRUE(jobs.move(job.id, 0ms));
    EXPECT_FALSE(jobs.schedule("mail", text{"y"}, {.key = "k"}).is_new);
    job_worker worker{near, "name"};
    worker.handle<text>("mail", [](text const&) {});
    worker.start();
    ASSERT_TRUE(jobs.wait(job.id, 10s));
    EXPECT_TRUE(jobs.schedule("mail", text{"y"}, {.key = "k"}).is_new);
}

TEST_F(job_faults, large_jobs_are_not_sent_in_a_message) {
    job_worker worker{far, "name", {.concurrency = 1}};
    worker.handle<text>("mail", [](text const& what) { return std::to_string(what.size()); });
    worker.start();
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", key("waiting")}).integer == 1; }));
    proxy.hold(direction::to_server);
    auto const job = jobs.schedule("mail", text(100'000, 'x'));
    EXPECT_EQ(jobs.counts("mail").running, 0);
    proxy.heal();
    EXPECT_EQ(jobs.wait(job.id, 10s)->result, "100000");
}

TEST_F(job_faults, jobs_are_completed_once_though_replies_are_lost) {
    std::vector<text> many;
    for (int i = 0; i < 300; ++i) many.push_back(std::to_string(i));
    jobs.schedule_many<text>("mail", many);
    job_worker worker{far, "name", {.concurrency = 5, .keep_completed = 10'000}};
    std::atomic<int> runs{0};
    worker.handle<text>("mail", [&](text const& what) -> task<text> {
        if (++runs % 40 == 0) proxy.drop_replies(1);
        co_return what;
    });
    worker.start();
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").completed == 300; }));
    worker.stop();
    auto const now = jobs.counts("mail");
    EXPECT_EQ(now.ever_completed, 300);
    EXPECT_EQ(now.ever_failed + now.ever_retried, 0);
    EXPECT_EQ(runs, 300) << "a lost reply is no reason to run a job again";
    EXPECT_GT(proxy.counters().struck, 0U);
}

TEST_F(job_faults, a_killed_workers_job_is_run_elsewhere_within_its_lease) {
    auto const job = jobs.schedule("mail", text{"x"});
    auto dying = runner("hang");
    ASSERT_EQ(dying.read_line(), "begun x 1");
    dying.kill();
    auto other = runner("run");
    ASSERT_EQ(other.read_line(5s), "begun x 2");
    auto const end = jobs.wait(job.id, 10s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::completed);
    EXPECT_EQ(end->result, "x 2");
    EXPECT_TRUE(jobs.find(job.id)->failures.empty()) << "that is no failure of the job";
}

TEST_F(job_faults, of_two_attempts_that_overlap_only_one_can_complete) {
    auto const job = jobs.schedule("mail", text{"x"});
    auto slow = runner("say");
    ASSERT_EQ(slow.read_line(), "begun x 1");
    slow.stop();  // longer than its lease
    auto other = runner("say");
    ASSERT_EQ(other.read_line(10s), "begun x 2");
    slow.write_line("go on");
    slow.cont();
    EXPECT_FALSE(jobs.wait(job.id, 300ms)) << "the first one has returned, and is refused";
    EXPECT_EQ(jobs.find(job.id)->state, job_state::running);
    other.write_line("go on");
    auto const end = jobs.wait(job.id, 10s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->result, "x 2");
    EXPECT_EQ(jobs.counts("mail").ever_completed, 1);
}

TEST_F(job_faults, a_worker_that_comes_too_late_cannot_complete_what_was_requeued) {
    auto const job = jobs.schedule("mail", text{"x"});
    auto slow = runner("say");
    ASSERT_EQ(slow.read_line(), "begun x 1");
    slow.stop();
    EXPECT_TRUE(jobs.cancel(job.id));
    EXPECT_TRUE(jobs.requeue(job.id));
    auto other = runner("say");
    ASSERT_EQ(other.read_line(10s), "begun x 1");
    slow.write_line("go on");
    slow.cont();
    EXPECT_FALSE(jobs.wait(job.id, 300ms));
    other.write_line("go on");
    ASSERT_TRUE(jobs.wait(job.id, 10s));
    EXPECT_EQ(jobs.counts("mail").ever_completed, 1);
}

TEST_F(job_faults, a_job_that_kills_its_workers_has_failed_in_the_end) {
    auto const job = jobs.schedule("mail", text{"x"});
    for (int i = 1; i <= 5; ++i) {
        auto dying = runner("hang", 100);
        ASSERT_EQ(dying.read_line(10s), "begun x " + std::to_string(i));
        dying.kill();
    }
    job_worker last{near, "name", {.lease = 100ms}};
    last.handle<text>("mail", [](text const&) { ADD_FAILURE() << "not again"; });
    last.start();
    auto const end = jobs.wait(job.id, 10s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::failed);
    EXPECT_EQ(end->reason, "its lease ended 5 times");
}

TEST_F(job_faults, jobs_are_handled_at_least_once_by_processes_of_which_some_are_killed) {
    std::vector<text> many;
    for (int i = 0; i < 3000; ++i) many.push_back(std::to_string(i));
    jobs.schedule_many<text>("mail", many);
    std::set<text> seen;
    auto const read = [&](child_process& from) {
        auto const line = from.read_line(20s);
        if (!line || !line->starts_with("begun ")) return false;
        seen.insert(line->substr(6, line->rfind(' ') - 6));
        return true;
    };
    for (int i = 0; i < 3; ++i) {
        auto dying = runner("run");
        for (int n = 0; n < 200; ++n) ASSERT_TRUE(read(dying));
        dying.kill();
        while (read(dying)) {}
    }
    auto alive = runner("run");
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_completed == 3000; }, 30s));
    alive.close_input();
    while (read(alive)) {}
    EXPECT_TRUE(alive.wait());
    EXPECT_EQ(seen.size(), 3000);
    EXPECT_EQ(jobs.counts("mail").ever_completed, 3000) << "each once";
}

TEST_F(job_faults, nothing_is_left_of_jobs_that_are_not_to_be_remembered) {
    job_worker worker{near, "name", {.concurrency = 20, .completed_retention = 0ms}};
    worker.handle<text>("mail", [](text const& what) -> task<text> { co_return what; });
    worker.start();
    std::vector<text> const many(640, "x");
    jobs.schedule_many<text>("mail", many);
    for (int i = 0; i < 20; ++i) jobs.schedule("mail", text{"tagged"}, {.tags = "eu"});
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_completed == 660; }));
    worker.stop();
    for (auto const* const one : {"records", "results", "trail", "progress", "completed", "running", "items", "held", "waiting", "tags", "tag:eu"}) {
        EXPECT_EQ(server.must({"EXISTS", key(one)}).integer, 0) << one;
    }
}

TEST_F(job_faults, what_is_not_to_be_remembered_is_told_to_who_waits_for_it) {
    auto const job = jobs.schedule("mail", text{"x"});
    begun waiting{jobs.async_wait(job.id, 30s)};
    ASSERT_TRUE(eventually([&] { return server.must({"HEXISTS", key("waiters"), job.id.substr(job.id.find('/') + 1)}).integer == 1; }));
    job_worker worker{near, "name", {.completed_retention = 0ms}};
    worker.handle<text>("mail", [](text const& what) -> task<text> { co_return what; });
    worker.start();
    EXPECT_EQ(waiting.get()->result, "x");
}

TEST_F(job_faults, everything_that_happens_is_told_of_each_however_many_there_are) {
    std::mutex mutex;
    std::map<text, std::vector<text>> seen;  // what happened, in order, by id
    auto const ear = jobs.observe("mail", [&](job_event const& one) {
        std::lock_guard const guard{mutex};
        auto& before = seen[one.id];
        if (before.empty() || before.back() != one.what) before.push_back(one.what);  // on a busy machine one may be given back, and start again
    });
    auto const many = jobs.schedule_many<text>("mail", std::vector<text>(300, "x"));
    job_worker worker{near, "name", {.concurrency = 20}};
    worker.handle<text>("mail", [](text const&) -> task<void> { co_return; });
    worker.start();
    std::vector<text> const all{"added", "started", "completed"};
    EXPECT_TRUE(eventually([&] {
        std::lock_guard const guard{mutex};
        return std::ranges::all_of(many, [&](auto const& one) { return seen[one.id] == all; });
    }));
}

TEST_F(job_faults, a_worker_runs_no_more_at_once_than_it_may_of_all_types_and_of_each) {
    job_worker worker{near, "name", {.concurrency = 3}};
    std::map<text, std::atomic<int>> now;
    std::map<text, std::atomic<int>> most;
    std::atomic<bool> go_on{false};
    auto const raise = [](std::atomic<int>& top, int value) {
        for (int seen = top; value > seen && !top.compare_exchange_weak(seen, value);) {}
    };
    for (text const type : {"a", "b", "all"}) {
        now[type] = 0;
        most[type] = 0;
    }
    for (text const type : {"a", "b"}) {
        worker.handle<text>(type,
                            [&, type](text const&) {
                                raise(most.at(type), ++now.at(type));
                                raise(most.at("all"), ++now.at("all"));
                                while (!go_on) std::this_thread::yield();
                                --now.at("all");
                                --now.at(type);
                            },
                            {.concurrency = 2});
    }
    std::vector<text> const many(20, "x");
    jobs.schedule_many<text>("a", many);
    jobs.schedule_many<text>("b", many);
    worker.start();
    ASSERT_TRUE(eventually([&] { return now.at("all") == 3; }));
    EXPECT_FALSE(eventually([&] { return now.at("all") > 3; }, 50ms));
    EXPECT_LE(jobs.counts("a").running + jobs.counts("b").running, 4) << "one may wait for its turn here";
    go_on = true;
    ASSERT_TRUE(eventually([&] { return worker.completed() == 40; }));
    worker.stop();
    EXPECT_LE(most.at("a"), 2);
    EXPECT_LE(most.at("b"), 2);
    EXPECT_EQ(most.at("all"), 3);
}

TEST_F(job_faults, a_type_that_nobody_schedules_does_not_keep_the_others_waiting) {
    job_worker worker{near, "name", {.concurrency = 2}};
    worker.handle<text>("idle", [](text const&) {});
    worker.handle<text>("mail", [](text const&) {});
    worker.start();
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(jobs.wait(jobs.schedule("mail", text{"x"}).id, 10s));
}

TEST_F(job_faults, a_type_with_a_limit_is_begun_no_more_often) {
    rate_limiter limit{near, "mails", {.limit = 3, .per = 1h, .command_timeout = 10s}};
    job_worker worker{near, "name", {.concurrency = 5}};
    std::atomic<int> runs{0};
    worker.handle<text>("mail", [&](text const&) -> task<void> {
        ++runs;
        co_return;
    }, {.limit = &limit});
    worker.handle<text>("other", [](text const&) {});
    worker.start();
    std::vector<text> const many(10, "x");
    jobs.schedule_many<text>("mail", many);
    ASSERT_TRUE(eventually([&] { return runs == 3; }));
    EXPECT_TRUE(jobs.wait(jobs.schedule("other", text{"x"}).id, 10s));
    EXPECT_FALSE(eventually([&] { return runs > 3; }, 100ms));
    worker.stop();
    EXPECT_EQ(jobs.counts("mail").waiting, 7) << "what waited for its turn was given back";
    EXPECT_EQ(jobs.counts("mail").ever_completed, 3);
}

TEST_F(job_faults, a_type_whose_circuit_is_open_is_not_begun) {
    circuit_breaker circuit{near, "mails", {.failure_threshold = 2, .recovery_timeout = 300ms}};
    job_worker worker{near, "name", {.concurrency = 1}};
    std::atomic<int> runs{0};
    worker.handle<text>("mail", [&](text const&) {
        if (++runs <= 2) throw std::runtime_error("the mail server is away");
    }, {.breaker = &circuit});
    worker.start();
    auto const job = jobs.schedule("mail", text{"x"}, {.attempts = 10, .backoff = 1ms});
    ASSERT_TRUE(eventually([&] { return circuit.state().state == lockstep::circuit::open; }));
    auto const end = jobs.wait(job.id, 20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::completed);
    EXPECT_EQ(jobs.find(job.id)->failures.size(), 2) << "while it was open there was no try";
}

TEST_F(job_faults, a_worker_goes_on_after_the_server_was_away) {
    job_worker worker{far, "name"};
    worker.handle<text>("mail", [](text const& what) { return what; });
    worker.start();
    ASSERT_TRUE(jobs.wait(jobs.schedule("mail", text{"x"}).id, 10s));
    proxy.refuse();
    proxy.cut();
    auto const job = jobs.schedule("mail", text{"y"});
    EXPECT_FALSE(jobs.wait(job.id, 50ms));
    proxy.heal();
    auto const end = jobs.wait(job.id, 20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->result, "y");
}

TEST_F(job_faults, a_worker_that_ends_on_the_thread_of_its_clients_executor_does_not_wait_for_it) {
    executor_thread home;
    auto on = make_client(home.executor(), {.url = server.url()});
    std::optional<job_worker> worker{std::in_place, on, "name"};
    std::atomic<int> seen{0};
    worker->handle<text>("mail", [&](text const&) { ++seen; });
    worker->start();
    jobs.schedule("mail", text{"x"});
    ASSERT_TRUE(eventually([&] { return seen == 1; }));
    auto const ended = home.run([&] { worker.reset(); });
    ASSERT_EQ(ended.wait_for(30s), std::future_status::ready);
}

TEST_F(job_faults, a_wait_hears_of_the_end_though_it_was_cut_off_then) {
    job_client there{far, "name"};
    auto const job = jobs.schedule("mail", text{"x"});
    begun waiting_one{there.async_wait(job.id, 60s)};
    ASSERT_TRUE(eventually([&] { return server.must({"HLEN", key("waiters")}).integer == 1; }));
    proxy.refuse();
    proxy.cut();
    job_worker worker{near, "name"};
    worker.handle<text>("mail", [](text const& what) { return what; });
    worker.start();
    ASSERT_TRUE(jobs.wait(job.id, 10s));
    proxy.heal();
    auto const end = waiting_one.get(20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->result, "x");
}

}  // namespace
}  // namespace lockstep::test
