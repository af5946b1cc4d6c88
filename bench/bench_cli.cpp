// The `lockstep` command against redis-cli: how long a whole process takes, from its start to its end. docs/bench.md says how to read it.

#include "support/cpu.hpp"
#include "support/measurement.hpp"
#include "support/process.hpp"
#include "support/report.hpp"
#include "support/settings.hpp"
#include "support/stand.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

/// Beside this program.
std::string command_path() {
    auto const path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "lockstep";
    if (!std::filesystem::exists(path)) throw std::runtime_error("there is no " + path.string() + ": build the target lockstep_cli");
    return path.string();
}

measurement run_once(std::vector<std::string> const& words, int core) {
    measurement result{.operations = 1, .seconds = -wall_seconds()};
    process program{words, core};
    auto const end = program.wait();
    result.seconds += wall_seconds();
    result.client_cpu = end.cpu_seconds;
    if (end.code != 0) throw std::runtime_error(fmt::format("{} returned {}: {}", words.front(), end.code, end.output));
    return result;
}

double milliseconds_beyond(rounds const& seen, std::size_t ours, std::size_t theirs) {
    return (seen.of(ours, &measurement::micros).median - seen.of(theirs, &measurement::micros).median) / 1e3;
}

void whole_process(stand& all, std::string const& name) {
    auto const core = all.where.client;
    auto const command = command_path();
    std::vector<std::string> const with_lock{command, "--redis", all.redis.url(), "run", "x", "--", "true"};
    std::vector<std::string> const alone{"true"};
    auto const& where = all.redis.where();
    std::vector<std::string> ping{"redis-cli"};
    if (where.path.empty()) {
        ping.insert(ping.end(), {"-p", std::to_string(where.port), "ping"});
    } else {
        ping.insert(ping.end(), {"-s", where.path, "ping"});
    }
    for (auto const& words : {with_lock, alone, ping}) run_once(words, core);  // into the page cache
    auto chosen = all.chosen;
    chosen.rounds *= 10;  // one process each
    rounds const seen{{{"lockstep run", [&] { return run_once(with_lock, core); }},
                       {"redis-cli ping", [&] { return run_once(ping, core); }},
                       {"true", [&] { return run_once(alone, core); }}},
                      chosen};
    constexpr auto micros = &measurement::micros;
    all.rows.add({.name = name + ", against redis-cli ping",
                  .value = seen.of(0, micros).median / 1e3,
                  .unit = "ms",
                  .baseline = seen.of(1, micros).median / 1e3,
                  .ratio = seen.ratio(0, 1, micros)});
    all.rows.add({.name = name + ", beyond redis-cli ping",
                  .value = milliseconds_beyond(seen, 0, 1),
                  .unit = "ms",
                  .kind = bar_kind::value_at_most,
                  .bar = 15});
    all.rows.add({.name = name + ", beyond the command alone", .value = milliseconds_beyond(seen, 0, 2), .unit = "ms"});
    all.rows.add({.name = name + ", CPU",
                  .value = seen.of(0, &measurement::client_micros).median / 1e3,
                  .unit = "ms",
                  .baseline = seen.of(1, &measurement::client_micros).median / 1e3});
}

void measure(settings const& chosen) {
    report rows{"cli"};
    stand all{chosen, rows, "bench_cli"};
    std::string const name = "lockstep run x -- true";
    if (!chosen.wants(name)) throw std::runtime_error("no case has \"" + chosen.only + "\" in its name");
    chosen.progress(name);
    whole_process(all, name);
    chosen.progress("");
    rows.print(chosen);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
    return lockstep::bench::run_bench(argc, argv, "The lockstep command against redis-cli", lockstep::bench::measure);
}
