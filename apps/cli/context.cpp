#include "cli/context.hpp"

#include "base/utf8.hpp"
#include "cli/standard_error.hpp"

#include <lockstep/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace lockstep::cli {
namespace {

struct verdict {
    exit_code code;
    char const* word;  ///< for machines
    std::string hint;
};

std::string how_to_reach(context const& all) {
    auto const* const set = std::getenv("LOCKSTEP_URL") != nullptr ? "LOCKSTEP_URL" : std::getenv("REDIS_URL") != nullptr ? "REDIS_URL" : nullptr;
    if (!all.connection.url.empty()) return "is that server running, and is --redis right?";
    if (set != nullptr) return fmt::format("is that server running? {} says where it is, and --redis URL overrides that", set);
    return "no URL is set, so this user's embedded server is used: `lockstep server status` shows it; `--redis URL` takes another";
}

std::string prefix_of(context const& all) {
    auto const* const set = std::getenv("LOCKSTEP_PREFIX");
    if (!all.connection.prefix.empty()) return all.connection.prefix;
    return set != nullptr && *set != '\0' ? set : "lockstep";
}

verdict judge(context const& all, error const& problem) {
    switch (problem.reason()) {
        case errc::timeout:
            if (all.has_limit) return {exit_code::no, "timeout", "wait longer with -w"};
            return {exit_code::unavailable, "timeout", "the server is there and does not answer; --server-wait waits longer for it"};
        case errc::lease_lost:
        case errc::leadership_lost: return {exit_code::lost, "lease_lost", "a longer --ttl outlasts longer interruptions"};
        case errc::broken_barrier: return {exit_code::lost, "broken_barrier", "somebody died or gave up; all may simply arrive again"};
        case errc::stale_fence: return {exit_code::lost, "stale_fence", "somebody with a larger fence has written since"};
        case errc::not_found: return {exit_code::no, "not_found", "create it first"};
        case errc::circuit_open: return {exit_code::no, "circuit_open", "try again after its recovery time"};
        case errc::not_held: return {exit_code::no, "not_held", {}};
        case errc::invalid_argument:
        case errc::count_mismatch: return {exit_code::usage, "invalid_argument", {}};
        case errc::unavailable: return {exit_code::unavailable, "unavailable", how_to_reach(all)};
        case errc::indeterminate: return {exit_code::unavailable, "indeterminate", "it may have been done: look before you do it again"};
        case errc::cancelled: return {exit_code::unavailable, "cancelled", {}};
        case errc::authentication: return {exit_code::denied, "authentication", "give the right --user and --password-file"};
        case errc::unsuitable_server: return {exit_code::unsuitable, "unsuitable_server", {}};
        case errc::server: {
            auto const prefix = static_cast<server_error const&>(problem).prefix();
            if (prefix == "NOPERM") return {exit_code::denied, "no_permission", "`lockstep acl --for ...` prints the rules that a user needs"};
            if (prefix == "WRONGTYPE") {
                return {exit_code::server, "server", fmt::format("the key of that name, {}:{{NAME}}:KIND, holds something that is not Lockstep's: `redis-cli TYPE KEY` shows what", prefix_of(all))};
            }
            return {exit_code::server, "server", prefix == "LOCKSTEP_FORMAT" ? "all who use a name must say the same options, and be of versions that know its form" : ""};
        }
        default: return {exit_code::internal, "internal", {}};
    }
}

/// Names are bytes, JSON is text: what is no UTF-8 is replaced, wherever it stands.
void make_text(boost::json::value& value) {
    if (auto* const text = value.if_string()) *text = base::as_utf8(*text);
    if (auto* const list = value.if_array()) {
        for (auto& one : *list) make_text(one);
    }
    if (auto* const fields = value.if_object()) {
        for (auto& [key, one] : *fields) make_text(one);
    }
}

/// Boost writes 3 as 3E0. That is JSON, and nothing that a person or a shell wants to read.
std::string number_text(double number) { return std::isfinite(number) ? fmt::format("{}", number == std::floor(number) && std::abs(number) < 1e15 ? std::floor(number) : number) : "null"; }

void write_json(std::string& to, boost::json::value const& value) {
    if (auto const* const list = value.if_array()) {
        to += '[';
        for (auto const& one : *list) {
            if (&one != list->begin()) to += ',';
            write_json(to, one);
        }
        to += ']';
    } else if (auto const* const fields = value.if_object()) {
        to += '{';
        for (auto const& [key, one] : *fields) {
            if (to.back() != '{') to += ',';
            to += boost::json::serialize(boost::json::string{key}) + ':';
            write_json(to, one);
        }
        to += '}';
    } else if (auto const* const number = value.if_double()) {
        to += number_text(*number);
    } else {
        to += boost::json::serialize(value);
    }
}

std::string as_text(boost::json::value value) {
    make_text(value);
    std::string text;
    write_json(text, value);
    return printable_json(text);
}

}  // namespace

client context::connect(std::string_view name) const {
    auto options = connection;
    if (options.name.empty()) options.name = name;
    for (auto& c : options.name) {
        if (c <= ' ' || c > '~') c = '_';  // what the server takes for a client's name
    }
    return client{options};
}

void context::print(std::string_view text) const {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
    if (errno == EPIPE) throw output_closed{};
    throw failure{exit_code::system, "can't write to standard output: " + std::generic_category().message(errno)};
}

void context::print_json(boost::json::value const& value) const { print(as_text(value) + "\n"); }

void context::print_stored(std::string_view bytes) const { print((terminal_ ? printable_lines(bytes) : std::string{bytes}) + "\n"); }

void context::note(std::string_view text) const noexcept { say_to_standard_error(fmt::format("lockstep: {}\n", text)); }

void context::note(std::string_view text, boost::json::value const& value) const noexcept {
    if (json) {
        say_to_standard_error(as_text(value) + "\n");
    } else {
        note(text);
    }
}

void context::note_unreadable(std::vector<std::string> const& keys) const {
    for (auto const& one : keys) note("not shown: " + printable(one), boost::json::object{{"not_shown", one}});
}

exit_code explain(context const& all, std::exception_ptr problem) {
    auto const say = [&all](verdict const& how, std::string_view message) {
        boost::json::object fields{{"error", how.word}, {"message", boost::json::string{message}}};
        if (!how.hint.empty()) fields["hint"] = how.hint;
        all.note(how.hint.empty() ? std::string{message} : fmt::format("{}\nlockstep: {}", message, how.hint), fields);
        return how.code;
    };
    try {
        std::rethrow_exception(problem);
    } catch (output_closed const&) {
        return exit_code::ok;
    } catch (failure const& one) {
        return say({one.code, one.word, one.hint}, one.message);
    } catch (error const& one) {
        return say(judge(all, one), printable(one.what()));
    } catch (std::system_error const& one) {
        return say({exit_code::system, "system", {}}, one.what());
    } catch (std::exception const& one) {
        return say({exit_code::internal, "internal", "this is a bug of lockstep: please report it with what you did"}, one.what());
    }
}

}  // namespace lockstep::cli
