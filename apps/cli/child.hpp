#pragma once

// The command that `run` runs: found, started in a process group of its own, and given the terminal if there is one.

#include <sys/types.h>

#include <array>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {

/// The file that a command names, looked for in PATH. Throws `failure` with 127 (there is none) or 126 (it can't be executed).
std::string find_program(std::string const& word);

/// The controlling terminal, if there is one.
class terminal {
public:
    terminal();
    ~terminal();
    terminal(terminal const&) = delete;
    terminal& operator=(terminal const&) = delete;

    int descriptor() const noexcept { return descriptor_; }
    bool ours() const noexcept;          ///< our process group is in the foreground
    /// Somebody shares the terminal with us: `lockstep run x -- a | less`. Then it is given away only when the command asks for it.
    bool shared() const noexcept { return shared_; }
    bool given() const noexcept { return given_; }
    void give(pid_t group) noexcept;
    void take_back() noexcept;           ///< if it was given

private:
    int descriptor_ = -1;
    bool shared_ = false;
    bool given_ = false;
};

struct command_line {
    std::string path;
    std::vector<std::string> words;
    std::vector<std::pair<std::string, std::string>> added;  ///< to the environment
    /// False: LOCKSTEP_URL=none: takes the place of the server's URL, and what other secrets Lockstep reads from the environment is left out, too.
    bool knows_server = true;
    std::array<int, 3> streams{-1, -1, -1};                  ///< its standard input, output and error; -1: as ours
};

/// Returns its pid, which is its process group's too, and which it has written to `guard` before it became the command. It is killed when the
/// calling thread ends. `on` may be null: then it has no part in the terminal. Throws `failure`.
pid_t launch(command_line const& what, terminal* on, sigset_t const& mask, int guard);

}  // namespace lockstep::cli
