// A real redis-server for one test: its own directory, its own ports, ready in some 20 ms, gone with the test.
//
//     redis_server server;                                       // on a unix socket
//     redis_server server{{.tcp = true, .password = "secret"}};  // on a port of 127.0.0.1
//     redis_server server{{.tls = certificates.server()}};       // TLS only
//
// LOCKSTEP_TEST_REDIS_SERVER in the environment names another binary, e.g. valkey-server.
#pragma once

#include "child_process.hpp"
#include "clock_file.hpp"
#include "endpoint.hpp"
#include "port_reservation.hpp"
#include "raw_client.hpp"
#include "scratch_dir.hpp"

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::test {

struct server_options {
    bool tcp = false;                // also listen on a TCP port
    std::optional<tls_files> tls{};  // also listen on a TLS port, with this certificate
    bool require_client_certificate = false;
    std::string password{};             // of the default user
    std::vector<std::string> users{};   // ACL rules: "bob on >secret ~* &* +@all", "default off"
    std::vector<std::string> config{};  // further lines of redis.conf, last, so they win
    std::string data_dir{};             // empty: a private one
    bool append_only = false;           // data survives kill9() and restart()
    std::optional<endpoint> replica_of{};
    bool cluster = false;          // with a bus port of its own; implies tcp unless there is TLS
    bool sentinel = false;         // config then holds the monitor lines; implies tcp unless there is TLS
    clock_file* clock = nullptr;   // moves the server's wall clock; must outlive the server
    bool wait_until_ready = true;  // false: call wait_until_ready() before anything else (to start many at once)
};

enum class readiness {
    loaded,     // it answers PING, be it with -NOAUTH
    accepting,  // or with -LOADING: for tests that want to catch it there
};

// A unix socket is always there, for the test's own use; TCP and TLS come on top. command() and connections() may be
// called from any thread, the others from one at a time. Failures of the test's own doing throw std::runtime_error
// with the log.
class redis_server {
public:
    explicit redis_server(server_options options = {});
    ~redis_server();
    redis_server(redis_server const&) = delete;
    redis_server& operator=(redis_server const&) = delete;

    void wait_until_ready(readiness wanted = readiness::loaded);

    // How a client reaches it: by TLS if that is on, else by TCP, else by unix socket.
    [[nodiscard]] std::string url() const;
    [[nodiscard]] std::string url(std::string const& user, std::string const& password) const;
    [[nodiscard]] endpoint address() const;
    [[nodiscard]] std::string socket_path() const { return home_.file("s"); }
    [[nodiscard]] int port() const;  // of TCP, or of TLS where that is the only one
    [[nodiscard]] int tls_port() const { return tls_port_ ? tls_port_->port() : 0; }
    [[nodiscard]] int bus_port() const { return bus_port_ ? bus_port_->port() : 0; }

    // As an administrator, over the unix socket, whatever the password and ACL rules say. must() throws on error
    // replies.
    reply command(std::vector<std::string> const& arguments);
    reply must(std::vector<std::string> const& arguments);
    [[nodiscard]] std::string info(std::string const& field);  // of INFO; empty when it has none such
    [[nodiscard]] int connections();                           // of clients, without the administrator's
    [[nodiscard]] raw_client connect() const { return raw_client{{.unix_path = socket_path()}}; }  // as anybody

    void kill9();     // SIGKILL; returns when it is gone
    void stop();      // SIGSTOP: it keeps its sockets and answers nothing
    void cont();      // SIGCONT
    void shutdown();  // the orderly end; does not save (SAVE first, or append_only)
    // kill9() if needed, then the same ports, directory and configuration as before.
    void restart(readiness wanted = readiness::loaded);

    [[nodiscard]] bool running() { return child_ && child_->running(); }
    [[nodiscard]] bool stopped() const { return stopped_; }
    [[nodiscard]] pid_t pid() const { return child_->pid(); }
    [[nodiscard]] std::string log() const;

private:
    void write_config();
    void reserve_ports();
    void launch();
    [[nodiscard]] bool answers(readiness wanted);
    void forget_administrator();

    scratch_dir home_;
    server_options options_;
    std::optional<port_reservation> tcp_port_;
    std::optional<port_reservation> tls_port_;
    std::optional<port_reservation> bus_port_;
    std::optional<child_process> child_;
    bool stopped_ = false;
    std::mutex administrator_mutex_;
    std::optional<raw_client> administrator_;
};

}  // namespace lockstep::test
