#include "observe/search.hpp"

#include "base/names.hpp"
#include "messaging/glob.hpp"
#include "observe/facts.hpp"
#include "resp/cursor.hpp"

#include <lockstep/error.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

// An event bus has no keys, only channels: `<prefix>:{<channel>}:bus:<bus>`. Who listens by a pattern the server tells nobody. It lists its channels all at
// once or not at all, so it is asked first how many there are.

namespace lockstep::observe {
namespace {

constexpr std::size_t channels_at_once = 500;
constexpr std::size_t requests_at_once = 50;
constexpr std::int64_t most_channels = 5'000;  // of a server, of any kind: that takes it about 2 ms
constexpr std::size_t most_listed = 100;       // of each bus, as groups of a stream
constexpr std::string_view bus_word = "}:bus:";

using channels = std::map<std::string, std::int64_t>;  // and their subscribers

struct heard {
    channels of_buses;
    std::size_t left_out = 0;  ///< servers that have too many
};

/// How a node is asked: plain channels, or in a Cluster also sharded ones.
struct question {
    std::int16_t slot;
    char const* list;
    char const* count;
    char const* total;  ///< in INFO
};

task<heard> channels_at(reader from, question what, std::string match) {
    auto looking = from.command(what.slot, {"INFO", "stats"});
    auto const stats = co_await std::move(looking);
    if (fields::of_lines(stats.text()).number_or(what.total, 0) > most_channels) co_return heard{.of_buses = {}, .left_out = 1};
    auto asking = from.command(what.slot, {"PUBSUB", what.list, std::move(match)});
    auto const said = co_await std::move(asking);
    std::vector<task<reply>> questions;
    std::vector<std::string> const begin{"PUBSUB", what.count};
    auto words = begin;
    for (resp::cursor rest{said}; rest.left() != 0;) {
        words.emplace_back(rest.next().text());
        if (words.size() < begin.size() + channels_at_once && rest.left() != 0) continue;
        questions.push_back(from.command(what.slot, std::exchange(words, begin)));
    }
    auto counting = in_groups(std::move(questions), requests_at_once);
    auto const answers = co_await std::move(counting);
    heard found;
    for (auto const& answer : answers) {
        for (resp::cursor rest{answer}; rest.left() >= 2;) {
            std::string channel{rest.next().text()};
            if (auto const subscribers = rest.next().integer(); subscribers > 0) found.of_buses[std::move(channel)] += subscribers;
        }
    }
    co_return found;
}

struct bus_channel {
    std::string bus, channel;
};

std::optional<bus_channel> parse_channel(std::string_view whole, std::string_view prefix) {
    if (!whole.starts_with(prefix) || whole.substr(prefix.size(), 2) != ":{") return std::nullopt;
    auto const body = whole.substr(prefix.size() + 2);
    auto const end = body.find(bus_word);
    if (end == std::string_view::npos) return std::nullopt;
    auto channel = base::decode_name(body.substr(0, end));
    auto bus = base::decode_name(body.substr(end + bus_word.size()));
    if (!channel || !bus) return std::nullopt;
    return bus_channel{std::move(*bus), std::move(*channel)};
}

found_object describe(std::string name, channels const& all) {
    found_object made{.key = {}, .is = {.name = std::move(name), .kind = "bus", .count = static_cast<std::int64_t>(all.size())}};
    auto& listed = made.is.groups;
    for (auto const& [channel, subscribers] : all) {
        made.is.taken += subscribers;
        listed.push_back({.name = channel, .consumers = static_cast<std::size_t>(subscribers)});
    }
    std::sort(listed.begin(), listed.end(), [](group_info const& a, group_info const& b) { return std::tie(b.consumers, a.name) < std::tie(a.consumers, b.name); });
    if (listed.size() > most_listed) listed.resize(most_listed);
    return made;
}

task<heard> all_channels(reader from, std::string match) {
    auto asking = from.nodes();
    auto const nodes = co_await std::move(asking);
    std::vector<task<heard>> questions;
    for (auto const slot : nodes) {
        question const plain{slot, "CHANNELS", "NUMSUB", "pubsub_channels"};
        question const sharded{slot, "SHARDCHANNELS", "SHARDNUMSUB", "pubsubshard_channels"};
        questions.push_back(channels_at(from, plain, match));
        if (from.owner()->is_cluster()) questions.push_back(channels_at(from, sharded, match));
    }
    heard all;
    try {
        auto running = when_all(std::move(questions));
        auto const answers = co_await std::move(running);
        for (auto const& answer : answers) {
            all.left_out += answer.left_out;
            for (auto const& [channel, subscribers] : answer.of_buses) all.of_buses[channel] += subscribers;
        }
    } catch (server_error const& problem) {
        if (problem.prefix() != "NOPERM") throw;  // that needs `lockstep acl --scan`
    }
    co_return all;
}

}  // namespace

task<std::vector<found_object>> find_buses(reader from, std::string name, std::string pattern, std::size_t& left_out) {
    auto const wanted = name.empty() ? std::string{"*"} : detail::quoted_glob(base::encode_name(name));
    auto asking = all_channels(from, detail::quoted_glob(from.prefix()) + ":{*" + std::string{bus_word} + wanted);
    auto const all = co_await std::move(asking);
    left_out += all.left_out;
    std::map<std::string, channels> buses;
    for (auto const& [whole, subscribers] : all.of_buses) {
        auto const one = parse_channel(whole, from.prefix());
        if (!one || (!pattern.empty() && ::fnmatch(pattern.c_str(), one->bus.c_str(), 0) != 0)) continue;
        buses[one->bus][one->channel] += subscribers;
    }
    std::vector<found_object> found;
    for (auto const& [bus, of_it] : buses) found.push_back(describe(bus, of_it));
    co_return found;
}

}  // namespace lockstep::observe
