// What jobs promise to who schedules them, in both forms on every topology.
#include "jobs_support.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/queue.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using text = std::string;

class job_contract : public contract {
protected:
    scheduled schedule(text const& what, job_options const& how = {}) {
        return run(
            a, [&] { return jobs.schedule("mail", what, how); }, [&] { return jobs.async_schedule("mail", what, how); });
    }
    bool cancel(text const& id) {
        return run(
            a, [&] { return jobs.cancel(id); }, [&] { return jobs.async_cancel(id); });
    }
    bool requeue(text const& id) {
        return run(
            a, [&] { return jobs.requeue(id); }, [&] { return jobs.async_requeue(id); });
    }
    bool move(text const& id, std::chrono::milliseconds delay, std::int32_t priority = 0) {
        return run(
            a, [&] { return jobs.move(id, delay, priority); }, [&] { return jobs.async_move(id, delay, priority); });
    }
    std::optional<job_outcome> wait(text const& id, std::chrono::milliseconds time = 20s) {
        return run(
            a, [&] { return jobs.wait(id, time); }, [&] { return jobs.async_wait(id, time); });
    }
    std::optional<job_info> find(text const& id) {
        return run(
            a, [&] { return jobs.find(id); }, [&] { return jobs.async_find(id); });
    }
    job_counts counts(text const& type = "mail") {
        return run(
            a, [&] { return jobs.counts(type); }, [&] { return jobs.async_counts(type); });
    }
    std::vector<text> ids(job_state state, std::size_t from = 0, std::size_t most = 100) {
        auto const all = run(
            a, [&] { return jobs.list("mail", state, from, most); }, [&] { return jobs.async_list("mail", state, from, most); });
        std::vector<text> found;
        for (auto const& one : all) found.push_back(one.id);
        return found;
    }
    /// Runs all that there is with this handler, in the form of the test.
    template <class F>
    std::unique_ptr<job_worker> work(F handler, job_worker_options how = {.concurrency = 1}) {
        auto made = std::make_unique<job_worker>(b, "name", how);
        if (GetParam().how == form::blocking) made->handle<text>("mail", [handler](job_context& job, text const& what) { return handler(job, what); });
        else made->handle<text>("mail", [handler](job_context& job, text const& what) -> task<text> { co_return handler(job, what); });
        made->start();
        return made;
    }

    job_client jobs{a, "name"};
    queue<text> nothing{b, "nothing"};
    std::shared_ptr<diary> seen = std::make_shared<diary>();
};
LOCKSTEP_CONTRACT(job_contract);

TEST_P(job_contract, that_run_tell_the_name_of_their_worker_also_when_it_waited_for_them) {
    std::atomic<bool> is_over = false;
    job_worker worker{b, "name", {.concurrency = 1, .name = "the worker"}};
    worker.handle<text>("mail", [&](job_context& one, text const& what) {
        while (!is_over && !one.stop_token().stop_requested()) std::this_thread::sleep_for(2ms);
        return what;
    });
    worker.start();
    ASSERT_TRUE(eventually([&] { return a.command<std::int64_t>("ZCARD", mail_key + ":waiting") == 1; }));
    auto const id = schedule("one").id;
    EXPECT_TRUE(eventually([&] { return find(id)->worker == "the worker"; })) << find(id)->worker;
    EXPECT_EQ(find(id)->state, job_state::running);
    is_over = true;
    EXPECT_EQ(wait(id)->state, job_state::completed);
}

