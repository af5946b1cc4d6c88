// What single jobs promise: one at a time of a name, in both forms on every topology, and in processes that are killed.
#include "jobs_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using text = std::string;

class job_single_contract : public contract {
protected:
    ~job_single_contract() override { open_all(); }

    scheduled schedule(text const& what, single_policy policy, job_options how = {}) {
        if (how.single.empty()) how.single = "backup";
        how.when_running = policy;
        return run(
            a, [&] { return jobs.schedule("mail", what, how); }, [&] { return jobs.async_schedule("mail", what, how); });
    }
    job_outcome end_of(text const& id) {
        auto const end = run(
            a, [&] { return jobs.wait(id, 20s); }, [&] { return jobs.async_wait(id, 20s); });
        return end.value_or(job_outcome{});
    }
    job_state state(text const& id) { return jobs.find(id).value_or(job_info{}).state; }
    bool cancel(text const& id) {
        return run(
            a, [&] { return jobs.cancel(id); }, [&] { return jobs.async_cancel(id); });
    }
    bool requeue(text const& id) {
        return run(
            a, [&] { return jobs.requeue(id); }, [&] { return jobs.async_requeue(id); });
    }
    /// A handler returns when its door is open. It sees that it is told to stop, but does not care. What begins with '-' is of another name, or of none: it may run beside the others.
    void start(std::size_t concurrency = 0) {
        worker.handle<text>("mail", [this](job_context& job, text const& what) {
            bool const is_single = what[0] != '-';
            if (is_single && ++now > 1) was_crowded = true;
            seen.add(what);
            while (!is_open(what)) {
                if (job.stop_token().stop_requested()) stopped = true;
                std::this_thread::sleep_for(1ms);
            }
            if (is_single) --now;
            if (what.find('!') != text::npos) throw std::runtime_error("bad");
            return what;
        }, {.concurrency = concurrency});
        worker.start();
    }
    bool has_begun(text const& what) {
        return eventually([&] {
            auto const all = seen.all();
            return std::find(all.begin(), all.end(), what) != all.end();
        });
    }
    void open(text const& what) {
        std::lock_guard const guard{mutex};
        doors.insert({what, true});
    }
    void open_all() { open("*"); }
    bool is_open(text const& what) {
        std::lock_guard const guard{mutex};
        return doors.contains(what) || doors.contains("*");
    }

    job_client jobs{a, "name"};
    std::mutex mutex;
    std::map<text, bool> doors;
    diary seen;
    std::atomic<int> now{0};
    std::atomic<bool> was_crowded{false};
    std::atomic<bool> stopped{false};
    job_worker worker{b, "name", {.concurrency = 4}};
};
LOCKSTEP_CONTRACT(job_single_contract);

TEST_P(job_single_contract, that_are_to_be_skipped_are_left_out_while_one_waits_or_runs) {
    auto const first = schedule("1", single_policy::skip, {.delay = 1ms});
    auto const second = schedule("2", single_policy::skip);
    EXPECT_TRUE(first.is_new);
    EXPECT_FALSE(second.is_new);
    EXPECT_EQ(second.id, first.id);
    EXPECT_TRUE(schedule("-", single_policy::skip, {.single = "another"}).is_new);
    start();
    ASSERT_TRUE(has_begun("1"));
    EXPECT_FALSE(schedule("3", single_policy::skip).is_new) << "it runs";
    open_all();
    EXPECT_EQ(end_of(first.id).result, "1");
    auto const fourth = schedule("4", single_policy::skip);
    EXPECT_TRUE(fourth.is_new);
    EXPECT_EQ(end_of(fourth.id).result, "4");
    EXPECT_EQ(jobs.counts("mail").ever_added, 3);
}

TEST_P(job_single_contract, that_are_queued_run_one_after_the_other_in_order) {
    start();
    std::vector<text> ids;
    for (int i = 1; i <= 6; ++i) ids.push_back(schedule(std::to_string(i), single_policy::queue).id);
    EXPECT_EQ(state(ids[3]), job_state::blocked);
    EXPECT_EQ(jobs.counts("mail").blocked, 5);
    EXPECT_TRUE(cancel(ids[3])) << "one that waits can be";
    open_all();
    EXPECT_EQ(end_of(ids[5]).state, job_state::completed);
    EXPECT_THAT(seen.all(), ElementsAre("1", "2", "3", "5", "6"));
    EXPECT_FALSE(was_crowded);
    EXPECT_EQ(jobs.counts("mail").blocked, 0);
}

TEST_P(job_single_contract, wait_for_one_that_is_tried_again_and_for_one_that_takes_too_long) {
    auto const first = schedule("1!", single_policy::queue, {.attempts = 2, .backoff = 20ms, .timeout = 50ms});
    auto const second = schedule("2", single_policy::queue);
    start();
    ASSERT_TRUE(eventually([&] { return stopped.load(); })) << "its time is over";
    EXPECT_FALSE(eventually([&] { return seen.size() > 1; }, 100ms)) << "but it runs";
    EXPECT_EQ(state(first.id), job_state::running);
    open_all();
    EXPECT_EQ(end_of(first.id).state, job_state::failed);
    EXPECT_EQ(jobs.find(first.id)->failures.at(0).reason, "it took longer than 50 ms");
    EXPECT_EQ(end_of(second.id).state, job_state::completed);
    EXPECT_THAT(seen.all(), ElementsAre("1!", "1!", "2"));
    EXPECT_FALSE(was_crowded);
}

