// Jobs in a cluster while their slot moves. A script that is about several types touches keys that a request does not name; while some of them are
// at one node and some at another, it must not begin.
#include "jobs_support.hpp"

#include "support/key_slot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace lockstep::test {
namespace {

using text = std::string;

class slow_job_slots : public testing::Test {
protected:
    /// All keys that are there are at the old node still, and what is not there is asked for at the new one.
    void begin_to_move() { nodes.begin_migration(slot, (nodes.owner_of(slot) + 1) % 3); }
    void finish_moving() {
        nodes.move_keys(slot);
        nodes.finish_migration(slot);
    }
    /// What was asked for while the slot moves comes when it has moved.
    template <class R>
    R have(begun<R>& asked) {
        EXPECT_FALSE(eventually([&] { return asked.done(); }, 100ms));
        finish_moving();
        return asked.get();
    }

    cluster nodes{{.masters = 3, .replicas_per_master = 0}};
    client by{{.url = nodes.url(), .command_timeout = 40s}};
    job_client jobs{by, "name"};
    int slot = slot_of(mail_key);
};

TEST_F(slow_job_slots, a_flow_that_is_added_meanwhile_is_there_once_and_whole) {
    jobs.schedule("other", text{"before"});
    job_flow first;
    first.add("a", "mail", text{"a"});
    jobs.add_flow(first);
    begin_to_move();
    job_flow flow;
    flow.add("a", "mail", text{"a"});
    flow.add("b", "other", text{"b"});
    flow.after("b", "a");
    begun<std::map<text, text, std::less<>>> adding{jobs.async_add_flow(flow)};
    auto const ids = have(adding);
    EXPECT_EQ(jobs.find(ids.at("b"))->state, job_state::blocked);
    EXPECT_EQ(jobs.counts("mail").ever_added, 2);
    EXPECT_EQ(jobs.counts("other").ever_added, 2);
    EXPECT_EQ(nodes.node(nodes.owner_of(slot)).must({"HLEN", "lockstep:{name}:jobs:q:other:records"}).integer, 2) << "no halves of what was tried before";
}

/// So that all keys that a request names are there, and others are not.
class slow_job_slots_in_use : public slow_job_slots {
protected:
    void SetUp() override {
        jobs.schedule("mail", text{"ready"});
        jobs.schedule("mail", text{"ranked"}, {.priority = 1});
        jobs.schedule("mail", text{"later"}, {.delay = 1h});
        auto const keyed = jobs.schedule("mail", text{"keyed"}, {.key = "k", .key_window = 1h});
        job_worker worker{by, "name", {.concurrency = 1}};
        worker.handle<text>("mail", [](text const&) {});
        worker.start();
        ASSERT_TRUE(jobs.wait(keyed.id, 20s));
        worker.stop();
        waiting = jobs.schedule("mail", text{"waiting"});
    }

    scheduled waiting;
};

TEST_F(slow_job_slots_in_use, what_is_asked_of_jobs_is_answered_when_it_has_moved) {
    begin_to_move();
    begun<std::optional<job_info>> finding{jobs.async_find(waiting.id)};
    begun<std::optional<job_outcome>> awaiting{jobs.async_wait(waiting.id, 1ms)};
    begun<job_counts> counting{jobs.async_counts("mail")};
    begun<std::vector<job_info>> listing{jobs.async_list("mail", job_state::waiting)};
    begun<bool> cancelling{jobs.async_cancel(waiting.id)};
    EXPECT_TRUE(have(cancelling));
    EXPECT_TRUE(finding.get());
    EXPECT_NO_THROW(awaiting.get());
    EXPECT_EQ(counting.get().ever_added, 5);
    EXPECT_NO_THROW(listing.get());
    EXPECT_EQ(jobs.find(waiting.id)->state, job_state::cancelled);
    EXPECT_EQ(jobs.counts("mail").ever_cancelled, 1);
}

TEST_F(slow_job_slots_in_use, a_batch_that_ends_meanwhile_has_its_job) {
    ASSERT_TRUE(jobs.cancel(jobs.schedule("mail", text{"x"}, {.batch = "b"}).id)) << "so it has ended before it is named";
    begin_to_move();
    begun<job_batch> naming{jobs.async_batch("b", 1, {}, "other", text{"then"})};
    auto batch = have(naming);
    auto const end = batch.wait(20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(jobs.find(end->then)->state, job_state::waiting);
    EXPECT_EQ(jobs.counts("other").ever_added, 1);
}

TEST_F(slow_job_slots_in_use, what_is_run_completes_and_schedules_go_on_when_it_has_moved) {
    client other{{.url = nodes.url(), .command_timeout = 40s}};
    job_worker worker{other, "name", {.concurrency = 2, .lease = 20s}};
    std::atomic<bool> go_on{false};
    worker.handle<text>("mail", [&](job_context& job, text const& what) {
        if (what != "waiting") return;
        while (!go_on) std::this_thread::sleep_for(1ms);
        job.progress("half");
    });
    worker.handle<text>("other", [](text const&) {});
    jobs.cron("tick", "other", text{"tick"}, {.expression = "* * * * * *"});
    worker.start();
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").running == 1 && jobs.counts("other").ever_completed > 0; }));
    begin_to_move();
    go_on = true;
    EXPECT_FALSE(eventually([&] { return worker.failed() != 0; }, 1500ms)) << "it waits";
    finish_moving();
    auto const end = jobs.wait(waiting.id, 20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::completed);
    auto const count = jobs.counts("other").ever_completed;
    EXPECT_TRUE(eventually([&] { return jobs.counts("other").ever_completed >= count + 2; }));
    worker.stop();
    jobs.drop_cron("tick");
    std::vector<std::chrono::system_clock::time_point> dues;
    for (auto const& one : jobs.list("other", job_state::completed, 0, 1'000)) dues.push_back(one.due);
    std::ranges::sort(dues);
    for (std::size_t i = 1; i < dues.size(); ++i) EXPECT_EQ(dues[i] - dues[i - 1], 1s) << i;
}

}  // namespace
}  // namespace lockstep::test
