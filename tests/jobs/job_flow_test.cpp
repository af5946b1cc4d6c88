// What flows promise: jobs that wait for others, in both forms on every topology.
#include "jobs_support.hpp"

#include <lockstep/consumer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using text = std::string;
using ids_by_name = std::map<text, text, std::less<>>;

class job_flow_contract : public contract {
protected:
    ids_by_name add(job_flow const& flow) {
        return run(
            a, [&] { return jobs.add_flow(flow); }, [&] { return jobs.async_add_flow(flow); });
    }
    job_outcome end_of(text const& id) {
        auto const end = run(
            a, [&] { return jobs.wait(id, 20s); }, [&] { return jobs.async_wait(id, 20s); });
        return end.value_or(job_outcome{});
    }
    job_state state(text const& id) {
        auto const found = run(
            a, [&] { return jobs.find(id); }, [&] { return jobs.async_find(id); });
        return found ? found->state : job_state::unknown;
    }
    bool cancel(text const& id) {
        return run(
            a, [&] { return jobs.cancel(id); }, [&] { return jobs.async_cancel(id); });
    }
    bool requeue(text const& id) {
        return run(
            a, [&] { return jobs.requeue(id); }, [&] { return jobs.async_requeue(id); });
    }
    /// Runs jobs of both types; one whose payload is in `bad` throws. A result is the payload with those of the parents, sorted.
    std::unique_ptr<job_worker> work(std::size_t concurrency = 1) {
        auto made = std::make_unique<job_worker>(b, "name", job_worker_options{.concurrency = concurrency});
        auto const finish = [this](text const& what, std::vector<text> results) {
            seen->add(what);
            if (is_bad(what)) throw reject("bad");
            std::sort(results.begin(), results.end());
            auto whole = what;
            for (auto const& one : results) whole += '(' + one + ')';
            return whole;
        };
        for (text const type : {"mail", "other"}) {
            if (GetParam().how == form::blocking) {
                made->handle<text>(type, [finish](job_context& job, text const& what) {
                    std::vector<text> results;
                    for (auto const& one : job.parents()) results.push_back(job.parent_result<text>(one).value_or("-"));
                    return finish(what, std::move(results));
                });
            } else {
                made->handle<text>(type, [finish](job_context& job, text const& what) -> task<text> {
                    std::vector<text> results;
                    for (auto const& one : job.parents()) {
                        auto asking = job.async_parent_result<text>(one);
                        auto const got = co_await std::move(asking);
                        results.push_back(got.value_or("-"));
                    }
                    co_return finish(what, std::move(results));
                });
            }
        }
        made->start();
        return made;
    }
    bool is_bad(text const& what) {
        std::lock_guard const guard{mutex};
        return bad.contains(what);
    }
    void set_bad(std::set<text> all) {
        std::lock_guard const guard{mutex};
        bad = std::move(all);
    }

    job_client jobs{a, "name"};
    std::shared_ptr<diary> seen = std::make_shared<diary>();
    std::mutex mutex;
    std::set<text> bad;
};
LOCKSTEP_CONTRACT(job_flow_contract);

TEST_P(job_flow_contract, runs_a_diamond_in_order_and_children_see_the_results_of_their_parents) {
    job_flow flow;
    flow.add("d", "other", text{"d"}).add("b", "mail", text{"b"}).add("c", "other", text{"c"}).add("a", "mail", text{"a"});
    flow.after("b", "a").after("c", "a").after("d", {"b", "c"});
    auto const ids = add(flow);
    ASSERT_EQ(ids.size(), 4);
    EXPECT_EQ(state(ids.at("a")), job_state::waiting);
    EXPECT_EQ(state(ids.at("b")), job_state::blocked);
    EXPECT_EQ(state(ids.at("d")), job_state::blocked);
    EXPECT_EQ(jobs.counts("other").blocked, 2);
    EXPECT_EQ(jobs.counts("mail").blocked, 1);
    EXPECT_EQ(jobs.list("mail", job_state::blocked).at(0).id, ids.at("b"));
    EXPECT_THAT(jobs.find(ids.at("d"))->parents, UnorderedElementsAre(ids.at("b"), ids.at("c")));
    auto const worker = work(4);
    auto const end = end_of(ids.at("d"));
    EXPECT_EQ(end.state, job_state::completed);
    EXPECT_EQ(end.result, "d(b(a))(c(a))");
    auto const all = seen->all();
    ASSERT_EQ(all.size(), 4) << "each once";
    EXPECT_EQ(all.front(), "a");
    EXPECT_EQ(all.back(), "d");
    EXPECT_EQ(jobs.counts("other").blocked + jobs.counts("mail").blocked, 0);
}

