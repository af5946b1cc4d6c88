#pragma once

// A program started for a measurement: pinned to a core, its output kept, its CPU time known at the end; one that runs for long is told
// what to do by lines on its stdin.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::bench {

struct process_end {
    int code = -1;           ///< what it returned; -1 when a signal ended it
    double cpu_seconds = 0;  ///< user + system
    std::string output;      ///< stdout and stderr
};

/// The destructor kills and reaps it; the kernel kills it when the bench dies.
class process {
public:
    using environment = std::vector<std::pair<std::string, std::string>>;

    /// Throws std::system_error when it can't be started.
    process(std::vector<std::string> const& arguments, int core, environment const& added = {});
    ~process();
    process(process const&) = delete;
    process& operator=(process const&) = delete;

    pid_t pid() const noexcept { return pid_; }
    bool running() noexcept;
    void signal(int number) noexcept;
    process_end wait();  ///< until it ends; reads its output meanwhile

    void tell(std::string_view line);
    /// Its next line, without the end of it. Throws std::runtime_error when it ends, or is silent for 30 s.
    std::string hear();

private:
    pid_t pid_ = -1;
    int input_ = -1;
    int output_ = -1;
    std::string heard_;  // and not yet asked for
};

}  // namespace lockstep::bench
