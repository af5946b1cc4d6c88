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

history deed(std::int64_t t, std::string const& note) {
    return {{.t = t, .who = "nemesis", .what = "deed", .note = note}};
}

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
history one(std::string const& what, std::string const& who, std::int64_t t, std::uint64_t fence,
            std::string const& note = "") {
    return {{.t = t, .who = who, .what = what, .name = "shared-0", .fence = fence, .note = note}};
}
/// Its mode is changed to this at t, and it is sure of that until later.
history change(std::string const& who, std::uint64_t fence, std::int64_t t, std::string const& mode, std::int64_t to) {
    auto all = one("change", who, t - 1, 0);
    for (auto const& part : {one("changed", who, t, fence, mode), one("sure", who, to, fence)})
        all.push_back(part.front());
    return all;
}

template <class... More>
history join(More const&... parts) {
    history all;
    (all.insert(all.end(), parts.begin(), parts.end()), ...);
    std::stable_sort(all.begin(), all.end(), [](event const& a, event const& b) { return a.t < b.t; });
    return all;
}

TEST(history, is_written_and_read_as_json_lines) {
    event const full{.t = 5,
                     .who = "w",
                     .what = "x",
                     .name = "a \"b\" \\c",
                     .fence = 18'000'000'000'000'000'000U,
                     .n = -1,
                     .note = "n"};
    EXPECT_EQ(to_json(full),
              R"({"t":5,"who":"w","what":"x","name":"a \"b\" \\c","fence":18000000000000000000,"n":-1,"note":"n"})");
    EXPECT_EQ(from_json(to_json(full)), full);
    EXPECT_EQ(from_json(to_json(event{})), event{});
    for (auto const* const bad :
         {"", "{", "{}", "{\"t\":1", "{\"t\":\"1\"}", "{\"t\":1}x", "{\"other\":1}", "{\"who\":\"a}"}) {
        EXPECT_FALSE(from_json(bad)) << bad;
    }
    EXPECT_THAT(parse_history("{\"t\":2}\n\n  {\"t\":1}\n"), ElementsAre(event{.t = 1}, event{.t = 2}));
    EXPECT_THROW(parse_history("{\"t\":2}\nnonsense\n"), std::invalid_argument);
}

TEST(exclusion_checker, complains_of_two_who_were_sure_at_once) {
    auto const turns = join(hold("a", "mutex-0", 1, 10, 20), hold("b", "mutex-0", 2, 15, 15),
                            hold("c", "mutex-0", 3, 19, 40), hold("a", "mutex-1", 4, 10, 90));
    EXPECT_THAT(check_exclusion(turns, {}), IsEmpty()) << "b never was, and c began when a ended";
    auto const both = join(hold("a", "mutex-0", 1, 10, 30), hold("b", "mutex-0", 2, 20, 40));
    EXPECT_THAT(check_exclusion(both, {}), ElementsAre(StartsWith("two holders: a on mutex-0")));
    EXPECT_THAT(check_exclusion(both, {.memory = false}), IsEmpty());
    auto const nested =
        join(hold("a", "mutex-0", 1, 10, 90), hold("b", "mutex-0", 2, 20, 30), hold("c", "mutex-0", 3, 40, 50));
    EXPECT_EQ(check_exclusion(nested, {}).size(), 2U);
}

TEST(exclusion_checker, excuses_what_a_clock_that_jumped_forward_ended) {
    auto const both = join(hold("a", "mutex-0", 1, 10, 30), hold("b", "mutex-0", 2, 20, 40));
    EXPECT_THAT(check_exclusion(join(both, deed(15, "clock_forward")), {}), IsEmpty());
    EXPECT_THAT(check_exclusion(join(both, deed(8, "clock_forward"), deed(11, "clock_forward done")), {}), IsEmpty());
    EXPECT_EQ(check_exclusion(join(both, deed(5, "clock_forward"), deed(9, "clock_forward done")), {}).size(), 1U)
        << "before it";
    EXPECT_EQ(check_exclusion(join(both, deed(25, "clock_forward")), {}).size(), 1U) << "after it";
    constexpr std::int64_t second = 1'000'000'000;
    auto const renewed = join(hold("a", "mutex-0", 1, 10, 2 * second), hold("b", "mutex-0", 2, 20, 40));
    EXPECT_EQ(check_exclusion(join(renewed, deed(15, "clock_forward")), {}).size(), 1U)
        << "the server has renewed it since";
    auto const slow = join(hold("a", "mutex-0", 2, 20, 40),
                           history{{.t = 10, .who = "b", .what = "ask", .name = "mutex-0"},
                                   {.t = 30, .who = "b", .what = "granted", .name = "mutex-0", .fence = 1},
                                   {.t = 35, .who = "b", .what = "sure", .name = "mutex-0", .fence = 1}});
    EXPECT_EQ(check_exclusion(slow, {}).size(), 1U);
    EXPECT_THAT(check_exclusion(join(slow, deed(15, "clock_forward")), {}), IsEmpty())
        << "b's had ended when it heard of it";
    EXPECT_EQ(check_exclusion(join(both, deed(15, "clock_back")), {}).size(), 1U) << "the other way";
}