TEST_P(job_flow_contract, fans_out_and_in) {
    job_flow flow;
    flow.add("first", "mail", text{"first"}).add("last", "other", text{"last"});
    for (int i = 0; i < 200; ++i) {
        auto const name = std::to_string(i);
        flow.add(name, i % 2 == 0 ? "mail" : "other", name).after(name, "first").after("last", name);
    }
    auto const ids = add(flow);
    auto const worker = work(8);
    EXPECT_EQ(end_of(ids.at("last")).state, job_state::completed);
    auto const all = seen->all();
    EXPECT_EQ(all.size(), 202);
    EXPECT_EQ(all.back(), "last");
    EXPECT_EQ(jobs.find(ids.at("last"))->parents.size(), 200);
}

TEST_P(job_flow_contract, is_told_as_a_whole_from_any_of_its_jobs) {
    set_bad({"b"});
    job_flow flow;
    flow.add("d", "other", text{"d"}, {.on_parent_failure = parent_failure::skip}).add("b", "mail", text{"b"}).add("c", "other", text{"c"}).add("a", "mail", text{"a"});
    flow.after("b", "a").after("c", "a").after("d", {"b", "c"});
    auto const ids = add(flow);
    auto const flow_of = [&](text const& id, std::size_t most = 200) {
        return run(
            a, [&] { return jobs.flow_of(id, most); }, [&] { return jobs.async_flow_of(id, most); });
    };
    auto const told = [&](text const& id) {
        std::map<text, job_state> all;
        for (auto const& one : flow_of(id).jobs) all[one.id] = one.state;
        return all;
    };
    using states = std::map<text, job_state>;
    states const before{{ids.at("a"), job_state::waiting}, {ids.at("b"), job_state::blocked}, {ids.at("c"), job_state::blocked}, {ids.at("d"), job_state::blocked}};
    for (auto const& [name, id] : ids) EXPECT_EQ(told(id), before) << name;
    auto const whole = flow_of(ids.at("d"));
    EXPECT_TRUE(whole.is_whole);
    EXPECT_EQ(whole.jobs.front().id, ids.at("d"));
    EXPECT_THAT(whole.jobs.front().parents, UnorderedElementsAre(ids.at("b"), ids.at("c")));
    EXPECT_EQ(whole.jobs.back().id, ids.at("a")) << "the nearest first";

    auto const part = flow_of(ids.at("d"), 2);
    EXPECT_FALSE(part.is_whole);
    ASSERT_EQ(part.jobs.size(), 2);
    EXPECT_THAT(part.jobs[0].parents, ElementsAre(part.jobs[1].id)) << "only those that are there";
    EXPECT_TRUE(part.jobs[1].parents.empty());

    auto const worker = work(4);
    EXPECT_EQ(end_of(ids.at("d")).state, job_state::cancelled);
    EXPECT_TRUE(eventually([&] { return state(ids.at("c")) == job_state::completed; }));
    states const after{{ids.at("a"), job_state::completed}, {ids.at("b"), job_state::failed}, {ids.at("c"), job_state::completed}, {ids.at("d"), job_state::cancelled}};
    EXPECT_EQ(told(ids.at("a")), after);

    auto const alone = jobs.schedule("mail", text{"alone"});
    EXPECT_EQ(flow_of(alone.id).jobs.size(), 1);
    job_flow more;
    more.add("e", "other", text{"e"}).after("e", alone.id);
    auto const added = add(more);
    EXPECT_THAT(told(alone.id), testing::SizeIs(2)) << "one that was scheduled on its own may have children, too";
    EXPECT_TRUE(flow_of("mail/1-1").jobs.empty());
    EXPECT_THROW(flow_of("mail"), invalid_argument_error);
    EXPECT_THROW(flow_of(alone.id, 0), invalid_argument_error);
}

