// Queries, cookies, hosts and names that are not UTF-8.
#include "dashboard/text.hpp"

#include <gtest/gtest.h>

namespace lockstep::dashboard {
namespace {

TEST(dashboard_text, reads_what_a_query_says) {
    EXPECT_EQ(in_query("name=a%2Fb&x=1", "name"), "a/b");
    EXPECT_EQ(in_query("x=1&name=%E2%82%AC+", "name"), "\xe2\x82\xac+");
    EXPECT_EQ(in_query("name=", "name"), "");
    EXPECT_EQ(in_query("names=1&nam=2", "name"), std::nullopt);
    EXPECT_EQ(in_query("name=%2", "name"), std::nullopt);
    EXPECT_EQ(in_query("name=%zz", "name"), std::nullopt);
    EXPECT_EQ(in_query("", "name"), std::nullopt);
}

TEST(dashboard_text, finds_a_cookie_by_its_whole_name) {
    EXPECT_EQ(in_cookies("a=1; lockstep_1=x.y; b=2", "lockstep_1"), "x.y");
    EXPECT_EQ(in_cookies("xlockstep_1=x", "lockstep_1"), std::nullopt);
    EXPECT_EQ(in_cookies("lockstep_11=x", "lockstep_1"), std::nullopt);
    EXPECT_EQ(in_cookies("", "lockstep_1"), std::nullopt);
}

TEST(dashboard_text, takes_the_host_without_its_port) {
    EXPECT_EQ(host_of("LocalHost:7717"), "localhost");
    EXPECT_EQ(host_of("[::1]:7717"), "[::1]");
    EXPECT_EQ(host_of("[::1]"), "[::1]");
    EXPECT_EQ(host_of("FD00::1"), "[fd00::1]") << "as people give it to --allow-host";
    EXPECT_EQ(host_of("localhost.evil.example:80"), "localhost.evil.example");
    EXPECT_EQ(host_of(""), "");
}

TEST(dashboard_text, cuts_between_characters) {
    EXPECT_EQ(beginning("plain", 10), "plain");
    EXPECT_EQ(beginning("plain", 3), "pla");
    EXPECT_EQ(beginning("a\xc3\xa9", 2), "a");
    EXPECT_EQ(beginning("a\xc3\xa9", 3), "a\xc3\xa9");
    EXPECT_EQ(beginning("\xf0\x9f\x94\x92", 3), "");
    EXPECT_EQ(beginning("\x80\x80\x80\x80\x80\x80", 5).size(), 2U) << "no character at all: not cut for ever";
}

TEST(dashboard_text, shows_bytes_that_are_no_utf8) {
    EXPECT_EQ(readable("plain \xc3\xa9 \xf0\x9f\x94\x92"), "plain \xc3\xa9 \xf0\x9f\x94\x92");
    EXPECT_EQ(readable("a\xff"
                       "b"),
              "a\\xffb");
    EXPECT_EQ(readable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
    EXPECT_EQ(readable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half a surrogate pair";
    EXPECT_EQ(readable("\xe2\x82"), "\\xe2\\x82") << "cut off";
    EXPECT_EQ(percent_decoded(percent_encoded("a\xff/\xc3\xa9")), "a\xff/\xc3\xa9");
}

}  // namespace
}  // namespace lockstep::dashboard
