#include "lease/server_clock.hpp"

#include <gtest/gtest.h>

namespace lockstep::engine {
namespace {

constexpr std::int64_t hour = 3'600'000;
constexpr std::int64_t slack = 60'000;

TEST(server_clock, takes_what_any_object_heard_last_where_there_is_one_server) {
    std::optional<std::int64_t> common;
    server_clock quiet{&common};
    server_clock busy{&common};
    auto const then = quiet.now();
    quiet.learn(then);
    busy.learn(then - hour);  // the server's clock was set back
    EXPECT_NEAR(static_cast<double>(quiet.now()), static_cast<double>(then - hour), slack) << "although it heard nothing itself since";
}

TEST(server_clock, of_one_node_says_nothing_of_another) {
    server_clock one{nullptr};
    server_clock other{nullptr};
    auto const then = one.now();
    one.learn(then);
    other.learn(then - hour);
    EXPECT_NEAR(static_cast<double>(one.now()), static_cast<double>(then), slack);
    EXPECT_NEAR(static_cast<double>(other.now()), static_cast<double>(then - hour), slack);
}

TEST(server_clock, guesses_until_the_first_answer) {
    std::optional<std::int64_t> common;
    server_clock fresh{&common};
    auto const guess = fresh.now();
    fresh.learn(0);  // an answer that does not say
    EXPECT_NEAR(static_cast<double>(fresh.now()), static_cast<double>(guess), slack);
}

}  // namespace
}  // namespace lockstep::engine
