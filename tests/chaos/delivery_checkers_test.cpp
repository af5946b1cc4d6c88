// The checkers of queues, streams and rate limits are shown histories in which all is well, and doctored ones that they must complain about.
#include "delivery_checkers.hpp"

#include "support/chaos_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::chaos {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr std::int64_t ms = 1'000'000, second = 1'000 * ms;

class story {
public:
    explicit story(std::string name) : name_{std::move(name)} {}
    story& at(std::int64_t t, std::string who, std::string what, std::string note = {}, std::int64_t n = 0, std::uint64_t fence = 0) {
        all_.push_back({.t = t, .who = std::move(who), .what = std::move(what), .name = name_, .fence = fence, .n = n, .note = std::move(note)});
        return *this;
    }
    story& deed(std::int64_t t, std::string note) {
        all_.push_back({.t = t, .who = "nemesis", .what = "deed", .note = std::move(note)});
        return *this;
    }
    story& killed(std::int64_t t, std::string worker) {
        all_.push_back({.t = t, .who = std::move(worker), .what = "killed"});
        return *this;
    }
    story& put(std::int64_t t, std::string const& value) { return at(t, "p", "enqueue", value).at(t + 1, "p", "enqueued", value, 1); }
    story& left_out(std::int64_t t, std::string const& value) { return at(t, "p", "enqueue", value).at(t + 1, "p", "enqueued", value); }
    /// Asked for at t, given at t + 1.
    story& give(std::int64_t t, std::string const& who, std::string const& value, std::int64_t delivery = 1) {
        return at(t, who, "take").at(t + 1, who, "processed", value, delivery);
    }
    /// The same, and done at once.
    story& take(std::int64_t t, std::string const& who, std::string const& value, std::int64_t delivery = 1) {
        return give(t, who, value, delivery).at(t + 2, who, "ack").at(t + 3, who, "acked");
    }
    history told() const {
        auto all = all_;
        std::stable_sort(all.begin(), all.end(), [](event const& a, event const& b) { return a.t < b.t; });
        return all;
    }

private:
    std::string name_;
    history all_;
};

// ---- at least once

complaints check_queue(story const& all, promises const& given = {}) { return check_delivered(all.told(), given, "queue"); }

TEST(delivery_checker, accepts_what_is_done_at_least_once) {
    EXPECT_THAT(check_queue(story{"queue-0"}.put(1, "a").take(10, "x", "a")), IsEmpty());
    EXPECT_THAT(check_queue(story{"queue-0"}.put(1, "a").give(10, "x", "a").at(12, "x", "nacked").take(20, "y", "a", 2)), IsEmpty());
    EXPECT_THAT(check_queue(story{"queue-0"}.put(1, "a").give(10, "w0.0.1", "a").at(12, "w0.0.1", "ack").killed(13, "w0.0")), IsEmpty())
        << "perhaps it is done";
    EXPECT_THAT(check_queue(story{"queue-0"}.at(1, "p", "enqueue", "a").at(9, "p", "unknown")), IsEmpty()) << "perhaps it is not there";
}

TEST(delivery_checker, complains_of_what_is_lost) {
    story const ignored = story{"queue-0"}.put(1, "a");
    EXPECT_THAT(check_queue(ignored), ElementsAre(StartsWith("it is lost: a of queue-0")));
    EXPECT_THAT(check_queue(ignored, {.memory = false}), IsEmpty());
    EXPECT_EQ(check_queue(story{ignored}.give(10, "x", "a").at(12, "x", "nacked")).size(), 1U) << "given back, and gone";
    EXPECT_EQ(check_queue(story{ignored}.give(10, "x", "a").at(12, "x", "ack").at(13, "x", "lost")).size(), 1U) << "somebody else has it, they said";
    EXPECT_THAT(check_delivered(story{"stream-0"}.at(1, "p", "add", "a").at(2, "p", "added", "a", 0, 5).at(9, "x", "processed", "a", 1).told(), {}, "stream"),
                ElementsAre(StartsWith("it is lost: a of stream-0")));
}

TEST(delivery_checker, complains_of_what_is_invented) {
    EXPECT_THAT(check_queue(story{"queue-0"}.take(10, "x", "a")), ElementsAre("nobody put it there: a of queue-0"));
    EXPECT_THAT(check_queue(story{"queue-0"}.take(10, "x", "a"), {.memory = false}), ElementsAre("nobody put it there: a of queue-0"));
    EXPECT_EQ(check_queue(story{"queue-0"}.put(20, "a").take(10, "x", "a")).size(), 1U) << "before it was there";
    EXPECT_THAT(check_queue(story{"queue-0"}.left_out(1, "a@k").take(10, "x", "a@k")), ElementsAre(StartsWith("it was left out")));
    EXPECT_EQ(check_queue(story{"queue-1"}.at(1, "p", "enqueue", "a").at(2, "p", "refused", "a").take(10, "x", "a")).size(), 1U) << "there was no room";
}

