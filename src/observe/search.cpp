#include "observe/search.hpp"

#include "base/names.hpp"
#include "messaging/glob.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

// Of session stores and limiters, which may have millions of keys, the keys are counted as SCAN shows them and never read or remembered: what
// the server shows twice, while its table shrinks or a slot moves, counts twice.

namespace lockstep::observe {
namespace {

constexpr std::array<std::string_view, 17> kinds{"barrier", "board", "breaker", "broadcast", "counter", "election", "event", "lanes", "latch",
                                                 "lock", "map", "queue", "recursive", "semaphore", "shared", "stream", "value"};
constexpr std::array<std::string_view, 6> limiter_words{"hits", "hits_of", "rate", "rate_of", "window", "window_of"};
constexpr std::string_view job_word = "jobs:q:";
constexpr std::string_view board_word = "board:";  // then the period, then perhaps ":about"

constexpr std::size_t keys_of_a_scan = 500;  // about a millisecond where keys expire, as sessions do
constexpr std::size_t most_types = 1'000;

std::optional<found_object> object_of(std::string key, std::string_view encoded_name, std::string_view kind) {
    auto name = base::decode_name(encoded_name);
    if (!name) return std::nullopt;
    found_object made{.key = std::move(key), .is = {.name = std::move(*name), .kind = std::string{kind}}};
    if (made.key.empty()) made.is.count = 1;
    return made;
}

/// `<prefix>:{<store>/<group>}:session:<id>`
std::optional<found_object> session_of(std::string_view tag) {
    if (tag.size() < 5 || tag[tag.size() - 4] != '/') return std::nullopt;
    return object_of({}, tag.substr(0, tag.size() - 4), "sessions");
}

/// `<prefix>:{<name>}:jobs:q:<type>`, or a part of that.
std::optional<found_object> jobs_of(std::string_view key, std::string_view tag, std::string_view rest) {
    auto const type = rest.substr(0, rest.find(':'));
    if (type.empty()) return std::nullopt;
    auto const whole = key.substr(0, static_cast<std::size_t>(type.data() + type.size() - key.data()));
    auto made = object_of(std::string{whole}, tag, "jobs");
    if (made) made->is.type = type;
    return made;
}

/// Nothing: it is of no object, or of one that is known by another key.
std::optional<found_object> parse_key(std::string_view key, std::string_view prefix) {
    if (!key.starts_with(prefix) || key.substr(prefix.size(), 2) != ":{") return std::nullopt;
    auto const body = key.substr(prefix.size() + 2);
    auto const end = body.find("}:");
    if (end == std::string_view::npos) return std::nullopt;
    auto const tag = body.substr(0, end);
    auto const rest = body.substr(end + 2);
    if (std::find(kinds.begin(), kinds.end(), rest) != kinds.end()) return object_of(std::string{key}, tag, rest);
    if (rest.starts_with(job_word)) return jobs_of(key, tag, rest.substr(job_word.size()));
    if (rest.starts_with(board_word) && !rest.ends_with("about")) return object_of(std::string{key}, tag, "board");
    auto const word = rest.substr(0, rest.find(':'));
    if (word.size() == rest.size()) return std::nullopt;
    if (word == "session") return session_of(tag);
    if (std::find(limiter_words.begin(), limiter_words.end(), word) == limiter_words.end()) return std::nullopt;
    return object_of({}, word.ends_with("_of") ? tag : rest.substr(word.size() + 1), "limiter");
}

struct scan_terms {
    std::string pattern;
    bool all_kinds;
};

bool is_wanted(found_object const& one, scan_terms const& what) {
    if (!what.all_kinds && (one.key.empty() || one.is.kind == "jobs")) return false;
    return what.pattern.empty() || ::fnmatch(what.pattern.c_str(), one.is.name.c_str(), 0) == 0;
}

task<std::vector<found_object>> scan_node(reader from, std::int16_t slot, scan_terms what) {
    std::vector<found_object> found;
    std::unordered_set<std::string> known;
    std::map<std::pair<std::string, std::string>, std::int64_t> counted;
    std::map<std::string, std::string> boards;  // one may have a key for each of many periods
    auto const match = detail::quoted_glob(from.prefix()) + ":{*";
    std::string cursor = "0";
    do {
        auto asking = from.command(slot, {"SCAN", cursor, "MATCH", match, "COUNT", std::to_string(keys_of_a_scan)});
        auto const said = co_await std::move(asking);
        cursor = said[0].text();
        for (auto const key : said[1]) {
            auto one = parse_key(key.text(), from.prefix());
            if (!one || !is_wanted(*one, what)) continue;
            if (one->key.empty()) {
                ++counted[{std::move(one->is.name), std::move(one->is.kind)}];
            } else if (one->is.kind == "board") {
                auto& newest = boards[one->is.name];
                if (one->key > newest) newest = std::move(one->key);
            } else if (known.insert(one->key).second) {
                found.push_back(std::move(*one));
            }
        }
    } while (cursor != "0");
    for (auto& [name, key] : boards) found.push_back({.key = std::move(key), .is = {.name = name, .kind = "board"}});
    for (auto const& [what_it_is, count] : counted) found.push_back({.key = {}, .is = {.name = what_it_is.first, .kind = what_it_is.second, .count = count}});
    co_return found;
}

/// In order, and each once: of a Cluster, several nodes have keys of one limiter, and while a slot moves both nodes may have shown a key. A board has a key
/// for each period, of which the newest, which is the largest, is read.
void merge(std::vector<found_object>& all) {
    std::sort(all.begin(), all.end(), [](found_object const& a, found_object const& b) {
        return comes_before(a.is, b.is) || (!comes_before(b.is, a.is) && a.key > b.key);
    });
    std::vector<found_object> merged;
    for (auto& one : all) {
        if (merged.empty() || comes_before(merged.back().is, one.is)) {
            merged.push_back(std::move(one));
        } else if (one.key.empty()) {
            merged.back().is.count += one.is.count;
        }
    }
    all = std::move(merged);
}

/// All that can be found without looking through all keys.
task<std::vector<found_object>> find_by_name(reader from, std::string name, bool all_kinds) {
    std::vector<found_object> all;
    for (auto const kind : kinds) all.push_back({.key = from.key(name, kind), .is = {.name = name, .kind = std::string{kind}}});
    if (!all_kinds) co_return all;
    auto const types = from.key(name, "jobs:types");
    auto asking = from.at(types, {"ZRANGE", types, "0", std::to_string(most_types - 1)});
    auto const said = co_await std::move(asking);
    for (auto const type : said) {
        auto& made = all.emplace_back();
        made.key = from.key(name, std::string{job_word} + std::string{type.text()});
        made.is.name = name;
        made.is.kind = "jobs";
        made.is.type = type.text();
    }
    co_return all;
}

task<std::vector<found_object>> find_by_keys(reader from, scan_terms what) {
    auto asking = from.nodes();
    auto const nodes = co_await std::move(asking);
    std::vector<task<std::vector<found_object>>> scans;
    for (auto const slot : nodes) scans.push_back(scan_node(from, slot, what));
    auto scanning = when_all(std::move(scans));
    auto lists = co_await std::move(scanning);
    std::vector<found_object> all;
    for (auto& list : lists) std::move(list.begin(), list.end(), std::back_inserter(all));
    co_return all;
}

}  // namespace

bool comes_before(object_info const& a, object_info const& b) { return std::tie(a.name, a.kind, a.type) < std::tie(b.name, b.kind, b.type); }

task<std::vector<found_object>> find_objects(reader from, survey_terms const& what, std::size_t& left_out) {
    std::vector<found_object> all;
    if (what.name.empty()) {
        scan_terms const how{what.pattern, what.all_kinds};
        auto finding = find_by_keys(from, how);
        all = co_await std::move(finding);
    } else {
        auto finding = find_by_name(from, what.name, what.all_kinds);
        all = co_await std::move(finding);
    }
    if (what.all_kinds) {
        auto finding = find_buses(from, what.name, what.pattern, left_out);
        auto buses = co_await std::move(finding);
        std::move(buses.begin(), buses.end(), std::back_inserter(all));
    }
    merge(all);
    co_return all;
}

}  // namespace lockstep::observe
