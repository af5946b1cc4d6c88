#include "redis/sentinel_replies.hpp"
#include "resp/parser.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::test {
namespace {

using redis::endpoint;

struct parsed {
    explicit parsed(std::string text) : bytes(std::move(text)) { EXPECT_EQ(parser.parse(bytes), resp::status::ready); }
    reply_view view() const { return parser.message(); }
    std::string bytes;
    resp::parser parser{resp::limits{}};
};

endpoint at(std::string host, std::uint16_t port) { return {.host = std::move(host), .port = port, .path = {}}; }

TEST(sentinel_replies, name_the_master) {
    EXPECT_EQ(redis::read_master(parsed{"*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n"}.view()), at("10.0.0.1", 6379));
}

TEST(sentinel_replies, name_no_master_where_they_make_no_sense) {
    for (auto const* const answer : {"_\r\n", "*1\r\n$1\r\nh\r\n", "*2\r\n*0\r\n$4\r\n6379\r\n", "*2\r\n$1\r\nh\r\n:6379\r\n", "*2\r\n$0\r\n\r\n$4\r\n6379\r\n",
                                     "*2\r\n$1\r\nh\r\n$5\r\n70000\r\n", "-IDONTKNOW\r\n"}) {
        EXPECT_EQ(redis::read_master(parsed{answer}.view()), std::nullopt) << answer;
    }
}

TEST(sentinel_replies, name_the_other_sentinels_but_for_those_that_make_no_sense) {
    auto const all = redis::read_sentinels(parsed{"*4\r\n%2\r\n+ip\r\n+h1\r\n+port\r\n+26379\r\n*4\r\n+ip\r\n+h2\r\n+port\r\n+26380\r\n%1\r\n+port\r\n+1\r\n:7\r\n"}.view());
    EXPECT_EQ(all, (std::vector{at("h1", 26379), at("h2", 26380)}));
    EXPECT_TRUE(redis::read_sentinels(parsed{"-ERR\r\n"}.view()).empty());
}

TEST(sentinel_replies, count_failovers) {
    EXPECT_EQ(redis::read_epoch(parsed{"%1\r\n+config-epoch\r\n$1\r\n7\r\n"}.view()), 7U);
    EXPECT_EQ(redis::read_epoch(parsed{"-ERR\r\n"}.view()), 0U);
}

TEST(sentinel_replies, announce_a_new_master_of_that_name_only) {
    EXPECT_EQ(redis::read_switch("main a 1 b 2", "main"), at("b", 2));
    for (auto const* const payload : {"other a 1 b 2", "main a 1 b", "main a 1 b 2 c", "main a 1 b 0", "main a 1  2", ""}) {
        EXPECT_EQ(redis::read_switch(payload, "main"), std::nullopt) << payload;
    }
}

}  // namespace
}  // namespace lockstep::test
