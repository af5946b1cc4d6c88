// Jobs while the server's clock is set, forward and back.
#include "jobs_support.hpp"

#include "support/clock_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

namespace lockstep::test {
namespace {

using text = std::string;

class job_clocks : public testing::Test {
protected:
    /// Jobs of any of these types are written down, and return their payload.
    std::unique_ptr<job_worker> worker(job_worker_options const& how = {}) {
        auto made = std::make_unique<job_worker>(near, "name", how);
        for (auto const* const type : {"mail", "other"}) {
            made->handle<text>(type, [this](text const& what) {
                seen.add(what);
                return what;
            });
        }
        made->start();
        return made;
    }
    /// As a server's whose clock was right until now: the queue of this type knows that time.
    void use(char const* type) { jobs.cancel(jobs.schedule(type, text{"before"}).id); }
    std::chrono::system_clock::time_point server_time() const { return std::chrono::system_clock::now() + clock.offset(); }

    clock_file clock;
    redis_server server{{.clock = &clock}};
    client near{server.url()};
    client other{server.url()};
    job_client jobs{near, "name"};
    diary seen;
};

// ---- the own times of queues differ

TEST_F(job_clocks, a_job_of_a_flow_keeps_its_delay_though_its_type_has_another_time) {
    use("mail");
    clock.step(-1h);
    job_flow flow;
    flow.add("first", "mail", text{"first"});
    flow.add("second", "other", text{"second"}, {.delay = 50ms});
    flow.after("second", "first");
    flow.add("alone", "other", text{"alone"}, {.delay = 50ms});
    auto const ids = jobs.add_flow(flow);
    auto const working = worker();
    EXPECT_TRUE(jobs.wait(ids.at("first"), 20s));
    EXPECT_TRUE(jobs.wait(ids.at("alone"), 20s)) << "an hour late";
    EXPECT_TRUE(jobs.wait(ids.at("second"), 20s)) << "an hour late";
}

TEST_F(job_clocks, a_job_of_a_flow_is_not_too_early_because_its_type_has_another_time) {
    use("other");
    clock.step(-1h);
    job_flow flow;
    flow.add("first", "mail", text{"first"});
    flow.add("second", "other", text{"second"}, {.delay = 2min});
    flow.after("second", "first");
    flow.add("alone", "other", text{"alone"}, {.delay = 2min});
    auto const ids = jobs.add_flow(flow);
    auto const working = worker();
    EXPECT_TRUE(jobs.wait(ids.at("first"), 20s));
    EXPECT_FALSE(jobs.wait(ids.at("alone"), 200ms));
    EXPECT_FALSE(jobs.wait(ids.at("second"), 200ms));
    clock.step(3min);
    EXPECT_TRUE(jobs.wait(jobs.schedule("other", text{"look"}).id, 20s));  // whoever waits looks now
    EXPECT_TRUE(jobs.wait(ids.at("alone"), 20s));
    EXPECT_TRUE(jobs.wait(ids.at("second"), 20s));
}

TEST_F(job_clocks, a_job_that_has_to_do_with_others_is_run_at_its_time_by_the_servers_clock) {
    use("mail");
    clock.step(-1h);
    auto const single = jobs.schedule("mail", text{"single"}, {.at = server_time() + 2min, .single = "x"});
    auto const plain = jobs.schedule("mail", text{"plain"}, {.at = server_time() + 2min});
    auto const working = worker();
    EXPECT_FALSE(jobs.wait(plain.id, 200ms));
    EXPECT_FALSE(jobs.wait(single.id, 200ms)) << "most of an hour early";
    clock.step(3min);
    EXPECT_TRUE(jobs.wait(jobs.schedule("mail", text{"look"}).id, 20s));
    EXPECT_TRUE(jobs.wait(plain.id, 20s));
    EXPECT_TRUE(jobs.wait(single.id, 20s));
}

TEST_F(job_clocks, the_job_behind_a_batch_keeps_its_delay) {
    use("other");
    clock.step(-1h);
    auto batch = jobs.batch("b", 1, {}, "other", text{"then"}, {.delay = 2min});
    jobs.schedule("mail", text{"x"}, {.batch = "b"});
    auto const working = worker();
    auto const end = batch.wait(20s);
    ASSERT_TRUE(end);
    EXPECT_FALSE(jobs.wait(end->then, 200ms));
    clock.step(3min);
    EXPECT_TRUE(jobs.wait(jobs.schedule("other", text{"look"}).id, 20s));
    EXPECT_TRUE(jobs.wait(end->then, 20s));
}

TEST_F(job_clocks, single_jobs_are_run_in_order_though_the_clock_was_set_back_between_them) {
    jobs.schedule("mail", text{"1"}, {.single = "x"});
    jobs.schedule("mail", text{"2"}, {.single = "x"});
    clock.step(-1h);
    jobs.schedule("mail", text{"3"}, {.single = "x"});
    auto const last = jobs.schedule("mail", text{"4"}, {.single = "x"});
    auto const working = worker();
    EXPECT_TRUE(jobs.wait(last.id, 20s));
    EXPECT_THAT(seen.all(), testing::ElementsAre("1", "2", "3", "4"));
}

// ---- all that there is, while the clock is set

class job_clock_steps : public job_clocks, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(clock, job_clock_steps, testing::Values(1, -1), [](auto const& of) { return of.param > 0 ? "forward" : "back"; });

TEST_P(job_clock_steps, nothing_is_lost_or_late_of_what_waits_runs_and_is_put_off) {
    // One that runs all the time, of which the lease is renewed by another process; and one whose worker is dead.
    constexpr auto lease = 2s;
    auto dying = child_process{{program_path("job_runner"), server.url(), "name", "2000", "hang"}};
    auto const orphan = jobs.schedule("mail", text{"orphan"});
    ASSERT_EQ(dying.read_line(), "begun orphan 1");
    dying.kill();
    auto running = child_process{{program_path("job_runner"), server.url(), "name", "2000", "return"}};
    auto const lasting = jobs.schedule("mail", text{"lasting"});
    auto const begun_line = running.read_line();  // the second delivery, if the first was sent to the one that is dead
    ASSERT_TRUE(begun_line && begun_line->starts_with("begun lasting "));
    auto const waiting = jobs.schedule("other", text{"waiting"});
    auto const soon = jobs.schedule("other", text{"soon"}, {.delay = 300ms});
    auto const far = jobs.schedule("other", text{"far"}, {.delay = 3h});
    clock.step(GetParam() * 1h);
    auto const working = worker({.lease = lease});
    auto const later = jobs.schedule("other", text{"later"}, {.delay = 50ms});
    for (auto const& one : {orphan, waiting, soon, later}) EXPECT_TRUE(jobs.wait(one.id, 20s)) << one.id;
    EXPECT_FALSE(jobs.wait(far.id, 100ms));
    // A clock that jumps forward ends a lease early, unless its holder renews it first; then the job is run twice, and completed once.
    auto const is_set_back = GetParam() < 0;
    if (is_set_back) {
        EXPECT_FALSE(jobs.wait(lasting.id, 300ms));
    }
    running.write_line("go on");
    auto const end = jobs.wait(lasting.id, 20s);
    ASSERT_TRUE(end);
    auto const by_its_holder = begun_line->substr(6);
    EXPECT_THAT(end->result, testing::AnyOf(by_its_holder, is_set_back ? by_its_holder : "lasting"));
    auto const now = jobs.counts("mail");
    EXPECT_EQ(now.ever_completed, 2);
    EXPECT_EQ(now.waiting + now.running + now.delayed, 0);
    EXPECT_EQ(jobs.counts("other").ever_completed, 3);
    EXPECT_EQ(jobs.counts("other").delayed, 1);
}

TEST_P(job_clock_steps, a_job_that_is_tried_again_and_one_with_a_limit_of_time_go_on) {
    job_worker busy{near, "name", {.lease = 2s}};
    std::atomic<int> tries{0};
    std::atomic<bool> is_set{false};
    busy.handle<text>("mail", [&](job_context& job, text const& what) {
        if (what == "slow" && job.attempt() == 1) {
            ++tries;
            while (!job.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
        }
        if (what == "fails" && job.attempt() == 1) {
            ++tries;
            while (!is_set) std::this_thread::sleep_for(1ms);
            throw std::runtime_error("not yet");
        }
    });
    busy.start();
    auto const slow = jobs.schedule("mail", text{"slow"}, {.backoff = 50ms, .timeout = 500ms});
    auto const fails = jobs.schedule("mail", text{"fails"}, {.backoff = 50ms});
    ASSERT_TRUE(eventually([&] { return tries == 2; }));
    clock.step(GetParam() * 1h);
    is_set = true;
    for (auto const& one : {slow, fails}) {
        auto const end = jobs.wait(one.id, 20s);
        ASSERT_TRUE(end) << one.id;
        EXPECT_EQ(end->state, job_state::completed);
    }
    EXPECT_EQ(jobs.counts("mail").ever_completed, 2);
}

}  // namespace
}  // namespace lockstep::test
