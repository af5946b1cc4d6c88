// Jobs while the server's clock is set, forward and back.
#include "jobs_support.hpp"

#include "support/clock_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

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
    flow.add("second", "other", text{"second"}, {.delay = 10min});
    flow.after("second", "first");
    flow.add("alone", "other", text{"alone"}, {.delay = 10min});
    auto const ids = jobs.add_flow(flow);
    auto const working = worker();
    EXPECT_TRUE(jobs.wait(ids.at("first"), 20s));
    EXPECT_FALSE(jobs.wait(ids.at("alone"), 200ms));
    EXPECT_FALSE(jobs.wait(ids.at("second"), 200ms));
    clock.step(11min);
    EXPECT_TRUE(jobs.wait(jobs.schedule("other", text{"look"}).id, 20s));  // whoever waits looks now
    EXPECT_TRUE(jobs.wait(ids.at("alone"), 20s));
    EXPECT_TRUE(jobs.wait(ids.at("second"), 20s));
}

TEST_F(job_clocks, a_job_that_has_to_do_with_others_is_run_at_its_time_by_the_servers_clock) {
    use("mail");
    clock.step(-1h);
    auto const single = jobs.schedule("mail", text{"single"}, {.at = server_time() + 10min, .single = "x"});
    auto const plain = jobs.schedule("mail", text{"plain"}, {.at = server_time() + 10min});
    auto const working = worker();
    EXPECT_FALSE(jobs.wait(plain.id, 200ms));
    EXPECT_FALSE(jobs.wait(single.id, 200ms)) << "fifty minutes early";
    clock.step(11min);
    EXPECT_TRUE(jobs.wait(jobs.schedule("mail", text{"look"}).id, 20s));
    EXPECT_TRUE(jobs.wait(plain.id, 20s));
    EXPECT_TRUE(jobs.wait(single.id, 20s));
}

TEST_F(job_clocks, the_job_behind_a_batch_keeps_its_delay) {
    use("other");
    clock.step(-1h);
    auto batch = jobs.batch("b", 1, {}, "other", text{"then"}, {.delay = 10min});
    jobs.schedule("mail", text{"x"}, {.batch = "b"});
    auto const working = worker();
    auto const end = batch.wait(20s);
    ASSERT_TRUE(end);
    EXPECT_FALSE(jobs.wait(end->then, 200ms));
    clock.step(11min);
    EXPECT_TRUE(jobs.wait(jobs.schedule("other", text{"look"}).id, 20s));
    EXPECT_TRUE(jobs.wait(end->then, 20s));
}

}  // namespace
}  // namespace lockstep::test
