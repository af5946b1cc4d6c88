// The dashboard's server: the page, what the page asks for, and the stream of what changes. HTTP/1.1, for one browser or a few.
//
//     lockstep::dashboard::monitor_backend backend{client};
//     lockstep::dashboard::server server{backend, {.port = 0, .token = lockstep::dashboard::random_secret()}};
//     std::cout << server.login_link(std::chrono::minutes{2}) << '\n';
//
// Who may see it: whoever has the token; without one everybody who reaches 127.0.0.1. What else is refused, and why: guard.hpp. It reads
// nothing from Redis while nobody looks.
#pragma once

#include "dashboard/backend.hpp"
#include "dashboard/login_throttle.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::dashboard {

inline constexpr std::uint16_t usual_port = 7717;

struct server_options {
    std::string address = "127.0.0.1";         // an IP address, or localhost
    std::uint16_t port = usual_port;           // 0: one that is free
    std::string token{};                       // needed for any address but loopback, and for actions; weak ones are refused
    std::string metrics_token{};               // for /metrics alone; another one than `token`
    std::string certificate_file{}, key_file{};  // PEM, for TLS; both or neither
    std::vector<std::string> allowed_hosts{};  // names this server is reached by, beside localhost and its address
    bool allow_actions = false;                // on holds and jobs; otherwise it only shows
    std::string by{};                          // who the audit says it was; empty: user@host of this process
    std::size_t max_connections = 256;         // beyond that idle ones make room
    std::size_t max_untrusted_per_network = 16;  // connections of one client that has not logged in
    std::size_t max_streams = 64;              // of these, pages that are kept up to date
    std::uint32_t max_header_bytes = 16 * 1024;
    std::uint64_t max_body_bytes = 16 * 1024;
    std::chrono::milliseconds first_byte_timeout{2'000};  // of a new connection
    std::chrono::milliseconds request_timeout{10'000};  // for a whole request to arrive
    std::chrono::milliseconds write_timeout{15'000};    // for a peer to take what it is sent
    login_delays delays{};                              // after wrong tokens
};

class server {
public:
    // Listens when it returns. Throws invalid_argument_error (options that make no sense, or are not safe) and unavailable_error (the
    // address can't be had). The backend must outlive it.
    server(backend& from, server_options options);
    ~server();
    server(server const&) = delete;
    server& operator=(server const&) = delete;

    [[nodiscard]] std::string url() const;
    // The URL with a code behind the # that logs in once, within `lifetime`. Without a token the URL alone.
    [[nodiscard]] std::string login_link(std::chrono::milliseconds lifetime);
    // What makes it less safe than it could be, for people; a sentence each.
    [[nodiscard]] std::vector<std::string> warnings() const;
    [[nodiscard]] std::uint16_t port() const;
    // Ends the streams, and answers nothing any more; what else is connected ends with this object. Idempotent.
    void stop() noexcept;

    struct parts;

private:
    std::unique_ptr<parts> parts_;
};

}  // namespace lockstep::dashboard
