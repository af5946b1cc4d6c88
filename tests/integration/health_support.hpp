// What the tests of check_health and diagnose share.
#pragma once

#include "support/eventually.hpp"
#include "support/forms.hpp"
#include "support/redis_server.hpp"

#include <lockstep/health.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace lockstep::test {

using namespace std::chrono_literals;

inline constexpr auto health_slack = 2s;  // how much longer than allowed something may take on a busy machine

/// "healthy" and so on; "none" when nothing was said about it.
inline std::string state_of(health_report const& report, std::string const& check) {
    for (auto const& one : report.findings) {
        if (one.check == check) return std::string{to_string(one.state)};
    }
    return "none";
}
inline finding found_in(health_report const& report, std::string const& check) {
    for (auto const& one : report.findings) {
        if (one.check == check) return one;
    }
    ADD_FAILURE() << "nothing about " << check << " in\n" << report.text();
    return {};
}
inline bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

/// What holds for every report, whatever the server does.
inline void expect_consistent(health_report const& report) {
    auto worst = health_state::healthy;
    EXPECT_FALSE(report.findings.empty());
    for (auto const& one : report.findings) {
        worst = std::max(worst, one.state);
        EXPECT_EQ(one.advice.empty(), one.state == health_state::healthy) << report.text();
        EXPECT_NE(one.check, "");
        EXPECT_NE(one.found, "") << one.check;
        EXPECT_TRUE(has(report.text(), one.found));
        EXPECT_TRUE(has(report.text(), one.advice));
        EXPECT_EQ(std::count_if(report.findings.begin(), report.findings.end(),
                                [&](auto const& other) { return other.check == one.check; }),
                  1)
            << report.text();
    }
    EXPECT_EQ(report.state, worst) << report.text();
}

/// For tests in which nothing is meant to be slow, however busy the machine is.
inline constexpr health_options patient{.within = 20s, .slow = 10s};

/// Both forms of both functions.
template <class Form>
health_report health_of(client& by, health_options options = patient) {
    auto report = Form::run(
        by, [&] { return check_health(by, options); }, [&] { return async_check_health(by, options); });
    expect_consistent(report);
    return report;
}
template <class Form>
health_report diagnosis_of(client& by, health_options options = patient) {
    auto report = Form::run(
        by, [&] { return diagnose(by, options); }, [&] { return async_diagnose(by, options); });
    expect_consistent(report);
    return report;
}

/// Runs the first command that an advice names, up to a comma, a semicolon or a full stop, as an administrator.
inline void follow(redis_server& server, std::string const& advice, std::string const& command) {
    ASSERT_TRUE(has(advice, command)) << advice;
    auto text = advice.substr(advice.find(command));
    text = text.substr(0, text.find_first_of(",;"));
    for (auto const* const end : {". ", " and ", " or ", " ("}) text = text.substr(0, text.find(end));
    if (text.ends_with('.')) text.pop_back();
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size();) {
        bool const quoted = text[at] == '"';
        auto const end = std::min(text.find(quoted ? '"' : ' ', at + 1), text.size());
        words.push_back(quoted ? text.substr(at + 1, end - at - 1) : text.substr(at, end - at));
        at = end + (quoted ? 2 : 1);
    }
    server.must(words);
}

}  // namespace lockstep::test
