// Each checker is shown histories in which all is well, and doctored ones that it must complain about.
#include "checkers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::chaos {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

history deed(std::int64_t t, std::string const& note) { return {{.t = t, .who = "nemesis", .what = "deed", .note = note}}; }

/// Asked at `from`, granted a moment later, sure until `to`, ended.
history hold(std::string const& who, std::string const& name, std::uint64_t fence, std::int64_t from, std::int64_t to,
             std::int64_t permits = 0, std::string const& mode = "") {
    return {{.t = from, .who = who, .what = "ask", .name = name},
            {.t = from + 1, .who = who, .what = "granted", .name = name, .fence = fence, .n = permits, .note = mode},
            {.t = to, .who = who, .what = "sure", .name = name, .fence = fence},
            {.t = to + 1, .who = who, .what = "ended", .name = name}};
}
history access(std::string const& who, std::string const& name, std::uint64_t fence, std::int64_t t, bool let_in) {
    return {{.t = t, .who = who, .what = "access", .name = name, .fence = fence, .n = let_in ? 1 : 0}};
}
history one(std::string const& what, std::string const& who, std::int64_t t, std::string const& name, std::int64_t n = 0) {
    return {{.t = t, .who = who, .what = what, .name = name, .n = n}};
}

template <class... More>
history join(More const&... parts) {
    history all;
    (all.insert(all.end(), parts.begin(), parts.end()), ...);
    std::stable_sort(all.begin(), all.end(), [](event const& a, event const& b) { return a.t < b.t; });
    return all;
}

TEST(history, is_written_and_read_as_json_lines) {
    event const full{.t = 5, .who = "w", .what = "x", .name = "a \"b\" \\c", .fence = 18'000'000'000'000'000'000U, .n = -1, .note = "n"};
    EXPECT_EQ(to_json(full), R"({"t":5,"who":"w","what":"x","name":"a \"b\" \\c","fence":18000000000000000000,"n":-1,"note":"n"})");
    EXPECT_EQ(from_json(to_json(full)), full);
    EXPECT_EQ(from_json(to_json(event{})), event{});
    for (auto const* const bad : {"", "{", "{}", "{\"t\":1", "{\"t\":\"1\"}", "{\"t\":1}x", "{\"other\":1}", "{\"who\":\"a}"}) {
        EXPECT_FALSE(from_json(bad)) << bad;
    }
    EXPECT_THAT(parse_history("{\"t\":2}\n\n  {\"t\":1}\n"), ElementsAre(event{.t = 1}, event{.t = 2}));
    EXPECT_THROW(parse_history("{\"t\":2}\nnonsense\n"), std::invalid_argument);
}

TEST(exclusion_checker, complains_of_two_who_were_sure_at_once) {
    auto const turns = join(hold("a", "mutex-0", 1, 10, 20), hold("b", "mutex-0", 2, 15, 15), hold("c", "mutex-0", 3, 19, 40),
                            hold("a", "mutex-1", 4, 10, 90));
    EXPECT_THAT(check_exclusion(turns, {}), IsEmpty()) << "b never was, and c began when a ended";
    auto const both = join(hold("a", "mutex-0", 1, 10, 30), hold("b", "mutex-0", 2, 20, 40));
    EXPECT_THAT(check_exclusion(both, {}), ElementsAre(StartsWith("two holders: a on mutex-0")));
    EXPECT_THAT(check_exclusion(both, {.exclusion = false}), IsEmpty());
    auto const nested = join(hold("a", "mutex-0", 1, 10, 90), hold("b", "mutex-0", 2, 20, 30), hold("c", "mutex-0", 3, 40, 50));
    EXPECT_EQ(check_exclusion(nested, {}).size(), 2U);
}

TEST(exclusion_checker, excuses_what_a_clock_that_jumped_forward_ended) {
    auto const both = join(hold("a", "mutex-0", 1, 10, 30), hold("b", "mutex-0", 2, 20, 40));
    EXPECT_THAT(check_exclusion(join(both, deed(15, "clock_forward")), {}), IsEmpty());
    EXPECT_THAT(check_exclusion(join(both, deed(8, "clock_forward"), deed(11, "clock_forward done")), {}), IsEmpty());
    EXPECT_EQ(check_exclusion(join(both, deed(5, "clock_forward"), deed(9, "clock_forward done")), {}).size(), 1U) << "before it";
    EXPECT_EQ(check_exclusion(join(both, deed(25, "clock_forward")), {}).size(), 1U) << "after it";
    EXPECT_EQ(check_exclusion(join(both, deed(15, "clock_back")), {}).size(), 1U) << "the other way";
}

