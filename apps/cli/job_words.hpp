#pragma once

// What `lockstep jobs` takes, of all its actions.

#include "cli/options.hpp"

#include <lockstep/job_client.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::cli {

struct job_words {
    std::string name, id, type, payload, state, key, tag, tags;
    std::size_t from = 0, count = 100;
    std::optional<std::chrono::milliseconds> delay{}, timeout{}, wait{}, late{};
    std::int32_t priority = 0, attempts = 20;
    std::string expression, zone = "UTC", missed = "skip";
    bool has_payload = false, of_all = false, yes = false;
    std::optional<std::chrono::milliseconds> older_than{};

    /// PAYLOAD, at the end of the line.
    void declare_payload(CLI::App& to);
    /// --attempts, --timeout, --key, --tags
    void declare_options(CLI::App& to);
    /// As given, or all of standard input unless that is a terminal.
    std::string read_payload() const;
    job_options options() const;  ///< for as long as this lives
};

/// schedule, crons, unschedule, pause, resume
void add_cron_actions(CLI::App& command, context& all, std::shared_ptr<job_words> const& what);

}  // namespace lockstep::cli
