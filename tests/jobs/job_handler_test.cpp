// What workers do about handlers that postpone their jobs, fail, hang, or return too much; and when they take jobs at all.
#include "jobs_support.hpp"

#include "support/log_lines.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/idempotency.hpp>
#include <lockstep/later.hpp>
#include <lockstep/rate_limiter.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

namespace lockstep::test {
namespace {

using testing::HasSubstr;
using text = std::string;

class job_handler_contract : public contract {
protected:
    /// In the form of the test. The handler may throw.
    template <class F>
    std::unique_ptr<job_worker> work(F handler, job_worker_options const& options = {}) {
        auto made = std::make_unique<job_worker>(b, "name", options);
        if (GetParam().how == form::blocking) made->handle<text>("mail", [handler](job_context& job, text const& what) { return handler(job, what); });
        else made->handle<text>("mail", [handler](job_context& job, text const& what) -> task<text> { co_return handler(job, what); });
        made->start();
        return made;
    }

    job_client jobs{a, "name"};
    std::atomic<int> tries{0};
};
LOCKSTEP_CONTRACT(job_handler_contract);

TEST_P(job_handler_contract, that_throw_later_have_their_jobs_run_again_and_nothing_is_counted) {
    auto const id = jobs.schedule("mail", text{"x"}, {.attempts = 1}).id;
    auto const worker = work([this](job_context& job, text const&) {
        if (++tries <= 12) throw later{tries % 2 == 0 ? 0ms : 5ms};
        return fmt::format("{} {}", job.attempt(), job.deliveries());
    });
    auto const end = jobs.wait(id, 20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->result, "1 1") << end->reason;
    EXPECT_TRUE(jobs.find(id)->failures.empty());
    EXPECT_EQ(worker->failed(), 0U);
}

TEST_P(job_handler_contract, that_throw_later_wait_for_the_delay) {
    auto const id = jobs.schedule("mail", text{"x"}, {.priority = 5, .key = "k"}).id;
    auto const worker = work([this](job_context&, text const&) -> text {
        ++tries;
        throw later{1h};
    });
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").delayed == 1; }));
    EXPECT_FALSE(eventually([&] { return tries > 1; }, 50ms));
    EXPECT_FALSE(jobs.schedule("mail", text{"y"}, {.key = "k"}).is_new) << "its key is still taken";
}

TEST_P(job_handler_contract, that_find_it_busy_try_again_until_it_is_not) {
    server.must({"SET", "lockstep:{name}:idempotency:7", "by somebody", "PX", "1200"});
    auto const done = std::make_shared<idempotency>(b, "name");
    auto const id = jobs.schedule("mail", text{"7"}, {.attempts = 1}).id;
    auto made = std::make_unique<job_worker>(b, "name");
    if (GetParam().how == form::blocking) {
        made->handle<text>("mail", [this, done](text const& what) { done->run(what, [this] { ++tries; }); });
    } else {
        made->handle<text>("mail", [this, done](text const& what) -> task<void> {
            std::function<task<void>()> const work = [this]() -> task<void> {
                ++tries;
                co_return;
            };
            auto running = done->async_run(what, work);
            static_cast<void>(co_await std::move(running));
        });
    }
    made->start();
    auto const end = jobs.wait(id, 20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::completed) << end->reason;
    EXPECT_EQ(tries, 1);
    EXPECT_TRUE(jobs.find(id)->failures.empty());
}

TEST_P(job_handler_contract, that_return_too_much_fail_their_jobs_at_once_and_say_so) {
    auto const id = jobs.schedule("mail", text{"x"}).id;
    auto const worker = work([this](job_context&, text const&) {
        ++tries;
        return text((16 << 20) + 1, 'x');
    });
    auto const end = jobs.wait(id, 20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::failed);
    EXPECT_THAT(end->reason, HasSubstr("its result has 16777217 bytes, and 16777216 are allowed"));
    EXPECT_EQ(tries, 1);
}

class job_handlers : public testing::Test {
protected:
    redis_server server;
    client near{server.url()};
    client far{server.url()};
    job_client jobs{near, "name"};
};

TEST_F(job_handlers, that_tell_of_too_much_progress_fail_their_jobs_at_once_and_say_so) {
    auto const id = jobs.schedule("mail", text{"x"}).id;
    job_worker worker{far, "name"};
    worker.handle<text>("mail", [](job_context& job, text const&) { job.progress(text((1 << 20) + 1, 'x')); });
    worker.start();
    auto const end = jobs.wait(id, 20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::failed);
    EXPECT_THAT(end->reason, HasSubstr("its progress has 1048577 bytes, and 1048576 are allowed"));
}

TEST_F(job_handlers, whose_result_the_server_refuses_fail_their_job_at_once_and_no_other) {
    server.must({"CONFIG", "SET", "proto-max-bulk-len", "1mb"});
    auto const large = jobs.schedule("mail", text{"large"}).id;
    job_worker worker{far, "name", {.concurrency = 4}};
    std::atomic<int> runs{0};
    worker.handle<text>("mail", [&](text const& what) {
        if (what != "large") return text{"small"};
        ++runs;
        return text(3 << 20, 'x');
    });
    worker.start();
    std::vector<text> small;
    for (int i = 0; i != 20; ++i) small.push_back(jobs.schedule("mail", text{"small"}).id);
    auto const end = jobs.wait(large, 20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::failed);
    EXPECT_THAT(end->reason, HasSubstr("the server refused its result of 3145728 bytes"));
    EXPECT_EQ(runs, 1);
    for (auto const& one : small) {
        auto const other = jobs.wait(one, 20s);
        ASSERT_TRUE(other);
        EXPECT_EQ(other->state, job_state::completed);
    }
}

TEST_F(job_handlers, that_run_on_when_their_time_is_over_are_told_of_and_not_run_twice_at_once_here) {
    log_lines logged;
    auto const id = jobs.schedule("mail", text{"x"}, {.backoff = 1ms, .timeout = 50ms}).id;
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    std::atomic<int> runs{0};
    std::atomic<bool> go_on{false};
    {
        client own{server.url()};
        job_worker worker{own, "name", {.concurrency = 4}};
        struct opener {
            std::atomic<bool>& what;
            ~opener() { what = true; }
        } const at_the_end_in_any_case{go_on};
        worker.handle<text>("mail", [&](text const&) {
            most = std::max<int>(most, ++inside);
            if (++runs == 1) {
                while (!go_on) std::this_thread::sleep_for(1ms);
            }
            --inside;
            return text{"done"};
        });
        worker.start();
        ASSERT_TRUE(eventually([&] { return worker.stuck() == 1; }));
        EXPECT_EQ(logged.count("the handler of " + id + " runs on"), 1U) << logged.text();
        EXPECT_EQ(runs, 1);
        EXPECT_FALSE(jobs.find(id)->failures.empty());
        {
            client elsewhere{server.url()};
            job_worker other{elsewhere, "name"};
            other.handle<text>("mail", [&](text const&) { return text{"elsewhere"}; });
            other.start();
            auto const end = jobs.wait(id, 20s);
            ASSERT_TRUE(end);
            EXPECT_EQ(end->result, "elsewhere");
        }
        go_on = true;
        EXPECT_TRUE(eventually([&] { return worker.stuck() == 0; }));
        EXPECT_EQ(most, 1);
    }
    EXPECT_EQ(jobs.find(id)->failures.size(), 1U);
}

TEST_F(job_handlers, whose_limiter_cannot_be_asked_are_one_line_in_the_log) {
    log_lines seen;
    fault_proxy proxy{server.address()};
    proxy.refuse();
    client far{proxy.url()};
    rate_limiter limit{far, "mails", {.limit = 1, .per = 1s, .command_timeout = 50ms}};
    jobs.schedule_many<text>("mail", std::vector<text>(20, "x"));
    job_worker worker{near, "name", {.concurrency = 8}};
    worker.handle<text>("mail", [](text const&) {}, {.limit = &limit});
    worker.start();
    EXPECT_TRUE(eventually([&] { return seen.count("a worker of jobs 'name'") > 0; }));
    std::this_thread::sleep_for(1500ms);  // all its loops have tried again by then
    EXPECT_EQ(seen.count("a worker of jobs 'name'"), 1) << seen.text();
    worker.stop();
    EXPECT_EQ(jobs.counts("mail").waiting, 20);
}

TEST_F(job_handlers, of_a_type_with_a_limit_get_the_job_with_the_highest_priority_when_it_is_their_turn) {
    rate_limiter limit{near, "mails", {.limit = 1, .per = 300ms, .command_timeout = 10s}};
    diary seen;
    job_worker worker{far, "name", {.concurrency = 20}};
    worker.handle<text>("mail", [&](text const& what) { seen.add(what); }, {.limit = &limit});
    jobs.schedule_many<text>("mail", std::vector<text>(20, "usual"));
    worker.start();
    ASSERT_TRUE(eventually([&] { return seen.size() == 2; }));
    EXPECT_LE(jobs.counts("mail").running, 1) << "what waits for its turn is not leased";
    jobs.schedule("mail", text{"urgent"}, {.priority = 100});
    ASSERT_TRUE(eventually([&] { return seen.size() >= 4; }));
    auto const all = seen.all();
    EXPECT_TRUE(all[2] == "urgent" || all[3] == "urgent");
    worker.stop();
    EXPECT_EQ(jobs.counts("mail").ever_failed + jobs.counts("mail").ever_retried, 0);
}

TEST_F(job_handlers, that_mostly_fail_leave_jobs_to_workers_where_they_do_not) {
    constexpr int total = 3'000;
    log_lines logged;
    for (int i = 0; i != total / 1'000; ++i) jobs.schedule_many<text>("mail", std::vector<text>(1'000, "x"));
    {
        client own{server.url()};
        client good{server.url()};
        std::atomic<int> sick_tries{0};
        job_worker sick{own, "name", {.concurrency = 4}};
        sick.handle<text>("mail", [&](text const&) {
            ++sick_tries;
            throw std::runtime_error("no database here");
        });
        sick.start();
        ASSERT_TRUE(eventually([&] { return sick_tries >= 4; }));
        job_worker healthy{good, "name", {.concurrency = 4}};
        healthy.handle<text>("mail", [](text const&) { std::this_thread::sleep_for(1ms); });
        healthy.start();
        ASSERT_TRUE(eventually([&] { return healthy.completed() >= total * 95 / 100; }, 50s));
        EXPECT_LT(sick_tries, total / 20);
        EXPECT_EQ(jobs.counts("mail").ever_failed, 0);
    }
    EXPECT_LE(logged.count("no database here"), 5U);
    EXPECT_GE(logged.count("no database here"), 1U);
}

TEST_F(job_handlers, that_work_again_get_all_that_their_worker_may_run) {
    std::atomic<bool> works{false};
    std::atomic<int> tries{0};
    job_worker worker{far, "name", {.concurrency = 4}};
    worker.handle<text>("mail", [&](text const&) {
        ++tries;
        if (!works) throw std::runtime_error("no database here");
    });
    jobs.schedule_many<text>("mail", std::vector<text>(500, "x"), {.backoff = 1ms});
    worker.start();
    ASSERT_TRUE(eventually([&] { return tries >= 8; }));
    works = true;
    EXPECT_TRUE(eventually([&] { return worker.completed() == 500; }, 20s));
}

}  // namespace
}  // namespace lockstep::test