TEST(fence_checker, complains_of_a_fence_that_does_not_grow) {
    auto const well =
        join(hold("a", "mutex-0", 5, 10, 20), hold("b", "mutex-0", 7, 12, 50), hold("c", "mutex-0", 6, 12, 40));
    EXPECT_THAT(check_fences(well, {}), IsEmpty()) << "c asked before b was granted";
    EXPECT_THAT(check_fences(join(hold("a", "mutex-0", 5, 10, 20), hold("b", "mutex-0", 4, 30, 40)), {.memory = false}),
                ElementsAre(HasSubstr("a fence after 5: b")));
    EXPECT_THAT(check_fences(join(hold("a", "mutex-0", 5, 10, 20), hold("b", "mutex-0", 5, 10, 40)), {.memory = false}),
                ElementsAre(HasSubstr("given twice: b")));
    EXPECT_THAT(check_fences(join(hold("a", "mutex-0", 5, 10, 20), hold("b", "mutex-1", 5, 30, 40)), {}), IsEmpty());
}

TEST(fence_checker, complains_of_a_referee_that_is_fooled) {
    auto const well = join(access("a", "mutex-0", 5, 10, true), access("b", "mutex-0", 6, 11, true),
                           access("a", "mutex-0", 5, 12, false), access("b", "mutex-0", 6, 13, true));
    EXPECT_THAT(check_fences(well, {}), IsEmpty());
    EXPECT_THAT(check_fences(join(well, access("a", "mutex-0", 5, 14, true)), {}),
                ElementsAre(StartsWith("let in after 6: a")));
    EXPECT_THAT(check_fences(join(well, access("c", "mutex-0", 7, 14, false)), {}),
                ElementsAre(StartsWith("refused without need: c")));
}

TEST(fence_checker, complains_of_one_that_is_sure_after_it_was_refused) {
    auto const stale = join(hold("a", "mutex-0", 5, 10, 30), access("b", "mutex-0", 6, 15, true),
                            access("a", "mutex-0", 5, 20, false));
    EXPECT_THAT(check_fences(stale, {}), ElementsAre(StartsWith("still sure after it was refused: a")));
    EXPECT_THAT(check_fences(stale, {.memory = false}), IsEmpty());
    EXPECT_THAT(check_fences(join(stale, deed(12, "clock_forward")), {}), IsEmpty());
    auto const again = join(stale, hold("a", "mutex-0", 9, 40, 50));
    EXPECT_EQ(check_fences(again, {}).size(), 1U) << "its next hold is another matter";
}

TEST(bound_checker, complains_of_one_permit_too_many) {
    auto const three = join(hold("a", "semaphore-0", 1, 10, 50, 1), hold("b", "semaphore-0", 2, 20, 50, 2));
    EXPECT_THAT(check_bound(three, {}, 3), IsEmpty());
    EXPECT_THAT(check_bound(three, {}, 2), ElementsAre(StartsWith("3 permits of 2: b")));
    EXPECT_THAT(check_bound(join(three, hold("c", "semaphore-0", 3, 50, 60, 3)), {}, 3), IsEmpty()) << "they had ended";
    EXPECT_THAT(check_bound(join(three, hold("c", "semaphore-0", 3, 30, 60, 1)), {}, 3),
                ElementsAre(HasSubstr("c on")));
}

TEST(readers_writer_checker, complains_of_a_writer_that_is_not_alone) {
    auto const readers = join(hold("a", "shared-0", 1, 10, 50, 0, "read"), hold("b", "shared-0", 2, 20, 60, 0, "read"));
    EXPECT_THAT(check_readers_writer(readers, {}), IsEmpty());
    EXPECT_THAT(check_readers_writer(join(readers, hold("c", "shared-0", 3, 70, 80, 0, "write")), {}), IsEmpty());
    EXPECT_EQ(check_readers_writer(join(readers, hold("c", "shared-0", 3, 55, 80, 0, "write")), {}).size(), 1U);
    EXPECT_EQ(check_readers_writer(join(readers, hold("c", "shared-0", 3, 5, 15, 0, "write")), {}).size(), 1U);
}

