#include "redis/slot_map.hpp"
#include "resp/parser.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::test {
namespace {

using redis::endpoint;
using redis::read_slots;
using redis::slot_range;

endpoint const source{.host = "seed.example", .port = 7000, .path = {}};

std::vector<slot_range> slots_of(std::string const& bytes) {
    resp::parser parser{resp::limits{}};
    EXPECT_EQ(parser.parse(bytes), resp::status::ready);
    return read_slots(parser.message(), source);
}

std::string bulk(std::string const& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }
std::string range(int first, int last, std::string const& host, int port) {
    return "*3\r\n:" + std::to_string(first) + "\r\n:" + std::to_string(last) + "\r\n*3\r\n" + host + ":" +
           std::to_string(port) + "\r\n" + bulk("id");
}
slot_range expected(std::uint16_t first, std::uint16_t last, std::string const& host, std::uint16_t port) {
    return {.first = first, .last = last, .master = {.host = host, .port = port, .path = {}}};
}

TEST(slot_map, reads_the_masters_of_all_ranges) {
    auto const ranges =
        slots_of("*2\r\n" + range(0, 8191, bulk("10.0.0.1"), 7001) + range(8192, 16383, bulk("::1"), 7002));
    ASSERT_EQ(ranges.size(), 2U);
    EXPECT_EQ(ranges[0], expected(0, 8191, "10.0.0.1", 7001));
    EXPECT_EQ(ranges[1], expected(8192, 16383, "::1", 7002));
}

TEST(slot_map, takes_the_address_it_asked_for_a_node_that_does_not_know_its_own) {
    for (auto const& host : {bulk(""), bulk("?"), std::string{"_\r\n"}, std::string{"$-1\r\n"}}) {
        auto const ranges = slots_of("*1\r\n" + range(0, 16383, host, 7001));
        ASSERT_EQ(ranges.size(), 1U) << host;
        EXPECT_EQ(ranges[0], expected(0, 16383, "seed.example", 7001)) << host;
    }
}

TEST(slot_map, leaves_out_what_makes_no_sense) {
    auto const good = range(5, 5, bulk("h"), 1);
    for (auto const& bad :
         {range(0, 16384, bulk("h"), 1), range(-1, 3, bulk("h"), 1), range(7, 6, bulk("h"), 1),
          range(0, 1, bulk("h"), 0), range(0, 1, bulk("h"), 65536), std::string{"*0\r\n"}, std::string{":1\r\n"},
          std::string{"*3\r\n:0\r\n:1\r\n*1\r\n+h\r\n"}, std::string{"*3\r\n:0\r\n:1\r\n:2\r\n"}}) {
        auto const ranges = slots_of("*2\r\n" + bad + good);
        ASSERT_EQ(ranges.size(), 1U) << bad;
        EXPECT_EQ(ranges[0], expected(5, 5, "h", 1)) << bad;
    }
    EXPECT_TRUE(slots_of("*0\r\n").empty());
    EXPECT_TRUE(slots_of("+OK\r\n").empty());
}

TEST(slot_map, ends_where_slots_are_named_again_and_again) {
    std::string all;
    for (int i = 0; i < 1'000; ++i) all += range(0, 16383, bulk("h"), 7001);
    EXPECT_EQ(slots_of("*1000\r\n" + all).size(), 4U);
}

}  // namespace
}  // namespace lockstep::test