TEST_P(job_flow_contract, a_child_of_one_that_failed_fails_is_skipped_or_goes_on_as_it_says) {
    set_bad({"a"});
    job_flow flow;
    flow.add("a", "mail", text{"a"});
    flow.add("fails", "other", text{"fails"}).after("fails", "a");
    flow.add("then", "mail", text{"then"}).after("then", "fails");
    flow.add("skipped", "other", text{"skipped"}, {.on_parent_failure = parent_failure::skip}).after("skipped", "a");
    flow.add("after skipped", "other", text{"after skipped"}).after("after skipped", "skipped");
    flow.add("goes on", "other", text{"goes on"}, {.on_parent_failure = parent_failure::go_on}).after("goes on", "a").after("goes on", "skipped");
    auto const ids = add(flow);
    auto const worker = work();
    EXPECT_EQ(end_of(ids.at("goes on")).result, "goes on(-)(-)");
    auto const fails = end_of(ids.at("fails"));
    EXPECT_EQ(fails.state, job_state::failed);
    EXPECT_EQ(fails.reason, "its parent " + ids.at("a") + " failed");
    EXPECT_EQ(end_of(ids.at("then")).reason, "its parent " + ids.at("fails") + " failed");
    auto const skipped = end_of(ids.at("skipped"));
    EXPECT_EQ(skipped.state, job_state::cancelled);
    EXPECT_EQ(skipped.reason, "its parent " + ids.at("a") + " failed");
    EXPECT_EQ(end_of(ids.at("after skipped")).state, job_state::failed);
    EXPECT_EQ(end_of(ids.at("after skipped")).reason, "its parent " + ids.at("skipped") + " was cancelled");
    EXPECT_THAT(seen->all(), ElementsAre("a", "goes on"));
    EXPECT_EQ(jobs.counts("other").ever_failed, 2);
    EXPECT_EQ(jobs.counts("other").cancelled, 1);
}

TEST_P(job_flow_contract, goes_on_from_the_failed_node_when_that_is_requeued) {
    set_bad({"b"});
    job_flow flow;
    flow.add("a", "mail", text{"a"}).add("b", "mail", text{"b"}).add("c", "other", text{"c"});
    flow.add("d", "mail", text{"d"}, {.on_parent_failure = parent_failure::skip}).add("e", "other", text{"e"});
    flow.after("b", "a").after("c", "b").after("d", {"c", "a"}).after("e", "d");
    auto const ids = add(flow);
    auto const worker = work();
    EXPECT_EQ(end_of(ids.at("e")).state, job_state::failed);
    EXPECT_EQ(state(ids.at("c")), job_state::failed);
    EXPECT_EQ(state(ids.at("d")), job_state::cancelled);
    set_bad({});
    EXPECT_TRUE(requeue(ids.at("b")));
    EXPECT_EQ(end_of(ids.at("e")).result, "e(d(a)(c(b(a))))");
    EXPECT_THAT(seen->all(), ElementsAre("a", "b", "b", "c", "d", "e")) << "what had completed is not run again";
    EXPECT_EQ(jobs.counts("mail").failed + jobs.counts("other").failed + jobs.counts("mail").cancelled, 0);
}

TEST_P(job_flow_contract, a_job_with_two_failed_parents_waits_until_both_were_requeued) {
    set_bad({"a", "b"});
    job_flow flow;
    flow.add("a", "mail", text{"a"}).add("b", "mail", text{"b"}).add("c", "other", text{"c"}).after("c", {"a", "b"});
    auto const ids = add(flow);
    auto const worker = work();
    EXPECT_EQ(end_of(ids.at("a")).state, job_state::failed);
    EXPECT_EQ(end_of(ids.at("b")).state, job_state::failed);
    EXPECT_EQ(end_of(ids.at("c")).state, job_state::failed);
    set_bad({});
    EXPECT_TRUE(requeue(ids.at("a")));
    EXPECT_EQ(end_of(ids.at("a")).state, job_state::completed);
    EXPECT_EQ(state(ids.at("c")), job_state::failed) << "b still has failed";
    EXPECT_TRUE(requeue(ids.at("b")));
    EXPECT_EQ(end_of(ids.at("c")).result, "c(a)(b)");
}

