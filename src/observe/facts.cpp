#include "observe/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace lockstep::observe {
namespace {

template <class F>
void for_each_part(std::string_view text, char separator, F what) {
    while (!text.empty()) {
        auto const end = std::min(text.find(separator), text.size());
        what(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

}  // namespace

fields fields::of_lines(std::string_view text) {
    fields made;
    for_each_part(text, '\n', [&](std::string_view line) {
        if (line.ends_with('\r')) line.remove_suffix(1);
        auto const colon = line.find(':');
        if (line.starts_with('#') || colon == std::string_view::npos) return;
        made.set(std::string{line.substr(0, colon)}, std::string{line.substr(colon + 1)});
    });
    return made;
}

fields fields::of_pairs(reply_view pairs) {
    fields made;
    if (!pairs.is_aggregate()) return made;
    std::string name;
    bool is_name = true;
    for (auto const one : pairs) {
        if (is_name) {
            name = one.is_text() ? std::string{one.text()} : std::string{};
        } else if (one.is_text()) {
            made.set(name, std::string{one.text()});
        } else if (one.type() == reply_type::integer) {
            made.set(name, std::to_string(one.integer()));
        } else if (one.is_aggregate()) {  // flags of a user
            std::string list;
            for (auto const part : one) {
                if (part.is_text()) list += (list.empty() ? "" : " ") + std::string{part.text()};
            }
            made.set(name, list);
        }
        is_name = !is_name;
    }
    return made;
}

std::string fields::text(std::string_view name) const {
    auto const found = values_.find(name);
    return found == values_.end() ? std::string{} : found->second;
}

std::optional<std::int64_t> fields::number(std::string_view name) const {
    auto const found = values_.find(name);
    if (found == values_.end()) return std::nullopt;
    auto const& digits = found->second;
    std::int64_t value = 0;
    auto const [rest, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem != std::errc{} || rest != digits.data() + digits.size()) return std::nullopt;
    return value;
}

std::vector<cluster_member> read_members(std::string_view cluster_nodes) {
    // <id> <address>@<bus port>[,<host name>] <flags> <master's id or -> <ping> <pong> <epoch> <link state> <slot> ...
    std::vector<cluster_member> members;
    for_each_part(cluster_nodes, '\n', [&](std::string_view line) {
        auto const words = words_of(line);
        if (words.size() < 8) return;
        cluster_member one{.address = words[1].substr(0, words[1].find('@')), .id = words[0], .master_id = words[3]};
        for_each_part(words[2], ',', [&](std::string_view flag) {
            one.master = one.master || flag == "master";
            one.failed = one.failed || flag == "fail";
            one.doubted = one.doubted || flag == "fail?";
        });
        bool const myself = words[2].find("myself") != std::string::npos;
        one.cut_off = !myself && words[7] != "connected" && !one.failed && !one.doubted;
        // [1000->-<id>] is on the move and not counted.
        one.slots =
            std::any_of(words.begin() + 8, words.end(), [](std::string const& word) { return !word.starts_with('['); });
        members.push_back(std::move(one));
    });
    return members;
}

fields of_commas(std::string_view text) {
    fields made;
    for_each_part(text, ',', [&](std::string_view part) {
        auto const sign = part.find('=');
        if (sign != std::string_view::npos)
            made.set(std::string{part.substr(0, sign)}, std::string{part.substr(sign + 1)});
    });
    return made;
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for_each_part(text, ' ', [&](std::string_view word) {
        if (word.ends_with('\r')) word.remove_suffix(1);
        if (!word.empty()) words.emplace_back(word);
    });
    return words;
}

std::string bytes_text(std::int64_t bytes) {
    constexpr std::array<std::string_view, 5> units{"bytes", "kB", "MB", "GB", "TB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < units.size()) value /= 1024, ++unit;
    return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace lockstep::observe
