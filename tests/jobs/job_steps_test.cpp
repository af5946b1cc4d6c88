// What the end of one job means for very many others is done in steps, by calls that follow, and none of it is lost.
#include "jobs_support.hpp"

#include <lockstep/consumer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::test {
namespace {

using text = std::string;

class job_steps : public testing::Test {
protected:
    static constexpr int many = 3000;
    static text key(text const& part, text const& type) { return "lockstep:{name}:jobs:q:" + type + ":" + part; }
    bool has_work_left() { return server.must({"EXISTS", "lockstep:{name}:jobs:todo"}).integer == 1; }

    /// One job of type "root", and many of type "leaf" that wait for it. Returns the id of the one.
    text add_fan(parent_failure policy = parent_failure::fail) {
        job_flow flow;
        flow.add("root", "root", text{"root"}, {.attempts = 1});
        for (int i = 0; i != many; ++i) flow.add(std::to_string(i), "leaf", text{"leaf"}, {.on_parent_failure = policy}).after(std::to_string(i), "root");
        return jobs.add_flow(flow).at("root");
    }
    std::unique_ptr<job_worker> worker_of(std::vector<text> const& types, job_worker_options const& options = {}) {
        auto made = std::make_unique<job_worker>(near, "name", options);
        for (auto const& type : types) {
            made->handle<text>(type, [this, type](text const& what) -> task<text> {
                if (type == "root" && fails) throw reject("boom");
                if (type == "leaf") ++leaves;
                co_return what;
            });
        }
        made->start();
        return made;
    }

    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    job_client jobs{near, "name"};
    job_client far_jobs{far, "name"};
    std::atomic<bool> fails{true};
    std::atomic<int> leaves{0};
};

TEST_F(job_steps, a_failure_reaches_all_children_in_many_short_calls) {
    add_fan();
    auto const before = calls_of(server, "evalsha");
    auto const worker = worker_of({"root"});
    ASSERT_TRUE(eventually([&] { return jobs.counts("leaf").failed == many; }, 30s));
    EXPECT_GT(calls_of(server, "evalsha") - before, many / 400);
    EXPECT_EQ(jobs.counts("leaf").ever_failed, many) << "each once";
    EXPECT_EQ(jobs.counts("leaf").blocked, 0);
    EXPECT_FALSE(has_work_left());
}

TEST_F(job_steps, another_worker_of_any_type_goes_on_when_one_has_gone_in_the_middle) {
    auto const root = add_fan(parent_failure::skip);
    {
        job_worker worker{near, "name", {.concurrency = 1}};
        worker.handle<text>("root", [&](text const&) { worker.request_stop(); throw reject("boom"); });
        worker.start();
        ASSERT_TRUE(jobs.wait(root, 30s));
        worker.stop();
    }
    ASSERT_TRUE(has_work_left());
    EXPECT_GT(jobs.counts("leaf").blocked, 0);
    auto const worker = worker_of({"other"});
    ASSERT_TRUE(eventually([&] { return jobs.counts("leaf").cancelled == many; }, 30s));
    EXPECT_FALSE(has_work_left());
}

TEST_F(job_steps, a_flow_goes_on_though_its_root_is_requeued_in_the_middle_of_its_failure) {
    auto const root = add_fan();
    auto const worker = worker_of({"root", "leaf"}, {.concurrency = 4});
    for (int round = 0; round != 3; ++round) {
        ASSERT_TRUE(eventually([&] { return jobs.counts("root").failed == 1; }, 30s));
        ASSERT_TRUE(jobs.requeue(root));
    }
    ASSERT_TRUE(eventually([&] { return jobs.counts("root").failed == 1; }, 30s));
    fails = false;
    ASSERT_TRUE(jobs.requeue(root));
    ASSERT_TRUE(eventually([&] { return jobs.counts("leaf").completed == many; }, 30s));
    EXPECT_EQ(leaves, many) << "each was run once";
    EXPECT_EQ(jobs.counts("leaf").blocked + jobs.counts("leaf").failed + jobs.counts("leaf").waiting, 0);
    EXPECT_FALSE(has_work_left());
}

TEST_F(job_steps, the_place_of_a_long_line_is_taken_at_once) {
    for (int i = 0; i != many / 1000; ++i) jobs.schedule_many<text>("leaf", std::vector<text>(1000, "x"), {.single = "a"});
    auto const newest = jobs.schedule("leaf", text{"newest"}, {.single = "a", .when_running = single_policy::replace});
    EXPECT_EQ(jobs.counts("leaf").waiting, 1) << "that one";
    auto const worker = worker_of({"leaf"});
    ASSERT_TRUE(jobs.wait(newest.id, 30s));
    ASSERT_TRUE(eventually([&] { return jobs.counts("leaf").cancelled == many; }, 30s));
    EXPECT_EQ(leaves, 1);
    EXPECT_EQ(jobs.counts("leaf").blocked, 0);
    EXPECT_EQ(server.must({"EXISTS", key("aside:" + newest.id.substr(newest.id.find('/') + 1), "leaf")}).integer, 0);
}

TEST_F(job_steps, children_that_are_added_one_by_one_are_all_run_and_forgotten) {
    auto const root = jobs.schedule("root", text{"root"}, {.delay = 1h}).id;
    for (int i = 0; i != 500; ++i) {
        job_flow flow;
        flow.add("leaf", "leaf", text{"leaf"}).after("leaf", root);
        jobs.add_flow(flow);
    }
    EXPECT_LT(server.must({"HSTRLEN", key("links", "root"), "k" + root.substr(root.find('/') + 1)}).integer, 3000) << "it is not one growing text";
    EXPECT_EQ(jobs.flow_of(root, 1000).jobs.size(), 501);
    EXPECT_FALSE(jobs.flow_of(root, 300).is_whole);
    fails = false;
    auto const worker = worker_of({"root", "leaf"}, {.concurrency = 4, .completed_retention = 0ms});
    ASSERT_TRUE(jobs.move(root, 0ms));
    ASSERT_TRUE(eventually([&] { return jobs.counts("leaf").ever_completed == 500; }, 30s));
    EXPECT_EQ(leaves, 500);
    EXPECT_TRUE(eventually([&] {
        jobs.schedule_many<text>("root", std::vector<text>(64, "x"));
        return server.must({"EXISTS", key("kids:" + root.substr(root.find('/') + 1), "root")}).integer == 0 && !jobs.find(root);
    }, 30s));
}

TEST_F(job_steps, completed_parents_of_a_child_that_failed_are_forgotten_when_their_retention_is_over) {
    job_flow flow;
    flow.add("root", "root", text{"x"}, {.attempts = 1});
    for (int i = 0; i != 400; ++i) flow.add(std::to_string(i), "leaf", text{"x"}).after("root", std::to_string(i));
    jobs.add_flow(flow);
    auto worker = worker_of({"root", "leaf"}, {.keep_completed = 10});
    ASSERT_TRUE(eventually([&] { return jobs.counts("root").failed == 1; }, 30s));
    auto const age = [&](int hours) {
        server.must({"EVAL",
                     "local t = redis.call('TIME') local at = t[1] * 1000 - ARGV[1] "
                     "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZADD', KEYS[1], string.format('%.0f', at), id) end return 1",
                     "1", key("completed", "leaf"), std::to_string(hours * 3'600'000)});
        worker = worker_of({"leaf"});  // it looks
    };
    age(1);
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", key("waiting", "leaf")}).integer == 1; }));
    EXPECT_EQ(jobs.counts("leaf").completed, 400) << "more than are to be kept, for their child may be requeued";
    age(25);
    EXPECT_TRUE(eventually([&] { return jobs.counts("leaf").completed == 0; }, 10s));
}

TEST_F(job_steps, what_a_parents_end_means_is_done_after_what_its_return_meant) {
    job_flow flow;
    flow.add("other", "other", text{"x"}, {.delay = 1h});
    flow.add("child", "leaf", text{"leaf"}, {.on_parent_failure = parent_failure::go_on}).after("child", "other");
    for (int i = 0; i != 3; ++i) {
        auto const root = "root-" + std::to_string(i);
        flow.add(root, "root", text{"root"}, {.attempts = 1}).after("child", root);
        for (int n = 0; n != 70; ++n) flow.add(root + "-" + std::to_string(n), "far", text{"x"}).after(root + "-" + std::to_string(n), root);
    }
    auto const child = jobs.add_flow(flow).at("child");
    auto worker = worker_of({"root", "leaf"}, {.concurrency = 1});
    ASSERT_TRUE(eventually([&] { return jobs.counts("far").failed == 210; }));
    worker.reset();
    ASSERT_EQ(jobs.find(child)->state, job_state::blocked);
    // So much is left to be done that the three are over again before it is.
    server.must({"EVAL",
                 "local names = {} for i = 1, 120 do names[i] = 'far/x-' .. i end "
                 "for i = 1, 100 do redis.call('RPUSH', KEYS[1], 'n 0 0 \\n' .. table.concat(names, ' ')) end return 1",
                 "1", "lockstep:{name}:jobs:todo"});
    ASSERT_EQ(jobs.retry_all({.type = "root"}), 3);
    worker = worker_of({"root", "leaf"}, {.concurrency = 1});
    ASSERT_TRUE(eventually([&] { return jobs.counts("root").failed == 3 && !has_work_left(); }, 30s));
    EXPECT_EQ(jobs.find(child)->state, job_state::blocked) << "its other parent has not ended";
    EXPECT_EQ(leaves, 0);
    EXPECT_EQ(jobs.counts("far").failed, 210);
}

// ---- flows that are sent in parts

TEST_F(job_steps, a_flow_that_was_not_sent_to_its_end_is_seen_by_nobody_and_goes_by_itself) {
    job_flow flow;
    for (int i = 0; i != many; ++i) flow.add(std::to_string(i), "leaf", text(1000, 'x'));
    begun adding{far_jobs.async_add_flow(flow)};
    ASSERT_TRUE(eventually([&] { return !server.must({"KEYS", "*:staged:*"}).elements.empty() || adding.done(); }));
    if (adding.done()) return;  // too quick to be seen
    proxy.hold(direction::to_server);
    auto const staged = server.must({"KEYS", "*:staged:*"}).elements;
    if (!staged.empty()) {
        EXPECT_EQ(jobs.counts("leaf").ever_added, 0);
        EXPECT_GT(server.must({"PTTL", staged[0].text}).integer, 0);
    }
    proxy.heal();
    EXPECT_EQ(adding.get().size(), many);
    EXPECT_EQ(jobs.counts("leaf").waiting, many);
}

TEST_F(job_steps, a_large_flow_that_was_added_is_entered_by_workers_if_its_client_has_gone) {
    // As a client leaves it that ends right after it has added the flow.
    server.must({"EVAL",
                 "for i = 2, 501 do redis.call('RPUSH', KEYS[1], 'J ' .. i .. ' leaf 0 0 f 1 root/#1\\n\\nleaf') end "
                 "local kids = {} for i = 2, 501 do kids[#kids + 1] = 'leaf/#' .. i end "
                 "redis.call('RPUSH', KEYS[1], 'K root 1 ' .. table.concat(kids, ' '), 'J 1 root 0 5 f 0 \\n\\nroot') "
                 "redis.call('RPUSH', KEYS[2], 'f 77')",
                 "2", "lockstep:{name}:jobs:flow:77", "lockstep:{name}:jobs:todo"});
    fails = false;
    auto const worker = worker_of({"root", "leaf"}, {.concurrency = 4});
    ASSERT_TRUE(eventually([&] { return jobs.counts("leaf").completed == 500; }, 40s));
    EXPECT_EQ(leaves, 500);
    EXPECT_EQ(jobs.find("leaf/77-500f")->parents, std::vector<text>{"root/77-1f"});
    EXPECT_FALSE(has_work_left());
}

TEST_F(job_steps, a_large_flow_that_was_added_is_added_though_its_client_is_cut_off_then) {
    constexpr int size = 6000;
    client brief{{.url = proxy.url(), .command_timeout = 500ms}};
    job_client brief_jobs{brief, "name"};
    job_flow flow;
    for (int i = 0; i != size; ++i) flow.add(std::to_string(i), "leaf", text{"x"});
    begun adding{brief_jobs.async_add_flow(flow)};
    ASSERT_TRUE(eventually([&] { return jobs.counts("leaf").ever_added > 0 || adding.done(); }));
    proxy.hold();
    std::map<text, text, std::less<>> ids;
    EXPECT_NO_THROW(ids = adding.get());
    EXPECT_EQ(ids.size(), size);
    proxy.heal();
    auto const worker = worker_of({"other"});
    EXPECT_TRUE(eventually([&] { return jobs.counts("leaf").ever_added == size; }, 30s));
}

TEST_F(job_steps, two_large_flows_of_one_number_do_not_replace_one_another) {
    jobs.schedule("leaf", text{"x"});
    server.must({"EVAL",
                 "local is = {struct.unpack('<c7dddddd', redis.call('HGET', KEYS[1], 'v'))} is[2] = 3e15 "
                 "redis.call('HSET', KEYS[1], 'v', struct.pack('<c7dddddd', unpack(is, 1, 7))) "
                 "redis.call('RPUSH', KEYS[2], 'J 1 other 0 0 f 0 \\n\\nx') return 1",
                 "2", "lockstep:{name}:jobs:q:leaf", "lockstep:{name}:jobs:flow:3000000000000001"});
    job_flow flow;
    for (int i = 0; i != 400; ++i) flow.add(std::to_string(i), "leaf", text{"x"});
    EXPECT_TRUE(jobs.add_flow(flow).at("0").starts_with("leaf/3000000000000002-"));
    EXPECT_EQ(server.must({"LLEN", "lockstep:{name}:jobs:flow:3000000000000001"}).integer, 1);
    EXPECT_EQ(jobs.counts("leaf").waiting, 401);
}

TEST_F(job_steps, a_large_flow_is_added_once_though_replies_are_lost) {
    job_flow flow;
    for (int i = 0; i != 900; ++i) flow.add(std::to_string(i), "leaf", text(500, 'x'));
    far_jobs.schedule("root", text{"x"});
    for (int round = 1; round <= 12; ++round) {
        begun adding{far_jobs.async_add_flow(flow)};
        std::this_thread::sleep_for(std::chrono::milliseconds{round});  // in one call or another
        proxy.drop_replies(1);
        EXPECT_EQ(adding.get().size(), 900);
        proxy.heal();
        EXPECT_EQ(jobs.counts("leaf").waiting, 900 * round);
    }
    EXPECT_GT(proxy.counters().struck, 0U);
}

TEST_F(job_steps, the_jobs_of_a_large_flow_are_as_they_were_given) {
    job_flow flow;
    flow.add("first", "root", text{"first"}, {.priority = 7, .attempts = 5, .tags = "eu"});
    flow.add("late", "root", text{"late"}, {.delay = 1h});
    for (int i = 0; i != 400; ++i) flow.add(std::to_string(i), "leaf", std::to_string(i)).after(std::to_string(i), "first");
    flow.add("last", "root", text{"last"}, {.delay = 1h});
    for (int i = 0; i != 400; ++i) flow.after("last", std::to_string(i));
    auto const ids = jobs.add_flow(flow);
    ASSERT_EQ(ids.size(), 403);
    auto const first = jobs.find(ids.at("first"));
    EXPECT_EQ(first->payload, "first");
    EXPECT_EQ(first->attempts, 5);
    EXPECT_EQ(first->tags, std::vector<text>{"eu"});
    EXPECT_EQ(jobs.find(ids.at("last"))->parents.size(), 400);
    EXPECT_EQ(jobs.find(ids.at("17"))->payload, "17");
    EXPECT_EQ(jobs.find(ids.at("17"))->parents.at(0), ids.at("first"));
    EXPECT_EQ(jobs.counts("root").delayed, 1);
    EXPECT_EQ(jobs.counts("root").waiting, 1);
    EXPECT_EQ(jobs.counts("leaf").blocked, 400);
    EXPECT_EQ(jobs.counts("leaf").ever_added, 400);
    EXPECT_TRUE(jobs.cancel(ids.at("first")));
    fails = false;
    auto const worker = worker_of({"other"});
    EXPECT_TRUE(eventually([&] { return jobs.find(ids.at("last"))->state == job_state::failed; }, 30s));
}

}  // namespace
}  // namespace lockstep::test
