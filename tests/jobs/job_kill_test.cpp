// A worker is killed at each step of what it does with a job, or is silent for longer than its lease; and so is who adds a flow.
#include "jobs_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using text = std::string;

constexpr int lease = 1'000;

class job_kills : public testing::Test {
protected:
    child_process runner(text const& url, text const& mode) { return child_process{{program_path("job_runner"), url, "name", std::to_string(lease), mode}}; }
    text key(char const* part) const { return mail_key + ":" + part; }
    bool eventually_waiting(std::int64_t count) {
        return eventually([&] { return server.must({"ZCARD", key("waiting")}).integer == count; });
    }
    /// What another worker begins, until all of them have ended.
    std::vector<text> run_the_rest() {
        auto other = runner(server.url(), "run");
        std::vector<text> begun;
        EXPECT_TRUE(eventually([&] {
            auto const is = jobs.counts("mail");
            return is.waiting + is.delayed + is.blocked + is.running == 0;
        }, 20s));
        other.close_input();
        while (auto const line = other.read_line()) {
            if (line->starts_with("begun ")) begun.push_back(line->substr(6));
        }
        EXPECT_TRUE(other.wait());
        return begun;
    }
    void expect_nothing_is_held() {
        for (auto const* const part : {"held", "items", "running", "ready", "ranked", "later", "blocked", "singles"}) {
            EXPECT_EQ(server.must({"EXISTS", key(part)}).integer, 0) << part;
        }
    }
    std::int64_t ends() {
        auto const is = jobs.counts("mail");
        return is.ever_completed + is.ever_failed + is.ever_retried;
    }

    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    job_client jobs{near, "name"};
};

// ---- what a worker says of a job: that it is done, that it is to be tried again, that it has failed

class job_verdicts : public job_kills, public testing::WithParamInterface<text> {
protected:
    /// x is begun by a worker behind the proxy, y waits.
    void SetUp() override { ASSERT_EQ(dying.read_line(), "begun x 1"); }
    job_outcome end_of(scheduled const& job) { return jobs.wait(job.id, 20s).value_or(job_outcome{}); }
    /// As if the first worker had never had them, but for the count of deliveries.
    void expect_run_again(std::vector<text> const& begun) {
        EXPECT_THAT(begun, UnorderedElementsAre("x 2", "y 1"));
        EXPECT_EQ(end_of(x).result, "x 2");
        EXPECT_EQ(jobs.find(x.id)->failures.size(), 0U) << "that was no failure of the job";
        auto const is = jobs.counts("mail");
        EXPECT_EQ(is.ever_completed, 2);
        EXPECT_EQ(is.ever_failed + is.ever_retried, 0);
        expect_nothing_is_held();
    }

    scheduled x = jobs.schedule("mail", text{"x"}, {.attempts = 2, .backoff = 1ms});
    scheduled y = jobs.schedule("mail", text{"y"});
    child_process dying{runner(proxy.url(), GetParam())};  // when they are there, or they are sent in a message, which may come late
};
INSTANTIATE_TEST_SUITE_P(says, job_verdicts, testing::Values("return", "retry", "reject"), [](auto const& of) { return of.param; });

TEST_P(job_verdicts, killed_in_its_handler) {
    dying.kill();
    expect_run_again(run_the_rest());
}

TEST_P(job_verdicts, killed_before_it_is_sent) {
    proxy.hold(direction::to_server);
    dying.write_line("go on");
    EXPECT_FALSE(eventually([&] { return ends() != 0; }, 50ms));
    dying.kill();
    expect_run_again(run_the_rest());
}

TEST_P(job_verdicts, killed_before_the_answer) {
    proxy.hold(direction::to_client);
    dying.write_line("go on");
    ASSERT_TRUE(eventually([&] { return ends() == 1; }));
    dying.kill();
    auto const begun = run_the_rest();
    auto const is = jobs.counts("mail");
    EXPECT_TRUE(end_of(y).result.starts_with("y "));
    EXPECT_EQ(std::ranges::count_if(begun, [](text const& one) { return one.starts_with("y "); }), 1);
    if (GetParam() == "retry") {
        EXPECT_EQ(end_of(x).state, job_state::completed);
        EXPECT_EQ(jobs.find(x.id)->failures.size(), 1U);
        EXPECT_EQ(is.ever_retried, 1);
        EXPECT_EQ(is.ever_completed, 2);
    } else {
        bool const returns = GetParam() == "return";
        EXPECT_EQ(begun.size(), 1U) << "it had ended";
        EXPECT_EQ(end_of(x).state, returns ? job_state::completed : job_state::failed);
        EXPECT_EQ(end_of(x).result, returns ? "x 1" : "");
        EXPECT_EQ(is.ever_completed, returns ? 2 : 1);
        EXPECT_EQ(is.ever_failed, returns ? 0 : 1);
    }
    expect_nothing_is_held();
}

