#include "observe/census.hpp"

#include "base/names.hpp"
#include "base/stored_time.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

namespace lockstep::observe {
namespace {

constexpr std::size_t requests_at_once = 100;

std::int64_t as_number(std::string_view text) {
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

/// A line of `holds` or `waits`: kind, use, how many, permits, fence or ms, name. Nothing: it is none.
struct line {
    std::string kind, use, name;
    std::int64_t number = 0, permits = 0, last = 0;
};
std::optional<line> parse(std::string_view text) {
    auto const next = [&text] {
        auto const end = text.find(' ');
        auto const word = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        return word;
    };
    line one;
    one.kind = next();
    one.use = next();
    one.number = as_number(next());
    one.permits = as_number(next());
    one.last = as_number(next());
    auto name = base::decode_name(text);
    if (!name || name->empty()) return std::nullopt;
    one.name = std::move(*name);
    return one;
}

template <class F>
void for_each_line(std::string_view text, F what) {
    while (!text.empty()) {
        auto const end = text.find('\n');
        if (auto one = parse(text.substr(0, end))) what(std::move(*one));
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
}

citizen read_citizen(std::string id, reply_view fields) {
    citizen one;
    one.is.id = std::move(id);
    std::string_view holds, waits;
    for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
        auto const field = fields[i].text();
        auto const value = fields[i + 1].text();
        if (field == "name") one.is.name = value;
        if (field == "host") one.is.host = value;
        if (field == "version") one.is.version = value;
        if (field == "pid") one.is.pid = as_number(value);
        if (field == "held") one.is.held = as_number(value);
        if (field == "waiting") one.is.waiting = as_number(value);
        if (field == "said") one.said_ms = as_number(value);
        if (field == "since") one.is.since = base::time_of_ms(as_number(value));
        if (field == "holds") holds = value;
        if (field == "waits") waits = value;
    }
    for_each_line(holds, [&](line said) {
        one.holds.push_back({std::move(said.kind), std::move(said.use), std::move(said.name), static_cast<std::uint64_t>(said.last)});
    });
    for_each_line(waits, [&](line said) {
        one.waits.push_back({std::move(said.kind), std::move(said.use), std::move(said.name), said.number, said.permits, one.said_ms - said.last});
    });
    return one;
}

/// A client listens on one node of a Cluster, and each node knows only its own listeners.
task<void> find_connected(reader from, census& all) {
    if (all.empty()) co_return;
    auto asking = from.nodes();
    auto const nodes = co_await std::move(asking);
    std::vector<task<reply>> questions;
    for (auto const slot : nodes) {
        std::vector<std::string> words{"PUBSUB", "NUMSUB"};
        auto const flush = [&] {
            if (words.size() > 2) questions.push_back(from.command(slot, std::exchange(words, {"PUBSUB", "NUMSUB"})));
        };
        for (auto& [id, one] : all) {
            one.is.connected = false;
            words.push_back(from.prefix() + ":wake:" + id);
            if (words.size() == 502) flush();
        }
        flush();
    }
    auto running = in_groups(std::move(questions), requests_at_once);
    auto const answers = co_await std::move(running);
    for (auto const& answer : answers) {
        for (std::size_t i = 0; i + 1 < answer.size(); i += 2) {
            auto const channel = answer[i].text();
            auto const found = all.find(channel.substr(channel.rfind(':') + 1));
            if (found != all.end() && answer[i + 1].integer() > 0) found->second.is.connected = true;
        }
    }
}

}  // namespace

task<census> take_census(reader from) {
    auto const index = from.key("clients", "index");
    auto asking = from.at(index, {"ZRANGE", index, "0", "-1"});
    auto const said = co_await std::move(asking);
    std::vector<std::string> ids;
    for (auto const id : said) ids.emplace_back(id.text());
    auto reading = take_census(std::move(from), std::move(ids));
    co_return co_await std::move(reading);
}

task<census> take_census(reader from, std::vector<std::string> ids) {
    std::vector<task<reply>> questions;
    for (auto const& id : ids) {
        auto const key = from.key("clients", id);
        questions.push_back(from.at(key, {"HGETALL", key}));
    }
    auto asking = in_groups(std::move(questions), requests_at_once);
    auto const answers = co_await std::move(asking);
    census all;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (answers[i].size() != 0) all.emplace(ids[i], read_citizen(ids[i], answers[i]));
    }
    auto looking = find_connected(from, all);
    co_await std::move(looking);
    co_return all;
}

task<bool> nudge(reader from, std::vector<std::string> ids, std::chrono::milliseconds time, std::chrono::milliseconds pace) {
    auto const wish = pace.count() == 0 ? fmt::format("?{}", time.count()) : fmt::format("?{} {}", time.count(), pace.count());
    std::vector<task<reply>> messages;
    for (auto const& id : ids) messages.push_back(from.command(-1, {"PUBLISH", from.prefix() + ":wake:" + id, wish}));
    auto sending = in_groups(std::move(messages), requests_at_once);
    try {
        co_await std::move(sending);
    } catch (server_error const& problem) {
        if (problem.prefix() != "NOPERM") throw;  // `lockstep acl --for look` allows no message
        co_return false;
    }
    co_return true;
}

}  // namespace lockstep::observe
