#include "leftovers.hpp"

#include <algorithm>
#include <map>

namespace lockstep::chaos {
namespace {

using fields = std::map<std::string, std::string>;

std::string kind_of(std::string const& key) { return key.substr(key.rfind(':') + 1); }
bool is_pool(std::string const& kind) { return kind == "semaphore" || kind == "shared" || kind == "event"; }

std::vector<std::string> keys_of(test::redis_server& server, std::string const& pattern) {
    std::vector<std::string> found;
    for (auto const& key : server.must({"KEYS", pattern}).elements) found.push_back(key.text);
    return found;
}

fields read(test::redis_server& server, std::string const& key) {
    auto const hash = server.must({"HGETALL", key}).elements;
    fields found;
    for (std::size_t i = 0; i + 1 < hash.size(); i += 2) found[hash[i].text] = hash[i + 1].text;
    return found;
}

// A lock that nobody holds or wants keeps its format, its last fence, and until when it is kept; "t" is how long the last lease was.
bool lock_may_have(std::string const& field) { return std::string_view{"vfxt"}.find(field) != std::string_view::npos; }

// A pool keeps besides how many permits it has (an event: none, all signals were taken), when the last lease would have ended, and which
// calls it has counted.
bool pool_may_have(std::string const& kind, std::string const& field, std::string const& value) {
    if (field == "c") return kind != "event" || value == "0";
    if (field[0] == 'a' || field[0] == 'r') return kind == "event";
    return std::string_view{"vtxbd"}.find(field) != std::string_view::npos;
}

// At a barrier nobody has arrived, runs the completion function or waits for that. Of earlier meetings it remembers how they ended and
// who was there.
bool barrier_may_have(std::string const& field, std::string const& value) {
    if (field == "a" || field == "d") return value == "0";
    if (field == "r" || field == "e") return value.empty();
    return field != "w" || value == " ";
}

// An election keeps besides who led last.
bool election_may_have(std::string const& field) { return lock_may_have(field) || field == "n"; }

// A queue that has nothing and nobody keeps its state, whether it remembers keys, its limits, and how many dead letters were dropped.
bool queue_may_have(std::string const& field) { return field == "v" || field == "k" || field == "o" || field == "n"; }

// One with lanes besides those of workers that were killed while they waited.
bool lanes_may_have(std::string const& field) { return queue_may_have(field) || field[0] == 'w'; }

// Of jobs that were all forgotten there are the hashes of their queues, the types, and how many there were.
bool is_of_jobs(std::string const& key) { return key.find("}:jobs:") != std::string::npos; }
bool jobs_may_have(std::string const& key) {
    auto const part = key.substr(key.find("}:jobs:") + 7);
    if (part == "types") return true;
    return part.starts_with("q:") && part.ends_with(":stats");
}
// A queue of jobs knows besides whether others wait for them.
bool is_queue_of_jobs(std::string const& key) { return is_of_jobs(key) && key.find("}:jobs:q:") != std::string::npos && key.find(':', key.find("}:jobs:q:") + 9) == std::string::npos; }

bool may_have(std::string const& kind, std::string const& field, std::string const& value) {
    if (kind == "queue") return queue_may_have(field);
    if (kind == "stealing") return lanes_may_have(field);
    if (kind == "lock") return lock_may_have(field);
    if (kind == "election" || kind == "scheduler") return election_may_have(field);
    if (kind == "barrier") return barrier_may_have(field, value);
    return is_pool(kind) && pool_may_have(kind, field, value);
}

// What expires and may hold anything: what killed workers said of themselves, which objects there were, what all have counted, which calls were made, keys of items
// that are done, and what was let in. Not who waits for items: whoever enqueues finds out that nobody does.
bool goes_by_itself(std::string const& key) {
    auto const has = [&](char const* part) { return key.find(part) != std::string::npos; };
    if (key.starts_with("lockstep:{clients}:") || key.starts_with("lockstep:{objects/") || key == "lockstep:{statistics}:names") return true;
    if (has("}:hits:") || has("}:window:") || has("}:rate:")) return true;
    if (is_of_jobs(key)) return has(":call:") || key.ends_with(":dedup") || key.ends_with(":recent");
    return has(":queue:call:") || has(":stealing:call:") || key.ends_with(":queue:dedup") || key.ends_with(":queue:recent") || has(":stream:adds:") || has(":stream:returned:");
}

std::vector<std::string> channels_of(test::redis_server& server) {
    std::vector<std::string> found;
    for (auto const* const kind : {"CHANNELS", "SHARDCHANNELS"}) {
        for (auto const& channel : server.must({"PUBSUB", kind, "lockstep:*"}).elements) found.push_back(channel.text);
    }
    return found;
}

}  // namespace

std::vector<std::string> left_by_the_living(world& where, std::string_view kinds, bool with_events) {
    std::vector<std::string> found;
    for (auto* const server : where.masters()) {
        auto const channels = channels_of(*server);
        auto const is_connected = [&](std::string const& client) {
            return std::any_of(channels.begin(), channels.end(),
                               [&](auto const& one) { return one.ends_with(":wake:" + client); });
        };
        for (auto const& key : keys_of(*server, "lockstep:*")) {
            auto const kind = kind_of(key);
            bool const is_of_queue = key.find(":queue:") != std::string::npos || key.find(":stealing:") != std::string::npos || is_of_jobs(key);
            if (is_of_queue && (key.ends_with(":waiting") || key.ends_with(":room"))) {
                for (auto const& name : server->must({"ZRANGE", key, "0", "-1"}).elements) {
                    if (with_events && is_connected(name.text.substr(0, name.text.find('.')))) found.push_back(key + ": " + name.text);
                }
                continue;
            }
            if ((kind != "lock" && kind != "election" && !is_pool(kind)) || (kind == "event" && !with_events)) continue;
            for (auto const& [field, value] : read(*server, key)) {
                if (kinds.find(field[0]) == std::string_view::npos) continue;
                auto const hold = field[0] == 'w' ? field.substr(1) : value;
                auto const client = hold.substr(0, hold.find('.'));
                if (client != "*" && is_connected(client)) found.push_back(key + ": " + field + " of " + hold);
            }
        }
    }
    return found;
}

std::vector<std::string> leftovers(world& where) {
    std::vector<std::string> found;
    for (auto* const server : where.masters()) {
        for (auto const& key : keys_of(*server, "*")) {
            auto const expires = server->must({"PTTL", key}).integer;
            if ((goes_by_itself(key) && expires > 0) || (is_of_jobs(key) && jobs_may_have(key))) continue;
            if (expires < 0) found.push_back(key + " does not expire");
            if (auto const type = server->must({"TYPE", key}).text; type != (kind_of(key) == "changes" ? "stream" : "hash")) {
                found.push_back(key + ", a " + type);
                continue;
            }
            if (kind_of(key) == "changes") continue;
            auto const kind = is_queue_of_jobs(key) ? "queue" : kind_of(key);
            for (auto const& [field, value] : read(*server, key)) {
                if (!may_have(kind, field, value)) found.push_back(key + " has " + field + " = " + value);
            }
        }
        for (auto const& channel : channels_of(*server)) found.push_back("channel " + channel);
    }
    return found;
}

std::vector<event_state> events_at(world& where) {
    std::vector<event_state> found;
    for (auto* const server : where.masters()) {
        for (auto const& key : keys_of(*server, "lockstep:*:event")) {
            auto const hash = read(*server, key);
            auto const begin = key.find('{') + 1;
            auto const count = hash.find("c");
            found.push_back({.name = key.substr(begin, key.rfind('}') - begin),
                             .signals = count == hash.end() ? 0 : std::stoll(count->second),
                             .is_waited_for = hash.contains("h"),
                             .in_use = hash.contains("n")});
        }
    }
    return found;
}

}  // namespace lockstep::chaos
