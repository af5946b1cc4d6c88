#include "redis/slot.hpp"

#include <gtest/gtest.h>

namespace lockstep::redis {
namespace {

static_assert(crc16::of("123456789") == 0x31c3, "the check value of CRC-16/XMODEM");

// The expected numbers are those of CLUSTER KEYSLOT.
TEST(key_slot, agrees_with_the_server) {
    EXPECT_EQ(key_slot(""), 0);
    EXPECT_EQ(key_slot("foo"), 12182);
    EXPECT_EQ(key_slot("bar"), 5061);
    EXPECT_EQ(key_slot("hello"), 866);
    EXPECT_EQ(key_slot("123456789"), 12739);
}

TEST(key_slot, uses_the_hash_tag_alone) {
    EXPECT_EQ(key_slot("lockstep:{foo}:lock"), key_slot("foo"));
    EXPECT_EQ(key_slot("{foo}"), key_slot("{foo}{bar}"));
    EXPECT_EQ(key_slot("foo{{bar}}zap"), key_slot("{bar"));
    EXPECT_EQ(hash_tag("a}b{c}d"), "c");
}

TEST(key_slot, uses_the_whole_key_without_a_tag_or_with_an_empty_one) {
    for (auto const* const key : {"foo{}{bar}", "{}", "a{b", "a}b", "{", "foo{}"}) EXPECT_EQ(hash_tag(key), key);
}

}  // namespace
}  // namespace lockstep::redis
