// The shared server: one per user and machine, started by whoever comes first.
//
// Two locks. The *directory's* (beside the socket): shared while a program looks whether the server lives, exclusive while one
// starts it or the supervisor ends it. So nobody is told of a server that is about to go. The *data directory's*: held by the
// server process itself. So there is never a second server on the same data, even where programs disagree on the directory (a
// session has XDG_RUNTIME_DIR, a service has none): the second one follows the record in the data directory to the first's socket.

#include "binary.hpp"
#include "config.hpp"
#include "files.hpp"
#include "probe.hpp"
#include "shared_places.hpp"
#include "spawn.hpp"
#include "supervise_script.hpp"

#include <lockstep/embedded_server.hpp>
#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {

using namespace std::chrono_literals;

namespace embedded {
namespace {

std::chrono::milliseconds left_until(deadline end) {
    return std::chrono::ceil<std::chrono::milliseconds>(std::max(end - std::chrono::steady_clock::now(), 0ns));
}

file_lock lock_directory(shared_place const& place, lock_kind kind, deadline end) {
    auto lock = lock_until(place.lock(), kind, end);
    if (!lock) {
        throw unavailable_error{
            fmt::format("another program holds {} for too long: it starts or stops the server", place.lock())};
    }
    return lock;
}

[[noreturn]] void throw_silent(std::string const& socket, pid_t pid, answer state) {
    throw unavailable_error{fmt::format("this user's embedded server at {} (process {}) {}", socket, pid,
                                        state == answer::loading ? "still loads its data" : "does not answer")};
}

// Whether a server answers at `socket`. One that loads its data is waited for.
bool answers(std::string const& socket, deadline end) {
    while (true) {
        auto const [state, pid] = probe(socket, left_until(end));
        if (state == answer::alive) return true;
        if (state == answer::nobody) return false;
        if (state == answer::silent || left_until(end) == 0ms) throw_silent(socket, pid, state);
        std::this_thread::sleep_for(5ms);
    }
}

// The common case. True: a server answers, and will not end by itself before its idle time has passed again.
bool use_running(shared_place const& place, deadline end) {
    auto const lock = lock_directory(place, lock_kind::shared, end);
    if (!answers(place.socket(), end)) return false;
    lock.touch();
    return true;
}

// The supervisor gets a small environment: what the first program has in its own is not for a process that stays.
std::vector<std::string> supervisor_environment() {
    std::vector<std::string> environment;
    for (auto const* const name : {"HOME", "TZ", "LD_LIBRARY_PATH"}) {
        if (auto const* const value = std::getenv(name)) environment.push_back(fmt::format("{}={}", name, value));
    }
    auto const* const path = std::getenv("PATH");
    environment.push_back(
        fmt::format("PATH={}{}/usr/bin:/bin", path != nullptr ? path : "", path != nullptr ? ":" : ""));
    return environment;
}

// Starts the supervisor, which starts the server. With both locks held.
void launch(shared_place const& place, std::string const& data, file_lock& data_lock,
            shared_server_options const& options) {
    auto const binary = find_server_binary(options.binary);
    write_file(place.config(), config_text({.socket = place.socket(), .directory = data, .persistent = true}));
    write_file(place.script(), supervise_script);
    write_file(place.data_record(), data);
    write_file(socket_record_in(data), place.socket());
    // Ten looks per idle time, but at least one in 15 s, so that the end comes soon after the last touch plus the idle time.
    auto const idle = idle_time(options);
    auto const interval = std::clamp(idle / 10, 10ms, 15'000ms);
    auto const rounds = idle == 0ms ? 0 : std::max<std::int64_t>(1, idle / interval);
    spawn_detached(
        {.arguments = {"/bin/sh", place.script(), binary, place.directory,
                       fmt::format("{:.3f}", static_cast<double>(interval.count()) / 1000), std::to_string(rounds)},
         .log_file = place.log(),
         .keep = {data_lock.get()},
         .environment = supervisor_environment()});
    data_lock.hand_over();
}

// The server is nobody's child here: that it died shows in its data directory's lock being free.
void wait_until_ready(shared_place const& place, std::string const& data, deadline end) {
    for (auto pause = 1ms;; pause = std::min(pause * 2, 16ms)) {
        if (answers(place.socket(), end)) return;
        bool const gone = static_cast<bool>(try_lock(data_lock_in(data), lock_kind::exclusive));
        if (gone || left_until(end) == 0ms) {
            throw unavailable_error{fmt::format("this user's embedded server in {} {}{}", place.directory,
                                                gone ? "ended at its start" : "does not answer in time",
                                                last_lines(place.log()))};
        }
        std::this_thread::sleep_for(pause);
    }
}

// The one that another directory's programs started on the same data, if it answers.
std::optional<shared_place> recorded_elsewhere(std::string const& data, shared_place const& here, deadline end) {
    auto const socket = read_file(socket_record_in(data));
    auto const slash = socket.rfind('/');
    if (slash == std::string::npos || socket == here.socket()) return std::nullopt;
    shared_place there{.directory = socket.substr(0, slash)};
    if (!is_private_directory(there.directory) || !use_running(there, end)) return std::nullopt;
    return there;
}

// Returns where a server answers now: here, or where the data's present holder is.
shared_place start_or_follow(shared_place const& place, shared_server_options const& options, deadline end) {
    auto const lock = lock_directory(place, lock_kind::exclusive, end);
    auto const data = make_data_directory(place);
    while (true) {
        // Again with the lock: someone may have been faster, or been killed while the server was starting.
        if (answers(place.socket(), end)) break;
        if (auto data_lock = try_lock(data_lock_in(data), lock_kind::exclusive)) {
            launch(place, data, data_lock, options);
            wait_until_ready(place, data, end);
            break;
        }
        if (auto there = recorded_elsewhere(data, place, end)) return *there;
        if (left_until(end) == 0ms) {
            throw unavailable_error{
                fmt::format("the data directory {} is in use by a server that does not answer at {}", data,
                            read_file(socket_record_in(data)))};
        }
        std::this_thread::sleep_for(5ms);
    }
    lock.touch();
    return place;
}

void announce_once(std::string const& socket) {
    static std::atomic_flag said;
    if (said.test_and_set()) return;
    log(log_level::warning,
        fmt::format("using this user's embedded server at {}: this machine only; set LOCKSTEP_URL to share "
                    "with other machines",
                    socket));
}

// The place whose server is running, following the record as ensure_shared_server does, but starting and making nothing.
shared_place find_running(shared_place const& here, deadline end) {
    if (!is_own_directory(here.directory) || probe(here.socket(), left_until(end)).state != answer::nobody) return here;
    auto const data = likely_data_directory(here);
    return is_own_directory(data) ? recorded_elsewhere(data, here, end).value_or(here) : here;
}

std::string data_directory_of(shared_place const& place) {
    auto recorded = read_file(place.data_record());
    return recorded.empty() ? likely_data_directory(place) : recorded;
}

// The supervisor, its sleep and the server at once, so that nothing lingers; the server alone where it has been orphaned.
void signal_all(pid_t server, int number) {
    auto const group = ::getpgid(server);
    bool const supervised = group > 1 && group != ::getpgrp() && group == ::getsid(server);
    ::kill(supervised ? -group : server, number);
}

}  // namespace
}  // namespace embedded

std::string ensure_shared_server(shared_server_options const& options) {
    if (options.start_timeout <= 0ms) throw invalid_argument_error{"start_timeout must be positive"};
    auto const end = std::chrono::steady_clock::now() + options.start_timeout;
    auto place = embedded::find_shared_place(options);
    embedded::require_own_directory(place.directory, "the embedded server's directory", embedded::links::refuse);
    if (!embedded::use_running(place, end)) place = embedded::start_or_follow(place, options, end);
    if (options.announce) embedded::announce_once(place.socket());
    return embedded::socket_url(place.socket());
}

shared_server_state shared_server_status(shared_server_options const& options) {
    auto const end = std::chrono::steady_clock::now() + options.start_timeout;
    auto const place = embedded::find_running(embedded::find_shared_place(options), end);
    auto const [state, pid] = embedded::probe(place.socket(), embedded::left_until(end));
    shared_server_state result{.running = state != embedded::answer::nobody,
                               .socket = place.socket(),
                               .data_directory = embedded::data_directory_of(place)};
    struct stat info {};
    if (result.running && ::stat(place.socket().c_str(), &info) == 0) {
        result.pid = pid;
        result.since = std::chrono::system_clock::from_time_t(info.st_mtime);  // made when the server started
    }
    return result;
}

bool stop_shared_server(shared_server_options const& options) {
    auto const end = std::chrono::steady_clock::now() + options.start_timeout;
    auto const here = embedded::find_shared_place(options);
    auto const place = embedded::find_running(here, end);
    if (!embedded::is_own_directory(place.directory)) return false;
    auto const lock = embedded::lock_directory(place, embedded::lock_kind::exclusive, end);
    auto const [state, pid] = embedded::probe(place.socket(), 1s);
    if (state == embedded::answer::nobody) return false;
    // 0 for a process of another pid namespace; as a target it would be this program's own group.
    if (pid <= 0) throw unavailable_error{fmt::format("the process behind {} is not visible from here (another container?)", place.socket())};
    embedded::signal_all(pid, SIGTERM);
    // Its data's lock is free when it is gone. Killing it in the end loses at most what a slow disk held back.
    auto const data_lock = embedded::data_lock_in(embedded::data_directory_of(place));
    if (embedded::lock_until(data_lock, embedded::lock_kind::exclusive, end)) return true;
    ::kill(pid, SIGKILL);
    return static_cast<bool>(
        embedded::lock_until(data_lock, embedded::lock_kind::exclusive, std::chrono::steady_clock::now() + 5s));
}

}  // namespace lockstep
