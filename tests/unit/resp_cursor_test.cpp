#include "resp/cursor.hpp"
#include "resp/parser.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::resp {
namespace {

reply made(std::string const& bytes) {
    parser from;
    EXPECT_EQ(from.parse(bytes), status::ready);
    return reply{from.message()};
}

TEST(resp_cursor, reads_a_list_from_front_to_back) {
    auto const list = made("*4\r\n+head\r\n*2\r\n:1\r\n:2\r\n+a\r\n:7\r\n");
    cursor rest{list, 1};
    EXPECT_EQ(rest.left(), 3U);
    EXPECT_EQ(rest.next()[1].integer(), 2) << "a list in it is one element";
    EXPECT_EQ(rest.next().text(), "a");
    EXPECT_EQ(rest.next().integer(), 7);
    EXPECT_EQ(rest.left(), 0U);
    EXPECT_THROW(rest.next(), conversion_error);
}

TEST(resp_cursor, is_at_the_end_of_what_has_no_elements_or_fewer_than_are_skipped) {
    EXPECT_EQ(cursor(reply_view{}).left(), 0U);
    auto const number = made(":1\r\n");
    EXPECT_EQ(cursor(number, 1).left(), 0U);
    auto const list = made("*1\r\n:1\r\n");
    EXPECT_EQ(cursor(list, 5).left(), 0U);
}

}  // namespace
}  // namespace lockstep::resp
