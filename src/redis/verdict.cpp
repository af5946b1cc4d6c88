#include "redis/verdict.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "redis/slot.hpp"

namespace lockstep::redis {
namespace {

struct word_verdict {
    std::string_view word;
    verdict what;
    std::string_view own{};  // part of what the server itself says, Redis or Valkey; none: the form alone tells
};

constexpr std::array words{
    word_verdict{"LOADING", verdict::retry_later, " is loading the dataset in memory"},
    word_verdict{"BUSY", verdict::retry_later, " is busy running a "},  // a script, or a command of a module
    word_verdict{"TRYAGAIN", verdict::retry_later, " Multiple keys request during rehashing of slot"},
    word_verdict{"MASTERDOWN", verdict::retry_later, " Link with MASTER is down"},
    word_verdict{"CLUSTERDOWN", verdict::retry_later, " The cluster is down"},   // no quorum
    word_verdict{"CLUSTERDOWN", verdict::retry_later, " Hash slot not served"},  // a slot without an owner
    word_verdict{"MOVED", verdict::moved},
    word_verdict{"ASK", verdict::ask},
    word_verdict{"NOSCRIPT", verdict::noscript},
    word_verdict{"READONLY", verdict::read_only, " You can't write against a read only "},
    word_verdict{"READONLY", verdict::read_only, " You can not run script with write flag on readonly replica"},  // one with `#!lua`
    word_verdict{"NOAUTH", verdict::log_in, " Authentication required"},
};

std::string_view first_word(std::string_view text) noexcept { return text.substr(0, text.find(' ')); }

std::optional<std::uint16_t> number(std::string_view digits) {
    std::uint16_t value = 0;
    auto const* const end = digits.data() + digits.size();
    auto const [rest, error] = std::from_chars(digits.data(), end, value);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return value;
}

// "MOVED 3999 127.0.0.1:6381". The last colon splits, as the server writes IPv6 without brackets: "::1:6381".
judgement redirected(verdict what, std::string_view text) {
    auto const slot_at = text.find(' ') + 1;
    auto const host_at = text.find(' ', slot_at) + 1;
    auto const colon = text.rfind(':');
    if (slot_at == 0 || host_at == 0 || colon == std::string_view::npos || colon < host_at) return {};
    auto const slot = number(text.substr(slot_at, host_at - 1 - slot_at));
    auto const port = number(text.substr(colon + 1));
    auto host = text.substr(host_at, colon - host_at);
    if (!slot || *slot >= slot_count || !port || *port == 0 || host.find(' ') != std::string_view::npos) return {};
    // "?": the cluster prefers host names and this node has none set. As with no host at all, what remains is the port.
    if (host == "?") host = {};
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    return {what, *slot, std::string{host}, *port};
}

}  // namespace

judgement judge(std::string_view text) {
    auto const first = first_word(text);
    for (auto const& [word, what, own] : words) {
        if (word != first) continue;
        if (what == verdict::moved || what == verdict::ask) return redirected(what, text);
        return {what, 0, {}, 0};
    }
    return {};
}

bool may_pass(std::string_view text) {
    auto const what = judge(text).what;
    if (what == verdict::retry_later || what == verdict::read_only || what == verdict::log_in) return true;
    auto const first = first_word(text);
    return first == "OOM" || first == "MISCONF" || first == "NOREPLICAS";
}

bool is_servers_own(std::string_view text) noexcept {
    auto const first = first_word(text);
    return std::any_of(words.begin(), words.end(), [&](word_verdict const& one) {
        return one.word == first && text.find(one.own) != std::string_view::npos;
    });
}

bool is_alive_answer(std::string_view text) noexcept { return first_word(text) != "NOAUTH"; }

}  // namespace lockstep::redis