TEST_P(job_flow_contract, a_blocked_job_that_is_cancelled_takes_its_children_with_it_and_brings_them_back) {
    job_flow flow;
    flow.add("a", "mail", text{"a"}).add("b", "other", text{"b"}).add("c", "mail", text{"c"}).after("b", "a").after("c", "b");
    auto const ids = add(flow);
    EXPECT_TRUE(cancel(ids.at("b")));
    EXPECT_FALSE(cancel(ids.at("b")));
    EXPECT_EQ(state(ids.at("b")), job_state::cancelled);
    EXPECT_EQ(end_of(ids.at("c")).reason, "its parent " + ids.at("b") + " was cancelled");
    auto const worker = work();
    EXPECT_EQ(end_of(ids.at("a")).state, job_state::completed);
    EXPECT_EQ(state(ids.at("b")), job_state::cancelled);
    EXPECT_TRUE(requeue(ids.at("b")));
    EXPECT_EQ(end_of(ids.at("c")).result, "c(b(a))");
}

TEST_P(job_flow_contract, a_parent_may_be_a_job_that_exists_in_any_state) {
    set_bad({"bad"});
    auto const good = jobs.schedule("mail", text{"good"});
    auto const failed = jobs.schedule("mail", text{"bad"});
    {
        auto const worker = work();
        EXPECT_EQ(end_of(good.id).state, job_state::completed);
        EXPECT_EQ(end_of(failed.id).state, job_state::failed);
        worker->stop();
    }
    auto const waiting = jobs.schedule("mail", text{"waiting"});
    job_flow flow;
    flow.add("1", "other", text{"1"}).after("1", good.id);
    flow.add("2", "other", text{"2"}).after("2", {good.id, waiting.id});
    flow.add("3", "other", text{"3"}).after("3", failed.id);
    flow.add("4", "other", text{"4"}).after("4", "3");
    flow.add("5", "other", text{"5"}, {.on_parent_failure = parent_failure::go_on}).after("5", {failed.id, waiting.id});
    auto const ids = add(flow);
    EXPECT_EQ(state(ids.at("1")), job_state::waiting);
    EXPECT_EQ(state(ids.at("2")), job_state::blocked);
    EXPECT_EQ(state(ids.at("3")), job_state::failed);
    EXPECT_EQ(state(ids.at("4")), job_state::failed);
    EXPECT_EQ(state(ids.at("5")), job_state::blocked);
    auto const worker = work();
    EXPECT_EQ(end_of(ids.at("1")).result, "1(good)");
    EXPECT_EQ(end_of(ids.at("2")).result, "2(good)(waiting)");
    EXPECT_EQ(end_of(ids.at("5")).result, "5(-)(waiting)");
    job_flow more;
    more.add("6", "mail", text{"6"}).after("6", ids.at("2"));
    EXPECT_EQ(end_of(add(more).at("6")).result, "6(2(good)(waiting))");
    set_bad({});
    EXPECT_TRUE(requeue(failed.id)) << "and those that had come to nothing because of it go on";
    EXPECT_EQ(end_of(ids.at("4")).result, "4(3(bad))");
}

TEST_P(job_flow_contract, delay_and_priority_count_when_the_parents_have_completed) {
    job_flow flow;
    flow.add("a", "mail", text{"a"});
    flow.add("low", "mail", text{"low"}, {.priority = -1}).after("low", "a");
    flow.add("later", "mail", text{"later"}, {.delay = 200ms}).after("later", "a");
    flow.add("high", "mail", text{"high"}, {.priority = 3}).after("high", "a");
    flow.add("elsewhere", "other", text{"elsewhere"}, {.delay = 400ms}).after("elsewhere", "a");
    auto const ids = add(flow);
    auto const worker = work();
    EXPECT_EQ(end_of(ids.at("elsewhere")).state, job_state::completed);
    EXPECT_EQ(end_of(ids.at("later")).state, job_state::completed);
    auto all = seen->all();
    std::erase(all, "elsewhere");
    EXPECT_THAT(all, ElementsAre("a", "high", "low", "later"));
}

