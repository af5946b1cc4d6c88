#include "core/command_rules.hpp"

#include "redis/command.hpp"
#include "redis/slot.hpp"
#include "resp/encoder.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace lockstep::detail {
namespace {

struct rule {
    std::string_view name;
    std::string_view instead;
};

constexpr std::string_view by_subscription = "client.subscribe";
constexpr std::string_view by_transaction = "client.execute(transaction)";
constexpr std::string_view by_session = "a session (client.open_session)";
constexpr std::string_view by_options = "the client's options";
constexpr std::string_view nothing_instead = "";

// Sorted by name.
constexpr std::array rules{
    rule{"AUTH", by_options},          rule{"BLMOVE", by_session},       rule{"BLMPOP", by_session},
    rule{"BLPOP", by_session},         rule{"BRPOP", by_session},        rule{"BRPOPLPUSH", by_session},
    rule{"BZMPOP", by_session},        rule{"BZPOPMAX", by_session},     rule{"BZPOPMIN", by_session},
    rule{"DISCARD", by_transaction},   rule{"EXEC", by_transaction},     rule{"HELLO", by_options},
    rule{"MONITOR", nothing_instead},  rule{"MULTI", by_transaction},    rule{"PSUBSCRIBE", by_subscription},
    rule{"PSYNC", nothing_instead},    rule{"PUNSUBSCRIBE", by_subscription}, rule{"QUIT", "client.close"},
    rule{"RESET", nothing_instead},    rule{"SELECT", by_options},       rule{"SSUBSCRIBE", by_subscription},
    rule{"SUBSCRIBE", by_subscription}, rule{"SUNSUBSCRIBE", by_subscription}, rule{"SYNC", nothing_instead},
    rule{"UNSUBSCRIBE", by_subscription}, rule{"UNWATCH", by_session},   rule{"WAIT", by_session},
    rule{"WAITAOF", by_session},       rule{"WATCH", by_session},
};
static_assert(std::is_sorted(rules.begin(), rules.end(), [](rule const& a, rule const& b) { return a.name < b.name; }));

std::string upper(std::string_view text) {
    std::string result{text};
    std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return result;
}

[[noreturn]] void refuse(std::string_view what, std::string_view instead) {
    throw invalid_argument_error(
        instead.empty() ? fmt::format("{} can't be used on a connection that others share", what)
                        : fmt::format("{} can't be used on a connection that others share; use {}", what, instead));
}

/// The next counted string of an encoded command.
std::string_view next_bulk(std::string_view& rest) {
    auto const line = rest.find("\r\n");
    std::size_t size = 0;
    std::from_chars(rest.data() + 1, rest.data() + line, size);
    auto const text = rest.substr(line + 2, size);
    rest.remove_prefix(line + 2 + size + 2);
    return text;
}

bool blocks(std::vector<std::string_view> const& arguments) {
    return std::any_of(arguments.begin(), arguments.end(), [](auto one) { return one.size() == 5 && upper(one) == "BLOCK"; });
}

}  // namespace

std::vector<std::string_view> arguments_of(std::string_view encoded) {
    std::vector<std::string_view> arguments;
    auto rest = encoded.substr(encoded.find("\r\n") + 2);
    while (!rest.empty()) arguments.push_back(next_bulk(rest));
    return arguments;
}

namespace {

/// `rest` gives the arguments after the name; they are looked at for a few commands only.
template <class Rest>
void check_shareable(std::string_view name, Rest rest) {
    if (name.empty()) throw invalid_argument_error("the command's name is empty");
    // Most commands are told apart by their first letter or length, without a copy.
    constexpr std::string_view initials = "ABCDEHMPQRSUWXabcdehmpqrsuwx";
    if (initials.find(name.front()) == std::string_view::npos || name.size() < 4 || name.size() > 12) return;
    auto const word = upper(name);
    auto const found = std::lower_bound(rules.begin(), rules.end(), word, [](rule const& one, std::string const& key) { return one.name < key; });
    if (found != rules.end() && found->name == word) refuse(word, found->instead);
    if ((word == "XREAD" || word == "XREADGROUP") && blocks(rest())) refuse(word + " with BLOCK", by_session);
    if (word == "CLIENT") {
        auto const arguments = rest();
        auto const sub = arguments.empty() ? std::string{} : upper(arguments.front());
        if (sub == "REPLY" || sub == "TRACKING" || sub == "CACHING") refuse("CLIENT " + sub, nothing_instead);
    }
}

}  // namespace

