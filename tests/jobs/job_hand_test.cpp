// Several jobs in hand: what a worker does whose handlers are quick.
#include "jobs_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::test {
namespace {

using text = std::string;

/// Handlers are coroutines, or functions on threads.
class job_hand : public testing::TestWithParam<bool> {
protected:
    /// It says what it does, one at a time, and waits where the payload says so.
    void handle(job_worker& by, diary& seen) {
        if (GetParam()) {
            by.handle<text>("mail", [this, &seen](text const& what) -> task<void> {
                auto const all = ++at_once;
                if (all > most) most = all;
                seen.add(what);
                while (what == "long" && !is_open) co_await near.async_command("PING");
                --at_once;
            });
        } else {
            by.handle<text>("mail", [this, &seen](text const& what) {
                auto const all = ++at_once;
                if (all > most) most = all;
                seen.add(what);
                while (what == "long" && !is_open) std::this_thread::sleep_for(1ms);
                --at_once;
            });
        }
    }
    std::vector<text> numbers(int from, int to) {
        std::vector<text> all;
        for (int i = from; i != to; ++i) all.push_back(std::to_string(i));
        return all;
    }
    bool all_are_completed() {
        auto const is = jobs.counts("mail");
        return is.completed == is.ever_added;
    }

    redis_server server;
    client near{server.url()};
    job_client jobs{near, "name"};
    std::atomic<int> at_once{0};
    std::atomic<int> most{0};
    std::atomic<bool> is_open{false};
};

TEST_P(job_hand, is_taken_with_few_calls_and_run_one_by_one_in_order) {
    auto const all = numbers(0, 2000);
    jobs.schedule_many<text>("mail", all);
    diary seen;
    job_worker worker{near, "name", {.concurrency = 1, .keep_completed = 5000}};
    handle(worker, seen);
    auto const before = calls_of(server, "lrange");  // one for each time that some are taken; what became of them may be told by itself
    worker.start();
    EXPECT_TRUE(eventually([&] { return seen.size() == 2000; }, 60s));
    auto const after = calls_of(server, "lrange");
    EXPECT_TRUE(eventually([&] { return all_are_completed(); }));
    EXPECT_EQ(seen.all(), all);
    EXPECT_EQ(most, 1);
    EXPECT_LT(after - before, 2000) << "not one for each";
}

TEST_P(job_hand, is_given_back_when_a_job_takes_long) {
    auto all = numbers(0, 200);
    all.push_back("long");
    auto const behind = numbers(1000, 1009);
    all.insert(all.end(), behind.begin(), behind.end());
    jobs.schedule_many<text>("mail", all);
    diary seen;
    diary by_other;
    job_worker slow{near, "name", {.concurrency = 1}};
    handle(slow, seen);
    slow.start();
    ASSERT_TRUE(eventually([&] { return !seen.all().empty() && seen.all().back() == "long"; }, 60s));
    EXPECT_TRUE(eventually([&] { return jobs.counts("mail").running == 1; })) << "it has not gone on with the others";
    job_worker other{near, "name", {.concurrency = 1}};
    handle(other, by_other);
    other.start();
    EXPECT_TRUE(eventually([&] { return by_other.size() == behind.size(); }));
    EXPECT_EQ(by_other.all(), behind) << "in order";
    is_open = true;
    EXPECT_TRUE(eventually([&] { return all_are_completed(); }));
    EXPECT_EQ(jobs.counts("mail").failed, 0);
}

TEST_P(job_hand, is_given_back_when_the_worker_stops) {
    auto const all = numbers(0, 1000);
    jobs.schedule_many<text>("mail", all);
    diary seen;
    {
        job_worker worker{near, "name", {.concurrency = 1, .keep_completed = 5000}};
        handle(worker, seen);
        worker.start();
        ASSERT_TRUE(eventually([&] { return seen.size() > 100; }));
        worker.stop();
    }
    auto const is = jobs.counts("mail");
    EXPECT_EQ(is.running, 0);
    EXPECT_EQ(is.completed, static_cast<std::int64_t>(seen.size()));
    EXPECT_EQ(is.waiting, 1000 - is.completed);
    job_worker worker{near, "name", {.concurrency = 1, .keep_completed = 5000}};
    handle(worker, seen);
    worker.start();
    EXPECT_TRUE(eventually([&] { return all_are_completed(); }, 60s));
    EXPECT_EQ(seen.all(), all);
}

TEST_P(job_hand, that_is_large_leaves_no_more_behind_than_is_to_be_kept) {
    std::vector<text> const many(5'000, "x");
    for (int i = 0; i != 4; ++i) jobs.schedule_many<text>("mail", many);
    diary seen;
    job_worker worker{near, "name", {.concurrency = 250, .completed_retention = 0ms}};
    handle(worker, seen);
    worker.start();
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_completed == 20'000; }, 60s));
    worker.stop();
    EXPECT_LT(server.must({"HLEN", mail_key + ":records"}).integer, 3'000);
}

INSTANTIATE_TEST_SUITE_P(jobs, job_hand, testing::Bool(), [](auto const& which) { return which.param ? "coroutine" : "function"; });

// They are warm, so that each takes several, and a job among these ends the process.
TEST(job_hands, of_killed_workers_are_not_failed_with_the_job_that_kills_them) {
    redis_server server;
    client near{server.url()};
    job_client jobs{near, "name"};
    std::vector<child_process> workers;
    for (int i = 0; i != 4; ++i) workers.emplace_back(child_process{{program_path("job_runner"), server.url(), "name", "500", "die"}});
    jobs.schedule_many<text>("mail", std::vector<text>(2'000, "x"));
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_completed == 2'000; }));
    std::vector<text> all{"die"};
    all.resize(16, "good");
    auto const made = jobs.schedule_many<text>("mail", all);
    ASSERT_TRUE(jobs.wait(made[0].id, 20s));
    EXPECT_EQ(jobs.find(made[0].id)->state, job_state::failed) << "so often it was tried";
    for (std::size_t i = 1; i != made.size(); ++i) {
        auto const end = jobs.wait(made[i].id, 20s);
        ASSERT_TRUE(end);
        EXPECT_EQ(end->state, job_state::completed) << i << ": " << end->reason;
    }
}

}  // namespace
}  // namespace lockstep::test