TEST_P(job_contract, are_run_in_order_and_their_results_are_kept) {
    std::vector<text> all;
    for (int i = 0; i < 5; ++i) all.push_back(schedule(std::to_string(i)).id);
    EXPECT_EQ(counts().waiting, 5);
    EXPECT_EQ(find(all[0])->state, job_state::waiting);
    EXPECT_EQ(find(all[0])->payload, "0");
    auto const worker = work([seen = seen](job_context&, text const& what) {
        seen->add(what);
        return "result " + what;
    });
    for (int i = 0; i < 5; ++i) {
        auto const end = wait(all[static_cast<std::size_t>(i)]);
        ASSERT_TRUE(end);
        EXPECT_EQ(end->state, job_state::completed);
        EXPECT_EQ(end->result, "result " + std::to_string(i));
    }
    EXPECT_THAT(seen->all(), ElementsAre("0", "1", "2", "3", "4"));
    worker->stop();
    auto const now = counts();
    EXPECT_EQ(now.waiting + now.running, 0);
    EXPECT_EQ(now.completed, 5);
    EXPECT_EQ(now.ever_added, 5);
    EXPECT_EQ(now.ever_completed, 5);
    EXPECT_EQ(worker->completed(), 5);
    auto const info = find(all[2]);
    ASSERT_TRUE(info);
    EXPECT_EQ(info->state, job_state::completed);
    EXPECT_EQ(info->result, "result 2");
    EXPECT_EQ(info->type, "mail");
    EXPECT_THAT(ids(job_state::completed), ElementsAre(all[4], all[3], all[2], all[1], all[0]));
    EXPECT_THAT(ids(job_state::completed, 1, 2), ElementsAre(all[3], all[2]));
}

TEST_P(job_contract, of_many_are_scheduled_in_one_round_trip) {
    std::vector<text> many;
    for (int i = 0; i < 2000; ++i) many.push_back(std::to_string(i));
    auto const done = run(
        a, [&] { return jobs.schedule_many<text>("mail", many); }, [&] { return jobs.async_schedule_many<text>("mail", many); });
    EXPECT_EQ(done.size(), 2000);
    EXPECT_EQ(counts().waiting, 2000);
    auto const worker = work([](job_context&, text const& what) { return what; }, {.concurrency = 8});
    ASSERT_TRUE(eventually([&] { return worker->completed() == 2000; }));
    worker->stop();
    EXPECT_EQ(wait(done.back().id)->result, "1999");
    EXPECT_EQ(wait(done.front().id)->result, "0");
    EXPECT_EQ(counts().completed, 2000);
    EXPECT_EQ(counts().ever_completed, 2000);
}

TEST_P(job_contract, that_many_schedule_at_once_are_each_the_one_of_who_did_it_and_in_that_order) {
    schedule("first");
    b.command("SCRIPT", "FLUSH");
    std::vector<begun<scheduled>> each;
    std::optional<begun<std::vector<scheduled>>> some;
    sync_wait(in_turn_of(a, [&] {
        for (int i = 0; i < 200; ++i) {
            auto const key = i % 10 == 3 ? "k" + std::to_string(i) : text{};
            each.emplace_back(jobs.async_schedule("mail", std::to_string(i), {.key = key}));
            if (i == 99) some.emplace(jobs.async_schedule_many<text>("mail", std::vector<text>(50, "one of many")));
        }
        each.emplace_back(jobs.async_schedule("mail", text{"twin"}, {.key = "k3"}));
        return true;
    }));
    std::vector<text> expected{find(ids(job_state::waiting).front())->id};
    for (std::size_t i = 0; i != 200; ++i) {
        auto const made = each[i].get();
        EXPECT_TRUE(made.is_new);
        EXPECT_EQ(find(made.id)->payload, std::to_string(i));
        expected.push_back(made.id);
        if (i != 99) continue;
        for (auto const& one : some->get()) expected.push_back(one.id);
    }
    auto const twin = each[200].get();
    EXPECT_EQ(twin.id, expected[4]);
    EXPECT_FALSE(twin.is_new);
    EXPECT_EQ(ids(job_state::waiting, 0, 1000), expected);
    EXPECT_EQ(counts().ever_added, 251);
}

TEST_P(job_contract, with_a_larger_priority_are_run_first_and_those_of_later_are_put_off) {
    auto const low = schedule("low", {.priority = -1});
    auto const plain = schedule("plain");
    auto const high = schedule("high", {.priority = 5});
    auto const later = schedule("later", {.delay = 300ms});
    auto const in_an_hour = schedule("never", {.at = std::chrono::system_clock::now() + 1h});
    EXPECT_EQ(counts().delayed, 2);
    EXPECT_THAT(ids(job_state::waiting), ElementsAre(high.id, plain.id, low.id, later.id, in_an_hour.id));
    auto const worker = work([seen = seen](job_context&, text const& what) {
        seen->add(what);
        return text{};
    });
    ASSERT_TRUE(eventually([&] { return seen->size() == 4; }));
    EXPECT_THAT(seen->all(), ElementsAre("high", "plain", "low", "later"));
    EXPECT_EQ(find(in_an_hour.id)->state, job_state::waiting);
}