TEST(delivery_checker, complains_of_what_comes_twice_for_the_first_time) {
    auto const twice = [](std::string name, std::int64_t delivery) { return story{std::move(name)}.put(1, "a").take(10, "x", "a").take(10, "y", "a", delivery); };
    EXPECT_THAT(check_queue(twice("queue-0", 2)), IsEmpty());
    EXPECT_THAT(check_queue(twice("queue-0", 1)), ElementsAre(StartsWith("it was put there twice: a of queue-0")));
    EXPECT_THAT(check_queue(twice("queue-0", 1), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_queue(twice("queue-1", 1)), IsEmpty()) << "what died begins anew";
}

// ---- done is done

TEST(done_checker, complains_of_what_comes_again) {
    auto const twice = [](std::int64_t t) { return story{"queue-0"}.put(1, "a").take(10, "x", "a").take(t, "y", "a", 2); };
    EXPECT_THAT(check_done(twice(14).told(), {}), ElementsAre(HasSubstr("a of queue-0 was done at 13, and y")));
    EXPECT_THAT(check_done(twice(14).told(), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_done(twice(9).told(), {}), IsEmpty()) << "it asked before";
    EXPECT_THAT(check_done(twice(14).deed(8, "clock_forward").told(), {}), IsEmpty()) << "its lease may have ended early";
    EXPECT_EQ(check_done(twice(10 * second).deed(8, "clock_forward").told(), {}).size(), 1U) << "that was long ago";
}

// ---- one at a time

TEST(possession_checker, complains_of_two_who_have_it) {
    auto const both = [](std::int64_t sure_until) {
        return story{"queue-0"}.give(10, "x", "a").at(12, "x", "sure").give(20, "y", "a", 2).at(30, "y", "sure").at(sure_until, "x", "sure");
    };
    EXPECT_THAT(check_possession(both(18).told(), {}), IsEmpty());
    EXPECT_THAT(check_possession(both(25).told(), {}), ElementsAre(StartsWith("two holders: x on queue-0 a")));
    EXPECT_THAT(check_possession(both(25).told(), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_possession(both(25).deed(15, "clock_forward").told(), {}), IsEmpty());
    auto const others = story{"queue-0"}.give(10, "x", "a").give(11, "y", "b").at(20, "x", "sure").at(21, "y", "sure");
    EXPECT_THAT(check_possession(others.told(), {}), IsEmpty());
}

// ---- order

complaints check_ordered(story const& all, promises const& given = {}) { return check_order(all.told(), given, ordered_queue); }

TEST(order_checker, complains_of_what_overtakes) {
    auto const two = [] { return story{std::string{ordered_queue}}.put(1, "a").put(second, "b"); };
    auto const turned = [](story all) { return all.take(2 * second, "x", "b").take(3 * second, "x", "a"); };
    EXPECT_THAT(check_ordered(two().take(2 * second, "x", "a").take(3 * second, "x", "b")), IsEmpty());
    EXPECT_THAT(check_ordered(turned(two())), ElementsAre(StartsWith("a of queue-2, there since 2")));
    EXPECT_THAT(check_ordered(turned(two()), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_ordered(two().at(2 * second - 1, "y", "take").take(2 * second, "x", "b").at(3 * second, "y", "processed", "a", 1)), IsEmpty()) << "it may have been on its way";
    EXPECT_THAT(check_ordered(two().take(2 * second, "x", "b").take(3 * second, "x", "a", 2)), IsEmpty()) << "somebody had it before";
    EXPECT_THAT(check_ordered(turned(story{std::string{ordered_queue}}.at(1, "p", "enqueue", "a").put(second, "b").at(2 * second - 1, "p", "enqueued", "a", 1))), IsEmpty())
        << "put there at the same time";
}

TEST(order_checker, knows_that_an_item_may_have_been_in_a_message_that_was_read_late) {
    auto const turned = [](std::int64_t b) { return story{std::string{ordered_queue}}.put(second, "a").put(second + b, "b").take(2 * second, "x", "b").take(3 * second, "y", "a"); };
    auto const slept = [](story all, std::int64_t from, std::int64_t to) { return all.deed(from, "nap_holder").deed(to, "wake done"); };
    EXPECT_EQ(check_ordered(turned(50 * ms)).size(), 1U);
    EXPECT_THAT(check_ordered(slept(turned(50 * ms), 1, 2 * second)), IsEmpty());
    EXPECT_EQ(check_ordered(slept(turned(50 * ms), 1, 2)).size(), 1U) << "that was before";
    EXPECT_EQ(check_ordered(slept(turned(500 * ms), 1, 2 * second)).size(), 1U) << "by then its lease had ended";
    EXPECT_THAT(check_ordered(turned(50 * ms).deed(second, "clock_back").deed(second, "clock_back done")), IsEmpty());
    auto const set_back = [](story all, std::int64_t when) { return all.deed(when, "clock_back").deed(when, "clock_back done"); };
    EXPECT_THAT(check_ordered(set_back(turned(500 * ms), second + 200 * ms)), IsEmpty()) << "its lease lasted longer";
    EXPECT_EQ(check_ordered(set_back(turned(900 * ms), second)).size(), 1U) << "but not that long";
    EXPECT_THAT(check_ordered(turned(50 * ms).deed(1, "lag").deed(second, "heal done")), IsEmpty());
    EXPECT_EQ(check_ordered(turned(50 * ms).deed(second, "script_flush").deed(second, "script_flush done")).size(), 1U);
}

TEST(order_checker, knows_that_an_item_may_have_gone_back_unseen) {
    auto const turned = [] { return story{std::string{ordered_queue}}.put(second, "a").put(2 * second, "b").take(3 * second, "x", "b").take(9 * second, "x", "a"); };
    EXPECT_EQ(check_ordered(turned()).size(), 1U);
    EXPECT_THAT(check_ordered(turned().at(2 * second, "y", "take").at(3 * second, "y", "none")), IsEmpty());
    EXPECT_THAT(check_ordered(turned().give(second, "y", "c").at(8 * second, "z", "take").at(20 * second, "z", "none")), IsEmpty());
    EXPECT_EQ(check_ordered(turned().at(20 * second, "y", "take").at(21 * second, "y", "none")).size(), 1U) << "only after that";
    EXPECT_THAT(check_ordered(turned().at(second, "y", "take").at(6 * second, "y", "processed", "c", 1)), IsEmpty()) << "its answer may have come late";
    EXPECT_EQ(check_ordered(turned().at(second, "y", "take").at(2 * second, "y", "processed", "c", 1)).size(), 1U);
    EXPECT_EQ(check_ordered(turned().at(second, "w0.0.q", "take").killed(2 * second, "w0.0")).size(), 1U) << "that would have been counted";
    auto const earlier = [](std::int64_t parted) {
        return story{std::string{ordered_queue}}.at(1, "y", "take").at(2, "y", "none").at(parted, "end", "parted").put(20, "a").put(second, "b").take(2 * second, "end", "b").take(3 * second, "end", "a");
    };
    EXPECT_THAT(check_ordered(earlier(4 * second)), IsEmpty()) << "it may be on its way back";
    EXPECT_EQ(check_ordered(earlier(10)).size(), 1U) << "nobody is there any more";
}

// ---- keys

TEST(key_checker, complains_of_two_with_the_same_key) {
    auto const first = [] { return story{"queue-0"}.put(1, "a@k"); };
    EXPECT_THAT(check_keys(first().left_out(5, "b@k").take(10, "x", "a@k").put(20, "c@k").told(), {}), IsEmpty());
    EXPECT_THAT(check_keys(first().put(5, "b@k").take(10, "x", "a@k").told(), {}), ElementsAre("a@k and b@k of queue-0 have the same key"));
    EXPECT_THAT(check_keys(first().put(5, "b@k").told(), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_keys(first().put(11, "b@k").take(10, "x", "a@k").told(), {}), IsEmpty()) << "a was being acknowledged";
    EXPECT_THAT(check_keys(first().put(5, "b@m").told(), {}), IsEmpty());
}

TEST(key_checker, complains_of_what_is_left_out_without_need) {
    EXPECT_THAT(check_keys(story{"queue-0"}.left_out(5, "b@k").told(), {}), ElementsAre("b@k of queue-0 was left out, and none has its key"));
    auto const after = [](std::string const& key) { return story{"queue-0"}.put(1, "a@" + key).take(10, "x", "a@" + key).left_out(20, "b@" + key); };
    EXPECT_EQ(check_keys(after("k").told(), {}).size(), 1U);
    EXPECT_THAT(check_keys(after("w").told(), {}), IsEmpty()) << "its key counts for a while";
    EXPECT_THAT(check_keys(story{"queue-0"}.at(1, "p", "enqueue", "a@k").at(3, "p", "unknown").left_out(5, "b@k").told(), {}), IsEmpty());
}

// ---- streams

TEST(entry_checker, complains_of_ids_that_do_not_grow) {
    auto const two = [](std::uint64_t second_id) {
        return story{"stream-0"}.at(1, "p", "add", "a").at(2, "p", "added", "a", 0, 7).at(3, "q", "add", "b").at(4, "q", "added", "b", 0, second_id);
    };
    EXPECT_THAT(check_entries(two(8).told(), {}), IsEmpty());
    EXPECT_THAT(check_entries(two(7).told(), {}), ElementsAre(StartsWith("b of stream-0 has the id 7-0")));
    EXPECT_THAT(check_entries(two(7).told(), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_entries(story{"stream-0"}.at(1, "p", "add", "a").at(1, "q", "add", "b").at(2, "p", "added", "a", 0, 7).at(4, "q", "added", "b", 0, 6).told(), {}),
                IsEmpty())
        << "at the same time";
}

TEST(entry_checker, complains_of_a_consumer_that_gets_them_out_of_order) {
    auto const read = [](std::string const& one, std::string const& other, std::int64_t delivery) {
        return story{"stream-0"}
            .at(1, "p", "add", "a")
            .at(2, "p", "added", "a", 0, 7)
            .at(3, "p", "add", "b")
            .at(4, "p", "added", "b", 1, 7)
            .at(5, "x", "processed", one, 1)
            .at(6, "x", "processed", other, delivery);
    };
    EXPECT_THAT(check_entries(read("a", "b", 1).told(), {}), IsEmpty());
    EXPECT_THAT(check_entries(read("b", "a", 1).told(), {}), ElementsAre("x got a of stream-0 after a later one"));
    EXPECT_THAT(check_entries(read("b", "a", 2).told(), {}), IsEmpty()) << "again, or from somebody else";
}

// ---- rate limits

/// So many, one each `apart`, each asked for and allowed within `apart`.
story let_in(std::string const& name, int count, std::int64_t apart, std::int64_t cost = 1) {
    story all{name};
    for (int i = 0; i < count; ++i) {
        auto const who = "w" + std::to_string(i);
        all.at(second + i * apart, who, "decide").at(second + i * apart + apart / 2, who, "allowed", "", cost);
    }
    return all;
}

TEST(rate_limit_checker, complains_of_one_too_many_in_a_window) {
    EXPECT_THAT(check_rate(let_in("limit-0", 8, ms).told(), {}), IsEmpty());
    EXPECT_THAT(check_rate(let_in("limit-0", 9, ms).told(), {}), ElementsAre(StartsWith("limit-0 let in 9 and not 8")));
    EXPECT_THAT(check_rate(let_in("limit-0", 9, ms).told(), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_rate(let_in("limit-0", 9, ms).deed(second + 4 * ms, "clock_forward").told(), {}), IsEmpty());
    EXPECT_EQ(check_rate(let_in("limit-0", 9, ms).deed(second + 4 * ms, "clock_back").told(), {}).size(), 1U) << "that makes no room";
    EXPECT_EQ(check_rate(let_in("limit-0", 5, ms, 2).told(), {}).size(), 1U) << "what costs 2 counts twice";
    EXPECT_THAT(check_rate(let_in("limit-0", 40, 51 * ms).told(), {}), IsEmpty()) << "8 in any 400 ms";
    EXPECT_FALSE(check_rate(let_in("limit-0", 40, 40 * ms).told(), {}).empty());
    auto slow = let_in("limit-0", 8, ms).at(1, "late", "decide").at(second + 20 * ms, "late", "allowed", "", 1);
    EXPECT_THAT(check_rate(slow.told(), {}), IsEmpty()) << "it may have been let in long before";
}

TEST(rate_limit_checker, knows_the_other_algorithms) {
    EXPECT_THAT(check_rate(let_in("limit-1", 16, ms).told(), {}), IsEmpty()) << "two windows of its own";
    EXPECT_EQ(check_rate(let_in("limit-1", 17, ms).told(), {}).size(), 1U);
    EXPECT_THAT(check_rate(let_in("limit-2", 5, ms).told(), {}), IsEmpty());
    EXPECT_EQ(check_rate(let_in("limit-2", 6, ms).told(), {}).size(), 1U);
    EXPECT_THAT(check_rate(let_in("limit-2", 5 + 18, 50 * ms).told(), {}), IsEmpty()) << "one each 50 ms";
    EXPECT_FALSE(check_rate(let_in("limit-2", 5 + 18, 35 * ms).told(), {}).empty());
}

}  // namespace
}  // namespace lockstep::chaos
