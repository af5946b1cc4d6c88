// Secrets: made, compared, and judged.
#include "dashboard/credentials.hpp"

#include <gmock/gmock.h>

#include <set>

namespace lockstep::dashboard {
namespace {

using testing::HasSubstr;
using testing::Optional;

TEST(dashboard_credentials, are_different_each_time_and_never_weak) {
    std::set<std::string> all;
    for (int i = 0; i < 1'000; ++i) {
        auto const secret = random_secret();
        EXPECT_EQ(secret.size(), 32U);
        EXPECT_EQ(weakness_of(secret), std::nullopt) << secret;
        EXPECT_EQ(weakness_of(secret.substr(0, 24)), std::nullopt) << secret << ": 96 bits will do";
        all.insert(secret);
    }
    EXPECT_EQ(all.size(), 1'000U);
}

TEST(dashboard_credentials, tell_why_a_token_could_be_guessed) {
    EXPECT_THAT(weakness_of("short"), Optional(HasSubstr("at least 16")));
    for (auto const* token : {"aaaaaaaaaaaaaaaa", "abababababababab", "passwordpassword", "0123456789abcdef", "1111222233334444", "abcdefghijklmnopqrstuvwxyz", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzy"})
        EXPECT_THAT(weakness_of(token), Optional(HasSubstr("guessed"))) << token;
    EXPECT_THAT(weakness_of("correct horse battery"), Optional(HasSubstr("no header")));
    EXPECT_EQ(weakness_of("correct-horse-battery-staple"), std::nullopt);
}

TEST(dashboard_credentials, are_equal_only_as_a_whole) {
    EXPECT_TRUE(same_secret("abc", "abc"));
    EXPECT_FALSE(same_secret("abc", "abcd"));
    EXPECT_FALSE(same_secret("", "abc"));
    EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace lockstep::dashboard
