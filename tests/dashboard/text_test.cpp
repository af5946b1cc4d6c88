// Queries, hosts, addresses and names that are not UTF-8.
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

TEST(dashboard_text, takes_the_host_without_its_port) {
    EXPECT_EQ(host_of("LocalHost:7717"), "localhost");
    EXPECT_EQ(host_of("[::1]:7717"), "[::1]");
    EXPECT_EQ(host_of("[::1]"), "[::1]");
    EXPECT_EQ(host_of("FD00::1"), "[fd00::1]") << "as people give it to --allow-host";
    EXPECT_EQ(host_of("localhost.evil.example:80"), "localhost.evil.example");
    EXPECT_EQ(host_of(""), "");
}

TEST(dashboard_text, knows_an_authority_from_what_only_looks_like_one) {
    for (auto const* text : {"localhost", "127.0.0.1:80", "[::1]", "[fd00::1]:65535", "locks.example:1", "a_b-c"}) EXPECT_TRUE(is_authority(text)) << text;
    for (auto const* text : {"", ":80", "localhost:", "localhost:0", "localhost:65536", "localhost:80@evil.example", "localhost:+80", "localhost:8 0", "user@localhost",
                             "localhost/", "a,b", "[::1", "[]", "[::1]80", "::1", "localhost:080000"})
        EXPECT_FALSE(is_authority(text)) << text;
}

TEST(dashboard_text, counts_addresses_by_who_has_them) {
    EXPECT_EQ(network_of("192.0.2.1"), "192.0.2.1");
    EXPECT_EQ(network_of("::ffff:192.0.2.1"), "192.0.2.1");
    EXPECT_EQ(network_of("2001:db8:1:2:3:4:5:6"), network_of("2001:db8:1:2::1")) << "a subscriber has all of them";
    EXPECT_NE(network_of("2001:db8:1:2::1"), network_of("2001:db8:1:3::1"));
    EXPECT_EQ(network_of(""), "");
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
