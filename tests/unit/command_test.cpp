// Requests before they begin: how they are made.
#include "redis/command.hpp"

#include <lockstep/error.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>

namespace lockstep::redis {
namespace {

void make_a_command() {
    std::string const word(700, 'x');
    auto const made = run({}, {}, "SET", "key", word);
}

// By an object that goes after all that belongs to the thread.
TEST(command, can_be_made_while_the_program_ends) {
    auto const end = [] {
        static struct late {
            ~late() {
                make_a_command();
                ::_exit(7);
            }
        } const last;
        make_a_command();
        std::exit(0);
    };
    EXPECT_EXIT(end(), testing::ExitedWithCode(7), "");
}

TEST(command, of_four_gibibytes_is_refused) {
    std::string const little = "PING";
    std::string_view const much{little.data(), std::size_t{1} << 32};  // never read
    EXPECT_THROW(static_cast<void>(run_encoded({}, much, {})), invalid_argument_error);
}

}  // namespace
}  // namespace lockstep::redis
