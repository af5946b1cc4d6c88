#include "jobs/cron_text.hpp"
#include "jobs/job_text.hpp"

#include <lockstep/error.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using time_point = std::chrono::system_clock::time_point;

TEST(job_text, reads_times_as_lua_writes_them) {
    EXPECT_EQ(read_record("- 1 1700000000000 0 0 \t\t\nx").created, time_point{1'700'000'000'000ms});
    EXPECT_EQ(read_record("- 1 1.7e+12 0 0 \t\t\nx").created, time_point{1'700'000'000'000ms});
}

// The clock counts ns in 64 bits: the year 2262 is its last. Whoever may write a job may write any number.
TEST(job_text, takes_times_that_the_clock_does_not_have_for_its_last) {
    auto const last = std::chrono::floor<std::chrono::milliseconds>(time_point::max());
    EXPECT_EQ(read_record("- 1 9e18 0 0 \t\t\nx").created, last);
    EXPECT_EQ(time_of_ms(std::numeric_limits<std::int64_t>::max()), last);
    EXPECT_EQ(time_of_ms(std::numeric_limits<std::int64_t>::min()), std::chrono::ceil<std::chrono::milliseconds>(time_point::min()));
    for (auto const* const text : {"- 1 1e300 0 0 \t\t\nx", "- 1 nan 0 0 \t\t\nx", "- 1 inf 0 0 \t\t\nx"}) EXPECT_THROW(static_cast<void>(read_record(text)), protocol_error) << text;
}

TEST(job_text, refuses_terms_that_nobody_may_write) {
    EXPECT_EQ(read_terms("5 1000 600000 2 0.1 0").attempts, 5);
    for (auto const* const text : {"0 1000 600000 2 0.1 0", "5 -1 600000 2 0.1 0", "5 1000 9223372036854775807 2 0.1 0", "5 1000 600000 0.5 0.1 0",
                                   "5 1000 600000 nan 0.1 0", "5 1000 600000 2 600000 0", "5 1000 600000 2 -1 0", "5 1000 600000 2 0.1 -1"}) {
        EXPECT_THROW(static_cast<void>(read_terms(text)), protocol_error) << text;
    }
}

}  // namespace
}  // namespace lockstep::detail
