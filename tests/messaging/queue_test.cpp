// What a queue promises, in both forms on every topology.
#include "queue_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::test {
namespace {

using testing::ElementsAre;

class queue_contract : public contract {
protected:
    using texts = queue<std::string>;
    using item = texts::item;

    enqueued enqueue(client& by, texts& to, std::string const& what, enqueue_options const& how = {}) {
        return run(
            by, [&] { return to.enqueue(what, how); }, [&] { return to.async_enqueue(what, how); });
    }
    bool try_enqueue(client& by, texts& to, std::string const& what) {
        return run(
                   by, [&] { return to.try_enqueue(what); }, [&] { return to.async_try_enqueue(what); })
            .has_value();
    }
    std::optional<item> dequeue(client& by, texts& from, std::chrono::milliseconds time = 10s) {
        return run(
            by, [&] { return from.dequeue(time); }, [&] { return from.async_dequeue(time); });
    }
    /// Takes what is there, and acknowledges it.
    std::vector<std::string> drain(client& by, texts& from) {
        std::vector<std::string> found;
        while (auto one = dequeue(by, from, 0ms)) {
            found.push_back(one->value());
            ack(by, *one);
        }
        return found;
    }
    void ack(client& by, item& what) {
        run(
            by, [&] { what.ack(); }, [&] { return what.async_ack(); });
    }
    void nack(client& by, item& what, std::chrono::milliseconds delay = 0ms, std::string const& why = "nack") {
        run(
            by, [&] { what.nack(delay, why); }, [&] { return what.async_nack(delay, why); });
    }
    static std::vector<std::string> of_letters(texts& of) {
        std::vector<std::string> found;
        for (auto const& one : of.dead_letters()) found.push_back(one.value());
        return found;
    }
    queue_counts counts(client& by, texts& of) {
        return run(
            by, [&] { return of.counts(); }, [&] { return of.async_counts(); });
    }

    texts of_a{a, "name"};
    texts of_b{b, "name"};
};
LOCKSTEP_CONTRACT(queue_contract);

TEST_P(queue_contract, gives_out_what_was_enqueued_in_order_and_leaves_nothing) {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(enqueue(a, of_a, std::to_string(i)).is_new);
    EXPECT_EQ(counts(b, of_b).ready, 5);
    auto first = dequeue(b, of_b);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->value(), "0");
    EXPECT_EQ(first->deliveries(), 1);
    EXPECT_TRUE(first->is_valid());
    auto const now = counts(a, of_a);
    EXPECT_EQ(now.ready, 4);
    EXPECT_EQ(now.held, 1);
    ack(b, *first);
    EXPECT_THAT(drain(b, of_b), ElementsAre("1", "2", "3", "4"));
    EXPECT_FALSE(dequeue(b, of_b, 20ms));
    EXPECT_TRUE(eventually([&] { return leftovers(server) == std::vector{queue_key}; }));
    EXPECT_GT(server.must({"PTTL", queue_key}).integer, 0);
}

TEST_P(queue_contract, enqueues_many_in_one_round_trip) {
    std::vector<std::string> many;
    for (int i = 0; i < 3000; ++i) many.push_back(std::to_string(i));
    enqueue(a, of_a, "x");
    auto const before = calls(server);
    auto const done = run(
        a, [&] { return of_a.enqueue_many(many); }, [&] { return of_a.async_enqueue_many(many); });
    EXPECT_EQ(calls(server), before + 1);
    ASSERT_EQ(done.size(), 3000);
    std::set<std::string> ids;
    for (auto const& one : done) ids.insert(one.id);
    EXPECT_EQ(ids.size(), 3000);
    EXPECT_EQ(counts(b, of_b).ready, 3001);
    auto const found = drain(b, of_b);
    ASSERT_EQ(found.size(), 3001);
    for (int i = 0; i < 3000; ++i) ASSERT_EQ(found[static_cast<std::size_t>(i) + 1], std::to_string(i));
}

