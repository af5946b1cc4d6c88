#include "observe/search.hpp"

#include "base/names.hpp"
#include "core/object_kinds.hpp"
#include "messaging/glob.hpp"
#include "observe/listing.hpp"
#include "observe/offload.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

// Of session stores and limiters, which may have millions of keys, the keys are counted as SCAN shows them and never read or remembered: what
// the server shows twice, while its table shrinks or a slot moves, counts twice.

namespace lockstep::observe {
namespace {

constexpr std::array<std::string_view, 6> limiter_words{"hits", "hits_of", "rate", "rate_of", "window", "window_of"};
using detail::object_kinds;

constexpr std::string_view job_word = "jobs:q:";
constexpr std::string_view types_word = "jobs:types";
constexpr std::string_view sessions_word = "sessions";
constexpr std::string_view limiter_word = "limiter";
constexpr std::string_view board_word = "board:";  // then the period, then perhaps ":about"

constexpr std::size_t keys_of_a_scan = 500;  // about a millisecond where keys expire, as sessions do
constexpr std::size_t most_keys = 100'000'000;  // of a server
constexpr std::size_t most_found = 200'000;     // objects, some 150 MB
constexpr std::size_t most_types = 1'000;
constexpr std::size_t newest_boards = 3;
constexpr std::size_t requests_at_once = 50;

std::optional<found_object> object_of(std::string key, std::string_view encoded_name, std::string_view kind) {
    auto name = base::decode_name(encoded_name);
    if (!name) return std::nullopt;
    // Its users know a work_stealing_queue by its lanes.
    found_object made{.key = std::move(key), .is = {.name = std::move(*name), .kind = std::string{kind == "stealing" ? "lanes" : kind}}};
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
    if (std::find(object_kinds.begin(), object_kinds.end(), rest) != object_kinds.end()) return object_of(std::string{key}, tag, rest);
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

bool fits(std::string const& name, std::string const& pattern) { return pattern.empty() || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; }

bool is_wanted(found_object const& one, scan_terms const& what) {
    if (!what.all_kinds && (one.key.empty() || one.is.kind == "jobs")) return false;
    return fits(one.is.name, what.pattern);
}

task<std::vector<found_object>> scan_node(reader from, std::int16_t slot, scan_terms what) {
    std::vector<found_object> found;
    std::unordered_set<std::string> known;
    std::map<std::pair<std::string, std::string>, std::int64_t> counted;
    std::map<std::string, std::string> boards;  // one may have a key for each of many periods
    auto const match = detail::quoted_glob(from.prefix()) + ":{*";
    std::string cursor = "0";
    walk_limit limit{from, "SCAN " + match, keys_of_a_scan, most_keys};
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
        if (found.size() + counted.size() + boards.size() < most_found) continue;
        from.note("SCAN " + match, fmt::format("only a part was read: there are more than {} objects", most_found));
        break;
    } while (cursor != "0" && limit.goes_on());
    for (auto& [name, key] : boards) found.push_back({.key = std::move(key), .is = {.name = name, .kind = "board"}});
    for (auto const& [what_it_is, count] : counted) found.push_back({.key = {}, .is = {.name = what_it_is.first, .kind = what_it_is.second, .count = count}});
    co_return found;
}

/// In order, and each key once: of a Cluster, several nodes have keys of one limiter, and while a slot moves both nodes may have shown a key.
std::vector<found_object> merge(std::vector<found_object> all) {
    std::sort(all.begin(), all.end(), [](found_object const& a, found_object const& b) {
        return comes_before(a.is, b.is) || (!comes_before(b.is, a.is) && a.key > b.key);
    });
    std::vector<found_object> merged;
    for (auto& one : all) {
        if (merged.empty() || comes_before(merged.back().is, one.is) || merged.back().key != one.key) {
            merged.push_back(std::move(one));
        } else if (one.key.empty()) {
            merged.back().is.count += one.is.count;
        }
    }
    return merged;
}

task<std::vector<std::string>> types_of(reader from, std::string name) {
    auto const key = from.key(name, types_word);
    std::vector<std::string> types;
    if (from.is_late()) co_return types;
    try {
        auto asking = from.at(key, {"ZRANGE", key, "0", std::to_string(most_types - 1)});
        auto const said = co_await std::move(asking);
        for (auto const type : said) types.emplace_back(type.text());
    } catch (server_error const& problem) {
        from.note_or_throw(key, problem);
    }
    co_return types;
}

/// The jobs of these names, by their types.
task<std::vector<found_object>> read_types(reader from, std::vector<std::string> names) {
    std::vector<task<std::vector<std::string>>> questions;
    for (auto const& name : names) questions.push_back(types_of(from, name));
    auto asking = in_groups(std::move(questions), requests_at_once);
    auto const answers = co_await std::move(asking);
    std::vector<found_object> all;
    for (std::size_t i = 0; i < names.size(); ++i) {
        for (auto const& type : answers[i]) {
            auto& made = all.emplace_back();
            made.key = from.key(names[i], std::string{job_word} + type);
            made.is.name = names[i];
            made.is.kind = "jobs";
            made.is.type = type;
        }
    }
    co_return all;
}

/// Session stores and limiters that were used lately. How many sessions or keys they have only a look through all keys tells.
task<std::vector<found_object>> uncounted_of(reader from, std::vector<listed_object> listed) {
    std::vector<found_object> all;
    if (listed.empty()) co_return all;
    auto asking = from.command(0, {"TIME"});
    auto const time = co_await std::move(asking);
    auto const now_ms = time[0].as<std::int64_t>() * 1'000;
    for (auto const& one : listed) {
        auto const end = one.key.rfind("}:");
        if (end == std::string::npos || one.until_ms < now_ms) continue;
        auto const word = std::string_view{one.key}.substr(end + 2);
        if (word != sessions_word && word != limiter_word) continue;
        auto const tag = std::string_view{one.key}.substr(from.prefix().size() + 2, end - from.prefix().size() - 2);
        auto made = object_of({}, tag, word);
        if (!made) continue;
        made->is.count = -1;
        all.push_back(std::move(*made));
    }
    co_return all;
}

/// All that can be found without looking through all keys.
task<std::vector<found_object>> find_by_name(reader from, std::string name, bool all_kinds) {
    std::vector<found_object> all;
    for (auto const kind : object_kinds) {
        if (auto one = object_of(from.key(name, kind), base::encode_name(name), kind)) all.push_back(std::move(*one));
    }
    if (!all_kinds) co_return all;
    auto reading = read_types(from, {name});
    auto jobs = co_await std::move(reading);
    std::move(jobs.begin(), jobs.end(), std::back_inserter(all));
    std::vector<std::string> const uncounted{from.key(name, sessions_word), from.key(name, limiter_word)};
    auto asking = find_in_index(from, uncounted);
    auto const listed = co_await std::move(asking);
    auto adding = uncounted_of(from, listed);
    auto found = co_await std::move(adding);
    std::move(found.begin(), found.end(), std::back_inserter(all));
    co_return all;
}

/// What the index names, as far as it says what that is.
struct sorted_index {
    std::vector<found_object> objects;
    std::vector<std::string> of_jobs;  ///< names that have types of jobs
    std::vector<listed_object> others;
};

sorted_index sort_out(std::vector<listed_object> const& listed, std::string const& prefix, scan_terms const& what) {
    sorted_index all;
    std::map<std::string, std::set<std::string, std::greater<>>> boards;
    for (auto const& one : listed) {
        auto made = parse_key(one.key, prefix);
        if (made && !made->key.empty() && is_wanted(*made, what)) {
            if (made->is.kind == "board") {
                boards[made->is.name].insert(std::move(made->key));
            } else {
                all.objects.push_back(std::move(*made));
            }
        }
        if (made || !what.all_kinds) continue;
        auto const end = one.key.rfind("}:");
        auto const name = end == std::string::npos ? std::nullopt : base::decode_name(std::string_view{one.key}.substr(prefix.size() + 2, end - prefix.size() - 2));
        if (!name || !fits(*name, what.pattern)) continue;
        if (one.key.ends_with(types_word)) {
            all.of_jobs.push_back(*name);
        } else {
            all.others.push_back(one);
        }
    }
    // The newest period that is still there is what is shown: a board of which its last member was removed is gone.
    for (auto& [name, keys] : boards) {
        std::size_t left = newest_boards;
        for (auto const& key : keys) {
            if (left-- == 0) break;
            all.objects.push_back({.key = key, .is = {.name = name, .kind = "board"}});
        }
    }
    return all;
}

task<std::vector<found_object>> find_by_index(reader from, scan_terms what) {
    auto reading = read_index(from);
    auto listed = co_await std::move(reading);
    auto const size = listed.size();
    auto work = [listed = std::move(listed), prefix = from.prefix(), what] { return sort_out(listed, prefix, what); };
    auto sorting = offload(from, size, std::move(work));
    auto all = co_await std::move(sorting);
    auto reading_types = read_types(from, std::move(all.of_jobs));
    auto jobs = co_await std::move(reading_types);
    std::move(jobs.begin(), jobs.end(), std::back_inserter(all.objects));
    auto adding = uncounted_of(from, std::move(all.others));
    auto uncounted = co_await std::move(adding);
    std::move(uncounted.begin(), uncounted.end(), std::back_inserter(all.objects));
    co_return std::move(all.objects);
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
        auto finding = what.scan ? find_by_keys(from, how) : find_by_index(from, how);
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
    auto const size = all.size();
    auto work = [all = std::move(all)]() mutable { return merge(std::move(all)); };
    auto merging = offload(from, size, std::move(work));
    co_return co_await std::move(merging);
}

}  // namespace lockstep::observe