TEST_P(job_contract, that_fail_are_tried_again_and_then_have_failed_with_all_their_reasons) {
    auto const job = schedule("x", {.attempts = 3, .backoff = 10ms});
    auto const worker = work([](job_context& one, text const&) -> text { throw std::runtime_error("attempt " + std::to_string(one.attempt())); });
    auto const end = wait(job.id);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::failed);
    EXPECT_EQ(end->reason, "attempt 3");
    auto const info = find(job.id);
    ASSERT_EQ(info->failures.size(), 3);
    EXPECT_EQ(info->failures[0].reason, "attempt 1");
    EXPECT_EQ(info->failures[0].delivery, 1);
    EXPECT_EQ(counts().failed, 1);
    EXPECT_EQ(counts().ever_retried, 2);
    EXPECT_THAT(ids(job_state::failed), ElementsAre(job.id));
}

TEST_P(job_contract, that_are_rejected_are_not_tried_again) {
    auto const job = schedule("x", {.attempts = 5, .backoff = 1ms});
    auto const worker = work([seen = seen](job_context&, text const& what) -> text {
        seen->add(what);
        throw reject("never");
    });
    EXPECT_EQ(wait(job.id)->reason, "never");
    EXPECT_EQ(seen->size(), 1);
}

TEST_P(job_contract, that_were_cancelled_are_not_run) {
    auto const first = schedule("first", {.key = "k"});
    auto const second = schedule("second");
    EXPECT_TRUE(cancel(first.id));
    EXPECT_FALSE(cancel(first.id)) << "it is already";
    EXPECT_EQ(find(first.id)->state, job_state::cancelled);
    EXPECT_TRUE(schedule("third", {.key = "k"}).is_new) << "its key is free";
    EXPECT_EQ(wait(first.id)->state, job_state::cancelled);
    auto const worker = work([seen = seen](job_context&, text const& what) {
        seen->add(what);
        return text{};
    });
    ASSERT_TRUE(eventually([&] { return worker->completed() == 2; }));
    EXPECT_THAT(seen->all(), ElementsAre("second", "third"));
}

TEST_P(job_contract, that_run_are_told_to_stop_when_they_are_cancelled_and_cannot_complete) {
    auto const job = schedule("x");
    auto const stopped = std::make_shared<std::atomic<bool>>(false);
    auto const begun_it = std::make_shared<std::atomic<bool>>(false);
    job_worker worker{b, "name", {.concurrency = 1}};
    worker.handle<text>("mail", [=](job_context& one, text const&) {
        *begun_it = true;
        while (!one.stop_token().stop_requested()) std::this_thread::yield();
        *stopped = true;
        return text{"late"};
    });
    worker.start();
    ASSERT_TRUE(eventually([&] { return begun_it->load(); }));
    EXPECT_EQ(find(job.id)->state, job_state::running);
    EXPECT_TRUE(cancel(job.id));
    EXPECT_TRUE(eventually([&] { return stopped->load(); }));
    worker.stop();
    EXPECT_EQ(find(job.id)->state, job_state::cancelled);
    EXPECT_EQ(find(job.id)->result, "");
}

TEST_P(job_contract, that_have_ended_are_run_again_when_they_are_requeued) {
    auto const job = schedule("x", {.attempts = 1});
    auto const is_good = std::make_shared<std::atomic<bool>>(false);
    auto const worker = work([=](job_context& one, text const&) -> text {
        if (!*is_good) throw std::runtime_error("not yet");
        return "attempt " + std::to_string(one.attempt()) + " delivery " + std::to_string(one.deliveries());
    });
    EXPECT_EQ(wait(job.id)->state, job_state::failed);
    *is_good = true;
    EXPECT_TRUE(requeue(job.id));
    auto const end = wait(job.id);
    EXPECT_EQ(end->state, job_state::completed);
    EXPECT_EQ(end->result, "attempt 1 delivery 1");
    EXPECT_EQ(counts().failed, 0);
}

