// The checkers of jobs are shown histories in which all is well, and doctored ones that they must complain about.
#include "job_checkers.hpp"

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
    story& at(std::int64_t t, std::string who, std::string what, std::string note = {}, std::int64_t n = 0) {
        all_.push_back({.t = t, .who = std::move(who), .what = std::move(what), .name = jobs_name, .n = n, .note = std::move(note)});
        return *this;
    }
    story& deed(std::int64_t t, std::string note) {
        all_.push_back({.t = t, .who = "nemesis", .what = "deed", .note = std::move(note)});
        return *this;
    }
    story& put(std::int64_t t, std::string const& value) { return at(t, "p", "schedule", value).at(t + 1, "p", "scheduled", value + " hand/1-1", 1); }
    story& left_out(std::int64_t t, std::string const& value) { return at(t, "p", "schedule", value).at(t + 1, "p", "scheduled", value + " hand/1-1"); }
    story& begin(std::int64_t t, std::string const& who, std::string const& value, std::int64_t delivery = 1) { return at(t, who, "begun", value, delivery); }
    /// Begun at t, over at t + 2, with a result that names who and when.
    story& run(std::int64_t t, std::string const& who, std::string const& value) {
        return begin(t, who, value).at(t + 1, who, "sure").at(t + 2, who, "returned", value + " " + result(who, t));
    }
    story& fail(std::int64_t t, std::string const& who, std::string const& value) {
        return begin(t, who, value).at(t + 1, who, "sure").at(t + 2, who, "threw", value);
    }
    story& ended(std::int64_t t, std::string const& value, job_state state, std::string const& with = {}, char const* what = "ended") {
        return at(t, "q", what, value + " " + with, static_cast<std::int64_t>(state));
    }
    story& last(std::string const& value, job_state state, std::string const& with = {}) { return ended(900 * second, value, state, with, "final"); }
    static std::string result(std::string const& who, std::int64_t t) { return who + "/" + std::to_string(t); }
    history told() const {
        auto all = all_;
        std::ranges::stable_sort(all, {}, &event::t);
        return all;
    }

private:
    history all_;
};

constexpr auto completed = job_state::completed, failed = job_state::failed, cancelled = job_state::cancelled;

complaints check_end(story const& all, promises const& given = {}) { return check_jobs_ended(all.told(), given); }
story well(std::string const& value) { return story{}.put(1, value).run(10, "x", value).last(value, completed, "x/10"); }

TEST(job_plans, are_read_as_they_are_written) {
    job_plan plan{.who = "w1.0.2", .number = 17, .is_task = true, .throws = 2, .single = "b", .when_running = 'r', .parents = {3, 14}, .on_parent_failure = 's', .key = "k1"};
    plan.has_little_time = true;
    auto const value = plan.value();
    EXPECT_EQ(value, "w1.0.2#17:m:x2:t:sbr:p3,14s@k1");
    auto const again = job_plan::of(value);
    EXPECT_EQ(again.value(), value);
    EXPECT_EQ(again.parents, plan.parents);
    EXPECT_EQ(again.type(), std::string{single_type});
    EXPECT_EQ(job_plan::of("p#1:d").options().attempts, 2);
    EXPECT_EQ(job_plan::of("p#1:x2").options().attempts, 3);
    EXPECT_EQ(job_plan::of("p#1:r").ends, job_plan::fate::rejects);
    EXPECT_EQ(job_plan::of("p#1").value(), "p#1");
}

// ---- the end

TEST(job_checker, accepts_what_is_run_at_least_once_and_ends) {
    EXPECT_THAT(check_end(well("p#1")), IsEmpty());
    EXPECT_THAT(check_end(story{}.put(1, "p#1").begin(10, "x", "p#1").run(20, "y", "p#1").last("p#1", completed, "y/20")), IsEmpty());
    EXPECT_THAT(check_end(story{}.put(1, "p#1:d").fail(10, "x", "p#1:d").last("p#1:d", failed)), IsEmpty());
    EXPECT_THAT(check_end(story{}.at(1, "p", "schedule", "p#1").at(9, "p", "unknown")), IsEmpty()) << "perhaps it is not there";
    EXPECT_THAT(check_end(story{}.put(1, "p#1").at(5, "p", "cancel", "p#1").at(6, "p", "cancelled", "p#1", 1).last("p#1", cancelled)), IsEmpty());
}

