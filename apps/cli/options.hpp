#pragma once

// How sub-commands declare what they take: CLI11, and our own kinds of values.

#include "cli/context.hpp"
#include "cli/duration.hpp"

#include <lockstep/versioned.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {

/// An option that takes a time: "10s", "500ms", "2m"; a bare number is in seconds.
CLI::Option* add_duration(CLI::App& to, std::string const& names, std::optional<std::chrono::milliseconds>& into, std::string const& about);

/// NAME, the first thing on the line.
CLI::Option* add_name(CLI::App& to, std::string& into, std::string const& about = "its name");

/// A number, also a negative one: a std::int64_t, which may be optional, or a double.
template <class Number>
CLI::Option* add_number(CLI::App& to, std::string const& names, Number& into, std::string const& about);

/// Accepts the numbers from `smallest` to `largest`; CLI11's own check words its refusal differently in each release.
CLI::Validator number_within(std::int64_t smallest, std::int64_t largest);

/// One of some words, each of which stands for something.
template <class T>
CLI::Option* add_word(CLI::App& to, std::string const& names, T& into, std::vector<std::pair<std::string, T>> words, std::string const& about) {
    auto const read = [&into, names, words = std::move(words)](std::string const& text) {
        std::string all;
        for (auto const& [word, meaning] : words) {
            if (word == text) return void(into = meaning);
            all += (all.empty() ? "" : ", ") + word;
        }
        throw CLI::ValidationError(names, "'" + text + "' is none of " + all);
    };
    return to.add_option_function<std::string>(names, read, about)->type_name("WORD");
}

/// --version and --fence, for those who write.
struct write_terms {
    std::optional<std::uint64_t> version{};
    std::uint64_t fence = 0;
    void declare_version(CLI::App& to);
    void declare_fence(CLI::App& to);
    write_options how() const {
        write_options made;
        made.fence = fence;
        return made;
    }
};

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

/// Declares those, one with each call.
inline auto named_actions(CLI::App& to, std::string& into, context& all) {
    return [&](char const* name, char const* about, std::function<exit_code()> const& act) { return add_action(to, name, about, into, all, act); };
}

}  // namespace lockstep::cli