void require_shareable(std::string_view encoded) {
    auto rest = encoded.substr(encoded.find("\r\n") + 2);
    auto const name = next_bulk(rest);
    check_shareable(name, [rest]() mutable {
        std::vector<std::string_view> arguments;
        while (!rest.empty()) arguments.push_back(next_bulk(rest));
        return arguments;
    });
}

void require_shareable(std::span<argument const> words) {
    check_shareable(words.front().view(), [words] {
        std::vector<std::string_view> arguments;
        for (auto const& word : words.subspan(1)) arguments.push_back(word.view());
        return arguments;
    });
}

void require_answered(std::string_view encoded) {
    auto const words = arguments_of(encoded);
    if (words.front().empty()) throw invalid_argument_error("the command's name is empty");
    auto const name = upper(words.front().substr(0, 16));
    auto const found = std::find_if(rules.begin(), rules.end(), [&](rule const& one) { return one.name == name; });
    bool const known = found != rules.end() && (found->instead == by_subscription || found->instead == nothing_instead);
    bool const silences = name == "CLIENT" && words.size() > 1 && upper(words[1].substr(0, 16)) == "REPLY";
    if (!known && !silences) return;
    auto const what = silences ? std::string{"CLIENT REPLY"} : name;
    auto const instead = known && !found->instead.empty() ? fmt::format("; use {}", found->instead) : std::string{};
    throw invalid_argument_error(fmt::format("{} can't be used in a session: its replies could not be told from others'{}", what, instead));
}

void require_runnable(transaction const& commands) {
    if (commands.size() == 0) throw invalid_argument_error("the transaction is empty; add a command first");
    if (commands.size() > 60'000) throw invalid_argument_error("a transaction takes at most 60000 commands");
    for (auto const& command : commands.commands()) require_shareable(command.encoded());
}

namespace {

redis::command_terms asking(redis::reactor::clock::time_point deadline) { return {.deadline = deadline, .repeatable = true}; }

/// What COMMAND INFO says of a command: 0 no keys, n the argument of the first key, -1 ask with COMMAND GETKEYS.
task<int> first_key_of(core& owner, std::string name, redis::reactor::clock::time_point deadline) {
    if (auto const known = owner.key_position(name)) co_return *known;
    auto terms = asking(deadline);
    terms.errors_are_replies = true;
    auto const answer = co_await redis::run(owner.way(), terms, "COMMAND", "INFO", name);
    // A user who may not ask: the first argument is the key of almost all commands, and for the others MOVED says where to go.
    if (answer.is_error()) co_return 1;
    int position = 0;
    if (answer.size() == 1 && answer[0].is_aggregate()) {
        auto const info = answer[0];
        bool const movable = std::any_of(info[2].begin(), info[2].end(), [](reply_view flag) { return flag.text() == "movablekeys"; });
        position = movable ? -1 : static_cast<int>(info[3].integer());
        bool const has_subcommands = info.size() > 9 && !info[9].empty();
        if (has_subcommands) position = -1;
    }
    owner.set_key_position(name, position);
    co_return position;
}

std::int16_t slot_of(std::string_view key) { return static_cast<std::int16_t>(redis::key_slot(key)); }

/// EVAL text 2 key key ...: they say where their keys are. Asking the server would send the text and all arguments twice.
bool is_script_call(std::string_view name) {
    constexpr std::array<std::string_view, 6> calls{"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO"};
    return std::find(calls.begin(), calls.end(), name) != calls.end();
}

}  // namespace

task<std::int16_t> find_slot(core& owner, std::string encoded, redis::reactor::clock::time_point deadline) {
    auto const arguments = arguments_of(encoded);
    auto const name = upper(arguments.front());
    if (is_script_call(name)) {
        bool const has_keys = arguments.size() > 3 && arguments[2] != "0";
        co_return has_keys ? slot_of(arguments[3]) : std::int16_t{-1};
    }
    auto const position = co_await first_key_of(owner, name, deadline);
    if (position == 0) co_return -1;
    if (position > 0) {
        auto const index = static_cast<std::size_t>(position);
        if (index >= arguments.size()) co_return -1;  // the server will say what is missing
        co_return slot_of(arguments[index]);
    }
    std::vector<argument> words{"COMMAND", "GETKEYS"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    auto terms = asking(deadline);
    terms.errors_are_replies = true;  // "The command has no key arguments", or bad arguments: any node will say so
    auto const answer = co_await redis::run_command(owner.way(), words, terms);
    if (answer.is_error() || answer.empty()) co_return -1;
    co_return slot_of(answer[0].text());
}

}  // namespace lockstep::detail
