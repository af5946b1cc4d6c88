// Locks against bare Redis commands, raw loops over the same scripts, and lock libraries of Node. docs/bench.md says how to read it.
//
// To add a case: a function in sync/ that takes the `stand` and adds rows, its name in sync/cases.hpp, and a line in `measure`.

#include "support/settings.hpp"
#include "sync/cases.hpp"
#include "sync/members.hpp"

#include <fmt/core.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace lockstep::bench {
namespace {

void measure(settings const& wanted) {
    auto chosen = wanted;
    if (chosen.is_quick())
        chosen.most_per_case = std::chrono::seconds{2};  // there are many cases, and processes to start
    report rows{"sync"};
    stand all{chosen, rows, "bench_sync"};
    peer_kit peers{all};
    auto const run = [&](std::string const& name, auto const& work) {
        if (!chosen.wants(name)) return;
        chosen.progress(name);
        work(name);
        all.redis.command({"FLUSHALL"});
    };
    for (std::size_t const contenders : {8UL, 64UL}) {
        run(fmt::format("contended, {} in one process", contenders),
            [&](auto& name) { contended_in_one_process(all, peers, name, contenders); });
    }
    run("contended, 8 processes", [&](auto& name) { contended_between_processes(all, peers, name); });
    run("uncontended, 64 at once", [&](auto& name) { uncontended_many(all, peers, name); });
    run("uncontended, one at a time", [&](auto& name) { uncontended_one_at_a_time(all, name); });
    run("10000 waiters, 100 names", [&](auto& name) { many_waiters(all, name); });
    run("hand-off", [&](auto& name) { hand_off(all, name); });
    run("delay", [&](auto& name) { deaths(all, name); });
    chosen.progress("");
    rows.print(chosen);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
    if (int const code = lockstep::bench::run_as_member(argc, argv); code >= 0) return code;
    return lockstep::bench::run_bench(argc, argv,
                                      "Lockstep's locks against bare Redis commands and lock libraries of Node",
                                      lockstep::bench::measure);
}
