#include "base/names.hpp"

#include <gtest/gtest.h>
#include <lockstep/error.hpp>

#include <random>

#include "redis/slot.hpp"

namespace lockstep::base {
namespace {

TEST(key_name, puts_the_name_into_the_hash_tag) {
    EXPECT_EQ(key_name("lockstep", "nightly-report", "lock"), "lockstep:{nightly-report}:lock");
    EXPECT_EQ(key_name("a%b", "grün/1:2", "q"), "a%b:{grün/1:2}:q");
}

TEST(key_name, encodes_what_could_leave_the_tag) {
    EXPECT_EQ(key_name("p", "a}b{c%d", "k"), "p:{a%7Db%7Bc%25d}:k");
    EXPECT_EQ(key_name("p", std::string("\0\r\n\x7f", 4), "k"), "p:{%00%0D%0A%7F}:k");
    EXPECT_EQ(key_name("p", "}", "k"), "p:{%7D}:k");
}

TEST(key_name, refuses_names_that_are_empty_or_too_long_and_says_what_is_allowed) {
    EXPECT_NO_THROW(key_name("p", std::string(512, '{'), "k"));
    for (auto const& name : {std::string{}, std::string(513, 'x')}) {
        try {
            key_name("p", name, "k");
            FAIL() << "accepted " << name.size() << " bytes";
        } catch (invalid_argument_error const& error) {
            EXPECT_NE(std::string{error.what()}.find("1 to 512 bytes"), std::string::npos) << error.what();
        }
    }
}

TEST(key_name, refuses_a_prefix_that_could_hold_a_tag) {
    for (auto const* const prefix : {"", "a{b", "a}b", "a\nb", "\x7f"}) {
        EXPECT_THROW(key_name(prefix, "n", "k"), invalid_argument_error) << prefix;
    }
}

TEST(decode_name, is_the_inverse_and_keeps_every_object_in_one_slot) {
    std::mt19937 random{2024};
    for (int round = 0; round < 2'000; ++round) {
        std::string name(1 + random() % 512, '\0');
        for (auto& c : name) c = random() % 3 == 0 ? "{}%\n"[random() % 4] : static_cast<char>(random());
        auto const encoded = encode_name(name);
        ASSERT_EQ(decode_name(encoded), name);
        ASSERT_EQ(redis::hash_tag(key_name("lockstep", name, "lock")), encoded);
    }
}

TEST(decode_name, refuses_what_encode_name_never_writes) {
    for (auto const* const text : {"", "%", "%7", "%7d", "%zz", "a{b", "a}b", "a\nb", "%41"}) {
        EXPECT_EQ(decode_name(text), std::nullopt) << text;
    }
}

}  // namespace
}  // namespace lockstep::base
