#include "observe/reader.hpp"

#include "base/names.hpp"
#include "redis/slot.hpp"
#include "scripts/all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep::observe {

std::string reader::key(std::string_view name, std::string_view word) const { return base::key_name(prefix(), name, word); }

namespace {

constexpr std::string_view time_is_over = "only a part was read: the time for a look is over";

// Coroutines, which begin when they are awaited: many questions are made at once and asked in turn, and the time of each begins when it is asked.
task<reply> send(reader from, std::int16_t slot, std::vector<std::string> words) {
    std::vector<detail::argument> const arguments(words.begin(), words.end());
    auto asking = redis::run_command(from.owner()->way(), arguments, from.terms(slot));
    co_return co_await std::move(asking);
}

task<reply> send_script(reader from, scripts::script const& which, std::vector<std::string> keys, std::vector<std::string> words) {
    std::vector<std::string_view> const views(keys.begin(), keys.end());
    std::vector<detail::argument> const arguments(words.begin(), words.end());
    auto const how = from.terms(static_cast<std::int16_t>(redis::key_slot(keys.front())));
    auto asking = redis::run_script(from.owner()->way(), which, views, arguments, how);
    co_return co_await std::move(asking);
}

}  // namespace

redis::command_terms reader::terms(std::int16_t slot) const {
    return {.deadline = owner_->deadline({}), .slot = owner_->is_cluster() ? slot : std::int16_t{-1}, .repeatable = true};
}

task<reply> reader::command(std::int16_t slot, std::vector<std::string> words) const { return send(*this, slot, std::move(words)); }

task<reply> reader::at(std::string_view key, std::vector<std::string> words) const {
    return command(static_cast<std::int16_t>(redis::key_slot(key)), std::move(words));
}

task<reply> reader::script(scripts::script const& which, std::vector<std::string> const& keys, std::vector<std::string> const& words) const {
    return send_script(*this, which, keys, words);
}

task<reply> reader::once(scripts::script const& which, std::vector<std::string> const& keys, std::vector<std::string> const& words) const {
    std::vector<std::string_view> const views(keys.begin(), keys.end());
    std::vector<detail::argument> const arguments(words.begin(), words.end());
    auto how = terms(static_cast<std::int16_t>(redis::key_slot(keys.front())));
    how.repeatable = false;
    return redis::run_script(owner_->way(), which, views, arguments, how);
}

void reader::note_or_throw(std::string_view key, server_error const& problem) const {
    if (problem.text().find("WRONGTYPE") == std::string_view::npos) throw problem;
    note(key, "a key of another type: what Lockstep would keep there is not shown");
}

bool reader::is_late() const {
    if (!is_time_over()) return false;
    note(prefix(), time_is_over);
    return true;
}

bool walk_limit::goes_on() {
    seen_ += page_;
    bool const is_late = from_.is_time_over();
    if (!is_late && seen_ < most_) return true;
    from_.note(target_, is_late ? std::string{time_is_over} : fmt::format("only a part was read: it has more than {} elements", most_));
    return false;
}

task<reply> scan_page(reader from, std::string command, std::string key, std::string cursor, std::size_t count, std::size_t limit) {
    auto asking = from.script(scripts::scan_page, {key}, {command, cursor, std::to_string(count), std::to_string(limit)});
    auto said = co_await std::move(asking);
    if (said[1].integer() != 0) from.note(key, fmt::format("elements of more than {} bytes are not shown", limit));
    co_return said;
}

task<std::vector<std::int16_t>> reader::nodes() const {
    if (!owner_->is_cluster()) co_return std::vector<std::int16_t>{-1};
    auto asking = command(0, {"CLUSTER", "SLOTS"});
    auto const said = co_await std::move(asking);
    std::vector<std::int16_t> slots;
    std::set<std::string> seen;
    for (auto const range : said) {
        auto const primary = range[2];
        auto id = primary.size() > 2 ? std::string{primary[2].text()} : std::string{primary[0].text()} + ':' + std::to_string(primary[1].integer());
        if (!seen.insert(std::move(id)).second) continue;
        slots.push_back(static_cast<std::int16_t>(range[0].integer()));
    }
    co_return slots;
}

}  // namespace lockstep::observe