TEST_P(job_contract, that_wait_can_be_moved) {
    auto const job = schedule("x", {.delay = 1h});
    auto const other = schedule("y");
    EXPECT_TRUE(move(job.id, 0ms, 9));
    EXPECT_TRUE(move(other.id, 1h));
    auto const worker = work([seen = seen](job_context&, text const& what) {
        seen->add(what);
        return text{};
    });
    EXPECT_EQ(wait(job.id)->state, job_state::completed);
    EXPECT_FALSE(move(job.id, 0ms)) << "it has ended";
    EXPECT_TRUE(move(other.id, 0ms));
    EXPECT_EQ(wait(other.id)->state, job_state::completed);
    EXPECT_THAT(seen->all(), ElementsAre("x", "y")) << "each once, though each stood in the queue twice";
}

TEST_P(job_contract, with_a_key_are_scheduled_once) {
    auto const first = schedule("x", {.key = "k"});
    auto const again = schedule("x", {.key = "k"});
    EXPECT_TRUE(first.is_new);
    EXPECT_FALSE(again.is_new);
    EXPECT_EQ(again.id, first.id);
    auto const worker = work([](job_context&, text const&) { return text{}; });
    EXPECT_EQ(wait(first.id)->state, job_state::completed);
    worker->stop();
    EXPECT_TRUE(schedule("x", {.key = "k"}).is_new);
}

TEST_P(job_contract, tell_how_far_they_are_and_what_happens_to_them) {
    std::vector<text> events;
    std::mutex mutex;
    auto const ear = run(
        a,
        [&] {
            return jobs.observe("mail", [&](job_event const& one) {
                std::lock_guard const guard{mutex};
                events.push_back(one.what);
            });
        },
        [&] {
            return jobs.async_observe("mail", [&](job_event const& one) {
                std::lock_guard const guard{mutex};
                events.push_back(one.what);
            });
        });
    auto const go_on = std::make_shared<std::atomic<bool>>(false);
    job_worker worker{b, "name"};
    worker.handle<text>("mail", [=](job_context& one, text const&) {
        one.progress("half");
        while (!*go_on) std::this_thread::yield();
    });
    worker.start();
    auto const job = schedule("x");
    EXPECT_TRUE(eventually([&] { return find(job.id)->progress == "half"; }));
    *go_on = true;
    EXPECT_EQ(wait(job.id)->state, job_state::completed);
    EXPECT_TRUE(eventually([&] {
        std::lock_guard const guard{mutex};
        return events.size() >= 3 && events.front() == "added" && events.back() == "completed";
    }));
    EXPECT_THAT(jobs.types(), ElementsAre("mail"));
}

TEST_P(job_contract, that_take_too_long_have_failed) {
    auto const job = schedule("x", {.attempts = 2, .backoff = 1ms, .timeout = 50ms});
    job_worker worker{b, "name", {.concurrency = 2}};
    if (GetParam().how == form::blocking) {
        worker.handle<text>("mail", [](job_context& one, text const&) {
            while (!one.stop_token().stop_requested()) std::this_thread::yield();
            EXPECT_FALSE(one.is_valid()) << "it cannot complete any more";
        });
    } else {
        worker.handle<text>("mail", [this](text const&) -> task<void> {
            auto waiting = nothing.async_dequeue();
            co_await std::move(waiting);
        });
    }
    worker.start();
    auto const end = wait(job.id);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::failed);
    EXPECT_EQ(end->reason, "it took longer than 50 ms");
    EXPECT_EQ(find(job.id)->failures.size(), 2);
}

