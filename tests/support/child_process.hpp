// A program under the test's control: started, watched, paused, killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

struct child_options {
    std::vector<std::pair<std::string, std::string>> environment{};  // added to what this process has
    std::filesystem::path output_file{};  // takes stdout and stderr (appended); empty: read_line() reads them
    bool capture_stderr = true;           // false: stderr goes where the test's own goes
};

struct exit_status {
    int code = -1;   // what the program returned, -1 when a signal ended it
    int signal = 0;  // the signal that ended it, or 0
};

// Owns one process: the destructor kills and reaps it, and the kernel kills it when the test process dies, be it by
// SIGKILL (see spawner.hpp). It may be started from any thread and outlives that thread. One thread at a time.
class child_process {
public:
    // Returns when the program runs; throws std::system_error when it can't be executed.
    explicit child_process(std::vector<std::string> arguments, child_options const& options = {});
    ~child_process();
    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&& other) noexcept;

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] bool running();

    void kill(int signal = SIGKILL);
    void stop();  // SIGSTOP; returns when the process has stopped
    void cont();  // SIGCONT
    [[nodiscard]] std::optional<exit_status> wait(std::chrono::milliseconds timeout = std::chrono::seconds{10});

    // The next line without its end; nothing when none came in time or the program closed its output.
    [[nodiscard]] std::optional<std::string> read_line(std::chrono::milliseconds timeout = std::chrono::seconds{10});
    // To the program's stdin; false when it no longer reads. close_input() is its end of file.
    bool write_line(std::string const& line);
    void close_input();

private:
    void release() noexcept;

    pid_t pid_ = -1;
    int input_ = -1;
    int output_ = -1;
    std::string unread_;
    std::optional<exit_status> ended_;
};

// Whether a process lives; a zombie that its new parent has not reaped yet does not.
[[nodiscard]] bool process_alive(pid_t pid);

}  // namespace lockstep::test
