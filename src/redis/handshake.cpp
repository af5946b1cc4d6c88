#include "redis/handshake.hpp"

#include "resp/encoder.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace lockstep::redis {
namespace {

std::string info_field(std::string_view info, std::string_view field) {
    auto const key = fmt::format("\n{}:", field);
    auto const at = info.find(key);
    if (at == std::string_view::npos) return {};
    auto const begin = at + key.size();
    return std::string{info.substr(begin, info.find_first_of("\r\n", begin) - begin)};
}

/// Sentences, versions, roles and policies that servers send to every client: none of them shows anything, whatever the password is.
bool is_stock_text(std::string_view text) {
    static constexpr std::string_view sentences[] = {
        "WRONGPASS invalid username-password pair or user is disabled.",
        "NOAUTH Authentication required.",
        "NOPROTO unsupported protocol version",
        "NOPERM this user has no permissions to run the 'hello' command",
        "NOPERM this user has no permissions to run the 'select' command",
        "NOPERM this user has no permissions to run the 'info' command",
        "NOPERM this user has no permissions to run the 'role' command",
        "NOPERM this user has no permissions to run the 'client|tracking' command",
        "ERR max number of clients reached",
        "ERR DB index is out of range",
        "LOADING Redis is loading the dataset in memory",
        "LOADING Valkey is loading the dataset in memory",
        "master", "slave", "replica", "sentinel",
        "noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
    };
    if (std::ranges::find(sentences, text) != std::end(sentences)) return true;
    if (text.starts_with("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO ") && text.find('`') == std::string_view::npos)
        return text.ends_with("AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time");
    return text.size() < 12 && !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos && text.find('.') != std::string_view::npos;
}

/// What a server answers may repeat what it was sent. Putting a mask in place of the password would show it: readers know the sentence by heart, and what of it
/// is missing. So such a text is left out as a whole.
std::string without(std::string const& secret, std::string_view text) {
    if (secret.empty() || text.find(secret) == std::string_view::npos || is_stock_text(text)) return std::string{text};
    for (std::string_view const code : {"WRONGPASS", "NOAUTH", "NOPERM", "NOPROTO", "BUSY", "LOADING", "ERR"}) {
        if (text.starts_with(code) && text.substr(code.size()).starts_with(' ')) return fmt::format("{} (its text is not shown: the password occurs in it)", code);
    }
    return "(not shown: the password occurs in it)";
}

void judge_hello(reply_view hello, std::string const& secret) {
    if (!hello.is_error()) return;
    auto const text = without(secret, hello.text());
    auto const prefix = hello.error_prefix();
    if (prefix == "WRONGPASS") throw authentication_error(fmt::format("the server refused the user or the password: {}", text));
    if (prefix == "NOAUTH") {
        throw authentication_error(!secret.empty() ? fmt::format("the server refused to log in: {}", text)
                                                   : std::string{"the server asks for a password and none is configured"});
    }
    if (prefix == "NOPERM") throw authentication_error(fmt::format("the user may not log in with HELLO: {}", text));
    if (prefix == "ERR" && hello.text().find("unknown command") != std::string_view::npos) {
        throw unsuitable_server_error("the server does not know HELLO: Redis 7.0 or newer, or Valkey 7.2 or newer, is needed");
    }
    if (prefix == "ERR" && hello.text().find("AUTH") != std::string_view::npos) throw authentication_error(fmt::format("the server refused the log-in: {}", text));
    throw unavailable_error(fmt::format("the server refused the log-in: {}", text));
}

void judge_version(reply_view hello, std::string const& secret) {
    auto const field = hello.find("version");
    if (!field.is_text()) throw unavailable_error("the server does not answer HELLO as Redis does");
    auto const version = field.text();
    unsigned major = 0;
    std::from_chars(version.data(), version.data() + version.size(), major);
    if (major < 7) {
        throw unsuitable_server_error(
            fmt::format("the server is version {}: Redis 7.0 or newer, or Valkey 7.2 or newer, is needed", without(secret, version)));
    }
}

void judge_eviction(reply_view info, bool allow, std::string const& secret) {
    if (info.is_error() && info.error_prefix() == "BUSY") throw unavailable_error(without(secret, info.text()));
    if (info.is_error()) {
        log(log_level::warning, fmt::format("the server's eviction policy could not be checked: {}", without(secret, info.text())));
        return;
    }
    auto const policy = info_field(info.text(), "maxmemory_policy");
    if (policy.empty() || policy == "noeviction") return;
    auto const what = fmt::format(
        "the server may evict keys (maxmemory-policy is {}), so locks and queues could vanish; "
        "set `maxmemory-policy noeviction`", without(secret, policy));
    if (!allow) throw unsuitable_server_error(what + ", or allow_eviction in the client's options (the command: --allow-eviction) to go on at your own risk");
    log(log_level::warning, what);
}

void judge_role(reply_view role, std::string const& secret) {
    if (role.is_error()) throw unavailable_error(fmt::format("the server did not say its role: {}", without(secret, role.text())));
    auto const name = role.empty() ? std::string{} : role[0].as<std::string>();
    if (name != "master") throw unavailable_error(fmt::format("the server is not a master (its role is {})", without(secret, name)));
}

void judge_tracking(reply_view answer, std::string const& secret) {
    if (!answer.is_error()) return;
    auto const text = without(secret, answer.text());
    auto const prefix = answer.error_prefix();
    if (prefix != "NOPERM" && prefix != "ERR") throw unavailable_error(text);
    throw unsuitable_server_error(fmt::format("the server does not tell of changed keys (CLIENT TRACKING), which a near cache needs (`lockstep acl --for near-cache` prints the rules of a user): {}", text));
}

}  // namespace

std::size_t handshake::say(resp::output& out, std::string const& secret) const {
    auto const name = client_name.empty() ? std::string{"lockstep"} : client_name;
    if (user.empty() && secret.empty()) {
        resp::append_command(out, "HELLO", 3, "SETNAME", name);
    } else {  // a user without a password too (`nopass`): it must not become `default`
        resp::append_command(out, "HELLO", 3, "AUTH", user.empty() ? std::string{"default"} : user, secret, "SETNAME", name);
    }
    std::size_t replies = 1;
    if (database != 0) resp::append_command(out, "SELECT", database), ++replies;
    if (check_server) resp::append_command(out, "INFO", "memory"), ++replies;
    if (require_master) resp::append_command(out, "ROLE"), ++replies;
    if (track) resp::append_command(out, "CLIENT", "TRACKING", "ON"), ++replies;
    return replies;
}

void handshake::judge(std::vector<reply> const& answers, std::string const& secret) const {
    auto next = answers.begin();
    auto const hello = (next++)->view();
    judge_hello(hello, secret);
    if (check_server) judge_version(hello, secret);
    if (database != 0) {
        auto const selected = (next++)->view();
        if (selected.is_error() && selected.error_prefix() == "BUSY") throw unavailable_error(without(secret, selected.text()));
        if (selected.is_error()) throw unsuitable_server_error(fmt::format("database {} can't be selected: {}", database, without(secret, selected.text())));
    }
    if (check_server) judge_eviction((next++)->view(), allow_eviction, secret);
    if (require_master) judge_role((next++)->view(), secret);
    if (track) judge_tracking((next++)->view(), secret);
}

std::string clean_client_name(std::string name) {
    for (auto& c : name) {
        if (c <= ' ' || c > '~') c = '_';
    }
    return name;
}

}  // namespace lockstep::redis
