#include "redis/slot_map.hpp"

#include "redis/slot.hpp"

#include <optional>
#include <string>
#include <utility>

namespace lockstep::redis {
namespace {

std::optional<std::uint16_t> number_below(reply_view value, std::int64_t limit) {
    if (value.type() != reply_type::integer || value.integer() < 0 || value.integer() >= limit) return std::nullopt;
    return static_cast<std::uint16_t>(value.integer());
}

// [first, last, [host, port, id, ...] of the master, [...] of each replica]
std::optional<slot_range> read_range(reply_view range, endpoint const& source) {
    if (!range.is_aggregate() || range.size() < 3 || !range[2].is_aggregate() || range[2].size() < 2)
        return std::nullopt;
    auto const first = number_below(range[0], slot_count);
    auto const last = number_below(range[1], slot_count);
    auto const port = number_below(range[2][1], 65'536);
    if (!first || !last || *first > *last || !port || *port == 0) return std::nullopt;
    auto host = range[2][0].is_text() ? std::string{range[2][0].text()} : std::string{};
    if (host.empty() || host == "?") host = source.host;
    return slot_range{.first = *first, .last = *last, .master = {.host = std::move(host), .port = *port, .path = {}}};
}

}  // namespace

std::vector<slot_range> read_slots(reply_view answer, endpoint const& source) {
    std::vector<slot_range> ranges;
    if (!answer.is_aggregate()) return ranges;
    std::size_t left = 4 * slot_count;  // slots: whoever names each of them again and again is no Cluster
    for (auto const one : answer) {
        auto range = read_range(one, source);
        if (!range) continue;
        auto const size = static_cast<std::size_t>(range->last - range->first + 1);
        if (size > left) break;
        left -= size;
        ranges.push_back(*std::move(range));
    }
    return ranges;
}

}  // namespace lockstep::redis
