#include <lockstep/log.hpp>

#include <gtest/gtest.h>

#include <string>

namespace lockstep::test {
namespace {

std::string written(std::string_view message) {
    testing::internal::CaptureStderr();
    log(log_level::warning, message);
    return testing::internal::GetCapturedStderr();
}

TEST(log, writes_a_line_that_nothing_in_the_message_can_end_or_colour) {
    EXPECT_EQ(written("ERR no\r\nlockstep: error: forged"), "lockstep: warning: ERR no\\x0D\\x0Alockstep: error: forged\n");
    EXPECT_EQ(written("\x1B[31mred\x7F\t"), "lockstep: warning: \\x1B[31mred\\x7F\\x09\n");
    EXPECT_EQ(written("a\xC2\x9B" "31m"), "lockstep: warning: a\\x9B31m\n") << "the one character that begins an escape as well";
    EXPECT_EQ(written(std::string{"a\0b", 3}), "lockstep: warning: a\\x00b\n");
}

TEST(log, leaves_text_as_it_is) { EXPECT_EQ(written("größer \xE2\x82\xAC ~"), "lockstep: warning: größer \xE2\x82\xAC ~\n"); }

}  // namespace
}  // namespace lockstep::test
