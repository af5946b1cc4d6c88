#include "support/redis_benchmark.hpp"

#include "support/process.hpp"

#include <filesystem>
#include <stdexcept>

namespace lockstep::bench {
namespace {

std::string counting_random() {
    auto const file = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "counting_random.so";
    if (!std::filesystem::exists(file)) throw std::runtime_error("counting_random.so is not beside the bench program");
    return file.string();
}

// The second field of the last line of --csv: "title","requests per second","average latency", ...
double rate_in(std::string const& output) {
    auto const last = output.rfind('\n', output.size() - 2);
    auto const row = output.substr(last == std::string::npos ? 0 : last + 1);
    auto const title_end = row.find("\",\"");
    if (title_end == std::string::npos) throw std::runtime_error("redis-benchmark printed: " + output);
    return std::stod(row.substr(title_end + 3));
}

}  // namespace

measurement run_redis_benchmark(endpoint const& where, int core, redis_benchmark_run const& run) {
    auto const requests = (run.requests + run.depth - 1) / run.depth * run.depth;
    std::vector<std::string> arguments{
        "redis-benchmark", "--csv", "-c", "1", "-P", std::to_string(run.depth), "-n", std::to_string(requests)};
    process::environment environment;
    if (where.path.empty()) {
        arguments.insert(arguments.end(), {"-h", "127.0.0.1", "-p", std::to_string(where.port)});
    } else {
        arguments.insert(arguments.end(), {"-s", where.path});
    }
    if (run.keys != 0) {
        arguments.insert(arguments.end(), {"-r", std::to_string(run.keys)});
        environment.emplace_back("LD_PRELOAD", counting_random());
    }
    arguments.insert(arguments.end(), run.command.begin(), run.command.end());

    process program{arguments, core, environment};
    auto const end = program.wait();
    if (end.code != 0 || end.output.find("rror") != std::string::npos)
        throw std::runtime_error("redis-benchmark failed: " + end.output);
    auto const rate = rate_in(end.output);
    if (!(rate > 0)) throw std::runtime_error("redis-benchmark printed: " + end.output);  // infinite: less than 1 ms
    return {.operations = requests, .seconds = static_cast<double>(requests) / rate, .client_cpu = end.cpu_seconds};
}

}  // namespace lockstep::bench
