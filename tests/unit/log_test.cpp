#include <lockstep/log.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace lockstep::test {
namespace {

using testing::ExitedWithCode;
using testing::HasSubstr;

/// In a process of its own, as another test may have set a hook.
class log_by_default : public testing::Test {
protected:
    log_by_default() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
    static void write(std::string_view message) {
        log(log_level::warning, message);
        std::exit(0);
    }
};

TEST_F(log_by_default, is_a_line_that_nothing_in_the_message_can_end_or_colour) {
    EXPECT_EXIT(write("ERR no\r\nlockstep: error: forged"), ExitedWithCode(0), HasSubstr("lockstep: warning: ERR no\\x0D\\x0Alockstep: error: forged\n"));
    EXPECT_EXIT(write("\x1B[31mred\x7F\t"), ExitedWithCode(0), HasSubstr("lockstep: warning: \\x1B[31mred\\x7F\\x09\n"));
    EXPECT_EXIT(write("a\xC2\x9B" "31m"), ExitedWithCode(0), HasSubstr("lockstep: warning: a\\x9B31m\n")) << "the one character that begins an escape as well";
    EXPECT_EXIT(write(std::string{"a\0b", 3}), ExitedWithCode(0), HasSubstr("lockstep: warning: a\\x00b\n"));
}

TEST_F(log_by_default, leaves_text_as_it_is) {
    EXPECT_EXIT(write("gr\xC3\xB6\xC3\x9F" "er \xE2\x82\xAC ~"), ExitedWithCode(0), HasSubstr("lockstep: warning: gr\xC3\xB6\xC3\x9F" "er \xE2\x82\xAC ~\n"));
}

}  // namespace
}  // namespace lockstep::test
