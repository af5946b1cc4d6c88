#include "lease/session_pool.hpp"

#include <gtest/gtest.h>

namespace lockstep::engine {
namespace {

TEST(session_pool, lends_a_session_again_under_the_next_sequence) {
    session_pool pool{"me"};
    auto first = pool.borrow();
    EXPECT_EQ(first.sequence, 1);
    auto const id = first.id;
    pool.give_back(std::move(first));
    auto const second = pool.borrow();
    EXPECT_EQ(second.id, id);
    EXPECT_EQ(second.sequence, 2);
}

TEST(session_pool, has_one_for_each_call_in_flight_and_none_of_those_that_do_not_come_back) {
    session_pool pool{"me"};
    auto first = pool.borrow();
    auto const second = pool.borrow();
    EXPECT_NE(first.id, second.id);
    EXPECT_TRUE(second.id.starts_with("me."));
    pool.give_back(std::move(first));
    EXPECT_NE(pool.borrow().id, second.id);
    EXPECT_NE(pool.borrow().id, second.id);
}

}  // namespace
}  // namespace lockstep::engine
