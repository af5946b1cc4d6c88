// The private server.
//
// One thread per server forks it and then waits for its end. PR_SET_PDEATHSIG follows the thread that forked, not the process:
// were it the caller's thread, the server would die when that thread ends. The temporary directory's lock and the data
// directory's are inherited by the server, so neither is free before the server is gone, however its owner went.

#include "binary.hpp"
#include "config.hpp"
#include "files.hpp"
#include "probe.hpp"
#include "spawn.hpp"
#include "temporary_directory.hpp"

#include <lockstep/embedded_server.hpp>
#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace lockstep {

using namespace std::chrono_literals;

namespace {

// Signals are for the program's own threads: none may run its handlers in ours.
class signals_blocked {
public:
    signals_blocked() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    signals_blocked(signals_blocked const&) = delete;
    signals_blocked& operator=(signals_blocked const&) = delete;

private:
    sigset_t before_{};
};

std::string how_it_ended(siginfo_t const& info) {
    if (info.si_code == CLD_EXITED) return fmt::format("exited with status {}", info.si_status);
    if (info.si_pid == 0) return "ended";  // the program reaps all its children itself
    return fmt::format("was ended by signal {} ({})", info.si_status, ::strsignal(info.si_status));
}

}  // namespace

class embedded_server::process {
public:
    explicit process(embedded_server_options const& options)
        : socket_{fmt::format("{}/{}", directory_.path(), embedded::socket_name)},
          log_{directory_.path() + "/server.log"}, keeps_data_{!options.data_directory.empty()} {
        if (options.start_timeout <= 0ms) throw invalid_argument_error{"start_timeout must be positive"};
        auto const deadline = std::chrono::steady_clock::now() + options.start_timeout;
        auto const binary = embedded::find_server_binary(options.binary);
        auto const data = keeps_data_ ? lock_data(options.data_directory, deadline) : directory_.path();
        auto const config = directory_.path() + "/server.conf";
        embedded::write_file(config, embedded::config_text({.socket = socket_,
                                                            .directory = data,
                                                            .persistent = keeps_data_,
                                                            .sync_always = options.sync == sync_policy::always,
                                                            .maxmemory = options.maxmemory}));
        embedded::program program{.arguments = {binary, config}, .log_file = log_, .keep = {directory_.lock()}};
        if (keeps_data_) program.keep.push_back(data_lock_.get());
        {
            signals_blocked const inherited_by_the_thread;
            thread_ = std::thread{[this, program = std::move(program)] { run(program); }};
        }
        try {
            wait_until_ready(deadline, options.start_timeout);
        } catch (...) {
            stop();
            throw;
        }
    }

    ~process() { stop(); }
    process(process const&) = delete;
    process& operator=(process const&) = delete;

    bool owned_by_this_process() const noexcept { return owner_ == ::getpid(); }
    std::string const& socket() const noexcept { return socket_; }

    pid_t pid() const {
        std::lock_guard const guard{mutex_};
        return ended_ ? 0 : pid_;
    }

    void stop() noexcept {
        std::lock_guard const one_at_a_time{stop_mutex_};
        if (!thread_.joinable()) return;
        {
            std::unique_lock guard{mutex_};
            stopping_ = true;
            changed_.wait(guard, [this] { return pid_ != 0 || ended_; });
            // The gentle way writes and syncs what the server still holds back; a kill alone may lose the last second.
            if (keeps_data_ && started_) {
                signal(SIGTERM);
                changed_.wait_for(guard, 10s, [this] { return ended_; });
            }
            signal(SIGKILL);
        }
        thread_.join();
        directory_.remove();
        data_lock_.unlock();
    }

private:
    std::string lock_data(std::string const& wanted, embedded::deadline deadline) {
        embedded::require_own_directory(wanted, "the data directory", embedded::links::follow);
        char* const resolved = ::realpath(wanted.c_str(), nullptr);
        std::string data = resolved != nullptr ? resolved : wanted;  // the server is started in another directory
        std::free(resolved);
        // The server of an owner that was killed a moment ago may still be on its way out.
        auto const patience = std::min(deadline, std::chrono::steady_clock::now() + 500ms);
        data_lock_ = embedded::lock_until(data + "/lockstep.lock", embedded::lock_kind::exclusive, patience);
        if (!data_lock_) {
            throw unavailable_error{fmt::format("the data directory {} is in use by another embedded server", data)};
        }
        return data;
    }