TEST_P(queue_contract, takes_any_bytes) {
    std::string const bytes{"\0\r\n 7 \xff\n", 9};
    enqueue(a, of_a, bytes, {.priority = 3, .key = "k\n k"});
    enqueue(a, of_a, bytes);
    enqueue(a, of_a, "");
    enqueue(a, of_a, std::string(1 << 20, 'x'));
    EXPECT_THAT(drain(b, of_b), ElementsAre(bytes, bytes, "", std::string(1 << 20, 'x')));
}

TEST_P(queue_contract, may_have_any_name) {
    for (std::string const name : {"my queue", "PUBLISH 1 2 3 4 5 6", " ", "a\nb", "[x]*?%S+$", "\xff\x01"}) {
        texts mine{a, name, {.max_deliveries = 1, .max_length = 1}};
        texts others{b, name, {.max_deliveries = 1}};
        begun waiting_one{others.async_dequeue(30s)};
        enqueue(a, mine, "x");
        auto got = waiting_one.get();
        ASSERT_TRUE(got) << name;
        enqueue(a, mine, "y");
        begun second{mine.async_enqueue("z")};
        nack(b, *got);
        EXPECT_THAT(of_letters(others), ElementsAre("x"));
        EXPECT_EQ(mine.requeue_dead(), 1);
        EXPECT_THAT(drain(b, others), testing::IsSupersetOf({"y", "x"}));
        second.get();
        others.purge();
        EXPECT_FALSE(dequeue(b, others, 20ms));
    }
}

TEST_P(queue_contract, wakes_who_waits) {
    begun waiting_one{of_b.async_dequeue(30s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    enqueue(a, of_a, "x");
    auto got = waiting_one.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "x");
    ack(b, *got);
    EXPECT_TRUE(eventually([&] { return waiting(server) == "0"; })) << "and nobody is left behind";
}

TEST_P(queue_contract, is_silent_while_many_wait_and_gives_one_item_each_in_order) {
    std::vector<begun<std::optional<item>>> all;
    sync_wait(in_turn_of(b, [&] {
        for (int i = 0; i < 200; ++i) all.emplace_back(of_b.async_dequeue(60s));
        return true;
    }));
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    EXPECT_TRUE(is_silent(server));
    std::vector<std::string> many;
    for (int i = 0; i < 200; ++i) many.push_back(std::to_string(i));
    of_a.enqueue_many(many);
    for (int i = 0; i < 200; ++i) {
        auto got = all[static_cast<std::size_t>(i)].get();
        ASSERT_TRUE(got);
        EXPECT_EQ(got->value(), std::to_string(i));
        ack(b, *got);
    }
}

TEST_P(queue_contract, leaves_no_name_after_timeouts_and_cancellations) {
    EXPECT_FALSE(dequeue(a, of_a, 30ms));
    EXPECT_TRUE(eventually([&] { return waiting(server) == "0"; }));
    std::stop_source stop;
    begun cancelled{with_stop_token(of_a.async_dequeue(60s), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { cancelled.get(); }).reason, errc::cancelled);
    EXPECT_TRUE(eventually([&] { return waiting(server) == "0"; }));
    enqueue(b, of_b, "x");
    EXPECT_EQ(counts(a, of_a).ready, 1);
}

TEST_P(queue_contract, gives_an_item_again_that_was_not_done) {
    enqueue(a, of_a, "x");
    enqueue(a, of_a, "y");
    {
        auto const dropped = dequeue(b, of_b);
        ASSERT_TRUE(dropped);
    }
    ASSERT_TRUE(eventually([&] { return counts(a, of_a).ready == 2; })) << "given back without waiting for that";
    auto again = dequeue(a, of_a);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->value(), "x") << "in front";
    EXPECT_EQ(again->deliveries(), 2);
    nack(a, *again);
    EXPECT_EQ(ending_of([&] { ack(a, *again); }).reason, errc::not_held);
    auto third = dequeue(b, of_b);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->value(), "x");
    EXPECT_EQ(third->deliveries(), 3);
    ack(b, *third);
    EXPECT_THAT(drain(b, of_b), ElementsAre("y"));
}