TEST_P(job_contract, with_a_tag_are_found_by_it_until_they_are_forgotten) {
    auto const tagged = [&](text const& tag, std::size_t from = 0, std::size_t most = 100) {
        auto const all = run(
            a, [&] { return jobs.tagged("mail", tag, from, most); }, [&] { return jobs.async_tagged("mail", tag, from, most); });
        std::vector<text> found;
        for (auto const& one : all) found.push_back(one.payload);
        return found;
    };
    auto const first = schedule("one", {.tags = "eu  night eu"});
    EXPECT_TRUE(eventually([&] { return schedule("two", {.attempts = 7, .tags = "eu"}).is_new; }));
    schedule("three", {.delay = 1h, .tags = "us:east"});
    schedule("none");
    schedule("four", {.batch = "batch", .tags = "eu"});
    job_flow flow;
    flow.add("a", "mail", text{"five"}, {.tags = "eu"});
    run(
        a, [&] { return jobs.add_flow(flow); }, [&] { return jobs.async_add_flow(flow); });
    EXPECT_THAT(find(first.id)->tags, ElementsAre("eu", "night"));
    EXPECT_THAT(tagged("eu"), testing::UnorderedElementsAre("one", "two", "four", "five"));
    EXPECT_EQ(tagged("eu", 0, 2).size(), 2);
    EXPECT_EQ(tagged("eu", 3, 2).size(), 1);
    EXPECT_THAT(tagged("night"), ElementsAre("one"));
    EXPECT_THAT(tagged("us:east"), ElementsAre("three"));
    EXPECT_THAT(tagged("asia"), ElementsAre());
    auto const worker = work([](job_context&, text const& what) { return what; }, {.concurrency = 1, .completed_retention = 0ms});
    EXPECT_TRUE(eventually([&] { return counts().ever_completed == 5; }));
    EXPECT_TRUE(eventually([&] {  // when more of them come some are forgotten
        schedule("more");
        return tagged("eu").empty();
    }));
    EXPECT_THAT(tagged("us:east"), ElementsAre("three")) << "it has not ended";
    EXPECT_EQ(a.command<int>("EXISTS", mail_key + ":tag:eu", mail_key + ":tag:night"), 0);
    EXPECT_THAT(a.command<std::vector<text>>("ZRANGE", mail_key + ":tags", 0, -1), ElementsAre("us:east"));
    EXPECT_THROW(schedule("x", {.tags = "a,b"}), invalid_argument_error);
    EXPECT_THROW(schedule("x", {.tags = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"}), invalid_argument_error);
    EXPECT_THROW(tagged("a b"), invalid_argument_error);
    EXPECT_THROW(tagged("eu", 0, 1001), invalid_argument_error);
}

TEST_P(job_contract, that_failed_pause_as_their_handler_says) {
    job_worker worker{b, "name", {.concurrency = 1}};
    handle_options const how{.backoff = [](std::int32_t failures, std::string_view reason) { return reason == "patience" && failures < 3 ? 0ms : 1h; }};
    worker.handle<text>(
        "mail", [](text const& what) { throw std::runtime_error{what}; }, how);
    worker.start();
    auto const soon = schedule("patience", {.attempts = 5, .backoff = 1h});
    auto const later = schedule("other", {.attempts = 5, .backoff = 0ms});
    EXPECT_TRUE(eventually([&] { return find(soon.id)->failures.size() == 3 && find(later.id)->failures.size() == 1; }));
    EXPECT_TRUE(eventually([&] { return counts().delayed == 2; }));
}

TEST_P(job_contract, of_a_bad_kind_are_refused) {
    EXPECT_THROW(jobs.schedule("", text{"x"}), invalid_argument_error);
    EXPECT_THROW(jobs.schedule("a:b", text{"x"}), invalid_argument_error);
    EXPECT_THROW(schedule("x", {.attempts = 0}), invalid_argument_error);
    EXPECT_THROW(schedule("x", {.backoff_factor = 0.5}), invalid_argument_error);
    EXPECT_THROW(schedule("x", {.jitter = 2}), invalid_argument_error);
    EXPECT_THROW(schedule("x", {.delay = -1ms}), invalid_argument_error);
    EXPECT_THROW(cancel("mail"), invalid_argument_error);
    EXPECT_THROW(cancel("mail/$"), invalid_argument_error);
    EXPECT_FALSE(cancel("mail/1-1"));
    EXPECT_FALSE(find("mail/1-1"));
    EXPECT_EQ(wait("mail/1-1")->state, job_state::unknown);
    EXPECT_THROW(jobs.list("mail", job_state::unknown), invalid_argument_error);
    EXPECT_THROW((job_worker{b, "name", {.concurrency = 0}}), invalid_argument_error);
    job_worker worker{b, "name"};
    worker.handle<text>("mail", [](text const&) {});
    EXPECT_THROW(worker.handle<text>("mail", [](text const&) {}), invalid_argument_error);
    EXPECT_EQ(counts().ever_added, 0);
}

}  // namespace
}  // namespace lockstep::test
