#include <lockstep/stream.hpp>

#include "messaging/stream_state.hpp"
#include "messaging/stream_read.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <utility>

// Each command: its words, and how its answer is read. What takes more than that is in stream_add.cpp and stream_read.cpp.

namespace lockstep {

using detail::argument;
using detail::require;

namespace {

template <class T>
task<T> then(task<reply> asking, T (*read)(reply_view)) {
    auto const said = co_await std::move(asking);
    co_return read(said);
}

std::int64_t as_number(reply_view said) { return said.integer(); }
bool as_truth(reply_view said) { return said.integer() > 0; }

std::string text_or_nothing(reply_view said) { return said.is_text() ? std::string{said.text()} : std::string{}; }

std::vector<stream_entry> as_entries(reply_view said) { return detail::read_entries(said); }

stream_pending_summary as_summary(reply_view said) {
    stream_pending_summary made{.count = said[0].integer(), .first = text_or_nothing(said[1]), .last = text_or_nothing(said[2])};
    for (auto const one : said[3]) made.consumers.emplace(one[0].text(), one[1].as<std::int64_t>());
    return made;
}

std::vector<stream_pending> as_pending(reply_view said) {
    std::vector<stream_pending> made;
    for (auto const one : said) {
        made.push_back({.id = std::string{one[0].text()}, .consumer = std::string{one[1].text()}, .idle = std::chrono::milliseconds{one[2].integer()},
                        .deliveries = one[3].integer()});
    }
    return made;
}

stream_claimed as_claimed(reply_view said) {
    stream_claimed made{.next = std::string{said[0].text()}, .entries = detail::read_entries(said[1])};
    for (auto const one : said[2]) made.gone.emplace_back(one.text());
    return made;
}

std::vector<stream_group> as_groups(reply_view said) {
    std::vector<stream_group> made;
    for (auto const one : said) {
        auto const lag = one.find("lag");
        made.push_back({.name = std::string{one.find("name").text()}, .consumers = one.find("consumers").integer(), .pending = one.find("pending").integer(),
                        .last_delivered = std::string{one.find("last-delivered-id").text()},
                        .lag = lag.is_null() ? std::nullopt : std::optional{lag.integer()}});
    }
    return made;
}

stream_info as_info(reply_view said) {
    auto const first = said.find("first-entry");
    return {.length = said.find("length").integer(), .added = said.find("entries-added").integer(), .groups = said.find("groups").integer(),
            .first = first.is_aggregate() ? std::string{first[0].text()} : std::string{}, .last = text_or_nothing(said.find("last-generated-id"))};
}

bool says_no_stream(server_error const& problem) {
    auto const text = problem.text();
    return text.find("no such key") != std::string::npos || text.find("requires the key to exist") != std::string::npos;
}

/// What users see where an entry can't be sent.
task<std::vector<stream_entry>> with_public_errors(task<std::vector<stream_entry>> reading) {
    try {
        co_return co_await std::move(reading);
    } catch (detail::entry_too_large const& problem) {
        throw protocol_error(problem.what());
    }
}

/// Nothing where there is no stream.
template <class T>
task<std::optional<T>> if_there(task<T> asking) {
    try {
        co_return co_await std::move(asking);
    } catch (server_error const& problem) {
        if (!says_no_stream(problem)) throw;
    }
    co_return std::nullopt;
}

template <class T>
task<T> or_none(task<T> asking) {
    auto looking = if_there(std::move(asking));
    auto found = co_await std::move(looking);
    if (!found) co_return T{};
    co_return std::move(*found);
}

task<reply> run(detail::keyed const& at, std::vector<argument> const& words) { return at.command(words, {}); }

void require_ids(detail::keyed const& at, std::vector<std::string> const& which) {
    require(at, !which.empty(), "the list of ids is empty");
    for (auto const& id : which) require(at, detail::is_stream_id(id), fmt::format("'{}' is no id; ids are <ms> or <ms>-<number>", id));
}

void append(std::vector<argument>& words, std::vector<std::string> const& more) { words.insert(words.end(), more.begin(), more.end()); }

task<std::int64_t> ask_trim(detail::keyed const& at, char const* by, argument limit, trim how) {
    return then(run(at, {"XTRIM", at.key(), by, how == trim::about ? "~" : "=", limit}), &as_number);
}

}  // namespace

stream::stream(client& by, std::string_view name, stream_options options)
    : state_(std::make_shared<detail::stream_state>(detail::keyed{by, name, "stream"}, options)) {
    require(state_->at, options.max_length >= 0, "max_length must be 0 (none) or more");
}

stream::stream(client& by, lockstep::key const& at, stream_options options)
    : state_(std::make_shared<detail::stream_state>(detail::keyed::at_key(by, at, "stream"), options)) {
    require(state_->at, options.max_length >= 0, "max_length must be 0 (none) or more");
}

std::string const& stream::name() const noexcept { return state_->at.name(); }
std::string const& stream::key() const noexcept { return state_->at.key(); }
stream stream::dead_letters() const {
    return stream{std::make_shared<detail::stream_state>(state_->at.part("dead"), stream_options{})};
}

template <class T>
T stream::wait(task<T> work, std::stop_token token) const {
    state_->at.require_blocking();
    return sync_wait(std::move(work), std::move(token));
}

// ---- adding

task<stream::ids> stream::async_add_all(std::vector<stream_fields> all) { return detail::add_to_stream(state_, std::move(all), "*"); }
stream::ids stream::add_all(std::vector<stream_fields> all) { return wait(async_add_all(std::move(all))); }

namespace {
task<std::string> first_of_all(task<std::vector<std::string>> adding) {
    auto made = co_await std::move(adding);
    co_return std::move(made.front());
}
}  // namespace

task<std::string> stream::async_add(stream_fields fields, std::string_view id) {
    std::vector<stream_fields> all;
    all.push_back(std::move(fields));
    return first_of_all(detail::add_to_stream(state_, std::move(all), std::string{id}));
}
std::string stream::add(stream_fields fields, std::string_view id) { return wait(async_add(std::move(fields), id)); }

// ---- looking

task<std::int64_t> stream::async_length() const { return then(state_->at.command({"XLEN", key()}), &as_number); }
std::int64_t stream::length() const { return wait(async_length()); }

task<stream::entries> stream::async_range(std::string_view from, std::string_view to, std::size_t count) const {
    return with_public_errors(detail::read_range(state_->at, false, std::string{from}, std::string{to}, count));
}
stream::entries stream::range(std::string_view from, std::string_view to, std::size_t count) const { return wait(async_range(from, to, count)); }
task<stream::entries> stream::async_reverse_range(std::string_view from, std::string_view to, std::size_t count) const {
    return with_public_errors(detail::read_range(state_->at, true, std::string{from}, std::string{to}, count));
}
stream::entries stream::reverse_range(std::string_view from, std::string_view to, std::size_t count) const {
    return wait(async_reverse_range(from, to, count));
}

task<std::optional<stream_info>> stream::async_info() const { return if_there(then(state_->at.command({"XINFO", "STREAM", key()}), &as_info)); }
std::optional<stream_info> stream::info() const { return wait(async_info()); }
task<std::vector<stream_group>> stream::async_groups() const { return or_none(then(state_->at.command({"XINFO", "GROUPS", key()}), &as_groups)); }
std::vector<stream_group> stream::groups() const { return wait(async_groups()); }

// ---- dropping

task<std::int64_t> stream::async_trim_to_length(std::int64_t length, trim how) {
    require(state_->at, length >= 0, "the length must be 0 or more");
    return ask_trim(state_->at, "MAXLEN", length, how);
}
std::int64_t stream::trim_to_length(std::int64_t length, trim how) { return wait(async_trim_to_length(length, how)); }
task<std::int64_t> stream::async_trim_to_id(std::string_view id, trim how) {
    require(state_->at, detail::is_stream_id(id), fmt::format("'{}' is no id; ids are <ms> or <ms>-<number>", id));
    return ask_trim(state_->at, "MINID", id, how);
}
std::int64_t stream::trim_to_id(std::string_view id, trim how) { return wait(async_trim_to_id(id, how)); }

task<std::int64_t> stream::async_remove(ids which) {
    require_ids(state_->at, which);
    std::vector<argument> words{"XDEL", key()};
    append(words, which);
    return then(run(state_->at, words), &as_number);
}
std::int64_t stream::remove(ids which) { return wait(async_remove(std::move(which))); }

task<bool> stream::async_remove_all() { return then(state_->at.command({"DEL", key()}), &as_truth); }
bool stream::remove_all() { return wait(async_remove_all()); }

// ---- groups

task<bool> stream::async_create_group(std::string_view group, std::string_view start) {
    detail::require_consumer_name(state_->at, "group", group);
    require(state_->at, start == "$" || detail::is_stream_id(start), fmt::format("'{}' is no place to start; use \"0\", \"$\" or an id", start));
    return detail::create_group(state_->at, std::string{group}, std::string{start});
}
bool stream::create_group(std::string_view group, std::string_view start) { return wait(async_create_group(group, start)); }
task<bool> stream::async_destroy_group(std::string_view group) {
    detail::require_consumer_name(state_->at, "group", group);
    return or_none(then(state_->at.command({"XGROUP", "DESTROY", key(), group}), &as_truth));
}
bool stream::destroy_group(std::string_view group) { return wait(async_destroy_group(group)); }

task<stream::entries> stream::async_read_pending(std::string_view group, std::string_view consumer, std::string_view after, std::size_t count) {
    detail::require_consumer_name(state_->at, "group", group);
    detail::require_consumer_name(state_->at, "consumer", consumer);
    require(state_->at, detail::is_stream_id(after), fmt::format("'{}' is no id; ids are <ms> or <ms>-<number>", after));
    require(state_->at, count > 0, "the count must be at least 1");
    std::vector<std::string> const words{"XREADGROUP", "GROUP", std::string{group}, std::string{consumer}, "COUNT", std::to_string(count), "STREAMS", key(), std::string{after}};
    return then(detail::run_apart(state_, words, true), &detail::read_of_one);
}
stream::entries stream::read_pending(std::string_view group, std::string_view consumer, std::string_view after, std::size_t count) {
    return wait(async_read_pending(group, consumer, after, count));
}

task<std::int64_t> stream::async_acknowledge(std::string_view group, ids which) {
    require_ids(state_->at, which);
    std::vector<argument> words{"XACK", key(), group};
    append(words, which);
    return then(run(state_->at, words), &as_number);
}
std::int64_t stream::acknowledge(std::string_view group, ids which) { return wait(async_acknowledge(group, std::move(which))); }

task<stream_pending_summary> stream::async_pending(std::string_view group) const {
    return then(state_->at.command({"XPENDING", key(), group}), &as_summary);
}
stream_pending_summary stream::pending(std::string_view group) const { return wait(async_pending(group)); }

task<std::vector<stream_pending>> stream::async_pending_entries(std::string_view group, std::size_t count, std::string_view consumer, milliseconds idle,
                                                                std::string_view from) const {
    std::vector<argument> words{"XPENDING", key(), group};
    if (idle.count() > 0) words.insert(words.end(), {"IDLE", idle.count()});
    words.insert(words.end(), {from, "+", count});
    if (!consumer.empty()) words.emplace_back(consumer);
    return then(run(state_->at, words), &as_pending);
}
std::vector<stream_pending> stream::pending_entries(std::string_view group, std::size_t count, std::string_view consumer, milliseconds idle,
                                                    std::string_view from) const {
    return wait(async_pending_entries(group, count, consumer, idle, from));
}

task<stream::entries> stream::async_claim(std::string_view group, std::string_view consumer, milliseconds idle, ids which) {
    require_ids(state_->at, which);
    detail::require_consumer_name(state_->at, "consumer", consumer);
    std::vector<std::string> words{"XCLAIM", key(), std::string{group}, std::string{consumer}, std::to_string(idle.count())};
    words.insert(words.end(), which.begin(), which.end());
    return then(detail::run_apart(state_, words, false), &as_entries);
}
stream::entries stream::claim(std::string_view group, std::string_view consumer, milliseconds idle, ids which) {
    return wait(async_claim(group, consumer, idle, std::move(which)));
}

task<stream_claimed> stream::async_auto_claim(std::string_view group, std::string_view consumer, milliseconds idle, std::string_view cursor,
                                              std::size_t count) {
    detail::require_consumer_name(state_->at, "consumer", consumer);
    std::vector<std::string> const words{"XAUTOCLAIM", key(), std::string{group}, std::string{consumer}, std::to_string(idle.count()), std::string{cursor}, "COUNT", std::to_string(count)};
    return then(detail::run_apart(state_, words, false), &as_claimed);
}
stream_claimed stream::auto_claim(std::string_view group, std::string_view consumer, milliseconds idle, std::string_view cursor, std::size_t count) {
    return wait(async_auto_claim(group, consumer, idle, cursor, count));
}

// ---- reading

task<stream::entries> stream::async_read(std::string_view after, std::size_t count, milliseconds time) const {
    require(state_->at, after == "$" || detail::is_stream_id(after), fmt::format("'{}' is no place to read from; use \"0\", \"$\" or an id", after));
    require(state_->at, count > 0, "the count must be at least 1");
    return with_public_errors(detail::read_after(state_, std::string{after}, count, time));
}
stream::entries stream::read(std::string_view after, std::size_t count, milliseconds time, std::stop_token token) const {
    return wait(async_read(after, count, time), std::move(token));
}

task<stream::entries> stream::async_read_group(std::string_view group, std::string_view consumer, std::size_t count, milliseconds time) {
    detail::require_consumer_name(state_->at, "group", group);
    detail::require_consumer_name(state_->at, "consumer", consumer);
    require(state_->at, count > 0, "the count must be at least 1");
    return detail::read_for(state_, std::string{group}, std::string{consumer}, count, time);
}
stream::entries stream::read_group(std::string_view group, std::string_view consumer, std::size_t count, milliseconds time, std::stop_token token) {
    return wait(async_read_group(group, consumer, count, time), std::move(token));
}

}  // namespace lockstep
