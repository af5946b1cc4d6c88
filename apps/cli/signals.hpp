#pragma once

// Signals as something to read, so that they are handled between two steps and never in the middle of one.

#include <csignal>
#include <optional>

namespace lockstep::cli {

class signals {
public:
    /// Before any thread is started: blocks what `run` passes on. What was ignored when we were started (nohup) stays ignored.
    signals();
    ~signals();
    signals(signals const&) = delete;
    signals& operator=(signals const&) = delete;

    int descriptor() const noexcept { return descriptor_; }
    /// The next one that came, if any.
    std::optional<int> next() noexcept;
    /// What was blocked before, for the command.
    sigset_t const& before() const noexcept { return before_; }

    /// Lets one through, to this process or to all of its group, with what it does by default: stop, or end.
    static void suffer(int number, bool whole_group) noexcept;

private:
    int descriptor_ = -1;
    sigset_t before_{};
};

}  // namespace lockstep::cli