TEST_P(job_single_contract, that_replace_cancel_those_that_wait_and_run_when_the_one_that_runs_has_stopped) {
    auto const first = schedule("1", single_policy::queue);
    start();
    ASSERT_TRUE(has_begun("1"));
    auto const second = schedule("2", single_policy::queue);
    auto const third = schedule("3", single_policy::replace);
    EXPECT_EQ(end_of(second.id).state, job_state::cancelled);
    EXPECT_EQ(end_of(second.id).reason, third.id + " took its place");
    EXPECT_EQ(end_of(first.id).state, job_state::cancelled);
    EXPECT_TRUE(eventually([&] { return stopped.load(); }));
    EXPECT_EQ(state(third.id), job_state::blocked);
    EXPECT_FALSE(eventually([&] { return seen.size() > 1; }, 100ms)) << "the first has not returned yet";
    auto const fourth = schedule("4", single_policy::replace);
    EXPECT_EQ(end_of(third.id).state, job_state::cancelled);
    auto const fifth = schedule("5", single_policy::queue);
    open_all();
    EXPECT_EQ(end_of(fourth.id).result, "4");
    EXPECT_EQ(end_of(fifth.id).result, "5");
    EXPECT_EQ(end_of(first.id).state, job_state::cancelled) << "and cannot complete";
    EXPECT_THAT(seen.all(), ElementsAre("1", "4", "5"));
    EXPECT_FALSE(was_crowded);
}

TEST_P(job_single_contract, that_replace_one_that_waits_are_run_instead_of_it) {
    auto const first = schedule("1", single_policy::queue);
    auto const second = schedule("2", single_policy::replace);
    EXPECT_EQ(state(first.id), job_state::cancelled);
    EXPECT_EQ(state(second.id), job_state::waiting);
    open_all();
    start();
    EXPECT_EQ(end_of(second.id).result, "2");
    EXPECT_THAT(seen.all(), ElementsAre("2"));
}

TEST_P(job_single_contract, begin_when_one_that_was_cancelled_has_stopped_and_come_back_behind_the_others) {
    auto const first = schedule("1", single_policy::queue);
    start();
    ASSERT_TRUE(has_begun("1"));
    auto const second = schedule("2", single_policy::queue);
    EXPECT_TRUE(cancel(first.id));
    EXPECT_EQ(state(first.id), job_state::cancelled);
    EXPECT_TRUE(requeue(first.id));
    EXPECT_EQ(state(first.id), job_state::blocked);
    EXPECT_FALSE(eventually([&] { return seen.size() > 1; }, 100ms));
    open_all();
    EXPECT_EQ(end_of(first.id).result, "1");
    EXPECT_EQ(end_of(second.id).result, "2");
    EXPECT_THAT(seen.all(), ElementsAre("1", "2", "1"));
    EXPECT_FALSE(was_crowded);
    worker.stop();
    auto const third = schedule("3", single_policy::queue);
    EXPECT_EQ(state(third.id), job_state::waiting) << "nobody is left before it";
    EXPECT_TRUE(cancel(third.id));
    EXPECT_EQ(state(schedule("4", single_policy::queue).id), job_state::waiting);
}

TEST_P(job_single_contract, are_not_taken_for_stopped_because_of_an_entry_that_was_moved) {
    auto const first = schedule("1", single_policy::queue);
    EXPECT_TRUE(jobs.move(first.id, 0ms, 5));
    start(1);
    ASSERT_TRUE(has_begun("1"));
    auto const second = schedule("2", single_policy::replace);
    job_worker more{b, "name", {.concurrency = 4}};
    more.handle<text>("mail", [this](text const& what) { seen.add(what); });
    more.start();
    EXPECT_FALSE(eventually([&] { return seen.size() > 1; }, 200ms)) << "the entry that is dropped is an old one";
    open_all();
    EXPECT_EQ(end_of(second.id).state, job_state::completed);
}

TEST_P(job_single_contract, in_flows_wait_for_their_parents_first) {
    auto const first = schedule("1", single_policy::queue);
    job_flow flow;
    flow.add("p", "mail", text{"-p"}).add("q", "mail", text{"q"}, {.single = "backup"}).add("k", "mail", text{"k"}, {.single = "backup", .when_running = single_policy::skip});
    flow.after("q", "p").after("k", "p");
    auto const ids = jobs.add_flow(flow);
    start();
    open("-p");
    EXPECT_EQ(end_of(ids.at("p")).state, job_state::completed);
    EXPECT_EQ(end_of(ids.at("k")).state, job_state::cancelled);
    EXPECT_EQ(state(ids.at("q")), job_state::blocked);
    open_all();
    EXPECT_EQ(end_of(ids.at("q")).result, "q");
    EXPECT_EQ(end_of(first.id).result, "1");
    EXPECT_FALSE(was_crowded);
}

