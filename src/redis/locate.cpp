// Options over URL over environment, and the reading of password files: the part of url.hpp that looks outside the URL.
#include <fmt/format.h>
#include <lockstep/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "base/names.hpp"
#include "redis/config_file.hpp"
#include "redis/url.hpp"
#include "redis/url_parser.hpp"

namespace lockstep::redis {
namespace {

struct configured_url {
    std::string text;
    std::string_view source;
};

configured_url find_url(client_options const& options, environment const& variables) {
    if (!options.url.empty()) return {options.url, "the URL"};
    for (char const* const name : {"LOCKSTEP_URL", "REDIS_URL"}) {
        auto const* const value = variables(name);
        if (value != nullptr && *value != '\0') return {value, name};
    }
    return {};
}

std::string find_prefix(environment const& variables) {
    auto const* const value = variables("LOCKSTEP_PREFIX");
    return value != nullptr && *value != '\0' ? value : "lockstep";
}

void lay_over(std::string& below, std::string const& option) {
    if (!option.empty()) below = option;
}

void lay_tls_over(tls_options& below, tls_options const& options) {
    lay_over(below.ca_file, options.ca_file);
    lay_over(below.certificate_file, options.certificate_file);
    lay_over(below.key_file, options.key_file);
    lay_over(below.server_name, options.server_name);
    below.dangerously_accept_any_certificate = options.dangerously_accept_any_certificate;
}

bool is_set(tls_options const& tls) {
    return !tls.ca_file.empty() || !tls.certificate_file.empty() || !tls.key_file.empty() || !tls.server_name.empty() ||
           tls.dangerously_accept_any_certificate;
}

void lay_login_over(location& below, client_options const& options) {
    if (!options.password.empty() && !options.password_file.empty()) {
        throw invalid_argument_error("the options have a password and a password_file; give one");
    }
    lay_over(below.user, options.user);
    if (options.password.empty() && options.password_file.empty()) return;
    below.password = options.password;
    below.password_file = options.password_file;
}

void lay_timeout_over(std::optional<std::chrono::milliseconds>& below, std::chrono::milliseconds option,
                      std::chrono::milliseconds usual, std::string_view name) {
    if (option <= std::chrono::milliseconds::zero()) {
        throw invalid_argument_error(fmt::format("{} is {} ms; it must be at least 1 ms", name, option.count()));
    }
    if (!below || option != usual) below = option;
}

void check(location const& where) {
    base::check_prefix(where.prefix);
    auto const& tls = where.tls_files;
    if (!where.tls && is_set(tls)) {
        throw invalid_argument_error(
            "there are TLS settings, but the URL is not one of rediss://, rediss+sentinel:// "
            "and rediss+cluster://: the connection would be in the clear");
    }
    if (tls.certificate_file.empty() != tls.key_file.empty()) {
        throw invalid_argument_error("a client certificate and its key file go together; one of them is missing");
    }
    for (char const c : where.name) {
        if (c <= ' ' || c > '~') {
            throw invalid_argument_error("the client's name may have printable ASCII characters only, and no spaces");
        }
    }
}

std::string read_password(std::string const& file) {
    static constexpr std::size_t most = 64 * 1024;
    auto const refuse = [&file](std::string_view why) {
        throw invalid_argument_error(fmt::format("the password file {} {}", file, why));
    };
    auto const close = [](std::FILE* open) { std::fclose(open); };
    if (auto const problem = problem_of_file(file); !problem.empty()) refuse(problem);
    std::unique_ptr<std::FILE, decltype(close)> const stream{std::fopen(file.c_str(), "re"), close};
    if (!stream) refuse("can't be opened: " + std::generic_category().message(errno));
    std::string password(most + 1, '\0');
    password.resize(std::fread(password.data(), 1, password.size(), stream.get()));
    if (std::ferror(stream.get()) != 0) refuse("can't be read: " + std::generic_category().message(errno));
    if (password.size() > most) refuse(fmt::format("has more than {} bytes", most));
    if (password.ends_with('\n')) password.resize(password.size() - (password.ends_with("\r\n") ? 2 : 1));
    if (password.empty()) refuse("is empty");
    warn_if_exposed(file, "the password file");
    return password;
}

}  // namespace

char const* process_environment(char const* name) { return std::getenv(name); }

location locate(client_options const& options, environment const& variables) {
    static client_options const usual;
    auto const url = find_url(options, variables);
    bool const has_password = !options.password.empty() || !options.password_file.empty();
    location where;
    if (!url.text.empty()) {
        where = parse_url(url.text, {.name = url.source, .password_follows = has_password});
    } else if (has_password || !options.user.empty() || is_set(options.tls)) {
        throw invalid_argument_error(
            "there are log-in or TLS options, but no server: set the URL, LOCKSTEP_URL or REDIS_URL");
    } else {
        where.embedded = true;
    }
    lay_login_over(where, options);
    lay_tls_over(where.tls_files, options.tls);
    lay_over(where.name, options.name);
    lay_over(where.prefix, options.prefix);
    if (where.prefix.empty()) where.prefix = find_prefix(variables);
    lay_timeout_over(where.connect_timeout, options.connect_timeout, usual.connect_timeout, "connect_timeout");
    lay_timeout_over(where.command_timeout, options.command_timeout, usual.command_timeout, "command_timeout");
    check(where);
    return where;
}

std::string password_of(location const& where) {
    return where.password_file.empty() ? where.password : read_password(where.password_file);
}

std::string sentinel_password_of(location const& where) {
    return where.sentinel_password_file.empty() ? where.sentinel_password : read_password(where.sentinel_password_file);
}

}  // namespace lockstep::redis
