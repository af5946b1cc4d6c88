// How workers of jobs end: at once where nothing runs, and otherwise without losing work or counting it as a failure.
#include "jobs_support.hpp"

#include "support/failures.hpp"
#include "support/log_lines.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/later.hpp>
#include <lockstep/queue.hpp>

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

namespace lockstep::test {
namespace {

using text = std::string;
using clock = std::chrono::steady_clock;

class job_stops : public testing::Test {
protected:
    text key(char const* part) const { return mail_key + ":" + part; }

    redis_server server;
    client near{server.url()};
    job_client jobs{near, "name"};
};

TEST_F(job_stops, end_the_pause_of_a_thread_that_could_not_take_a_job) {
    log_lines logged;
    auto fastest = clock::duration::max();
    for (int round = 1; round <= 3; ++round) {
        auto const id = jobs.schedule("mail", text{"x"}).id;
        // Its options are unreadable, so the worker logs an error and pauses for a second.
        server.must({"HSET", key("records"), id.substr(id.find('/') + 1), "w 0 0 0 0 x x x x x x\nx"});
        client other{server.url()};
        job_worker worker{other, "name", {.concurrency = 1, .fires_crons = false}};
        worker.handle<text>("mail", [](text const&) {});
        worker.start();
        ASSERT_TRUE(eventually([&] { return logged.count("not understood") >= static_cast<std::size_t>(round); })) << logged.text();
        auto const begun = clock::now();
        worker.stop();
        fastest = std::min(fastest, clock::now() - begun);
    }
    EXPECT_LT(fastest, 500ms);
}

// ---- within a limit

class job_stop_contract : public contract {
protected:
    bool stop(job_worker& worker, std::chrono::milliseconds limit) {
        return run(
            b, [&] { return worker.stop(limit); }, [&] { return worker.async_stop(limit); });
    }
    /// Its handler runs until it is told to stop, and then throws (a coroutine: ends as it is cancelled).
    std::unique_ptr<job_worker> obedient(client& by, job_worker_options const& options = {}) {
        auto made = std::make_unique<job_worker>(by, "name", options);
        if (GetParam().how == form::blocking) {
            made->handle<text>("mail", [this](job_context& job, text const&) {
                ++begun_count;
                while (!job.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
                throw std::runtime_error("interrupted");
            });
        } else {
            made->handle<text>("mail", [this](job_context&, text const&) -> task<void> {
                ++begun_count;
                auto never = nothing.async_dequeue();
                static_cast<void>(co_await std::move(never));
            });
        }
        made->start();
        return made;
    }
    /// As if it had never been run.
    void expect_untouched(text const& id) {
        auto const is = jobs.find(id);
        ASSERT_TRUE(is);
        EXPECT_EQ(is->state, job_state::waiting);
        EXPECT_TRUE(is->failures.empty());
    }
    /// By another worker: which try and delivery that was.
    text run_elsewhere(text const& id) {
        job_worker other{a, "name"};
        other.handle<text>("mail", [](job_context& job, text const&) { return fmt::format("{} {}", job.attempt(), job.deliveries()); });
        other.start();
        auto const end = jobs.wait(id, 10s);
        return end ? text{to_string(end->state)} + " " + end->result : "it was not run";
    }

    job_client jobs{a, "name"};
    queue<text> nothing{b, "nothing"};
    std::atomic<int> begun_count{0};
};
LOCKSTEP_CONTRACT(job_stop_contract);

TEST_P(job_stop_contract, that_is_limited_tells_handlers_to_stop_and_leaves_their_jobs_to_others) {
    auto const id = jobs.schedule("mail", text{"x"}, {.attempts = 1}).id;
    auto const worker = obedient(b);
    ASSERT_TRUE(eventually([&] { return begun_count == 1; }));
    EXPECT_TRUE(stop(*worker, 1min)) << "it does not wait for the limit";
    expect_untouched(id);
    EXPECT_EQ(run_elsewhere(id), "completed 1 1");
}

TEST_P(job_stop_contract, that_is_limited_gives_back_what_runs_on) {
    auto const id = jobs.schedule("mail", text{"x"}, {.attempts = 1}).id;
    std::atomic<bool> go_on{false};
    job_worker worker{b, "name"};
    std::atomic<bool> was_told{false};
    std::atomic<bool> was_valid{true};
    worker.handle<text>("mail", [&](job_context& job, text const&) {
        ++begun_count;
        while (!go_on) std::this_thread::sleep_for(1ms);
        was_told = job.stop_token().stop_requested();
        was_valid = job.is_valid();
        return text{"too late"};
    });
    worker.start();
    ASSERT_TRUE(eventually([&] { return begun_count == 1; }));
    EXPECT_FALSE(stop(worker, 20ms));
    expect_untouched(id);
    EXPECT_EQ(run_elsewhere(id), "completed 1 1") << "though its lease has not ended";
    go_on = true;
    EXPECT_TRUE(stop(worker, 1min));
    EXPECT_TRUE(was_told);
    EXPECT_FALSE(was_valid);
    EXPECT_EQ(jobs.find(id)->result, "1 1");
}

TEST_P(job_stop_contract, that_is_limited_lets_what_returns_in_time_complete) {
    auto const id = jobs.schedule("mail", text{"x"}).id;
    job_worker worker{b, "name"};
    worker.handle<text>("mail", [&](job_context& job, text const&) {
        ++begun_count;
        while (!job.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
        return text{"just in time"};
    });
    worker.start();
    ASSERT_TRUE(eventually([&] { return begun_count == 1; }));
    EXPECT_TRUE(stop(worker, 1min));
    EXPECT_EQ(jobs.find(id)->result, "just in time");
}

TEST_P(job_stop_contract, that_is_limited_heeds_what_a_handler_asks_for) {
    auto const rejected = jobs.schedule("mail", text{"reject"}).id;
    auto const postponed = jobs.schedule("mail", text{"later"}).id;
    job_worker worker{b, "name"};
    worker.handle<text>("mail", [&](job_context& job, text const& what) {
        ++begun_count;
        while (!job.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
        if (what == "reject") throw reject("it will never work");
        throw later(1h);
    });
    worker.start();
    ASSERT_TRUE(eventually([&] { return begun_count == 2; }));
    EXPECT_TRUE(stop(worker, 1min));
    EXPECT_EQ(jobs.find(rejected)->state, job_state::failed);
    EXPECT_EQ(jobs.counts("mail").delayed, 1);
    expect_untouched(postponed);
}

TEST_P(job_stop_contract, by_destruction_waits_for_the_stop_limit_and_no_longer) {
    auto const id = jobs.schedule("mail", text{"x"}, {.attempts = 1}).id;
    auto worker = obedient(b, {.stop_limit = 20ms});
    ASSERT_TRUE(eventually([&] { return begun_count == 1; }));
    worker.reset();
    expect_untouched(id);
    EXPECT_EQ(run_elsewhere(id), "completed 1 1");
}

TEST_P(job_stop_contract, by_closing_the_client_counts_for_nothing_however_often) {
    auto const id = jobs.schedule("mail", text{"x"}, {.attempts = 1}).id;
    for (int deploy = 1; deploy <= 7; ++deploy) {
        client other{url()};
        auto const worker = obedient(other);
        ASSERT_TRUE(eventually([&] { return begun_count == deploy; })) << deploy;
        worker->request_stop();
        other.close();
        expect_untouched(id);
    }
    EXPECT_EQ(run_elsewhere(id), "completed 1 1");
}

TEST_F(job_stops, refuse_a_limit_that_is_negative) {
    job_worker worker{near, "name"};
    EXPECT_EQ(ending_of([&] { worker.stop(-1ms); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { job_worker{near, "name", {.stop_limit = -1ms}}; }).reason, errc::invalid_argument);
}

TEST_F(job_stops, return_at_their_limit_though_the_server_does_not_answer) {
    jobs.schedule("mail", text{"x"});
    client other{server.url()};
    job_worker worker{other, "name"};
    std::atomic<bool> has_begun{false};
    std::atomic<bool> go_on{false};
    worker.handle<text>("mail", [&](text const&) {
        has_begun = true;
        while (!go_on) std::this_thread::sleep_for(1ms);
    });
    worker.start();
    ASSERT_TRUE(eventually([&] { return has_begun.load(); }));
    server.stop();
    auto const begun = clock::now();
    EXPECT_FALSE(worker.stop(50ms));
    EXPECT_LT(clock::now() - begun, 20s) << "the commands' own time limit would be more";
    server.cont();
    go_on = true;
}

// ---- crashes

TEST_F(job_stops, crashes_before_a_try_that_ended_otherwise_or_told_of_progress_are_not_held_against_a_job) {
    auto const job = jobs.schedule("mail", text{"x"}, {.backoff = 1ms});
    auto const crash = [&](char const* mode) {
        child_process dying{{program_path("job_runner"), server.url(), "name", "100", mode}};
        ASSERT_TRUE(dying.read_line(10s)) << mode;
        dying.kill();
    };
    for (int i = 0; i != 6; ++i) crash("progress");
    for (int i = 0; i != 3; ++i) crash("hang");
    {
        job_worker worker{near, "name", {.concurrency = 1, .lease = 100ms}};
        std::atomic<int> tries{0};
        worker.handle<text>("mail", [&](text const&) {
            if (++tries == 1) throw std::runtime_error("a try that fails");
            throw later(1ms);
        });
        worker.start();
        ASSERT_TRUE(eventually([&] { return tries >= 2; }));
    }
    for (int i = 0; i != 4; ++i) crash("hang");
    job_worker worker{near, "name", {.concurrency = 1, .lease = 100ms}};
    worker.handle<text>("mail", [](text const&) {});
    worker.start();
    auto const end = jobs.wait(job.id, 10s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::completed) << end->reason;
    EXPECT_EQ(jobs.find(job.id)->failures.size(), 1U);
}

}  // namespace
}  // namespace lockstep::test