TEST(fence_checker, complains_of_a_fence_that_does_not_grow) {
    auto const well = join(hold("a", "mutex-0", 5, 10, 20), hold("b", "mutex-0", 7, 12, 50), hold("c", "mutex-0", 6, 12, 40));
    EXPECT_THAT(check_fences(well, {}), IsEmpty()) << "c asked before b was granted";
    EXPECT_THAT(check_fences(join(hold("a", "mutex-0", 5, 10, 20), hold("b", "mutex-0", 4, 30, 40)), {.exclusion = false}),
                ElementsAre(HasSubstr("a fence after 5: b")));
    EXPECT_THAT(check_fences(join(hold("a", "mutex-0", 5, 10, 20), hold("b", "mutex-0", 5, 10, 40)), {.exclusion = false}),
                ElementsAre(HasSubstr("given twice: b")));
    EXPECT_THAT(check_fences(join(hold("a", "mutex-0", 5, 10, 20), hold("b", "mutex-1", 5, 30, 40)), {}), IsEmpty());
}

TEST(fence_checker, complains_of_a_referee_that_is_fooled) {
    auto const well = join(access("a", "mutex-0", 5, 10, true), access("b", "mutex-0", 6, 11, true), access("a", "mutex-0", 5, 12, false),
                           access("b", "mutex-0", 6, 13, true));
    EXPECT_THAT(check_fences(well, {}), IsEmpty());
    EXPECT_THAT(check_fences(join(well, access("a", "mutex-0", 5, 14, true)), {}), ElementsAre(StartsWith("let in after 6: a")));
    EXPECT_THAT(check_fences(join(well, access("c", "mutex-0", 7, 14, false)), {}), ElementsAre(StartsWith("refused without need: c")));
}

TEST(fence_checker, complains_of_one_that_is_sure_after_it_was_refused) {
    auto const stale = join(hold("a", "mutex-0", 5, 10, 30), access("b", "mutex-0", 6, 15, true), access("a", "mutex-0", 5, 20, false));
    EXPECT_THAT(check_fences(stale, {}), ElementsAre(StartsWith("still sure after it was refused: a")));
    EXPECT_THAT(check_fences(stale, {.exclusion = false}), IsEmpty());
    EXPECT_THAT(check_fences(join(stale, deed(12, "clock_forward")), {}), IsEmpty());
    auto const again = join(stale, hold("a", "mutex-0", 9, 40, 50));
    EXPECT_EQ(check_fences(again, {}).size(), 1U) << "its next hold is another matter";
}

TEST(bound_checker, complains_of_one_permit_too_many) {
    auto const three = join(hold("a", "semaphore-0", 1, 10, 50, 1), hold("b", "semaphore-0", 2, 20, 50, 2));
    EXPECT_THAT(check_bound(three, {}, 3), IsEmpty());
    EXPECT_THAT(check_bound(three, {}, 2), ElementsAre(StartsWith("3 permits of 2: b")));
    EXPECT_THAT(check_bound(join(three, hold("c", "semaphore-0", 3, 50, 60, 3)), {}, 3), IsEmpty()) << "they had ended";
    EXPECT_THAT(check_bound(join(three, hold("c", "semaphore-0", 3, 30, 60, 1)), {}, 3), ElementsAre(HasSubstr("c on")));
}

TEST(readers_writer_checker, complains_of_a_writer_that_is_not_alone) {
    auto const readers = join(hold("a", "shared-0", 1, 10, 50, 0, "read"), hold("b", "shared-0", 2, 20, 60, 0, "read"));
    EXPECT_THAT(check_readers_writer(readers, {}), IsEmpty());
    EXPECT_THAT(check_readers_writer(join(readers, hold("c", "shared-0", 3, 70, 80, 0, "write")), {}), IsEmpty());
    EXPECT_EQ(check_readers_writer(join(readers, hold("c", "shared-0", 3, 55, 80, 0, "write")), {}).size(), 1U);
    EXPECT_EQ(check_readers_writer(join(readers, hold("c", "shared-0", 3, 5, 15, 0, "write")), {}).size(), 1U);
}

