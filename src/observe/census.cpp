#include "observe/census.hpp"

#include "base/names.hpp"
#include "base/stored_time.hpp"
#include "lease/registration.hpp"
#include "resp/cursor.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

namespace lockstep::observe {
namespace {

constexpr std::size_t requests_at_once = 100;
constexpr std::size_t ids_of_a_page = 1'000;
constexpr std::size_t most_clients = 10'000;
constexpr std::size_t clients_of_a_script = 50;

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
    for (std::size_t left = engine::registration::most_lines; !text.empty() && left != 0; --left) {
        auto const end = text.find('\n');
        if (auto one = parse(text.substr(0, end))) what(std::move(*one));
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
}

/// What a client calls itself is shown with each of its holds and waits. Cut before a character of UTF-8 that would not be whole.
constexpr std::size_t longest_text = 256;
std::string cut(std::string_view text) {
    if (text.size() <= longest_text) return std::string{text};
    auto end = longest_text;
    while (end != 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    return std::string{text.substr(0, end)};
}

/// In the order in which read_citizen reads them.
constexpr std::array fields_of_a_client{"name", "host", "version", "pid", "held", "waiting", "said", "since", "parent", "holds", "waits"};

citizen read_citizen(std::string id, reply_view values) {
    citizen one;
    one.is.id = std::move(id);
    std::string_view holds, waits;
    resp::cursor rest{values};
    one.is.name = cut(rest.next().text());
    one.is.host = cut(rest.next().text());
    one.is.version = cut(rest.next().text());
    one.is.pid = as_number(rest.next().text());
    one.is.held = as_number(rest.next().text());
    one.is.waiting = as_number(rest.next().text());
    one.said_ms = as_number(rest.next().text());
    one.is.since = base::time_of_ms(as_number(rest.next().text()));
    if (auto const parent = rest.next().text(); parent.size() <= base::max_name_bytes) one.is.parent = parent;  // otherwise it is no client's id
    holds = rest.next().text();
    waits = rest.next().text();
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
        for (resp::cursor rest{answer}; rest.left() >= 2;) {
            auto const channel = rest.next().text();
            auto const listeners = rest.next().integer();
            auto const found = all.find(channel.substr(channel.rfind(':') + 1));
            if (found != all.end() && listeners > 0) found->second.is.connected = true;
        }
    }
}

/// Ids of those that are registered, those that said something last first.
task<std::vector<std::string>> list_clients(reader from) {
    auto const index = from.key("clients", "index");
    std::vector<std::string> ids;
    std::set<std::string, std::less<>> known;  // one that says something meanwhile comes up to the front, and moves the others back
    try {
        for (std::size_t at = 0;; at += ids_of_a_page) {
            auto asking = from.at(index, {"ZREVRANGE", index, std::to_string(at), std::to_string(at + ids_of_a_page - 1)});
            auto const page = co_await std::move(asking);
            for (auto const id : page) {
                if (known.emplace(id.text()).second) ids.emplace_back(id.text());
            }
            if (page.size() < ids_of_a_page) break;
            if (ids.size() < most_clients && !from.is_time_over()) continue;
            from.note(index, fmt::format("only the {} clients that wrote last are shown", ids.size()));
            break;
        }
    } catch (server_error const& problem) {
        from.note_or_throw(index, problem);
    }
    co_return ids;
}

task<census> read_clients(reader from, std::vector<std::string> ids) {
    std::vector<std::string> keys;
    std::erase_if(ids, [](std::string const& id) { return id.empty() || id.size() > base::max_name_bytes; });  // none of ours
    census all;
    if (ids.empty()) co_return all;
    for (auto const& id : ids) keys.push_back(from.key("clients", id));
    std::vector<std::string> words{std::to_string(engine::registration::most_bytes)};
    words.insert(words.end(), fields_of_a_client.begin(), fields_of_a_client.end());
    auto asking = from.script(scripts::client_read, keys, words);
    auto const answer = co_await std::move(asking);
    resp::cursor rest{answer};
    for (std::size_t i = 0; i < ids.size() && rest.left() != 0; ++i) {
        auto const found = rest.next();
        if (found.is_text()) {
            from.note(keys[i], found.text());
        } else if (found.size() == fields_of_a_client.size()) {
            all.emplace(ids[i], read_citizen(ids[i], found));
        }
    }
    co_return all;
}

}  // namespace

task<census> take_census(reader from) {
    auto listing = list_clients(from);
    auto ids = co_await std::move(listing);
    auto reading = take_census(std::move(from), std::move(ids));
    co_return co_await std::move(reading);
}

task<census> take_census(reader from, std::vector<std::string> ids) {
    census all;
    for (std::size_t done = 0; done < ids.size(); done += clients_of_a_script) {
        auto const end = std::min(ids.size(), done + clients_of_a_script);
        auto reading = read_clients(from, {ids.begin() + static_cast<std::ptrdiff_t>(done), ids.begin() + static_cast<std::ptrdiff_t>(end)});
        auto some = co_await std::move(reading);
        all.merge(std::move(some));
        if (end == ids.size() || (end < most_clients && !from.is_time_over())) continue;
        from.note(from.key("clients", "index"), fmt::format("only {} of {} clients are read", end, ids.size()));
        break;
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