TEST_P(queue_contract, takes_back_what_is_not_renewed_and_refuses_a_late_acknowledgement) {
    texts brief{b, "name", {.visibility = 100ms, .renew = false}};
    enqueue(a, of_a, "x");
    auto lost = dequeue(b, brief);
    ASSERT_TRUE(lost);
    auto const stop = lost->stop_token();
    auto again = dequeue(a, of_a);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->deliveries(), 2);
    EXPECT_FALSE(lost->is_valid());
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_EQ(ending_of([&] { ack(b, *lost); }).reason, errc::lease_lost);
    EXPECT_EQ(counts(a, of_a).held, 1) << "the other one still has it";
    ack(a, *again);
    EXPECT_EQ(counts(a, of_a).held, 0);
}

TEST_P(queue_contract, renews_what_is_held_and_extends_it) {
    texts brief{b, "name", {.visibility = 3s}};
    enqueue(a, of_a, "x");
    auto held = dequeue(b, brief);
    ASSERT_TRUE(held);
    auto const end = [&] { return std::stod(server.must({"ZRANGE", queue_key + ":held", "0", "0", "WITHSCORES"}).elements.at(1).text); };
    auto const first = end();
    EXPECT_TRUE(eventually([&] { return end() > first + 3'000; })) << "when its first lease is over";
    EXPECT_FALSE(dequeue(a, of_a, 0ms));
    EXPECT_TRUE(held->is_valid());
    run(
        b, [&] { held->extend(1h); }, [&] { return held->async_extend(1h); });
    auto const ends = server.must({"ZRANGE", queue_key + ":held", "0", "0", "WITHSCORES"}).elements;
    ASSERT_EQ(ends.size(), 2);
    ack(b, *held);
    EXPECT_EQ(ending_of([&] { held->extend(1s); }).reason, errc::not_held);
}

TEST_P(queue_contract, puts_items_off) {
    auto const from = now_ms();
    begun first{of_b.async_dequeue(30s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    enqueue(a, of_a, "late", {.delay = 400ms});
    enqueue(a, of_a, "early", {.delay = 150ms});
    EXPECT_EQ(counts(a, of_a).delayed, 2);
    auto got = first.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "early");
    EXPECT_GE(now_ms() - from, 140);
    ack(b, *got);
    auto second = dequeue(b, of_b);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->value(), "late");
    EXPECT_GE(now_ms() - from, 390);
    nack(b, *second, 100ms);
    auto third = dequeue(b, of_b);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->deliveries(), 2);
    ack(b, *third);
}

TEST_P(queue_contract, takes_larger_priorities_first) {
    enqueue(a, of_a, "low", {.priority = -1});
    enqueue(a, of_a, "normal 1");
    enqueue(a, of_a, "high 1", {.priority = 5});
    enqueue(a, of_a, "higher", {.priority = 6});
    enqueue(a, of_a, "high 2", {.priority = 5});
    enqueue(a, of_a, "normal 2");
    auto first = dequeue(b, of_b);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->value(), "higher");
    nack(b, *first);
    EXPECT_THAT(drain(b, of_b), ElementsAre("higher", "high 1", "high 2", "normal 1", "normal 2", "low"));
}

TEST_P(queue_contract, leaves_out_an_item_whose_key_is_there) {
    auto const first = enqueue(a, of_a, "1", {.key = "k"});
    EXPECT_TRUE(first.is_new);
    auto const second = enqueue(b, of_b, "2", {.key = "k"});
    EXPECT_FALSE(second.is_new);
    EXPECT_EQ(second.id, first.id);
    auto held = dequeue(b, of_b);
    ASSERT_TRUE(held);
    EXPECT_EQ(held->id(), first.id);
    EXPECT_FALSE(enqueue(a, of_a, "3", {.key = "k"}).is_new) << "while it is held too";
    ack(b, *held);
    EXPECT_TRUE(enqueue(a, of_a, "4", {.key = "k", .key_window = 300ms}).is_new);
    EXPECT_THAT(drain(b, of_b), ElementsAre("4"));
    EXPECT_FALSE(enqueue(a, of_a, "5", {.key = "k"}).is_new) << "for a while after it was done";
    EXPECT_TRUE(eventually([&] { return enqueue(a, of_a, "6", {.key = "k"}).is_new; }));
    EXPECT_THAT(drain(b, of_b), ElementsAre("6"));
    EXPECT_FALSE(dequeue(a, of_a, 0ms));
    EXPECT_TRUE(eventually([&] { return leftovers(server) == std::vector{queue_key}; }));
}

TEST_P(queue_contract, waits_for_room) {
    texts bounded{a, "name", {.max_length = 2}};
    enqueue(a, bounded, "1");
    enqueue(a, bounded, "2");
    EXPECT_FALSE(try_enqueue(a, bounded, "x"));
    begun third{bounded.async_enqueue("3")};
    begun fourth{bounded.async_enqueue("4")};
    ASSERT_TRUE(eventually([&] { return waiting(server, "room") == "1"; }));
    EXPECT_FALSE(try_enqueue(a, bounded, "x"));
    EXPECT_FALSE(third.done());
    auto one = dequeue(b, of_b);
    ASSERT_TRUE(one);
    EXPECT_EQ(one->value(), "1");
    EXPECT_TRUE(third.get().is_new);
    EXPECT_FALSE(fourth.done());
    ack(b, *one);
    std::vector<std::string> found;
    for (int i = 0; i < 3; ++i) {
        auto next = dequeue(b, of_b);
        ASSERT_TRUE(next);
        found.push_back(next->value());
        ack(b, *next);
    }
    EXPECT_THAT(found, ElementsAre("2", "3", "4"));
    fourth.get();
    std::stop_source stop;
    enqueue(a, bounded, "1");
    enqueue(a, bounded, "2");
    begun cancelled{with_stop_token(bounded.async_enqueue("never"), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return waiting(server, "room") == "1"; }));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { cancelled.get(); }).reason, errc::cancelled);
    EXPECT_TRUE(eventually([&] { return waiting(server, "room") == "0"; }));
    EXPECT_EQ(run(
                  a, [&] { return bounded.purge(); }, [&] { return bounded.async_purge(); }),
              2);
}

