#include "messaging/stream_state.hpp"

#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

namespace lockstep {

std::string const* stream_entry::find(std::string_view name) const noexcept {
    for (auto const& [field, value] : fields) {
        if (field == name) return &value;
    }
    return nullptr;
}

std::string const& stream_entry::payload() const {
    if (auto const* const found = find(payload_field)) return *found;
    throw conversion_error(fmt::format("the entry {} has no field '{}': it was not added as a value", id, payload_field));
}

namespace detail {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds longest_try = 60s;
constexpr std::size_t most_entries = 10'000;
constexpr std::size_t most_fields = 2'000;

bool is_number(std::string_view text) noexcept {
    return !text.empty() && text.size() <= 20 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_new_id(std::string_view id) noexcept {
    return id == "*" || is_stream_id(id) || (id.ends_with("-*") && is_number(id.substr(0, id.size() - 2)));
}

/// `first` and those after it.
std::vector<std::string> ids_from(std::string_view first, std::size_t count) {
    auto const dash = first.find('-');
    std::uint64_t number = 0;
    std::from_chars(first.data() + dash + 1, first.data() + first.size(), number);
    std::vector<std::string> made;
    made.reserve(count);
    for (std::size_t i = 0; i != count; ++i) made.push_back(fmt::format("{}-{}", first.substr(0, dash), number + i));
    return made;
}

task<std::vector<std::string>> add(std::shared_ptr<stream_state> self, std::vector<stream_fields> entries, std::string id) {
    auto by = self->adds.borrow();
    auto const& options = self->options;
    std::vector<argument> words{by.id, by.sequence, id, options.max_length, options.exact ? "=" : "~"};
    for (auto const& one : entries) {
        words.emplace_back(one.size() * 2);
        for (auto const& [field, value] : one) words.insert(words.end(), {field, value});
    }
    auto const calls = self->at.key_of("adds:0");
    auto const more_calls = self->at.key_of("adds:1");
    std::vector<std::string_view> const keys{self->at.key(), calls, more_calls};
    // No longer than the server remembers the call (stream_add.lua).
    auto const time = std::chrono::ceil<std::chrono::milliseconds>(self->at.owner()->deadline({}) - redis::reactor::clock::now());
    auto asking = self->at.run(scripts::stream_add, keys, words, {.within = std::clamp<std::chrono::milliseconds>(time, 1ms, longest_try)});
    auto const said = co_await std::move(asking);
    self->adds.give_back(std::move(by));  // answered; otherwise it is dropped
    co_return ids_from(said[0].text(), entries.size());
}

}  // namespace

task<std::vector<std::string>> add_to_stream(std::shared_ptr<stream_state> self, std::vector<stream_fields> entries, std::string id) {
    auto const& at = self->at;
    at.require_usable();
    require(at, !entries.empty() && entries.size() <= most_entries, fmt::format("1 to {} entries can be added at once", most_entries));
    for (auto const& one : entries) {
        require(at, !one.empty() && one.size() <= most_fields, fmt::format("an entry has 1 to {} fields", most_fields));
    }
    require(at, is_new_id(id), fmt::format("'{}' is no id for a new entry; use \"*\", <ms>-<number>, <ms>-* or <ms>", id));
    return add(std::move(self), std::move(entries), std::move(id));
}

void require(keyed const& at, bool holds, std::string_view what) {
    if (!holds) throw invalid_argument_error(fmt::format("{} '{}': {}", at.kind(), at.name(), what));
}

void require_consumer_name(keyed const& at, std::string_view what, std::string_view name) {
    require(at, !name.empty() && name.size() <= 512, fmt::format("the name of the {} must have 1 to 512 bytes", what));
}

bool is_stream_id(std::string_view id) noexcept {
    auto const dash = id.find('-');
    return is_number(id.substr(0, dash)) && (dash == std::string_view::npos || is_number(id.substr(dash + 1)));
}

stream_fields read_fields(reply_view fields) {
    stream_fields made;
    made.reserve(fields.size() / 2);
    for (auto at = fields.begin(); at != fields.end(); ++at) {
        auto const name = *at;
        ++at;
        made.emplace_back(name.text(), (*at).text());
    }
    return made;
}

std::vector<stream_entry> read_entries(reply_view list) {
    std::vector<stream_entry> made;
    made.reserve(list.size());
    for (auto const one : list) {
        if (one.is_null()) continue;
        auto part = one.begin();
        stream_entry entry{.id = std::string{(*part).text()}};
        ++part;
        if ((*part).is_aggregate()) entry.fields = read_fields(*part);
        made.push_back(std::move(entry));
    }
    return made;
}

std::vector<stream_entry> read_of_one(reply_view answer) {
    if (answer.is_null() || answer.empty()) return {};
    return read_entries(answer[1]);
}

task<bool> create_group(keyed at, std::string group, std::string start) {
    try {
        auto asking = at.command({"XGROUP", "CREATE", at.key(), group, start, "MKSTREAM"});
        co_await std::move(asking);
        // What was trimmed before it was made is not lost to it.
        auto counting = at.run(scripts::stream_gap, {group, "1"});
        co_await std::move(counting);
        co_return true;
    } catch (server_error const& problem) {
        if (problem.prefix() != "BUSYGROUP") throw;
    }
    co_return false;
}

}  // namespace detail
}  // namespace lockstep
