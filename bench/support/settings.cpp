#include "support/settings.hpp"

#include "support/cpu.hpp"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <cstdio>
#include <exception>

namespace lockstep::bench {

void settings::progress(std::string_view what) const {
    if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r\033[Kmeasuring: {}", what.empty() ? "done\n" : what);
}

int run_bench(int argc, char** argv, char const* about, void (*work)(settings const&)) {
    settings chosen;
    bool quick = false;
    std::size_t rounds = 0;
    std::size_t length_ms = 0;
    CLI::App app{about};
    app.add_flag("--json", chosen.json, "rows as a JSON array instead of a table");
    app.add_flag("--quick", quick, "fewer and shorter rounds: ends within a minute or so");
    app.add_flag("--unix", chosen.by_unix_socket,
                 "unix socket instead of TCP on the loopback interface, for every contender");
    app.add_option("--rounds", rounds, "how often each contender is measured")->check(CLI::Range(1, 1000));
    app.add_option("--length", length_ms, "about how long each of these takes, in ms")->check(CLI::Range(20, 60'000));
    app.add_option("--case", chosen.only, "only the cases whose name has this in it");
    CLI11_PARSE(app, argc, argv);
    if (quick) {
        chosen.rounds = 5;
        chosen.length = std::chrono::milliseconds{120};
        chosen.most_per_case = std::chrono::milliseconds{3'000};
    }
    if (rounds != 0) chosen.rounds = rounds;
    if (length_ms != 0) chosen.length = std::chrono::milliseconds{length_ms};
    try {
        if (!available_cores().distinct())
            fmt::print(stderr, "this process may use one core only: rows with many in flight say little\n");
        work(chosen);
        return 0;
    } catch (std::exception const& problem) {
        fmt::print(stderr, "{}could not measure: {}\n", isatty(STDERR_FILENO) == 1 ? "\n" : "", problem.what());
        return 1;
    }
}

}  // namespace lockstep::bench