TEST_P(queue_contract, keeps_what_nobody_could_handle) {
    texts strict{b, "name", {.max_deliveries = 2, .max_dead = 3}};
    enqueue(a, of_a, "bad", {.priority = 1});
    for (int i = 0; i < 2; ++i) {
        auto one = dequeue(b, strict);
        ASSERT_TRUE(one);
        nack(b, *one, 0ms, "because " + std::to_string(i));
    }
    EXPECT_FALSE(dequeue(b, strict, 0ms));
    EXPECT_EQ(counts(a, of_a).dead, 1);
    auto const letters = run(
        a, [&] { return of_a.dead_letters(); }, [&] { return of_a.async_dead_letters(); });
    ASSERT_EQ(letters.size(), 1);
    EXPECT_EQ(letters[0].value(), "bad");
    EXPECT_EQ(letters[0].reason, "because 1");
    EXPECT_EQ(letters[0].deliveries, 2);
    EXPECT_EQ(run(
                  a, [&] { return of_a.requeue_dead(letters[0].id); }, [&] { return of_a.async_requeue_dead(letters[0].id); }),
              1);
    auto again = dequeue(b, strict);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->deliveries(), 1);
    EXPECT_EQ(again->value(), "bad");
    ack(b, *again);

    texts brief{b, "name", {.visibility = 20ms, .renew = false, .max_deliveries = 1, .max_dead = 3}};
    for (int i = 0; i < 5; ++i) enqueue(a, of_a, std::to_string(i));
    std::vector<item> kept;
    EXPECT_TRUE(eventually([&] {
        if (auto one = dequeue(b, brief, 0ms)) kept.push_back(std::move(*one));
        auto const now = counts(a, of_a);
        return now.dead == 3 && now.ready + now.held == 0;
    })) << "the youngest three";
    EXPECT_THAT(of_a.dead_letters()[0].reason, testing::HasSubstr("lease"));
    EXPECT_EQ(of_a.drop_dead(), 3);
    EXPECT_TRUE(eventually([&] { return leftovers(server) == std::vector{queue_key}; }));
    EXPECT_EQ(ending_of([&] { of_a.drop_dead("nonsense"); }).reason, errc::invalid_argument);
}

