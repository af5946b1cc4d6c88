#include "support/peers.hpp"

#include "support/process.hpp"

#include <fmt/core.h>

#include <exception>
#include <filesystem>
#include <system_error>
#include <vector>

namespace lockstep::bench {
namespace {

std::string run_tool(std::vector<std::string> const& words, int core) {
    process tool{words, core};
    auto const end = tool.wait();
    if (end.code != 0) throw std::runtime_error(end.output.substr(0, end.output.find('\n')));
    return end.output;
}

std::string address_of(server const& node) {
    auto const& where = node.where();
    return where.path.empty() ? std::to_string(where.port) : where.path;
}

}  // namespace

bool peer_kit::install(std::string const& folder) try {
    namespace files = std::filesystem;
    directory_ = (files::read_symlink("/proc/self/exe").parent_path().parent_path() / "peers").string();
    if (auto const known = there_.find(folder); known != there_.end()) return known->second;
    there_[folder] = false;
    auto const place = folder.empty() ? directory_ : directory_ + '/' + folder;
    auto const core = stand_.where.client;
    run_tool({"node", "--version"}, core);
    files::path const installed = place + "/node_modules/.package-lock.json";
    // Also when the list of peers has grown since.
    if (!files::exists(installed) || files::last_write_time(installed) < files::last_write_time(place + "/package-lock.json")) {
        stand_.chosen.progress("nothing yet: installing the peers");
        // Not `ci` for the queues: their lock file names no optional packages, which differ by machine and are not needed.
        if (folder.empty()) {
            run_tool({"timeout", "20", "npm", "ci", "--prefix", place, "--no-audit", "--no-fund", "--loglevel=error"}, core);
        } else {
            run_tool({"timeout", "60", "npm", "install", "--prefix", place, "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund",
                      "--loglevel=error"},
                     core);
        }
    }
    return there_[folder] = true;
} catch (std::exception const& problem) {
    why_ = fmt::format("peer not available ({})", problem.what());
    fmt::print(stderr, "{}\n", why_);
    return false;
}

std::unique_ptr<crew> peer_kit::start(std::string const& library, std::vector<server*> const& nodes, int core,
                                      std::string const& script) {
    auto const slash = script.find('/');
    if (!install(slash == std::string::npos ? std::string{} : script.substr(0, slash))) return {};
    std::string all;
    for (auto* const one : nodes) all += (all.empty() ? "" : ",") + address_of(*one);
    return std::make_unique<crew>(std::vector<std::string>{"node", directory_ + '/' + script, library, all}, 1, core);
}

std::optional<peer> peer_kit::best(job what, std::size_t processes, int core, best_by figure) {
    if (!install()) return {};
    auto const address = address_of(stand_.redis);
    // 0 was never the best, and after 100 ms those who starved take seconds to come to an end: not for --quick.
    std::vector<unsigned> delays{1, 10, 0, 100};
    if (stand_.chosen.is_quick()) delays.resize(2);
    if (what.mode == "own") delays.resize(1);  // nobody has to retry
    what.delay_ms = 1;
    std::optional<peer> found;
    double smallest = 0;
    for (auto const* const library : {"redlock", "redis-semaphore"}) {
        auto members = std::make_unique<crew>(
            std::vector<std::string>{"node", directory_ + "/peer.js", library, address}, processes, core);
        members->run(what, std::chrono::milliseconds{100});  // its code gets compiled
        auto mine = peer{library, 0, nullptr};
        bool better = false;
        for (unsigned const delay : delays) {
            what.delay_ms = delay;
            auto const seen = members->run(what, std::chrono::milliseconds{100});
            auto const value = figure == best_by::rate ? seen.micros() : seen.wait_p99_micros();
            if (found || better ? value >= smallest : false) continue;
            smallest = value;
            mine.delay_ms = delay;
            better = true;
        }
        if (!better) continue;
        mine.members = std::move(members);
        found = std::move(mine);
    }
    return found;
}

void measure_cases(settings const& chosen, std::string const& name, std::initializer_list<peer_case> cases) {
    report rows{name};
    stand all{chosen, rows, "bench_" + name};
    peer_kit peers{all};
    for (auto const& one : cases) {
        if (!chosen.wants(one.name)) continue;
        chosen.progress(one.name);
        one.work(all, peers, one.name);
        all.redis.command({"FLUSHALL"});
    }
    chosen.progress("");
    rows.print(chosen);
}

}  // namespace lockstep::bench
