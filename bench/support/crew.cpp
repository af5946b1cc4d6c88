#include "support/crew.hpp"

#include "support/cpu.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace lockstep::bench {

crew::crew(std::vector<std::string> const& command, std::size_t size, int core) {
    for (std::size_t i = 0; i != size; ++i) members_.push_back(std::make_unique<process>(command, core));
    for (auto const& one : members_)
        if (auto const said = one->hear(); said != "ready") throw std::runtime_error(command.front() + ": " + said);
}

measurement crew::run(job const& what, std::chrono::milliseconds length) {
    // Time enough for all to read their line, on one core.
    auto const start = wall_seconds() * 1e3 + 10 + 2 * static_cast<double>(size());
    for (auto const& one : members_)
        one->tell(fmt::format("{} {} {} {:.3f} {}", what.mode, what.delay_ms, what.contenders, start, length.count()));
    measurement sum{.client_cpu = -cpu_seconds(), .contenders = size() * what.contenders};
    sum.fewest = static_cast<std::size_t>(-1);
    std::vector<double> waits;
    for (auto const& one : members_) {
        auto const line = one->hear();
        std::istringstream words{line};
        std::size_t count = 0;
        std::size_t fewest = 0;
        std::size_t most = 0;
        double seconds = 0;
        if (!(words >> count >> seconds >> fewest >> most)) throw std::runtime_error("a contender said: " + line);
        sum.operations += count;
        sum.seconds = std::max(sum.seconds, seconds);
        sum.fewest = std::min(sum.fewest, fewest);
        sum.most = std::max(sum.most, most);
        for (double wait = 0; words >> wait;) waits.push_back(wait * 1e-6);
    }
    sum.client_cpu += cpu_seconds();
    if (waits.empty()) throw std::runtime_error("nobody acquired anything");
    sum.operations =
        std::max<std::size_t>(sum.operations, 1);  // a peer may need longer than the time for its first one
    auto const rank = waits.begin() + static_cast<std::ptrdiff_t>((waits.size() - 1) * 99 / 100);
    std::nth_element(waits.begin(), rank, waits.end());
    sum.wait_p99 = *rank;
    return sum;
}

double crew::cpu_seconds() const {
    double sum = 0;
    for (auto const& one : members_) sum += process_cpu_seconds(one->pid());
    return sum;
}

void serve_crew(std::function<outcome(assignment const&)> const& run) {
    fmt::print("ready\n");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words{line};
        assignment what;
        unsigned delay = 0;
        double start = 0;
        double length = 0;
        if (!(words >> what.mode >> delay >> what.contenders >> start >> length))
            throw std::runtime_error("told: " + line);
        what.end = (start + length) * 1e-3;
        std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.0, start * 1e-3 - wall_seconds())));
        auto const seen = run(what);
        auto const [fewest, most] = std::minmax_element(seen.counts.begin(), seen.counts.end());
        auto text = fmt::format("{} {} {} {}", seen.waits.size(), seen.seconds, *fewest, *most);
        for (auto const wait : seen.waits) text += fmt::format(" {:.0f}", wait * 1e6);
        fmt::print("{}\n", text);
        std::fflush(stdout);
    }
}

void serve_turns(std::function<std::vector<turn>(std::size_t)> const& run) {
    fmt::print("ready\n");
    std::fflush(stdout);
    for (std::size_t times = 0; std::cin >> times;) {
        std::string text;
        for (auto const& one : run(times)) text += fmt::format("{:.7f} {:.7f} ", one.acquired, one.released);
        fmt::print("{}\n", text);
        std::fflush(stdout);
    }
}

}  // namespace lockstep::bench