TEST_P(job_verdicts, it_comes_too_late_and_changes_nothing) {
    proxy.hold(direction::to_server);
    dying.write_line("go on");
    auto other = runner(server.url(), "say");
    auto const first = other.read_line(20s);  // y, and x when its lease is over
    auto const second = other.read_line(20s);
    ASSERT_TRUE(first && second);
    EXPECT_THAT((std::vector{*first, *second}), UnorderedElementsAre("begun x 2", "begun y 1"));
    proxy.heal();
    EXPECT_FALSE(eventually([&] { return ends() != 0; }, 200ms)) << "it is not its own any more";
    EXPECT_EQ(jobs.counts("mail").running, 2);
    other.write_line("go on");
    other.write_line("go on");
    EXPECT_EQ(end_of(x).result, "x 2");
    EXPECT_EQ(end_of(y).result, "y 1");
    EXPECT_EQ(ends(), 2);
}

TEST_P(job_verdicts, it_sleeps_past_its_lease_and_says_it_then) {
    dying.stop();
    auto const begun = run_the_rest();
    dying.write_line("go on");
    dying.cont();
    EXPECT_FALSE(eventually([&] { return ends() != 2; }, 200ms));
    expect_run_again(begun);
}

// ---- what it takes, and keeps

TEST_F(job_kills, a_job_that_was_sent_to_a_worker_which_is_killed_before_it_reads_it_is_run_elsewhere) {
    auto dying = runner(server.url(), "run");
    ASSERT_TRUE(eventually_waiting(1));
    dying.stop();
    auto const job = jobs.schedule("mail", text{"x"});
    EXPECT_EQ(jobs.find(job.id)->state, job_state::running) << "it is in the message";
    dying.kill();
    EXPECT_THAT(run_the_rest(), ElementsAre("x 2"));
    EXPECT_EQ(jobs.counts("mail").ever_completed, 1);
    expect_nothing_is_held();
}