    // The thread: forks, then waits for the end.
    void run(embedded::program const& program) {
        pid_t child = 0;
        try {
            child = embedded::spawn_bound(program);
        } catch (...) {
            std::lock_guard const guard{mutex_};
            failure_ = std::current_exception();
            ended_ = true;
            changed_.notify_all();
            return;
        }
        {
            std::lock_guard const guard{mutex_};
            pid_ = child;
            changed_.notify_all();
        }
        siginfo_t info{};
        while (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
        }
        bool unexpected = false;
        {
            // Reaped under the lock: signal() never hits a process that got the same number later.
            std::lock_guard const guard{mutex_};
            ::waitpid(child, nullptr, WNOHANG);
            ended_ = true;
            how_ = how_it_ended(info);
            unexpected = started_ && !stopping_;
            changed_.notify_all();
        }
        if (unexpected) {
            log(log_level::warning,
                fmt::format("the embedded server at {} {}{}", socket_, how_, embedded::last_lines(log_)));
        }
    }

    void wait_until_ready(embedded::deadline deadline, std::chrono::milliseconds timeout) {
        for (auto pause = 1ms;; pause = std::min(pause * 2, 16ms)) {
            auto const left =
                std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
            auto const state = embedded::probe(socket_, left).state;
            std::unique_lock guard{mutex_};
            if (failure_) std::rethrow_exception(failure_);
            if (ended_) {
                throw unavailable_error{
                    fmt::format("the embedded server {} at its start{}", how_, embedded::last_lines(log_))};
            }
            // It may answer before the thread that forked it has written down its number.
            if (state == embedded::answer::alive && pid_ != 0) {
                started_ = true;
                return;
            }
            if (left <= 0ms) {
                auto const why = state == embedded::answer::loading ? "still loads its data" : "does not answer";
                throw unavailable_error{
                    fmt::format("the embedded server {} after {} ms; raise start_timeout if that is to be "
                                "expected{}",
                                why, timeout.count(), embedded::last_lines(log_))};
            }
            changed_.wait_for(guard, pause, [this] { return ended_; });
        }
    }

    void signal(int number) const noexcept {  // with mutex_ held
        if (!ended_) ::kill(pid_, number);
    }

    pid_t const owner_ = ::getpid();
    embedded::temporary_directory directory_;
    std::string const socket_;
    std::string const log_;
    bool const keeps_data_;
    embedded::file_lock data_lock_;

    std::mutex stop_mutex_;
    mutable std::mutex mutex_;  // guards all below but the thread
    std::condition_variable changed_;
    pid_t pid_ = 0;
    bool started_ = false;
    bool stopping_ = false;
    bool ended_ = false;
    std::string how_;
    std::exception_ptr failure_;
    std::thread thread_;
};

embedded_server::embedded_server(embedded_server_options const& options)
    : process_{std::make_unique<process>(options)} {}

embedded_server::~embedded_server() {
    // In a forked child the thread does not exist and the server is the parent's: the copy is left alone.
    if (process_ && !process_->owned_by_this_process()) static_cast<void>(process_.release());
}

embedded_server::embedded_server(embedded_server&&) noexcept = default;

embedded_server& embedded_server::operator=(embedded_server&& other) noexcept {
    if (this == &other) return *this;
    embedded_server const before{std::move(*this)};  // goes the way of the destructor
    process_ = std::move(other.process_);
    return *this;
}

std::string embedded_server::url() const { return process_ ? embedded::socket_url(process_->socket()) : std::string{}; }

pid_t embedded_server::pid() const { return process_ ? process_->pid() : 0; }

bool embedded_server::running() const { return pid() != 0; }

void embedded_server::stop() noexcept {
    if (process_ && process_->owned_by_this_process()) process_->stop();
}

}  // namespace lockstep
