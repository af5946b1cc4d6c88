#include "redis/url.hpp"

#include <fmt/format.h>
#include <sys/un.h>
#include <lockstep/error.hpp>

#include <algorithm>
#include <utility>

#include "redis/url_parser.hpp"
#include "redis/url_text.hpp"

namespace lockstep::redis {
namespace {

using namespace url_text;

constexpr std::uint16_t server_port = 6379;
constexpr std::uint16_t sentinel_port = 26379;
constexpr int max_database = 999'999'999;
constexpr int max_timeout_ms = 86'400'000;
constexpr std::size_t max_socket_path = sizeof(sockaddr_un::sun_path) - 1;

int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool has_control(std::string_view text) {
    return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

class parser {
public:
    parser(std::string_view url, url_source const& source) : url_(url), source_(source) {}

    location parse() {
        if (url_ == no_server) refuse_to_connect();
        auto const opened = open(url_);
        if (!opened) refuse_scheme();
        how_ = opened->how;
        out_.kind = how_.kind;
        out_.tls = how_.tls;
        auto place = opened->rest;
        if (place.find('#') != std::string_view::npos)
            fail("it has a '#', which is written %23 in a password or a name");
        auto const query_at = place.find('?');
        auto const query = query_at == std::string_view::npos ? std::string_view{} : place.substr(query_at + 1);
        place = place.substr(0, query_at);

        auto const authority = place.substr(0, place.find('/'));
        auto const path = place.substr(authority.size());
        auto const at = authority.rfind('@');
        bool const has_login = at != std::string_view::npos;
        if (has_login) take_login(authority.substr(0, at));
        take_hosts(has_login ? authority.substr(at + 1) : authority, path);
        take_path(path);
        take_query(query);
        check();
        return std::move(out_);
    }

private:
    [[noreturn]] void fail(std::string_view what) const {
        throw invalid_argument_error(fmt::format("{}: {}; it is {}", source_.name, what, redact_url(url_)));
    }

    [[noreturn]] void refuse_to_connect() const {
        throw invalid_argument_error(
            fmt::format("{} is {}, so this program may use no server, nor start one of its own: `lockstep worker` sets that for the commands of jobs, which are not "
                        "told the server's URL and password; start the worker with --pass-url, or give this program a URL (the command: --redis URL)",
                        source_.name, no_server));
    }

    [[noreturn]] void refuse_scheme() const {
        if (auto const guess = guess_url(url_); !guess.empty()) {
            throw invalid_argument_error(fmt::format("{}: {} has no scheme; did you mean {}?", source_.name, url_, guess));
        }
        fail(fmt::format("its scheme is not one of {}, as in redis://host:6379", schemes_in_words));
    }

    std::string decode(std::string_view text, std::string_view what, bool any_byte = false) const {
        std::string decoded;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '%') {
                decoded += text[i];
                continue;
            }
            int const high = text.size() - i > 2 ? hex_digit(text[i + 1]) : -1;
            int const low = text.size() - i > 2 ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                fail(fmt::format("in {} a % is not followed by two hexadecimal digits (% is %25)", what));
            decoded += static_cast<char>(high * 16 + low);
            i += 2;
        }
        if (!any_byte && has_control(decoded)) fail(fmt::format("{} may not contain control characters", what));
        return decoded;
    }

    void take_login(std::string_view login) {
        auto const colon = login.find(':');
        out_.user = decode(login.substr(0, colon), "the user");
        user_alone_ = colon == std::string_view::npos;
        if (!user_alone_) out_.password = decode(login.substr(colon + 1), "the password", true);
    }

    void take_hosts(std::string_view hosts, std::string_view path) {
        if (how_.unix_socket) {
            if (!hosts.empty() || path.size() < 2) fail("a socket is written unix:///path/to.sock (three slashes)");
            auto socket = decode(path, "the path");
            if (socket.size() > max_socket_path)
                fail(fmt::format("the socket's path has more than {} bytes", max_socket_path));
            out_.endpoints.push_back({.host = {}, .port = 0, .path = std::move(socket)});
            return;
        }
        if (hosts.empty()) fail("the host is missing, as in redis://host:6379");
        bool more = true;
        while (more) {
            more = hosts.find(',') != std::string_view::npos;
            auto const found = split_host(take_until(hosts, ','));
            if (!found) {
                fail(
                    "a host is written host, host:port with a port of 1 to 65535, or [IPv6]:port; in a password "
                    "/ ? # @ : and % are written %2F %3F %23 %40 %3A and %25");
            }
            auto const usual = out_.kind == topology::sentinel ? sentinel_port : server_port;
            out_.endpoints.push_back({std::string{found->host}, found->port != 0 ? found->port : usual, {}});
        }
        if (out_.kind == topology::standalone && out_.endpoints.size() > 1) {
            fail("redis:// takes one host; several belong to redis+sentinel:// or redis+cluster://");
        }
    }

