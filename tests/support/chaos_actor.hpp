// What the parts of one thread of chaos_worker have in common: its dice, its line to the referee.
#pragma once

#include "history.hpp"
#include "witness.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>

namespace lockstep::chaos {

class actor {
public:
    actor(std::string const& referee, std::string who, std::uint64_t seed);

    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    bool one_in(std::uint64_t times) { return below(times) == 0; }
    std::chrono::milliseconds up_to(std::uint64_t ms) { return std::chrono::milliseconds{below(ms + 1)}; }

    /// What reports are about from here on.
    void turn_to(std::string name) { about_ = {.who = about_.who, .name = std::move(name)}; }
    event& about() { return about_; }

    /// The time is now, or was read before: see hold_record.
    void report(std::string const& what, std::string note = {}) { report_at(boot_ns(), what, std::move(note)); }
    void report_at(std::int64_t time, std::string const& what, std::string note = {});
    /// The referee's answer to the same.
    std::string ask(std::string const& what, std::string note = {});

private:
    event as(std::int64_t time, std::string const& what, std::string note) const;

    test::witness line_;
    event about_;
    std::mt19937_64 random_;
};

/// A stop token that trips after a while, or never.
class second_thoughts {
public:
    explicit second_thoughts(std::optional<std::chrono::milliseconds> after);
    [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

private:
    std::stop_source source_;
    std::jthread thread_;
};

}  // namespace lockstep::chaos
