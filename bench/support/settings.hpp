#pragma once

// The command line that all benches share.

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::bench {

struct settings {
    std::size_t rounds = 11;
    std::chrono::milliseconds length{350};  ///< about how long one contender is measured in one round
    /// A case that is not done by then has as many rounds as it has: on a busy machine --quick ends in its time all the same.
    std::chrono::milliseconds most_per_case{std::chrono::minutes{2}};
    std::string only{};  ///< part of the name of the cases to run; empty: all
    bool json = false;
    bool by_unix_socket = false;

    bool is_quick() const noexcept { return most_per_case < std::chrono::seconds{10}; }
    bool wants(std::string_view name) const { return name.find(only) != std::string_view::npos; }
    /// Says what is going on, to a person who watches.
    void progress(std::string_view what) const;
};

/// Does what a bench's main does around its work: reads the options, runs `work`, and turns a failure to measure into exit code 1. A bar
/// that is missed is a result, not a failure.
int run_bench(int argc, char** argv, char const* about, void (*work)(settings const&));

}  // namespace lockstep::bench
