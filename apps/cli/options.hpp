#pragma once

// How sub-commands declare what they take: CLI11, and our own kinds of values.

#include "cli/context.hpp"
#include "cli/duration.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace lockstep::cli {

/// An option that takes a time: "10s", "500ms", "2m"; a bare number is in seconds.
CLI::Option* add_duration(CLI::App& to, std::string const& names, std::optional<std::chrono::milliseconds>& into, std::string const& about);

/// NAME, the first thing on the line.
CLI::Option* add_name(CLI::App& to, std::string& into, std::string const& about = "its name");

/// -w, for those who wait: nothing waits for ever, 0 does not wait.
struct patience {
    std::optional<std::chrono::milliseconds> limit{};
    bool none = false;
    void declare(CLI::App& to);
    std::optional<std::chrono::milliseconds> time() const { return none ? std::chrono::milliseconds{0} : limit; }
};

/// A sub-command of a sub-command (`event set`), which takes the common options too.
CLI::App* add_action(CLI::App& to, std::string const& name, std::string const& about);
/// One that has a NAME, and what it does.
CLI::App* add_action(CLI::App& to, std::string const& name, std::string const& about, std::string& into, context& all, std::function<exit_code()> act);

}  // namespace lockstep::cli