TEST(job_checker, complains_of_what_is_lost) {
    EXPECT_THAT(check_end(story{}.put(1, "p#1")), ElementsAre(StartsWith("it is lost, scheduled at 2")));
    EXPECT_THAT(check_end(story{}.put(1, "p#1"), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_end(story{}.put(1, "p#1").run(10, "x", "p#1")), ElementsAre(StartsWith("it is lost"))) << "who knows what it returned?";
}

TEST(job_checker, complains_of_what_is_invented) {
    EXPECT_THAT(check_end(story{}.run(10, "x", "p#1").last("p#1", completed, "x/10"), {.memory = false}), ElementsAre("nobody scheduled it: p#1"));
    EXPECT_THAT(check_end(story{}.put(20, "p#1").run(10, "x", "p#1").last("p#1", completed, "x/10")), ElementsAre("nobody scheduled it: p#1")) << "not yet";
    EXPECT_THAT(check_end(well("p#1").last("p#1", completed, "x/10")), ElementsAre("it is there twice: p#1"));
    EXPECT_THAT(check_end(story{}.left_out(1, "p#1@k").run(10, "x", "p#1@k")), ElementsAre(StartsWith("it was left out, and came")));
}

TEST(job_checker, complains_of_an_end_that_its_handler_did_not_say) {
    EXPECT_THAT(check_end(story{}.put(1, "p#1:d").fail(10, "x", "p#1:d").last("p#1:d", completed)), ElementsAre(StartsWith("it completed, though its handler throws")));
    EXPECT_THAT(check_end(story{}.put(1, "p#1").run(10, "x", "p#1").last("p#1", failed)), ElementsAre(StartsWith("it failed without a reason")));
    EXPECT_THAT(check_end(story{}.put(1, "p#1:d").last("p#1:d", failed)), ElementsAre(StartsWith("it failed without a reason"))) << "it was never tried";
    EXPECT_THAT(check_end(story{}.put(1, "p#1").last("p#1", completed)), ElementsAre(HasSubstr("which no try returned")));
    EXPECT_THAT(check_end(story{}.put(1, "p#1").run(10, "x", "p#1").last("p#1", completed, "y/10")), ElementsAre(HasSubstr("which no try returned")));
    EXPECT_THAT(check_end(story{}.put(1, "p#1").run(10, "x", "p#1").last("p#1", cancelled)), ElementsAre("it was cancelled by nobody: p#1"));
    EXPECT_THAT(check_end(well("p#1").last("p#2", job_state::waiting)), testing::Contains(HasSubstr("it ended as waiting")));
}

TEST(job_checker, knows_what_a_parent_means) {
    auto const family = [](std::string const& child) { return story{}.put(1, "p#1:r").put(2, child).fail(10, "x", "p#1:r").last("p#1:r", failed); };
    EXPECT_THAT(check_end(family("p#2:p1f").last("p#2:p1f", failed)), IsEmpty());
    EXPECT_THAT(check_end(family("p#2:p1s").last("p#2:p1s", cancelled)), IsEmpty());
    EXPECT_EQ(check_end(family("p#2:p1s").last("p#2:p1s", failed)).size(), 1U);
    EXPECT_EQ(check_end(family("p#2:p1f").last("p#2:p1f", cancelled)).size(), 1U);
    EXPECT_EQ(check_end(well("p#1").put(2, "p#2:p1f").last("p#2:p1f", failed)).size(), 1U) << "its parent is well";
}

TEST(job_checker, complains_of_two_ends) {
    auto const twice = [](job_state first, std::string const& with) {
        return story{}.put(1, "p#1").run(10, "x", "p#1").run(20, "y", "p#1").ended(15, "p#1", first, with).last("p#1", completed, "y/20");
    };
    EXPECT_THAT(check_end(twice(completed, "x/10")), ElementsAre(StartsWith("it ended twice, at 15 as completed with 'x/10'")));
    EXPECT_THAT(check_end(twice(completed, "x/10"), {.memory = false}), IsEmpty());
    EXPECT_EQ(check_end(twice(failed, "")).size(), 1U);
    EXPECT_THAT(check_end(twice(completed, "x/10").at(16, "p", "requeue", "p#1").at(17, "p", "requeued", "p#1", 1)), IsEmpty());
}

TEST(job_sum_checker, complains_of_ends_that_are_counted_twice_or_not) {
    auto const counted = [](std::int64_t added, std::int64_t ended) { return well("p#1").at(950 * second, "end", "ever", "added", added).at(950 * second, "end", "ever", "ended", ended); };
    auto const check = [](story const& all, promises const& given = {}) { return check_job_sums(all.told(), given); };
    EXPECT_THAT(check(counted(1, 1)), IsEmpty());
    EXPECT_THAT(check(counted(1, 2)), ElementsAre(StartsWith("2 ends of 1 jobs")));
    EXPECT_THAT(check(counted(1, 2), {.memory = false}), IsEmpty());
    EXPECT_EQ(check(counted(1, 0), {.memory = false}).size(), 1U);
    EXPECT_THAT(check(counted(2, 1), {.memory = false}), ElementsAre("2 jobs were added, and 1 are there"));
    EXPECT_THAT(check(counted(1, 2).at(20, "p", "requeue", "p#1").at(21, "p", "requeued", "p#1", 1)), IsEmpty());
    EXPECT_EQ(check(counted(1, 2).at(20, "p", "requeue", "p#1").at(21, "p", "requeued", "p#1", 0)).size(), 1U) << "it was too late";
    EXPECT_THAT(check(counted(1, 2).at(20, "p", "requeue", "p#1").at(21, "p", "unknown")), IsEmpty());
}

// ---- one at a time

TEST(job_try_checker, complains_of_two_who_run_it) {
    auto const both = [](std::int64_t sure_until) {
        return story{}.put(1, "p#1").begin(10, "x", "p#1").at(12, "x", "sure").begin(20, "y", "p#1", 2).at(30, "y", "sure").at(sure_until, "x", "sure");
    };
    EXPECT_THAT(check_job_tries(both(18).told(), {}), IsEmpty());
    EXPECT_THAT(check_job_tries(both(25).told(), {}), ElementsAre(StartsWith("two holders: x with p#1")));
    EXPECT_THAT(check_job_tries(both(25).told(), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_job_tries(both(25).deed(15, "clock_forward").told(), {}), IsEmpty());
    auto const others = story{}.begin(10, "x", "p#1").begin(11, "y", "p#2").at(20, "x", "sure").at(21, "y", "sure");
    EXPECT_THAT(check_job_tries(others.told(), {}), IsEmpty());
}

TEST(job_try_checker, complains_of_who_is_sure_of_what_has_ended) {
    auto const late = [] { return well("p#1").ended(20, "p#1", completed, "x/10").begin(30, "y", "p#1", 2).at(31, "y", "sure"); };
    EXPECT_THAT(check_job_tries(late().told(), {}), ElementsAre(StartsWith("p#1 had ended at 20, and y was sure")));
    EXPECT_THAT(check_job_tries(late().told(), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_job_tries(late().deed(25, "clock_forward").told(), {}), IsEmpty());
    EXPECT_THAT(check_job_tries(late().at(25, "p", "requeue", "p#1").told(), {}), IsEmpty());
    EXPECT_THAT(check_job_tries(well("p#1").ended(20, "p#1", completed, "x/10").begin(30, "y", "p#1", 2).told(), {}), IsEmpty()) << "it may have slept since";
}

TEST(single_job_checker, complains_of_two_of_a_name) {
    auto const both = [](std::string const& other, std::int64_t sure_until) {
        return story{}.begin(10, "x", "p#1:saq").at(12, "x", "sure").begin(20, "y", other).at(30, "y", "sure").at(sure_until, "x", "sure");
    };
    EXPECT_THAT(check_single_jobs(both("p#2:sar", 18).told(), {}), IsEmpty());
    EXPECT_THAT(check_single_jobs(both("p#2:sar", 25).told(), {}), ElementsAre(StartsWith("two holders: x with p#1:saq")));
    EXPECT_THAT(check_single_jobs(both("p#2:sar", 25).told(), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_single_jobs(both("p#2:sar", 25).deed(15, "clock_forward").told(), {}), IsEmpty());
    EXPECT_THAT(check_single_jobs(both("p#2:sbr", 25).told(), {}), IsEmpty()) << "another name";
    EXPECT_THAT(check_single_jobs(both("p#2", 25).told(), {}), IsEmpty());
}

// ---- parents

TEST(parent_checker, complains_of_a_child_that_begins_before_its_parent_has_completed) {
    auto const family = [](std::string const& child) { return story{}.put(1, "p#1").put(1, child); };
    EXPECT_THAT(check_job_parents(family("p#2:p1f").run(10, "x", "p#1").run(20, "y", "p#2:p1f").told(), {}), IsEmpty());
    EXPECT_THAT(check_job_parents(family("p#2:p1f").run(20, "y", "p#2:p1f").told(), {}), ElementsAre("p#2:p1f was begun at 20, before p#1"));
    EXPECT_THAT(check_job_parents(family("p#2:p1f").run(20, "y", "p#2:p1f").told(), {.memory = false}), IsEmpty());
    EXPECT_EQ(check_job_parents(family("p#2:p1s").run(30, "x", "p#1").run(20, "y", "p#2:p1s").told(), {}).size(), 2U) << "and it is run after that";
    EXPECT_EQ(check_job_parents(family("p#2:p1f").fail(10, "x", "p#1").run(20, "y", "p#2:p1f").told(), {}).size(), 1U) << "that was no completion";
    EXPECT_THAT(check_job_parents(family("p#2:p1g").fail(10, "x", "p#1").run(20, "y", "p#2:p1g").told(), {}), IsEmpty()) << "it goes on";
    EXPECT_EQ(check_job_parents(family("p#2:p1g").begin(10, "x", "p#1").run(20, "y", "p#2:p1g").told(), {}).size(), 1U) << "its parent has not ended";
    EXPECT_THAT(check_job_parents(family("p#2:p1g").begin(10, "x", "p#1").at(15, "p", "cancel", "p#1").run(20, "y", "p#2:p1g").told(), {}), IsEmpty());
}

TEST(parent_checker, complains_of_a_parent_that_is_tried_again_beside_its_child) {
    auto const again = [] { return story{}.put(1, "p#1:x1").put(1, "p#2:p1g").fail(10, "x", "p#1:x1").run(20, "y", "p#2:p1g").run(30, "x", "p#1:x1"); };
    EXPECT_THAT(check_job_parents(again().told(), {}), ElementsAre("p#2:p1g was begun at 20, and x was sure to run p#1:x1 at 31"));
    EXPECT_THAT(check_job_parents(again().deed(25, "clock_forward").told(), {}), IsEmpty());
}

// ---- keys

TEST(job_key_checker, complains_of_two_with_the_same_key) {
    auto const first = [] { return story{}.put(1, "p#1@k"); };
    EXPECT_THAT(check_job_keys(first().left_out(5, "p#2@k").run(10, "x", "p#1@k").put(20, "p#3@k").told(), {}), IsEmpty());
    EXPECT_THAT(check_job_keys(first().put(5, "p#2@k").run(10, "x", "p#1@k").told(), {}), ElementsAre("p#1@k and p#2@k have the same key"));
    EXPECT_THAT(check_job_keys(first().put(5, "p#2@k").told(), {.memory = false}), IsEmpty());
    EXPECT_THAT(check_job_keys(first().put(5, "p#2:m@k").told(), {}), IsEmpty()) << "of another type";
    EXPECT_THAT(check_job_keys(first().put(5, "p#2@k").at(3, "p", "cancel", "p#1@k").told(), {}), IsEmpty());
    EXPECT_THAT(check_job_keys(first().put(5, "p#2@k").at(8, "p", "requeue", "p#1@k").told(), {}), IsEmpty()) << "it had ended, or it could not be requeued";
    EXPECT_THAT(check_job_keys(story{}.put(1, "p#1:saq").put(5, "p#2:saq").told(), {}), IsEmpty()) << "it waits";
}

TEST(job_key_checker, complains_of_what_is_left_out_without_need) {
    EXPECT_THAT(check_job_keys(story{}.left_out(5, "p#2@k").told(), {}), ElementsAre("p#2@k was left out, and there was no other one"));
    auto const after = [](std::string const& mark) { return story{}.put(1, "p#1" + mark).ended(10, "p#1" + mark, completed).left_out(20, "p#2" + mark); };
    EXPECT_EQ(check_job_keys(after("@k").told(), {}).size(), 1U);
    EXPECT_EQ(check_job_keys(after(":sak").told(), {}).size(), 1U);
    EXPECT_THAT(check_job_keys(after("@w").told(), {}), IsEmpty()) << "its key counts for a while";
    EXPECT_THAT(check_job_keys(story{}.put(1, "p#1@k").left_out(20, "p#2@k").told(), {}), IsEmpty());
}

// ---- schedules

TEST(schedule_checker, complains_of_what_is_fired_twice_or_not) {
    auto const fired = [](std::vector<std::int64_t> const& dues) {
        story all;
        for (std::size_t i = 0; i != dues.size(); ++i) all.at(static_cast<std::int64_t>(i), "x", "fired", "a tick/" + std::to_string(i), dues[i]);
        return all;
    };
    EXPECT_THAT(check_schedules(fired({5'000, 6'000, 7'000}).at(50, "end", "fired", "a tick/1", 6'000).told(), {}), IsEmpty());
    EXPECT_THAT(check_schedules(fired({5'000, 6'000, 6'000}).told(), {}), ElementsAre("a: what was due at 6000 has 2 jobs"));
    EXPECT_THAT(check_schedules(fired({5'000, 6'000}).at(9, "x", "fired", "b tick/7", 6'000).told(), {}), IsEmpty()) << "another schedule";
    EXPECT_THAT(check_schedules(fired({5'000, 7'000}).told(), {}), ElementsAre("a: nothing was fired between 5000 and 7000"));
    EXPECT_THAT(check_schedules(fired({5'000, 6'000, 6'000, 8'000}).told(), {.memory = false}), IsEmpty());
}

}  // namespace
}  // namespace lockstep::chaos
