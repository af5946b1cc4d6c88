#include "observe/listing.hpp"

#include "core/object_index.hpp"
#include "resp/cursor.hpp"

#include <charconv>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace lockstep::observe {
namespace {

using detail::object_index;

constexpr std::size_t members_of_a_scan = 500;
constexpr std::size_t largest_member = 2'048;  // a key without the prefix, and its score
constexpr std::size_t most_members = 1'000'000 / object_index::shards;  // of one shard

/// A score as the server writes it: whole milliseconds, perhaps as 1.7e+12.
std::int64_t as_ms(std::string_view text) {
    double score = 0;
    std::from_chars(text.data(), text.data() + text.size(), score);
    return static_cast<std::int64_t>(score);
}

task<std::vector<listed_object>> read_shard(reader from, unsigned shard) {
    auto const key = object_index::key_of(from.prefix(), shard);
    std::unordered_map<std::string, std::int64_t> found;  // a member may be shown twice
    std::string cursor = "0";
    walk_limit limit{from, key, members_of_a_scan, most_members};
    try {
        do {
            auto asking = scan_page(from, "ZSCAN", key, cursor, members_of_a_scan, largest_member);
            auto const said = co_await std::move(asking);
            cursor = said[0].text();
            for (resp::cursor rest{said, 2}; rest.left() >= 2;) {
                std::string member{rest.next().text()};
                found.insert_or_assign(std::move(member), as_ms(rest.next().text()));
            }
        } while (cursor != "0" && limit.goes_on());
    } catch (server_error const& problem) {
        from.note_or_throw(key, problem);
    }
    std::vector<listed_object> all;
    all.reserve(found.size());
    for (auto const& [member, until] : found) all.push_back({from.prefix() + ':' + member, until});
    co_return all;
}

task<reply> score_of(reader from, std::string key) {
    auto const member = std::string_view{key}.substr(from.prefix().size() + 1);
    auto const index = object_index::key_of(from.prefix(), object_index::shard_of(member));
    try {
        auto asking = from.at(index, {"ZSCORE", index, std::string{member}});
        co_return co_await std::move(asking);
    } catch (server_error const& problem) {
        from.note_or_throw(index, problem);
    }
    co_return reply{};
}

}  // namespace

task<std::vector<listed_object>> read_index(reader from) {
    std::vector<task<std::vector<listed_object>>> shards;
    for (unsigned shard = 0; shard < object_index::shards; ++shard) shards.push_back(read_shard(from, shard));
    auto reading = when_all(std::move(shards));
    auto lists = co_await std::move(reading);
    std::vector<listed_object> all;
    for (auto& list : lists) std::move(list.begin(), list.end(), std::back_inserter(all));
    co_return all;
}

task<std::vector<listed_object>> find_in_index(reader from, std::vector<std::string> keys) {
    std::vector<task<reply>> questions;
    for (auto const& key : keys) questions.push_back(score_of(from, key));
    auto asking = when_all(std::move(questions));
    auto const answers = co_await std::move(asking);
    std::vector<listed_object> found;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (answers[i].is_null()) continue;
        found.push_back({std::move(keys[i]), answers[i].is_text() ? as_ms(answers[i].text()) : static_cast<std::int64_t>(answers[i].as<double>())});
    }
    co_return found;
}

}  // namespace lockstep::observe
