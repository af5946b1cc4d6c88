#pragma once

// A redis-server of the bench's own: pinned, without persistence, on the loopback interface and on a unix socket.

#include "support/process.hpp"
#include "support/raw_connection.hpp"

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::bench {

/// What the server counted, per command; what scripts call is counted too.
using command_counts = std::map<std::string, std::uint64_t>;

class server {
public:
    server(int core, bool by_unix_socket);
    ~server();
    server(server const&) = delete;
    server& operator=(server const&) = delete;

    endpoint const& where() const noexcept { return where_; }
    std::string url() const;

    std::string command(std::initializer_list<std::string_view> words) { return administrator_->command(words); }
    /// Commands run so far, without those that the bench and redis-benchmark use to look around.
    command_counts counts();
    std::size_t connections_named(std::string_view name);

    double cpu_seconds() const;
    void pause() noexcept;   ///< SIGSTOP: it keeps its sockets and answers nothing
    void resume() noexcept;  ///< SIGCONT

private:
    bool start(int core, bool by_unix_socket);
    bool answers();

    std::filesystem::path home_;
    endpoint where_;
    std::unique_ptr<process> process_;
    std::unique_ptr<raw_connection> administrator_;
};

}  // namespace lockstep::bench