TEST(readers_writer_checker, knows_that_modes_change) {
    auto const writer = hold("a", "shared-0", 1, 10, 20, 0, "write");
    auto const stays = join(writer, change("a", 1, 21, "read", 60));
    auto const reader = hold("b", "shared-0", 2, 30, 50, 0, "read");
    EXPECT_EQ(check_readers_writer(join(writer, one("sure", "a", 60, 1), reader), {}).size(), 0U) << "it had ended";
    auto lasting = stays;
    std::erase_if(lasting, [](event const& what) { return what.what == "ended"; });
    EXPECT_THAT(check_readers_writer(join(lasting, reader), {}), IsEmpty());
    auto upgraded = join(hold("a", "shared-0", 1, 10, 20, 0, "read"), change("a", 3, 35, "write", 60));
    std::erase_if(upgraded, [](event const& what) { return what.what == "ended"; });
    EXPECT_EQ(check_readers_writer(join(upgraded, reader), {}).size(), 1U);
}

TEST(fence_checker, knows_who_keeps_a_fence) {
    auto const first = hold("a", "shared-0", 5, 10, 20, 0, "write");
    auto const adopted = [&](std::uint64_t fence) {
        return check_fences(join(first, one("ask", "b", 30, 0), one("adopted", "b", 31, fence)), {}, "shared");
    };
    EXPECT_THAT(adopted(5), IsEmpty());
    EXPECT_THAT(adopted(6), IsEmpty());
    EXPECT_THAT(adopted(4), ElementsAre(HasSubstr("a fence after 5: b")));
    auto const changed = [&](std::uint64_t fence) {
        auto const other = hold("b", "shared-0", 7, 12, 20, 0, "read");
        return check_fences(join(first, other, change("a", fence, 30, "read", 40)), {}, "shared");
    };
    EXPECT_THAT(changed(5), IsEmpty());
    EXPECT_THAT(changed(8), IsEmpty());
    EXPECT_THAT(changed(7), Contains(HasSubstr("given twice: a")));
    EXPECT_THAT(changed(6), ElementsAre(HasSubstr("a fence after 7: a")));
}

TEST(fence_checker, lets_readers_come_in_any_order_but_not_after_a_later_writer) {
    auto const visit = [](std::string const& who, std::uint64_t fence, std::int64_t t, std::string const& mode,
                          bool enters) {
        history all{{.t = t,
                     .who = who,
                     .what = "access",
                     .name = "shared-0",
                     .fence = fence,
                     .n = enters ? 1 : 0,
                     .note = mode}};
        return all;
    };
    auto const readers = join(visit("a", 6, 10, "read", true), visit("b", 5, 11, "read", true));
    EXPECT_THAT(check_fences(readers, {}, "shared"), IsEmpty());
    EXPECT_EQ(check_fences(join(readers, visit("c", 4, 12, "write", true)), {}, "shared").size(), 1U);
    auto const written = join(readers, visit("c", 7, 12, "write", true));
    EXPECT_EQ(check_fences(join(written, visit("a", 6, 13, "read", true)), {}, "shared").size(), 1U);
    EXPECT_THAT(check_fences(join(written, visit("a", 6, 13, "read", false)), {}, "shared"), IsEmpty());
}

TEST(told_checker, complains_of_a_token_that_does_not_trip) {
    EXPECT_THAT(check_told(hold("a", "mutex-0", 1, 10, 20)), IsEmpty());
    EXPECT_THAT(check_told(one("untold", "a", 10, 7)), ElementsAre("a lost shared-0, fence 7, and was not told"));
}

TEST(changes_checker, complains_of_terms_out_of_order_and_of_leaders_nobody_was_told_of) {
    auto const elected = [](std::uint64_t term) { return event{.t = 100, .who = "end", .what = "elected", .name = "election-0", .fence = term}; };
    auto const granted = [](std::uint64_t term) { return event{.t = 1, .who = "a", .what = "granted", .name = "election-0", .fence = term}; };
    EXPECT_THAT(check_changes({granted(4), granted(5), granted(7), elected(5), elected(7)}, {}), IsEmpty()) << "the oldest are not kept";
    EXPECT_THAT(check_changes({granted(6), elected(5), elected(7)}, {}), ElementsAre("election-0: nobody was told of term 6, of a"));
    EXPECT_THAT(check_changes({granted(6), elected(5), elected(7)}, {.memory = false}), IsEmpty());
    EXPECT_THAT(check_changes({elected(7), elected(7)}, {.memory = false}), ElementsAre("election-0: term 7 comes after 7"));
}

TEST(leftover_checker, complains_of_what_is_left) {
    EXPECT_THAT(check_nothing_left(hold("a", "mutex-0", 1, 10, 20)), IsEmpty());
    history const left{{.t = 1, .who = "end", .what = "left", .name = "lockstep:{mutex-0}:lock", .note = "q7"}};
    EXPECT_THAT(check_nothing_left(left), ElementsAre("lockstep:{mutex-0}:lock: q7"));
}

}  // namespace
}  // namespace lockstep::chaos
