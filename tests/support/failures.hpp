// What went wrong, as a value to compare: its class and its text.
#pragma once

#include <lockstep/error.hpp>

#include <gtest/gtest.h>

#include <exception>
#include <optional>
#include <string>
#include <typeinfo>

namespace lockstep::test {

// The text of the `Error` that `work` throws. Anything else fails the test: no error, or one of another class.
//     EXPECT_THAT(failure<server_error>([&] { client.command("NONSENSE"); }), HasSubstr("unknown command"));
template <class Error, class F>
std::string failure(F&& work) {
    try {
        work();
        ADD_FAILURE() << "nothing was thrown";
    } catch (Error const& problem) {
        // Of this very class: every lockstep error is an `error`, so a base would hide the difference.
        EXPECT_EQ(typeid(problem).name(), std::string{typeid(Error).name()}) << problem.what();
        return problem.what();
    } catch (std::exception const& problem) {
        ADD_FAILURE() << "another class was thrown: " << typeid(problem).name() << ", " << problem.what();
    }
    return {};
}

// Calls `work`, which has little time for a request, again when that was over before anything was heard: a busy machine does that.
template <class F>
void until_heard(F&& work) {
    for (int left = 20;; --left) {
        try {
            return static_cast<void>(work());
        } catch (timeout_error const&) {
            if (left == 0) throw;
        }
    }
}

// How `work` ended: its reason, or nothing when it succeeded.
template <class F>
std::optional<errc> outcome(F&& work) {
    try {
        work();
        return std::nullopt;
    } catch (error const& problem) {
        return problem.reason();
    }
}

}  // namespace lockstep::test