history arrivals(std::int64_t t, std::initializer_list<char const*> names) {
    history all;
    for (auto const* const who : names) all.push_back({.t = t, .who = who, .what = "arrive", .name = "barrier-0"});
    return all;
}

TEST(barrier_checker, complains_of_a_generation_that_is_not_all_or_none) {
    auto const met = arrivals(10, {"a", "b"});
    auto const passed = [](char const* who, std::int64_t t, std::int64_t n = 1) { return one("passed", who, t, "barrier-0", n); };
    auto const broken = [](char const* who, std::int64_t t) { return one("broken", who, t, "barrier-0", 1); };
    auto const well = join(met, passed("a", 20), passed("b", 21), one("completed", "a", 15, "barrier-0", 1));
    EXPECT_THAT(check_barrier(well, 2), IsEmpty());
    EXPECT_THAT(check_barrier(join(met, broken("a", 20), broken("b", 21)), 2), IsEmpty());
    EXPECT_THAT(check_barrier(join(met, passed("a", 20)), 2), IsEmpty()) << "b died before it knew";
    EXPECT_THAT(check_barrier(join(met, passed("a", 20), broken("b", 21)), 2), Contains(StartsWith("passed for some")));
    EXPECT_THAT(check_barrier(join(arrivals(10, {"a"}), passed("a", 20)), 2), ElementsAre(StartsWith("passed without all")));
    EXPECT_THAT(check_barrier(join(well, arrivals(12, {"c"}), passed("c", 22)), 2), ElementsAre(StartsWith("more passed")));
    EXPECT_THAT(check_barrier(join(well, one("completed", "b", 16, "barrier-0", 1)), 2), ElementsAre(StartsWith("completed more")));
    EXPECT_THAT(check_barrier(join(arrivals(10, {"a"}), passed("a", 20), arrivals(30, {"b"}), passed("b", 40)), 2),
                ElementsAre(StartsWith("passed before all")));
}

TEST(event_checker, complains_of_a_set_that_wakes_none_or_two) {
    auto const name = "event-0";
    auto const set = join(one("set", "s", 10, name), one("set_done", "s", 11, name));
    auto const woken = [&](char const* who, std::int64_t t) { return join(one("wait", who, 5, name), one("woken", who, t, name)); };
    EXPECT_THAT(check_event(join(set, woken("a", 20)), "event"), IsEmpty());
    EXPECT_THAT(check_event(join(set, one("stored", "end", 99, name, 1))), IsEmpty());
    EXPECT_THAT(check_event(join(set, one("wait", "a", 5, name))), IsEmpty()) << "killed, and may have taken it along";
    EXPECT_THAT(check_event(join(one("set", "s", 10, name))), IsEmpty()) << "not known whether it was done";
    EXPECT_THAT(check_event(set), ElementsAre(HasSubstr("only 0 woke")));
    EXPECT_THAT(check_event(join(set, woken("a", 20), woken("b", 21))), Contains(StartsWith("woken without a set: b")));
    EXPECT_THAT(check_event(join(set, woken("a", 9), one("none", "b", 50, name))), Contains(StartsWith("woken without a set: a")));
    EXPECT_THAT(check_event(join(set, woken("a", 20), one("stored", "end", 99, name, 1))), ElementsAre(HasSubstr("left 1")));
    EXPECT_THAT(check_event(join(set, one("wait", "a", 5, name), one("none", "a", 30, name))), ElementsAre(HasSubstr("only 0 woke")));
}

TEST(leftover_checker, complains_of_what_is_left) {
    EXPECT_THAT(check_nothing_left(hold("a", "mutex-0", 1, 10, 20)), IsEmpty());
    history const left{{.t = 1, .who = "end", .what = "left", .name = "lockstep:{mutex-0}:lock", .note = "q7"}};
    EXPECT_THAT(check_nothing_left(left), ElementsAre("lockstep:{mutex-0}:lock: q7"));
}

}  // namespace
}  // namespace lockstep::chaos
