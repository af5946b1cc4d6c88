#include "observe/listing.hpp"

#include "core/object_index.hpp"

#include <charconv>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace lockstep::observe {
namespace {

using detail::object_index;

constexpr std::size_t members_of_a_scan = 500;

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
    do {
        auto asking = from.at(key, {"ZSCAN", key, cursor, "COUNT", std::to_string(members_of_a_scan)});
        auto const said = co_await std::move(asking);
        cursor = said[0].text();
        auto const members = said[1];
        for (auto at = members.begin(); at != members.end();) {
            std::string member{(*at++).text()};
            if (at == members.end()) break;
            auto const score = *at++;
            found.insert_or_assign(std::move(member), as_ms(score.text()));
        }
    } while (cursor != "0");
    std::vector<listed_object> all;
    all.reserve(found.size());
    for (auto const& [member, until] : found) all.push_back({from.prefix() + ':' + member, until});
    co_return all;
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
    for (auto const& key : keys) {
        auto const member = std::string_view{key}.substr(from.prefix().size() + 1);
        auto const index = object_index::key_of(from.prefix(), object_index::shard_of(member));
        questions.push_back(from.at(index, {"ZSCORE", index, std::string{member}}));
    }
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