TEST_P(job_single_contract, that_are_put_off_come_in_time_when_the_one_before_them_was_stopped) {
    start();
    auto const first = schedule("first", single_policy::queue);
    ASSERT_TRUE(has_begun("first"));
    auto const second = schedule("second", single_policy::queue, {.delay = 1s});
    EXPECT_TRUE(cancel(first.id));
    open_all();
    EXPECT_EQ(end_of(second.id).state, job_state::completed);
}

TEST_P(job_single_contract, that_are_cancelled_run_again_and_cancelled_while_they_stop_are_cancelled) {
    start();
    auto const job = schedule("first", single_policy::queue);
    ASSERT_TRUE(has_begun("first"));
    EXPECT_TRUE(cancel(job.id));
    EXPECT_TRUE(requeue(job.id));
    EXPECT_EQ(state(job.id), job_state::blocked) << "its worker has not stopped";
    EXPECT_TRUE(cancel(job.id));
    EXPECT_EQ(state(job.id), job_state::cancelled);
    EXPECT_EQ(end_of(job.id).state, job_state::cancelled);
    open_all();
    auto const next = schedule("next", single_policy::queue);
    EXPECT_EQ(end_of(next.id).state, job_state::completed);
    EXPECT_EQ(state(job.id), job_state::cancelled);
}

TEST_P(job_single_contract, of_a_bad_kind_are_refused) {
    text const long_one(513, 'x');
    EXPECT_THROW(schedule("1", single_policy::queue, {.single = long_one}), invalid_argument_error);
    EXPECT_THROW(schedule("1", single_policy::queue, {.key = "k"}), invalid_argument_error);
    EXPECT_EQ(jobs.counts("mail").ever_added, 0);
}

class single_faults : public testing::Test {
protected:
    child_process runner(int lease = 1500) {
        return child_process{{program_path("job_runner"), server.url(), "name", std::to_string(lease), "log"}};
    }
    void log(text const& what) { server.must({"RPUSH", "log", what}); }
    /// 'begin <process> <payload>', 'end <process> <payload>', 'killed <process>': never two at a time. What a process had sent when it was killed may come behind that.
    void check_log() {
        text open;
        text whole;
        std::set<text> dead;
        for (auto const& line : near.command("LRANGE", "log", 0, -1)) {
            text const entry{line.text()};
            whole += '\n' + entry;
            auto const rest = entry.substr(entry.find(' ') + 1);
            if (entry.starts_with("begin ")) {
                EXPECT_EQ(open, "") << "when it began: " << rest << whole;
                open = dead.contains(rest.substr(0, rest.find(' '))) ? text{} : rest;
            } else if (entry.starts_with("end ")) {
                EXPECT_TRUE(open == rest || (open.empty() && dead.contains(rest.substr(0, rest.find(' '))))) << open << whole;
                open = "";
            } else {
                dead.insert(rest);
                if (open.starts_with(rest + ' ')) open = "";
            }
        }
    }

    redis_server server;
    client near{server.url()};
    job_client jobs{near, "name"};
};

TEST_F(single_faults, never_two_run_at_a_time_in_several_processes_of_which_some_are_killed) {
    std::vector<child_process> all;
    for (int i = 0; i < 3; ++i) all.push_back(runner());
    text last;
    for (int i = 0; i < 120; ++i) last = jobs.schedule("mail", std::to_string(i), {.single = "backup"}).id;
    for (int i = 0; i < 3; ++i) {
        auto& dying = all[static_cast<std::size_t>(i)];
        ASSERT_TRUE(eventually([&] { return server.must({"LLEN", "log"}).integer > 30 * (i + 1); }));
        auto const pid = std::to_string(dying.pid());
        dying.kill();
        log("killed " + pid);
        dying = runner();
    }
    auto const end = jobs.wait(last, 50s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::completed);
    EXPECT_EQ(jobs.counts("mail").ever_completed, 120);
    check_log();
}

TEST_F(single_faults, one_that_replaces_a_job_whose_worker_died_begins_when_its_lease_has_ended) {
    auto dying = runner(700);
    auto const first = jobs.schedule("mail", text{"hang"}, {.single = "backup"});
    ASSERT_TRUE(eventually([&] { return server.must({"LLEN", "log"}).integer == 1; }));
    auto alive = runner(700);
    dying.stop();  // it hears nothing
    auto const second = jobs.schedule("mail", text{"2"}, {.single = "backup", .when_running = single_policy::replace});
    EXPECT_EQ(jobs.find(first.id)->state, job_state::cancelled);
    EXPECT_EQ(jobs.find(second.id)->state, job_state::blocked) << "the lease of the first one has not ended";
    auto const end = jobs.wait(second.id, 20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::completed);
    dying.kill();
    EXPECT_EQ(jobs.find(first.id)->state, job_state::cancelled);
    EXPECT_EQ(server.must({"HLEN", mail_key + ":singles"}).integer, 0);
    EXPECT_EQ(server.must({"ZCARD", mail_key + ":held"}).integer, 0);
}

}  // namespace
}  // namespace lockstep::test
