#pragma once

/// A Redis or Valkey server of one's own, with no configuration and no port.
///
/// Two forms. `embedded_server` is private: it lives and dies with the object (tests, a single program). The *shared* server is
/// one per user and machine: what `client{}` uses when no URL is configured, so that separate programs coordinate at once.
///
/// Both run the machine's own redis-server or valkey-server on a unix socket in a directory only this user can enter. They
/// never listen on TCP and never evict keys. Both are for one machine: a fleet sets LOCKSTEP_URL. Linux only.
///
/// The binary: the option `binary`, then LOCKSTEP_SERVER_BINARY, then redis-server or valkey-server in PATH and in /usr/bin,
/// /usr/sbin, /usr/local/bin, /usr/local/sbin.
///
/// @throws unavailable_error       no binary was found (the message names the packages), the server does not start (the
///                                 message has its last log lines), a data directory is in use
/// @throws invalid_argument_error  an option or variable that can't be used: no such binary, a directory that others can
///                                 write to or that isn't ours, a path too long for a unix socket
///
///     lockstep::embedded_server server;                                  // gone with this object
///     lockstep::client          client{server.url()};

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace lockstep {

/// When an acknowledged write is safe from a power failure or a killed server. An orderly end loses nothing in either.
enum class sync_policy {
    every_second,  ///< up to about one second of writes may be lost, two where the disk is slow
    always,        ///< none; each write waits for the disk
};

/// Plain data: `embedded_server{{.data_directory = "/var/lib/billing"}}`.
struct embedded_server_options {
    std::string binary{};                          ///< path or name of the server; empty: found as said above
    std::string data_directory{};                  ///< kept here, in an append-only file; empty: nothing is kept
    sync_policy sync = sync_policy::every_second;  ///< only with a data directory
    std::size_t maxmemory = 0;                     ///< bytes; beyond it writes are refused, never evicted; 0: no limit
    std::chrono::milliseconds start_timeout{10'000};  ///< includes loading the data
};

/// A private server.
///
/// Taken down by `stop()`, the destructor, and the kernel when this process ends in any other way, SIGKILL included. It may be
/// made in one thread and used in others, whichever ends first. A data directory has one owner at a time. Ctrl-C on the terminal
/// does not reach the server before the program. What a killed program left in the temporary directory, the next start removes.
///
/// Should the server end by itself, a warning is logged and `running()` turns false; it is not started again.
/// After a fork() without exec, the child's copy does nothing: the server stays the parent's.
///
/// Threads: everything but moving and destroying may be called from any thread at any time.
class embedded_server {
public:
    /// Returns once the server answers.
    explicit embedded_server(embedded_server_options const& options = {});
    ~embedded_server();
    embedded_server(embedded_server&&) noexcept;
    embedded_server& operator=(embedded_server&&) noexcept;

    /// "unix:///tmp/lockstep-server-x7Gq2k/redis.sock", with unusual bytes percent-encoded. Stays the same after `stop()`.
    [[nodiscard]] std::string url() const;
    /// The server's process, 0 when it no longer runs.
    [[nodiscard]] pid_t pid() const;
    [[nodiscard]] bool running() const;

    /// Returns when the server is gone, its data (if kept) written and its temporary directory removed. Again: does nothing.
    void stop() noexcept;

private:
    class process;
    std::unique_ptr<process> process_;
};

/// The shared server's directory: `directory`, LOCKSTEP_EMBEDDED_DIR, $XDG_RUNTIME_DIR/lockstep, /run/user/<uid>/lockstep,
/// /tmp/lockstep-<uid>: the first that is given or usable. Programs that use the same one share one server.
struct shared_server_options {
    std::string binary{};     ///< as above; the one that starts the server decides
    std::string directory{};  ///< absolute; empty: found as said above
    /// Ends after so long without a connection; 0: never. Not given: LOCKSTEP_EMBEDDED_IDLE (seconds), or 15 minutes. The one
    /// that starts the server decides.
    std::optional<std::chrono::milliseconds> idle{};
    std::chrono::milliseconds start_timeout{10'000};  ///< for all of a call, waiting for others included
    bool announce = true;  ///< the first time in this process, log a warning that this is for one machine only
};

/// Returns the URL of this user's shared server, which answered just now; starts it if need be.
///
/// However many programs call this at once, one server runs. It outlives the program that started it and keeps its data (in
/// $XDG_STATE_HOME/lockstep or ~/.local/state/lockstep; beside the socket where `directory` or LOCKSTEP_EMBEDDED_DIR is given).
/// Connect within the idle time: until then it will not end by itself. Call again before each reconnect: cheap while it runs
/// (one PING), and starts it again with its data where it has ended. No acknowledged write is lost by its ending.
///
/// Threads: any, also at the same time. Blocks up to `start_timeout`. A program run by a service manager that ends all of a
/// service's processes takes the server with it; the next call starts it again.
std::string ensure_shared_server(shared_server_options const& options = {});

/// What `lockstep server status` shows. Where nothing runs, `running` is false and `socket` is where it would be.
struct shared_server_state {
    bool running = false;
    pid_t pid = 0;
    std::string socket;
    std::string data_directory;
    std::chrono::system_clock::time_point since{};  ///< when it was started; only while it runs
};

/// Looks; starts and makes nothing.
shared_server_state shared_server_status(shared_server_options const& options = {});

/// Ends the shared server and returns when it is gone, whoever is connected; false when none ran. Data stays.
bool stop_shared_server(shared_server_options const& options = {});

}  // namespace lockstep
