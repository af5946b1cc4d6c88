// A type of jobs that is paused: no worker begins one, and all do as soon as it is resumed.
#include "jobs_support.hpp"

#include <lockstep/job_flow.hpp>
#include <lockstep/job_shards.hpp>

#include <gtest/gtest.h>

namespace lockstep::test {
namespace {

using text = std::string;

class job_pause_contract : public contract {
protected:
    bool pause(text const& type) {
        return run(
            a, [&] { return jobs.pause(type); }, [&] { return jobs.async_pause(type); });
    }
    bool resume(text const& type) {
        return run(
            a, [&] { return jobs.resume(type); }, [&] { return jobs.async_resume(type); });
    }
    bool is_waited_for(text const& type) {
        return eventually([&] { return server.must({"EXISTS", "lockstep:{name}:jobs:q:" + type + ":waiting"}).integer == 1; });
    }

    job_client jobs{a, "name"};
    std::shared_ptr<diary> seen = std::make_shared<diary>();
};
LOCKSTEP_CONTRACT(job_pause_contract);

TEST_P(job_pause_contract, keeps_workers_from_beginning_jobs_of_a_type_and_of_no_other) {
    job_worker worker{b, "name", {.concurrency = 2}};
    for (auto const* const type : {"mail", "report"}) worker.handle<text>(type, [seen = seen](text const& what) { seen->add(what); });
    worker.start();
    ASSERT_TRUE(is_waited_for("mail"));
    EXPECT_TRUE(pause("mail"));
    EXPECT_FALSE(pause("mail")) << "it is already";
    auto const id = jobs.schedule("mail", text{"m1"}).id;
    jobs.schedule("mail", text{"m2"}, {.delay = 20ms});
    jobs.schedule("mail", text{"m3"}, {.priority = 7});
    auto const other = jobs.schedule("report", text{"r"}).id;
    EXPECT_EQ(jobs.wait(other, 20s)->state, job_state::completed);
    EXPECT_FALSE(jobs.wait(id, 100ms));
    auto const now = jobs.counts("mail");
    EXPECT_TRUE(now.paused);
    EXPECT_EQ(now.waiting, 3);
    EXPECT_FALSE(jobs.counts("report").paused);
    EXPECT_TRUE(resume("mail"));
    EXPECT_FALSE(resume("mail"));
    EXPECT_EQ(jobs.wait(id, 20s)->state, job_state::completed);
    EXPECT_TRUE(eventually([&] { return jobs.counts("mail").completed == 3; }));
    EXPECT_FALSE(jobs.counts("mail").paused);
}

TEST_P(job_pause_contract, lets_a_running_job_complete_and_its_children_wait) {
    std::atomic<bool> may_end = false;
    job_worker worker{b, "name", {.concurrency = 2}};
    worker.handle<text>("first", [&](text const&) {
        while (!may_end) std::this_thread::sleep_for(2ms);
    });
    worker.handle<text>("then", [](text const&) {});
    worker.start();
    job_flow flow;
    flow.add("one", "first", text{});
    flow.add("two", "then", text{});
    flow.after("two", "one");
    auto const ids = jobs.add_flow(flow);
    ASSERT_TRUE(eventually([&] { return jobs.find(ids.at("one"))->state == job_state::running; }));
    ASSERT_TRUE(is_waited_for("then"));
    pause("first");
    pause("then");
    may_end = true;
    EXPECT_EQ(jobs.wait(ids.at("one"), 20s)->state, job_state::completed);
    EXPECT_TRUE(eventually([&] { return jobs.counts("then").waiting == 1; }));
    EXPECT_FALSE(jobs.wait(ids.at("two"), 100ms));
    resume("then");
    EXPECT_EQ(jobs.wait(ids.at("two"), 20s)->state, job_state::completed);
}

TEST_P(job_pause_contract, shows_a_type_of_which_there_are_no_jobs_yet) {
    EXPECT_TRUE(pause("mail"));
    EXPECT_EQ(jobs.types(), std::vector<text>{"mail"});
    EXPECT_TRUE(jobs.counts("mail").paused);
    auto const key = "lockstep:{name}:jobs:q:mail";
    EXPECT_EQ(server.must({"PTTL", key}).integer, -1);
    jobs.schedule("mail", text{"x"});
    job_flow flow;
    flow.add("one", "mail", text{});
    jobs.add_flow(flow);
    EXPECT_EQ(server.must({"PTTL", key}).integer, -1) << "whatever comes";
    EXPECT_TRUE(jobs.counts("mail").paused);
}

TEST(job_pauses, are_of_all_shards_together) {
    redis_server server;
    client by{server.url()};
    job_shards jobs{by, "shop", 3};
    EXPECT_TRUE(jobs.pause("mail"));
    EXPECT_FALSE(jobs.pause("mail"));
    EXPECT_TRUE(jobs.counts("mail").paused);
    EXPECT_TRUE(jobs[2].resume("mail"));
    EXPECT_TRUE(jobs.counts("mail").paused) << "of the others";
    EXPECT_TRUE(sync_wait(jobs.async_resume("mail")));
    EXPECT_FALSE(jobs.counts("mail").paused);
    EXPECT_FALSE(sync_wait(jobs.async_resume("mail")));
}

}  // namespace
}  // namespace lockstep::test
