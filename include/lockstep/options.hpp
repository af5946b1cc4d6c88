#pragma once

/// How a client reaches its server. Everything has a default that works; docs/options.md has the table of them.

#include <lockstep/lease_options.hpp>
#include <lockstep/trace.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

/// For `rediss://` and the other TLS forms. The server's chain and host name are always verified.
struct tls_options {
    std::string ca_file{};           ///< PEM file with the authorities to trust; empty: the system's
    std::string certificate_file{};  ///< PEM client certificate (chain), for servers that ask for one
    std::string key_file{};          ///< PEM private key of that certificate
    std::string server_name{};       ///< name to verify and to send as SNI; empty: the host of the URL
    /// Turns verification off, so that anybody on the way can read and change everything. Logs a warning at each start.
    bool dangerously_accept_any_certificate = false;
};

/// Plain data: `client{{.url = "redis://cache.example", .name = "billing"}}`.
struct client_options {
    /// redis://, rediss://, unix://, redis+sentinel://, rediss+sentinel://, redis+cluster://, rediss+cluster:// (docs/urls.md).
    /// Empty: LOCKSTEP_URL, then REDIS_URL, then this user's embedded server.
    std::string url{};
    std::string user{};           ///< overrides the URL's; empty: the server's `default` user
    std::string password{};       ///< overrides the URL's
    std::string password_file{};  ///< file whose content (less a final newline) is the password; read at each connect
    std::string name{};           ///< shown by CLIENT LIST and by monitors; empty: the program's name
    std::string prefix{};         ///< first part of every key Lockstep makes; empty: the URL's, then LOCKSTEP_PREFIX, then "lockstep"
    tls_options tls{};

    std::chrono::milliseconds connect_timeout{2'000};    ///< one attempt: name look-up, connect, TLS, log-in together
    std::chrono::milliseconds command_timeout{10'000};   ///< for a raw command that names none itself
    std::chrono::milliseconds reconnect_min{20};         ///< the first retry is immediate, then from this on, doubled, with jitter
    std::chrono::milliseconds reconnect_max{2'000};
    std::chrono::milliseconds keepalive_interval{3'000};  ///< a PING when nothing was received for so long; 0: none
    std::chrono::milliseconds keepalive_timeout{7'000};   ///< no answer to that for so long: the connection is dead

    std::size_t max_pending = 1'000'000;    ///< requests waiting or in flight per node; more are refused at once
    std::size_t max_batch_bytes = 256 * 1024;  ///< the most that is encoded ahead of the socket
    std::chrono::microseconds batch_delay{0};  ///< wait so long for more requests before a write; 0: never wait
    std::size_t max_reply_bytes = std::size_t{1} << 30;  ///< a larger reply is a protocol error

    /// Go on although the server may evict keys (`maxmemory-policy` other than noeviction): locks can vanish.
    bool allow_eviction = false;

    lease_options defaults{};      ///< for every object of this client that says nothing else (docs/options.md has the table)
    std::size_t pool_size = 100;   ///< how many unused lease and waiter objects are kept, so that steady use allocates nothing

    bool monitoring = true;    ///< say at the server who this is, what it holds and waits for, and what it counted, for monitors
    trace_hook trace{};        ///< called with what happens to leases and waits (<lockstep/trace.hpp>)
    bool record = false;       ///< write that to the flight recorder, a capped stream at the server
    std::size_t record_limit = 100'000;  ///< about how many records it keeps
};

/// The URL as it may be shown: user kept, password and secrets in the query replaced by `***`. Never throws on a bad URL.
std::string redact_url(std::string_view url);

}  // namespace lockstep