TEST_P(job_flow_contract, that_is_not_sound_is_refused_and_nothing_is_added) {
    auto const complaint = [&](job_flow const& flow) -> text {
        try {
            add(flow);
        } catch (invalid_argument_error const& problem) {
            return problem.what();
        }
        return "none";
    };
    job_flow cycle;
    for (text const name : {"a", "b", "c", "d"}) cycle.add(name, "mail", name);
    cycle.after("b", "a").after("c", "b").after("a", "c").after("d", "a");
    EXPECT_THAT(complaint(cycle), HasSubstr("a cycle: a -> b -> c -> a"));
    job_flow self;
    self.add("a", "mail", text{"a"}).after("a", "a");
    EXPECT_THAT(complaint(self), HasSubstr("a cycle: a -> a"));
    job_flow unknown;
    unknown.add("a", "mail", text{"a"}).after("a", "b");
    EXPECT_THAT(complaint(unknown), HasSubstr("there is no job 'b'"));
    job_flow stranger;
    stranger.add("b", "other", text{"b"}).add("a", "mail", text{"a"}).after("a", "mail/1-1");
    EXPECT_THAT(complaint(stranger), HasSubstr("the parent mail/1-1 is not known"));
    EXPECT_THAT(complaint(job_flow{}), HasSubstr("it has no jobs"));
    job_flow flow;
    flow.add("a", "mail", text{"a"});
    EXPECT_THROW(flow.add("a", "mail", text{"b"}), invalid_argument_error);
    EXPECT_THROW(flow.add("", "mail", text{"b"}), invalid_argument_error);
    EXPECT_THROW(flow.add("b/c", "mail", text{"b"}), invalid_argument_error);
    EXPECT_THROW(flow.add("b", "ma:il", text{"b"}), invalid_argument_error);
    EXPECT_THROW(flow.add("b", "mail", text{"b"}, {.key = "k"}), invalid_argument_error);
    EXPECT_THROW(flow.add("b", "mail", text{"b"}, {.delay = -1ms}), invalid_argument_error);
    EXPECT_EQ(jobs.counts("mail").ever_added + jobs.counts("other").ever_added, 0);
    EXPECT_TRUE(jobs.types().empty());
    auto const ids = add(flow);
    EXPECT_FALSE(jobs.move(add(job_flow{}.add("x", "mail", text{"x"}).after("x", ids.at("a"))).at("x"), 1s)) << "it is blocked";
}

TEST_P(job_flow_contract, many_that_are_added_at_once_share_calls_and_not_their_fate) {
    jobs.schedule("mail", text{"first"});
    std::vector<begun<ids_by_name>> all;
    for (int i = 0; i < 100; ++i) {
        auto const n = std::to_string(i);
        job_flow flow;
        flow.add("last", "mail", n + "-last").add("one", "other", n + "-one").add("two", "mail", n + "-two").after("last", {"one", "two"});
        if (i % 10 == 7) flow.after("one", "mail/1-1");
        all.emplace_back(jobs.async_add_flow(flow));
    }
    std::set<text> names;
    for (std::size_t i = 0; i != all.size(); ++i) {
        if (i % 10 == 7) {
            EXPECT_THROW(static_cast<void>(all[i].get()), invalid_argument_error);
            continue;
        }
        auto const ids = all[i].get();
        ASSERT_EQ(ids.size(), 3U);
        for (auto const& [name, id] : ids) {
            names.insert(id);
            EXPECT_EQ(jobs.find(id)->payload, std::to_string(i) + '-' + name);
        }
        EXPECT_THAT(jobs.find(ids.at("last"))->parents, UnorderedElementsAre(ids.at("one"), ids.at("two")));
        EXPECT_EQ(state(ids.at("last")), job_state::blocked);
    }
    EXPECT_EQ(names.size(), 3U * 90U);
    EXPECT_EQ(jobs.counts("mail").ever_added + jobs.counts("other").ever_added, 1 + 3 * 90);
    auto const worker = work(8);
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_completed + jobs.counts("other").ever_completed == 1 + 3 * 90; }));
}

