#pragma once

/// From a URL, the options and the environment to where the server is and how to log in.
///
///   redis://[user:password@]host[:port][/db]           rediss:// is the same over TLS
///   unix://[user:password@]/path/to.sock[?db=N]
///   redis+sentinel://[user:password@]h1[:p1],h2[:p2]/master[/db]        rediss+sentinel://
///   redis+cluster://[user:password@]h1[:p1],h2[:p2]                     rediss+cluster://
///   none:                                                               refused: the program is to have no server
///
/// User, password, master, socket path and query values are percent-decoded; IPv6 addresses stand in brackets.
/// Query keys are listed in url_text.hpp; an unknown one is an error, as a misspelt `ca_file` must not go unnoticed.
///
/// Whatever is wrong is an invalid_argument_error that says what is allowed. It quotes no piece of the URL but through
/// `redact_url`: in a malformed URL any piece may be a part of the password.

#include <chrono>
#include <cstdint>
#include <functional>
#include <lockstep/options.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::redis {

struct endpoint {
    std::string host{};      ///< name or address, IPv6 without brackets; empty for a unix socket
    std::uint16_t port = 0;  ///< 0 for a unix socket
    std::string path{};      ///< of the unix socket; empty otherwise
    bool same_user = false;  ///< of the unix socket: only a process of this user may answer there

    friend bool operator==(endpoint const&, endpoint const&) = default;
};

/// For people and logs: "host:port", "[::1]:6379" or the socket's path.
std::string to_string(endpoint const& where);

enum class topology { standalone, sentinel, cluster };

struct location {
    topology kind = topology::standalone;
    bool tls = false;
    bool embedded = false;  ///< nothing is configured: this user's embedded server, `endpoints` is empty
    std::vector<endpoint> endpoints;

    std::string user;
    std::string password;
    std::string password_file;  ///< at most one of the two is set
    int database = 0;

    std::string master_name;  ///< these four for Sentinel only
    std::string sentinel_user;
    std::string sentinel_password;
    std::string sentinel_password_file;

    std::string name;    ///< empty: the program's
    std::string prefix;  ///< `locate` always sets it and the two times; `parse_url` only where the URL does
    tls_options tls_files;
    std::optional<std::chrono::milliseconds> connect_timeout;
    std::optional<std::chrono::milliseconds> command_timeout;
};

location parse_url(std::string_view url);

/// std::getenv or a test's own.
using environment = std::function<char const*(char const* name)>;
char const* process_environment(char const* name);

/// The URL of the options, or of LOCKSTEP_URL, or of REDIS_URL, with the options laid over it: an option that differs from its
/// default wins. The prefix is that of the options, of the URL, or of LOCKSTEP_PREFIX, in this order. Log-in or TLS options without any
/// URL are an error: they mean a server that somebody forgot to name, and the embedded one would quietly take its place.
location locate(client_options const& options, environment const& variables = process_environment);

/// The password to log in with, empty for none. A file is read now, at each call, so that a changed one counts at the next
/// connect; invalid_argument_error with its name and the reason when it can't be read or is empty.
std::string password_of(location const& where);
std::string sentinel_password_of(location const& where);

}  // namespace lockstep::redis
