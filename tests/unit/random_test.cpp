#include "base/random.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <set>
#include <thread>
#include <vector>

namespace lockstep::base {
namespace {

TEST(random_below, stays_below_and_reaches_every_value) {
    std::array<int, 7> seen{};
    for (int i = 0; i < 70'000; ++i) ++seen.at(random_below(7));
    for (int const count : seen) EXPECT_NEAR(count, 10'000, 600);  // six standard deviations
}

TEST(random_below, accepts_the_extremes) {
    EXPECT_EQ(random_below(0), 0U);
    EXPECT_EQ(random_below(1), 0U);
    EXPECT_NE(random_below(UINT64_MAX), random_below(UINT64_MAX));
}

TEST(random_unit, stays_in_its_half_open_interval) {
    double sum = 0;
    for (int i = 0; i < 10'000; ++i) {
        auto const drawn = random_unit();
        ASSERT_GE(drawn, 0.0);
        ASSERT_LT(drawn, 1.0);
        sum += drawn;
    }
    EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(random_id, has_22_url_safe_characters) {
    for (int i = 0; i < 1000; ++i) {
        auto const id = random_id();
        ASSERT_EQ(id.size(), 22U);
        ASSERT_EQ(id.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                  std::string::npos);
    }
}

TEST(random_id, never_repeats_within_and_across_threads) {
    std::array<std::vector<std::string>, 4> ids;
    {
        std::vector<std::jthread> threads;
        for (auto& own : ids) {
            threads.emplace_back([&own] {
                for (int i = 0; i < 5'000; ++i) own.push_back(random_id());
            });
        }
    }
    std::set<std::string> all;
    for (auto const& own : ids) all.insert(own.begin(), own.end());
    EXPECT_EQ(all.size(), 20'000U);
}

TEST(random_threads, draw_different_numbers) {
    std::uint64_t here = random_below(UINT64_MAX);
    std::uint64_t there = 0;
    std::jthread{[&there] { there = random_below(UINT64_MAX); }}.join();
    EXPECT_NE(here, there);
}

struct drawn {
    std::uint64_t number;
    std::array<char, 22> id;
};

drawn draw() {
    drawn result{random_below(UINT64_MAX), {}};
    auto const id = random_id();
    std::copy(id.begin(), id.end(), result.id.begin());
    return result;
}

// Forked workers share the parent's memory, the generator's state included.
TEST(random_after_fork, differs_between_parent_and_children) {
    random_below(2);  // seeded before the fork: that is the case that goes wrong
    std::array<int, 2> pipe_ends{};
    ASSERT_EQ(::pipe(pipe_ends.data()), 0);
    std::set<std::uint64_t> numbers;
    std::set<std::array<char, 22>> ids;
    for (int child = 0; child < 2; ++child) {
        auto const pid = ::fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) {
            auto const own = draw();
            ::_exit(::write(pipe_ends[1], &own, sizeof own) == sizeof own ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(pid, &status, 0), pid);
        ASSERT_EQ(status, 0);
        drawn childs{};
        ASSERT_EQ(::read(pipe_ends[0], &childs, sizeof childs), static_cast<ssize_t>(sizeof childs));
        numbers.insert(childs.number);
        ids.insert(childs.id);
    }
    auto const own = draw();
    numbers.insert(own.number);
    ids.insert(own.id);
    EXPECT_EQ(numbers.size(), 3U);
    EXPECT_EQ(ids.size(), 3U);
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
}

}  // namespace
}  // namespace lockstep::base