TEST_P(job_flow_contract, many_at_once_may_be_of_one_single_name) {
    auto const first = jobs.schedule("mail", text{"first"}, {.single = "x"}).id;
    std::vector<begun<scheduled>> all;
    auto const skip = single_policy::skip;
    for (int i = 0; i < 10; ++i) {
        auto const batch = "b" + std::to_string(i);
        if (i % 2 == 0) all.emplace_back(jobs.async_schedule("mail", batch, {.single = "x", .when_running = skip, .batch = batch}));
        else all.emplace_back(jobs.async_schedule("mail", batch, {.single = "x", .when_running = skip}));
    }
    for (std::size_t i = 0; i != all.size(); ++i) {
        auto const made = all[i].get();
        EXPECT_EQ(made.is_new, i % 2 == 0);
        if (i % 2 == 0) EXPECT_EQ(state(made.id), job_state::cancelled) << "its batch is to know it";
        else EXPECT_EQ(made.id, first) << "the one that waits, not one that was cancelled with it";
    }
}

TEST(job_flows, that_are_not_waited_for_any_more_are_not_added_unless_they_were_sent) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()}, far{{.url = proxy.url(), .command_timeout = 20s}};
    job_client here{near, "name"}, there{far, "name"};
    there.schedule("mail", text{"first"});
    proxy.refuse();
    proxy.cut();
    std::stop_source gone;
    job_flow flow;
    flow.add("a", "mail", text{"a"});
    std::vector<begun<ids_by_name>> all;
    for (int i = 0; i < 3; ++i) all.emplace_back(with_stop_token(there.async_add_flow(flow), gone.get_token()));
    begun<ids_by_name> const other{there.async_add_flow(job_flow{}.add("b", "other", text(2 << 20, 'b')))};
    EXPECT_FALSE(eventually([&] { return all[0].done(); }, 50ms));
    gone.request_stop();
    for (auto const& one : all) EXPECT_THROW(static_cast<void>(one.get()), cancelled_error);
    proxy.heal();
    EXPECT_EQ(other.get().size(), 1U) << "it is too large to share their call";
    EXPECT_EQ(here.counts("mail").ever_added, 1);
}

TEST(job_flows, end_with_their_client) {
    redis_server server;
    fault_proxy proxy{server.address()};
    auto far = std::make_unique<client>(proxy.url());
    job_client there{*far, "name"};
    there.schedule("mail", text{"first"});
    proxy.hold(direction::to_client);
    job_flow flow;
    flow.add("a", "mail", text{"a"});
    std::vector<begun<ids_by_name>> all;
    for (int i = 0; i < 300; ++i) all.emplace_back(there.async_add_flow(flow));
    far->close();
    for (auto const& one : all) EXPECT_THROW(static_cast<void>(one.get()), cancelled_error);
}

TEST(job_flows, that_are_added_at_once_need_few_calls) {
    redis_server server;
    client near{server.url()};
    job_client jobs{near, "name"};
    jobs.schedule("mail", text{"first"});
    auto const before = calls_of(server, "rpush");
    std::vector<task<ids_by_name>> all;
    job_flow flow;
    flow.add("last", "mail", text{"last"}).add("one", "mail", text{"one"}).add("two", "mail", text{"two"}).after("last", {"one", "two"});
    for (int i = 0; i < 400; ++i) all.push_back(jobs.async_add_flow(flow));
    EXPECT_EQ(sync_wait(when_all(std::move(all))).size(), 400U);
    EXPECT_LT(calls_of(server, "rpush") - before, 200) << "not one for each";
    EXPECT_EQ(jobs.counts("mail").ever_added, 1 + 3 * 400);
}

}  // namespace
}  // namespace lockstep::test