    void take_path(std::string_view path) {
        if (how_.unix_socket) return;
        if (!path.empty()) path.remove_prefix(1);
        if (out_.kind == topology::sentinel) {
            out_.master_name = decode(take_until(path, '/'), "the master's name");
            if (out_.master_name.empty())
                fail("the master's name is missing, as in redis+sentinel://host:26379/mymaster");
        }
        if (!path.empty()) take_database(path);
    }

    void take_database(std::string_view digits) {
        if (has_database_) fail("the database is given twice, in the path and as db");
        has_database_ = true;
        auto const database = number(digits, max_database);
        if (!database) fail(fmt::format("the database is a number from 0 to {}", max_database));
        out_.database = *database;
    }

    std::chrono::milliseconds timeout(std::string_view digits, std::string_view key) const {
        auto const ms = number(digits, max_timeout_ms);
        if (!ms || *ms == 0) fail(fmt::format("{} is a number from 1 to {}", key, max_timeout_ms));
        return std::chrono::milliseconds{*ms};
    }

    void take_query(std::string_view query) {
        std::vector<std::string_view> seen;
        while (!query.empty()) {
            auto const part = take_until(query, '&');
            auto const key = part.substr(0, part.find('='));
            // Not named here: it may be the tail of a password with an `&` in it. redact_url names it where that is safe.
            if (key.size() == part.size() || !is_query_key(key)) {
                fail(fmt::format("a part of its query is not key=value with one of the keys {}", query_keys_in_words));
            }
            if (std::ranges::find(seen, key) != seen.end()) fail(fmt::format("its query has {} twice", key));
            seen.push_back(key);
            take_option(key, part.substr(key.size() + 1));
        }
    }

    void take_option(std::string_view key, std::string_view raw) {
        auto const value = decode(raw, key, key == "sentinel_password");
        if (value.empty()) fail(fmt::format("{} has no value", key));
        if (key.starts_with("sentinel_") && out_.kind != topology::sentinel) {
            fail(fmt::format("{} belongs to redis+sentinel:// and rediss+sentinel:// only", key));
        }
        if (key == "db") take_database(value);
        if (key == "name") out_.name = value;
        if (key == "password_file") out_.password_file = value;
        if (key == "ca_file") out_.tls_files.ca_file = value;
        if (key == "cert_file") out_.tls_files.certificate_file = value;
        if (key == "key_file") out_.tls_files.key_file = value;
        if (key == "server_name") out_.tls_files.server_name = value;
        if (key == "prefix") out_.prefix = value;
        if (key == "connect_timeout_ms") out_.connect_timeout = timeout(value, key);
        if (key == "command_timeout_ms") out_.command_timeout = timeout(value, key);
        if (key == "sentinel_user") out_.sentinel_user = value;
        if (key == "sentinel_password") out_.sentinel_password = value;
        if (key == "sentinel_password_file") out_.sentinel_password_file = value;
    }

    void check() const {
        if (user_alone_ && out_.password_file.empty() && !source_.password_follows) {
            fail(
                "it has a user without a password; write user:password@, :password@ for the default user, "
                "user:@ for a user that needs none, or add password_file");
        }
        if (!out_.password.empty() && !out_.password_file.empty())
            fail("it has a password and a password_file; give one");
        if (!out_.sentinel_password.empty() && !out_.sentinel_password_file.empty()) {
            fail("it has a sentinel_password and a sentinel_password_file; give one");
        }
        if (!out_.sentinel_user.empty() && out_.sentinel_password.empty() && out_.sentinel_password_file.empty()) {
            fail("it has a sentinel_user without sentinel_password or sentinel_password_file");
        }
        if (out_.kind == topology::cluster && out_.database != 0) fail("a Cluster has no database but 0");
    }

    std::string_view url_;
    url_source source_;
    scheme how_{};
    location out_;
    bool user_alone_ = false;
    bool has_database_ = false;
};

}  // namespace

location parse_url(std::string_view url, url_source const& source) { return parser{url, source}.parse(); }
location parse_url(std::string_view url) { return parse_url(url, url_source{}); }

std::string to_string(endpoint const& where) {
    if (!where.path.empty()) return where.path;
    bool const is_v6 = where.host.find(':') != std::string::npos;
    return is_v6 ? fmt::format("[{}]:{}", where.host, where.port) : fmt::format("{}:{}", where.host, where.port);
}

}  // namespace lockstep::redis
