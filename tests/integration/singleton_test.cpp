// A task that one process of the fleet runs at a time, and work that one of them does once.
#include <lockstep/event.hpp>
#include <lockstep/singleton.hpp>

#include "support/child_process.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/log_lines.hpp"
#include "support/program_path.hpp"
#include "support/scratch_dir.hpp"
#include "topology_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

namespace lockstep::test {
namespace {

class a_singleton : public testing::Test {
protected:
    /// Counts how many run at a time.
    auto task() {
        return [this](leadership const& leads) {
            EXPECT_EQ(++running, 1);
            ++runs;
            auto const token = leads.stop_token();
            while (!token.stop_requested() && !ends) std::this_thread::sleep_for(1ms);
            --running;
            if (throws) throw std::runtime_error{"the task failed"};
        };
    }

    std::atomic<int> running{0}, runs{0};
    std::atomic<bool> ends{false}, throws{false};
    redis_server server;
    client a{server.url()};
    client b{server.url()};
};

TEST_F(a_singleton, runs_in_one_place_and_moves_when_that_one_ends) {
    auto first = std::make_unique<singleton>(a, "name", task(), election_options{.id = "a"});
    ASSERT_TRUE(eventually([&] { return first->runs_here(); }));
    singleton second{b, "name", task(), {.id = "b"}};
    EXPECT_EQ(second.where().leader()->id, "a");
    first.reset();
    EXPECT_TRUE(eventually([&] { return second.runs_here(); }));
    EXPECT_EQ(second.where().leader()->id, "b");
    second.stop();
    EXPECT_FALSE(second.runs_here());
    EXPECT_FALSE(second.where().leader());
    second.stop();
}

TEST_F(a_singleton, may_be_a_coroutine_whose_waiting_ends_when_it_leads_no_more) {
    event never{a, "never"};
    auto const coroutine = [this, &never](leadership const&) -> lockstep::task<void> {
        ++running;
        ++runs;
        try {
            auto waiting = never.async_wait();
            co_await std::move(waiting);
        } catch (cancelled_error const&) {
            --running;
            throw;
        }
    };
    log_lines lines;
    {
        singleton mine{a, "name", coroutine, {.id = "a"}};
        ASSERT_TRUE(eventually([&] { return running == 1; }));
        EXPECT_TRUE(mine.runs_here());
        mine.stop();
        EXPECT_EQ(running, 0);
        EXPECT_EQ(runs, 1);
    }
    EXPECT_EQ(lines.count("threw"), 0U) << "to be cancelled is no failure";
}

TEST_F(a_singleton, ends_when_its_server_can_not_be_reached_from_there_and_comes_back) {
    log_lines lines;
    {
        client c{server.url()};
        singleton of_c{c, "name", task(), {.id = "c", .ttl = 500ms, .renew_deadline = 300ms, .retry_period = 50ms}};
        ASSERT_TRUE(eventually([&] { return of_c.runs_here(); }));
        server.stop();
        EXPECT_TRUE(eventually([&] { return !of_c.runs_here(); })) << "it stops though nobody tells it";
        server.cont();
        EXPECT_TRUE(eventually([&] { return of_c.runs_here(); }));
    }
}

TEST_F(a_singleton, moves_when_the_process_that_runs_it_is_killed) {
    scratch_dir directory;
    child_process other{{program_path("candidate"), server.url(), "name", "other", "1500", "1000", "100", directory.file("book")}, {.capture_stderr = false}};
    ASSERT_TRUE(other.read_line(20s).value_or("").starts_with("elected "));
    singleton mine{a, "name", task(), {.id = "mine"}};
    ASSERT_TRUE(eventually([&] { return mine.where().leader()->candidates == 1; }));
    EXPECT_FALSE(mine.runs_here());
    other.kill(SIGKILL);
    EXPECT_TRUE(eventually([&] { return mine.runs_here(); }, 20s));
}

TEST_F(a_singleton, may_be_stopped_by_several_at_once) {
    singleton mine{a, "name", task(), {.id = "mine"}};
    ASSERT_TRUE(eventually([&] { return mine.runs_here(); }));
    std::vector<std::jthread> all;
    for (int i = 0; i < 4; ++i) all.emplace_back([&] { mine.stop(); });
    all.clear();
    EXPECT_FALSE(mine.runs_here());
}

TEST_F(a_singleton, runs_its_task_again_when_that_ends_or_throws) {
    log_lines lines;
    {
        client c{server.url()};
        ends = throws = true;
        singleton of_c{c, "name", task(), {.id = "c", .retry_period = 10ms}};
        EXPECT_TRUE(eventually([&] { return runs >= 3; }));
    }
    EXPECT_GE(lines.count("the task failed"), 3U);
    EXPECT_THROW(singleton(a, "name", {}), invalid_argument_error);
}

class run_once_contract : public contract {
protected:
    bool once(client& by, std::string_view name, std::chrono::milliseconds window, std::function<void()> work, run_once_options how = {}) {
        return run(
            by, [&] { return run_once(by, name, window, work, how); },
            [&] {
                std::function<task<void>()> const coroutine = [work]() -> task<void> {
                    work();
                    co_return;
                };
                return async_run_once(by, name, window, coroutine, how);
            });
    }
};
LOCKSTEP_CONTRACT(run_once_contract);

TEST_P(run_once_contract, runs_the_work_of_exactly_one_of_all_who_try) {
    std::atomic<int> runs{0};
    std::atomic<int> here{0};
    {
        std::vector<std::jthread> all;
        for (int i = 0; i < 16; ++i) {
            all.emplace_back([&, i] { here += once(i % 2 == 0 ? a : b, "name", 60s, [&] { ++runs; }) ? 1 : 0; });
        }
    }
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(here, 1);
    EXPECT_TRUE(once(a, "another", 60s, [] {}));
}

TEST_P(run_once_contract, runs_it_again_when_the_window_is_over) {
    EXPECT_TRUE(once(a, "name", 100ms, [] {}));
    EXPECT_TRUE(eventually([&] { return once(b, "name", 100ms, [] {}); }));
    EXPECT_EQ(outcome([&] { once(a, "name", 0ms, [] {}); }), errc::invalid_argument);
    EXPECT_EQ(outcome([&] { once(a, "", 1s, [] {}); }), errc::invalid_argument);
}

TEST_P(run_once_contract, gives_others_a_try_after_a_failure_only_where_that_is_asked_for) {
    auto const fail = [] { throw std::runtime_error{"no"}; };
    EXPECT_THROW(once(a, "name", 60s, fail), std::runtime_error);
    EXPECT_FALSE(once(b, "name", 60s, [] {}));
    EXPECT_THROW(once(a, "other", 60s, fail, {.again_if_it_throws = true}), std::runtime_error);
    EXPECT_TRUE(once(b, "other", 60s, [] {}));
}

TEST(run_once_cancelled, gives_others_a_try_where_that_is_asked_for) {
    redis_server server;
    client by{server.url()};
    event never{by, "never"};
    std::stop_source stop;
    std::atomic<bool> inside{false};
    auto const work = [&]() -> lockstep::task<void> {
        inside = true;
        auto waiting = never.async_wait();
        co_await std::move(waiting);
    };
    begun const running{with_stop_token(async_run_once(by, "name", 60s, work, {.again_if_it_throws = true}), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return inside.load(); }));
    stop.request_stop();
    EXPECT_EQ(outcome([&] { running.get(); }), errc::cancelled);
    EXPECT_TRUE(run_once(by, "name", 60s, [] {}));
}

}  // namespace
}  // namespace lockstep::test
