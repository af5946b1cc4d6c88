// How often and how long a lease is passed on inside a process before another process has its turn, in both forms on every topology.
#include <lockstep/mutex.hpp>

#include "lease_support.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

class cohort_contract : public contract {
protected:
    /// Held by `a`; behind it one of `b`, and behind that one so many of `a`.
    void line_up(std::string const& name, lease_options const& options, std::size_t count) {
        first = acquire(a, mutex{a, name, options});
        other.emplace(mutex{b, name}.async_acquire());
        ASSERT_TRUE(eventually([&] { return waiting_at(server_of(name), name) == 1; }));
        mine.clear();
        for (std::size_t i = 0; i < count; ++i) mine.emplace_back(mutex{a, name, options}.async_acquire());
        run_turn(a);
        ASSERT_EQ(waiting_at(server_of(name), name), 1) << "they wait behind the one that is held here";
    }
    /// That `b` has its turn when the lease `held` ends, before all of `a` from the given one on; then that those go on.
    void expect_turn_of_b(lease& held, std::size_t next) {
        auto const fence = held.fence();
        release(a, held);
        auto got = other->get();
        EXPECT_GT(got.fence(), fence);
        run_turn(a);
        for (std::size_t i = next; i < mine.size(); ++i) EXPECT_FALSE(mine[i].done()) << i;
        auto last = got.fence();
        release(b, got);
        for (std::size_t i = next; i < mine.size(); ++i) {
            auto one = mine[i].get();
            EXPECT_GT(one.fence(), last);
            last = one.fence();
            release(a, one);
        }
    }

    lease first{};
    std::optional<begun<lease>> other{};
    std::vector<begun<lease>> mine{};
};
LOCKSTEP_CONTRACT(cohort_contract);

TEST_P(cohort_contract, passes_a_lease_on_so_often_and_then_lets_another_process_in) {
    for (unsigned const passes : {1U, 3U, 30U}) {
        SCOPED_TRACE(passes);
        auto const name = "name-" + std::to_string(passes);
        for (int round = 0; round < 2; ++round) {  // it counts anew with each lease
            ASSERT_NO_FATAL_FAILURE(line_up(name, {.cohort_passes = passes, .cohort_time = 1h}, passes + 3));
            auto held = std::move(first);
            for (unsigned i = 0; i < passes; ++i) {
                auto const fence = held.fence();
                release(a, held);
                held = mine[i].get();
                EXPECT_GT(held.fence(), fence);
                EXPECT_FALSE(other->done()) << "passed on here, " << i + 1 << " of " << passes;
            }
            expect_turn_of_b(held, passes);
        }
    }
}

TEST_P(cohort_contract, passes_a_lease_on_so_long_and_then_lets_another_process_in) {
    ASSERT_NO_FATAL_FAILURE(line_up("name", {.cohort_passes = 900, .cohort_time = 200ms}, 3));
    auto const end = now_ms() + 201;
    ASSERT_TRUE(eventually([&] { return now_ms() > end; }));
    expect_turn_of_b(first, 0);
}

TEST_P(cohort_contract, passes_nothing_on_when_it_has_no_time) {
    ASSERT_NO_FATAL_FAILURE(line_up("name", {.cohort_passes = 900, .cohort_time = 0ms}, 3));
    expect_turn_of_b(first, 0);
}

}  // namespace
}  // namespace lockstep::test
