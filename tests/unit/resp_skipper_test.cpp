#include "resp/skipper.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

namespace lockstep::resp {
namespace {

/// Steps over the message at the front, of which each read brings `step` more bytes. How many bytes it had; npos: it is not RESP.
std::size_t skipped(std::string const& bytes, std::size_t step) {
    skipper pass;
    std::size_t used = 0;
    for (std::size_t come = 0; !pass.done() && come < bytes.size();) {
        come = std::min(bytes.size(), come + step);
        used += pass.skip(std::string_view{bytes}.substr(used, come - used));
        if (pass.failed()) return std::string::npos;
    }
    EXPECT_TRUE(pass.done());
    return used;
}

TEST(resp_skipper, steps_over_one_message_however_its_bytes_come) {
    std::string const next = "+the next message\r\n";
    for (std::string const message : std::initializer_list<char const*>{"+OK\r\n", ":12\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "*2\r\n$2\r\n\r\n\r\n*1\r\n:1\r\n",
                                      "%2\r\n+a\r\n:1\r\n+b\r\n~1\r\n#t\r\n", "=6\r\ntxt:ab\r\n", "!3\r\nERR\r\n", "|1\r\n+ttl\r\n:3\r\n$1\r\nx\r\n",
                                      "*3\r\n_\r\n,1.5\r\n(123\r\n"}) {
        for (std::size_t step = 1; step <= message.size(); ++step) EXPECT_EQ(skipped(message + next, step), message.size()) << message << " by " << step;
    }
    EXPECT_EQ(skipped("$6\r\nhel\nlo\r\n" + next, 1), 12U) << "a line end inside a text is none";
}

TEST(resp_skipper, keeps_to_the_end_of_a_large_text) {
    std::string const text(1'000'000, '\n');
    EXPECT_EQ(skipped("*2\r\n$1000000\r\n" + text + "\r\n:1\r\n+next\r\n", 4096), 4U + 10U + 1'000'002U + 4U);
}

TEST(resp_skipper, gives_up_where_nobody_can_tell_the_end) {
    EXPECT_EQ(skipped("?\r\n", 10), std::string::npos);
    EXPECT_EQ(skipped("*?\r\n:1\r\n.\r\n", 20), std::string::npos);
    EXPECT_EQ(skipped("$x\r\n", 10), std::string::npos);
    EXPECT_EQ(skipped("+" + std::string(100'000, 'x'), 100'001), std::string::npos);
}

}  // namespace
}  // namespace lockstep::resp
