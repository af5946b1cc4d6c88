// The checkers of barriers and events are shown histories in which all is well, and doctored ones that they must complain about.
#include "checkers.hpp"
#include "support/chaos_names.hpp"

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

constexpr std::int64_t second = 1'000'000'000;

class story {
public:
    explicit story(std::string name) : name_{std::move(name)} {}
    story& at(std::int64_t t, std::string who, std::string what) {
        all_.push_back({.t = t, .who = std::move(who), .what = std::move(what), .name = name_});
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
    history told() const {
        auto all = all_;
        std::stable_sort(all.begin(), all.end(), [](event const& a, event const& b) { return a.t < b.t; });
        return all;
    }

private:
    std::string name_;
    history all_;
};

// ---- barriers

/// Two arrive at t, meet at t + 5 and go on.
story& meet(story& so_far, std::int64_t t, std::string const& a, std::string const& b) {
    return so_far.at(t, a, "arrive")
        .at(t, b, "arrive")
        .at(t + 5, b, "completed")
        .at(t + 8, a, "passed")
        .at(t + 9, b, "passed");
}
complaints check_two(story const& all) { return check_barrier(all.told(), {}, 2); }

TEST(barrier_checker, tells_meetings_apart) {
    story twice{"barrier-0"};
    EXPECT_THAT(check_two(meet(meet(twice, 10, "a", "b"), 30, "a", "b")), IsEmpty());
    story close{"barrier-0"};
    EXPECT_THAT(check_two(meet(meet(close, 10, "a", "b"), 12, "c", "d")), IsEmpty())
        << "c and d were there when a and b met";
    story broken{"barrier-0"};
    EXPECT_THAT(
        check_two(broken.at(10, "a", "arrive").at(11, "b", "arrive").at(20, "a", "gave_up").at(21, "b", "broken")),
        IsEmpty());
}

TEST(barrier_checker, complains_of_a_meeting_that_is_not_all_or_none) {
    story alone{"barrier-0"};
    alone.at(10, "a", "arrive").at(15, "a", "completed").at(20, "a", "passed");
    EXPECT_THAT(check_two(alone), ElementsAre(StartsWith("1 of 2 met")));
    EXPECT_THAT(check_barrier(alone.told(), {.memory = false}, 2), IsEmpty());
    story split{"barrier-0"};
    EXPECT_THAT(check_two(split.at(10, "a", "arrive")
                              .at(10, "b", "arrive")
                              .at(15, "a", "completed")
                              .at(20, "a", "passed")
                              .at(21, "b", "broken")),
                ElementsAre(StartsWith("1 of 2 met")));
    story third{"barrier-0"};
    EXPECT_THAT(check_two(meet(third, 10, "a", "b").at(11, "c", "arrive").at(18, "c", "passed")),
                ElementsAre(StartsWith("passed without a meeting")));
    story again{"barrier-0"};
    EXPECT_THAT(check_two(meet(again, 10, "a", "b").at(16, "a", "completed")), ElementsAre(HasSubstr("of 2 met")))
        << "completed twice";
    story late{"barrier-0"};
    late.at(10, "a", "arrive")
        .at(12, "a", "completed")
        .at(14, "a", "passed")
        .at(20, "b", "arrive")
        .at(22, "b", "passed");
    EXPECT_THAT(check_two(late), Contains(StartsWith("passed without a meeting: b")));
    story never{"barrier-0"};
    EXPECT_THAT(
        check_two(never.at(10, "a", "arrive").at(10, "b", "arrive").at(20, "a", "passed").at(20, "b", "passed")).size(),
        2U)
        << "nobody completed it";
}

TEST(barrier_checker, counts_those_who_may_have_been_there) {
    auto const with = [](std::string const& how) {
        story all{"barrier-0"};
        all.at(10, "w1.0.0", "arrive")
            .at(10, "w2.0.0", "arrive")
            .at(15, "w1.0.0", "completed")
            .at(20, "w1.0.0", "passed");
        if (!how.empty()) all.at(21, "w2.0.0", how);
        return all;
    };
    EXPECT_THAT(check_two(with("").killed(14, "w2.0")), IsEmpty());
    EXPECT_THAT(check_two(with("unknown")), IsEmpty());
    auto const second_try = [&](std::int64_t t) {
        return with("broken").at(t, "w1.0.0", "arrive").at(t + 1, "w1.0.0", "completed").at(t + 2, "w1.0.0", "passed");
    };
    EXPECT_EQ(check_two(second_try(30)).size(), 2U);
    EXPECT_EQ(check_two(second_try(30).at(25, "w2.0.0", "arrive").at(26, "w2.0.0", "unknown")).size(), 1U);
    EXPECT_EQ(
        check_two(second_try(30).at(25, "w2.0.0", "arrive").at(26, "w2.0.0", "unknown").at(27, "w2.0.0", "settled"))
            .size(),
        2U);
    EXPECT_EQ(check_two(with("gave_up")).size(), 1U);
    EXPECT_EQ(check_two(with("failed")).size(), 1U);
    story long_dead{"barrier-0"};
    long_dead.at(10, "w2.0.0", "arrive").killed(14, "w2.0");
    long_dead.at(60 * second, "w1.0.0", "arrive")
        .at(60 * second + 1, "w1.0.0", "completed")
        .at(60 * second + 2, "w1.0.0", "passed");
    EXPECT_EQ(check_two(long_dead).size(), 1U);
}

TEST(barrier_checker, knows_that_who_completes_may_fail_to_say_so) {
    story died{"barrier-0"};
    died.at(10, "w1.0.0", "arrive").at(10, "w2.0.0", "arrive").at(15, "w1.0.0", "completed").killed(16, "w1.0");
    auto passed = died;
    EXPECT_THAT(check_two(died.at(30, "w2.0.0", "broken")), IsEmpty());
    EXPECT_THAT(check_two(passed.at(30, "w2.0.0", "passed")), IsEmpty());
    story refused{"barrier-0"};
    refused.at(10, "a", "arrive")
        .at(10, "b", "arrive")
        .at(15, "a", "completed")
        .at(30, "a", "broken")
        .at(31, "b", "passed");
    EXPECT_THAT(check_two(refused), ElementsAre(StartsWith("passed without a meeting: b")));
}

// ---- events

story one_set() {
    story all{"event-0"};
    all.at(10, "s", "set").at(11, "s", "set_done");
    return all;
}
complaints check_events(story const& all) { return check_event(all.told(), {}); }

TEST(event_checker, complains_of_a_set_that_wakes_two) {
    auto once = one_set().at(5, "a", "wait").at(20, "a", "woken");
    EXPECT_THAT(check_events(once), IsEmpty());
    EXPECT_THAT(check_events(once.at(5, "b", "wait").at(21, "b", "woken")),
                ElementsAre(StartsWith("woken without a set: b")));
    EXPECT_THAT(check_event(once.told(), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_events(one_set().at(5, "a", "wait").at(9, "a", "woken")),
                ElementsAre(StartsWith("woken without a set: a")));
}

TEST(event_checker, complains_of_a_set_that_wakes_nobody) {
    EXPECT_THAT(check_events(one_set()), ElementsAre(HasSubstr("of 1 sets that were done 0 woke")));
    EXPECT_EQ(check_events(one_set().at(5, "a", "wait").at(30, "a", "none").at(31, "a", "settled")).size(), 1U);
    EXPECT_THAT(check_events(story{"event-0"}.at(10, "s", "set")), IsEmpty()) << "not known whether it was done";
}

TEST(event_checker, knows_who_may_have_taken_a_signal_along) {
    auto const waited = [] { return one_set().at(5, "w1.0.0", "wait"); };
    EXPECT_THAT(check_events(waited().killed(12, "w1.0")), IsEmpty());
    EXPECT_THAT(check_events(waited().at(15, "w1.0.0", "none").killed(16, "w1.0")), IsEmpty())
        << "it had not given it back yet";
    EXPECT_EQ(check_events(waited().at(15, "w1.0.0", "none").killed(60 * second, "w1.0")).size(), 1U) << "it had";
    EXPECT_EQ(check_events(waited().at(15, "w1.0.0", "none").at(16, "w1.0.0", "settled").killed(17, "w1.0")).size(), 1U)
        << "nothing to give";
    EXPECT_EQ(check_events(waited().at(15, "w1.0.0", "none").killed(16, "w2.0")).size(), 1U) << "somebody else";
    EXPECT_THAT(check_events(waited().at(6 * second, "w1.0.0", "none").at(6 * second, "w1.0.0", "settled")), IsEmpty())
        << "cut off for longer than the server remembers";
    auto const jumped = waited().at(15, "w1.0.0", "none").at(16, "w1.0.0", "settled");
    EXPECT_THAT(check_events(story{jumped}.deed(12, "clock_forward")), IsEmpty());
    EXPECT_EQ(check_events(story{jumped}.deed(17, "clock_forward")).size(), 1U);
}

}  // namespace
}  // namespace lockstep::chaos
