#include "lease/gate_answer.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::engine {
namespace {

gate_word word_of(std::string_view text) {
    using enum gate_word;
    constexpr std::array<std::pair<std::string_view, gate_word>, 18> words{
        {{"set", set},           {"cleared", cleared}, {"open", open},         {"waiting", waiting}, {"late", late},     {"left", left},
         {"gone", gone},         {"created", created}, {"exists", exists},     {"counted", counted}, {"absent", absent}, {"complete", complete},
         {"run", run},           {"broken", broken},   {"behind", behind},     {"forgotten", forgotten}, {"full", full}, {"renewed", renewed}}};
    for (auto const& [name, what] : words) {
        if (name == text) return what;
    }
    return unknown;
}

[[noreturn]] void throw_refusal(std::string_view text, std::string_view kind, std::string_view name) {
    auto const meaning = [&](std::string_view prefix) { return fmt::format("{} '{}': {}", kind, name, text.substr(prefix.size())); };
    constexpr std::string_view count = "LOCKSTEP_COUNT ";
    constexpr std::string_view argument = "LOCKSTEP_ARGUMENT ";
    if (text.starts_with(count)) throw count_mismatch_error(meaning(count));
    if (text.starts_with(argument)) throw invalid_argument_error(meaning(argument));
    throw server_error(fmt::format("{} ({} '{}')", text, kind, name));
}

}  // namespace

gate_answer read_gate_answer(reply_view said, std::string_view kind, std::string_view name) {
    if (said.is_error()) throw_refusal(said.text(), kind, name);
    gate_answer found;
    try {
        if (said.size() < 2) throw protocol_error("too short");
        auto at = said.begin();
        found.what = word_of((*at++).text());
        auto const rest = said.size() - 1;
        if (rest >= 2) found.value = (*at++).integer();
        if (rest == 4) at++;  // how many arrived
        if (rest >= 3) found.look_again = (*at++).integer();
        found.now_ms = (*at).integer();
    } catch (error const&) {
        found.what = gate_word::unknown;
    }
    if (found.what == gate_word::unknown) {
        throw protocol_error(fmt::format("{} '{}': the server's answer to a script is not one of the script's", kind, name));
    }
    return found;
}

}  // namespace lockstep::engine