TEST_P(queue_contract, that_forgets_what_it_gives) {
    texts fleeting{b, "name", {.reliable = false}};
    enqueue(a, of_a, "x", {.key = "k"});
    auto one = dequeue(b, fleeting);
    ASSERT_TRUE(one);
    EXPECT_EQ(one->value(), "x");
    EXPECT_EQ(counts(a, of_a).held, 0);
    ack(b, *one);
    EXPECT_TRUE(enqueue(a, of_a, "y", {.key = "k"}).is_new);
    static_cast<void>(dequeue(b, fleeting));
    EXPECT_FALSE(dequeue(b, fleeting, 0ms)) << "dropped is gone too";
    EXPECT_TRUE(eventually([&] { return leftovers(server) == std::vector{queue_key}; }));
}

TEST_P(queue_contract, ends_when_the_client_closes_and_gives_back_what_is_held) {
    enqueue(b, of_b, "x");
    auto held = dequeue(a, of_a);
    ASSERT_TRUE(held);
    auto const stop = held->stop_token();
    begun waiting_one{of_a.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    a.close();
    EXPECT_EQ(ending_of([&] { waiting_one.get(); }).reason, errc::cancelled);
    EXPECT_EQ(waiting(server), "0");
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    auto again = dequeue(b, of_b, 0ms);
    ASSERT_TRUE(again) << "at once";
    EXPECT_EQ(again->deliveries(), 1) << "a client that is closed did not fail";
    ack(b, *again);
    EXPECT_EQ(ending_of([&] { static_cast<void>(of_a.enqueue("y")); }).reason, errc::cancelled);
}

TEST_P(queue_contract, refuses_what_it_cannot_use) {
    EXPECT_EQ(ending_of([&] { texts{a, ""}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { texts{a, "x", {.visibility = 1ms}}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { texts{a, "x", {.max_deliveries = 0}}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { texts{a, "x", {.max_length = -1}}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { enqueue(a, of_a, "x", {.delay = -1ms}); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { enqueue(a, of_a, "x", {.priority = 2'000'000}); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { enqueue(a, of_a, "x", {.key = std::string_view{std::string(513, 'x')}}); }).reason, errc::invalid_argument);
    EXPECT_EQ(counts(a, of_a).ready, 0);
    EXPECT_EQ(ending_of([&] { of_a.consume({.backoff = std::chrono::milliseconds::max()}, [](std::string const&) {}); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { of_a.consume({.max_backoff = -1ms}, [](std::string const&) {}); }).reason, errc::invalid_argument);
    enqueue(a, of_a, "x");
    auto one = dequeue(a, of_a);
    ASSERT_TRUE(one);
    for (auto const time : {-1ms, std::chrono::milliseconds::max()}) {
        EXPECT_EQ(ending_of([&] { nack(a, *one, time); }).reason, errc::invalid_argument);
        EXPECT_EQ(ending_of([&] { one->extend(time); }).reason, errc::invalid_argument);
    }
    ack(a, *one);
    server.must({"SET", queue_key, "mine"});
    EXPECT_EQ(ending_of([&] { enqueue(a, of_a, "x"); }).reason, errc::server);
    EXPECT_EQ(ending_of([&] { static_cast<void>(dequeue(a, of_a)); }).reason, errc::server);
    queue<int> numbers{a, "numbers"};
    queue<std::string>{a, "numbers"}.enqueue("no number");
    auto wrong = numbers.dequeue();
    EXPECT_EQ(ending_of([&] { static_cast<void>(wrong.value()); }).reason, errc::conversion);
}

}  // namespace
}  // namespace lockstep::test