TEST_F(job_kills, a_job_that_was_taken_by_a_worker_which_is_killed_before_the_answer_is_run_elsewhere) {
    auto dying = runner(proxy.url(), "run");
    ASSERT_TRUE(eventually_waiting(1));
    proxy.delay(2s, direction::to_client);
    auto const job = jobs.schedule("mail", text(10'000, 'x'));  // too large for a message
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").running == 1; }, 20s)) << "it was told, and asked";
    dying.kill();
    EXPECT_EQ(run_the_rest().size(), 1U);
    EXPECT_TRUE(jobs.find(job.id)->result.ends_with(" 2"));
    EXPECT_EQ(jobs.counts("mail").ever_completed, 1);
    expect_nothing_is_held();
}

TEST_F(job_kills, a_worker_that_is_told_of_a_job_and_killed_before_it_asks_leaves_it_to_another) {
    auto dying = runner(server.url(), "run");
    ASSERT_TRUE(eventually_waiting(1));
    auto const other = runner(server.url(), "run");
    ASSERT_TRUE(eventually_waiting(2));
    dying.stop();
    auto const job = jobs.schedule("mail", text(10'000, 'x'));  // too large for a message
    EXPECT_EQ(jobs.counts("mail").running, 0);
    dying.kill();
    EXPECT_TRUE(jobs.wait(job.id, 10s)) << "who scheduled it looks whether it was taken";
}

// One of them is told, sleeps, and does not ask. Nobody may wait until it wakes, or for the next rare look.
class job_sleepers : public job_kills {
protected:
    void SetUp() override {
        ASSERT_TRUE(eventually_waiting(1));
        other = std::make_unique<child_process>(runner(server.url(), "run"));
        ASSERT_TRUE(eventually_waiting(2));
        sleeping.stop();
    }
    void expect_run(text const& id) { EXPECT_TRUE(jobs.wait(id, 10s)) << id; }

    child_process sleeping{runner(server.url(), "run")};
    std::unique_ptr<child_process> other;
};

TEST_F(job_sleepers, do_not_keep_a_single_job_from_being_run) { expect_run(jobs.schedule("mail", text{"x"}, {.single = "x"}).id); }

TEST_F(job_sleepers, do_not_keep_a_flow_from_going_on) {
    job_flow flow;
    flow.add("a", "other", text{"a"});
    flow.add("b", "mail", text{"b"});
    flow.after("b", "a");
    auto const ids = jobs.add_flow(flow);
    job_worker worker{near, "name"};
    worker.handle<text>("other", [](text const&) {});
    worker.start();
    expect_run(ids.at("b"));
}

TEST_F(job_sleepers, do_not_keep_a_job_from_being_run_again) {
    auto const job = jobs.schedule("mail", text{"x"}, {.delay = 1h});
    ASSERT_TRUE(jobs.cancel(job.id));
    ASSERT_TRUE(jobs.requeue(job.id));
    expect_run(job.id);
}

TEST_F(job_sleepers, do_not_keep_a_job_from_being_run_that_was_put_off) {
    auto const job = jobs.schedule("mail", text{"x"}, {.delay = 1h});
    ASSERT_TRUE(jobs.move(job.id, 0ms));
    expect_run(job.id);
}

TEST_F(job_sleepers, do_not_keep_the_job_behind_a_batch_from_being_run) {
    auto batch = jobs.batch("b", 1, {}, "mail", text{"then"});
    ASSERT_TRUE(jobs.cancel(jobs.schedule("other", text{"x"}, {.batch = "b"}).id));
    auto const end = batch.wait(10s);
    ASSERT_TRUE(end);
    expect_run(end->then);
}

// Renewals of one that runs: never heard by the server, or their answers never by the worker.
class job_renewals : public job_kills, public testing::WithParamInterface<direction> {};
INSTANTIATE_TEST_SUITE_P(held, job_renewals, testing::Values(direction::to_server, direction::to_client),
                         [](auto const& of) { return of.param == direction::to_server ? "before_the_server" : "before_the_worker"; });

TEST_P(job_renewals, of_a_killed_worker_end_with_it) {
    auto const job = jobs.schedule("mail", text{"x"});
    auto dying = runner(proxy.url(), "hang");
    ASSERT_EQ(dying.read_line(), "begun x 1");
    auto const leased_until = [&] { return server.must({"ZRANGE", key("held"), "0", "0", "WITHSCORES"}).elements.at(1).text; };
    auto const first = leased_until();
    ASSERT_TRUE(eventually([&] { return leased_until() != first; })) << "it is renewed";
    proxy.hold(GetParam());
    dying.kill();
    EXPECT_THAT(run_the_rest(), ElementsAre("x 2"));
    EXPECT_EQ(jobs.find(job.id)->result, "x 2");
    expect_nothing_is_held();
}

TEST_F(job_kills, a_worker_whose_renewals_are_held_up_stops_and_does_not_complete) {
    auto const job = jobs.schedule("mail", text{"x"});
    client far{proxy.url()};
    job_worker slow{far, "name", {.concurrency = 1, .lease = std::chrono::milliseconds{lease}}};
    std::atomic<bool> has_begun{false};
    std::atomic<bool> was_told{false};
    slow.handle<text>("mail", [&](job_context& its, text const& what) {
        has_begun = true;
        while (!its.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
        EXPECT_FALSE(its.is_valid());
        was_told = true;
        return what + " too late";
    });
    slow.start();
    ASSERT_TRUE(eventually([&] { return has_begun.load(); }));
    proxy.hold();
    EXPECT_THAT(run_the_rest(), ElementsAre("x 2"));
    EXPECT_TRUE(eventually([&] { return was_told.load(); })) << "before somebody else began it";
    proxy.heal();
    slow.stop();
    EXPECT_EQ(jobs.find(job.id)->result, "x 2");
    EXPECT_EQ(jobs.counts("mail").ever_completed, 1);
}

// ---- who adds a flow

class flow_kills : public job_kills {
protected:
    void SetUp() override {
        jobs.schedule("other", text{"x"}, {.single = "x"});  // the server knows the script
        ASSERT_EQ(dying.read_line(20s), "ready");
    }
    child_process dying{runner(proxy.url(), "flow")};
};

TEST_F(flow_kills, killed_in_the_middle_of_sending_it_nothing_is_there) {
    auto const before = proxy.counters().bytes_to_server;
    proxy.throttle(20'000, direction::to_server);
    dying.write_line("go on");
    ASSERT_TRUE(eventually([&] { return proxy.counters().bytes_to_server > before + 4'000; }));
    dying.kill();
    ASSERT_TRUE(dying.wait());
    proxy.cut();
    ASSERT_TRUE(eventually([&] { return proxy.counters().open == 0; }));
    EXPECT_THAT(jobs.types(), ElementsAre("other"));
    EXPECT_EQ(jobs.counts("mail").ever_added, 0);
}

TEST_F(flow_kills, killed_before_the_answer_all_of_it_is_there_and_is_run) {
    proxy.throttle(2'000, direction::to_client);
    dying.write_line("go on");
    ASSERT_TRUE(eventually([&] { return jobs.types().size() == 2; })) << "it was added";
    dying.kill();
    {
        job_worker enters{near, "name"};  // it has no jobs to run
        enters.handle<text>("nobody", [](text const&) {});
        enters.start();
        ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added == 1'002; }));
    }
    auto const is = jobs.counts("mail");
    EXPECT_EQ(is.blocked, 1'001);
    auto const begun = run_the_rest();
    EXPECT_GE(begun.size(), 1'002U) << "or more, if one took longer than its lease on a busy machine";
    EXPECT_TRUE(begun.front().starts_with("first "));
    EXPECT_TRUE(begun.back().starts_with("last "));
    EXPECT_EQ(jobs.counts("mail").ever_completed, 1'002);
    expect_nothing_is_held();
}

}  // namespace
}  // namespace lockstep::test
