#include "messaging/queue_wire.hpp"

#include "base/words.hpp"

#include <lockstep/error.hpp>

#include <algorithm>
#include <bit>

namespace lockstep::detail {
namespace {

using base::cut;

[[noreturn]] void not_understood() { throw protocol_error("a script of a queue answered something that is not understood"); }

template <class T = std::int64_t>
T number(std::string_view text) {
    auto const found = base::number_in<T>(text);
    if (!found) not_understood();
    return *found;
}

bool is_late(reply_view said) { return said.size() == 2 && said[0].text() == "late"; }

}  // namespace

size_limits size_limits_of(std::size_t max_reply_bytes) noexcept {
    constexpr std::size_t max_string = std::size_t{512} << 20;  // proto-max-bulk-len of the server
    constexpr std::size_t overhead = std::size_t{32} << 10;     // tokens and the like
    auto const whole = std::max(std::min(max_reply_bytes, max_string), 2 * overhead);
    return {.payload = std::min(max_reply_bytes / 2, max_payload_bytes), .budget = std::min(max_reply_bytes / 2, std::size_t{8} << 20), .largest = whole - overhead};
}

std::string write_rules(queue_options const& how, bool is_cluster, std::string_view channel) {
    std::string rules{is_cluster ? 'S' : 'P'};
    // -1: not set, so that what the queue keeps holds, or the default.
    for (std::int64_t const number : {how.retention.count(), how.reliable ? how.visibility.count() : 0, std::int64_t{how.max_deliveries.value_or(-1)},
                                      how.max_dead.value_or(-1), how.max_length.value_or(-1), how.dead_retention ? how.dead_retention->count() : -1,
                                      how.max_dead_bytes.value_or(-1)}) {
        auto const bits = std::bit_cast<std::uint64_t>(static_cast<double>(number));
        for (int byte = 0; byte != 8; ++byte) rules += static_cast<char>(bits >> (8 * byte) & 0xff);
    }
    return rules.append(channel);
}

entry_parts read_entry(std::string_view entry) {
    entry_parts found;
    auto const end = entry.find('\n');
    if (end == std::string_view::npos) not_understood();
    auto head = entry.substr(0, end);
    found.payload = entry.substr(end + 1);
    found.id = cut(head, ' ');
    found.deliveries = number<std::int32_t>(cut(head, ' '));
    if (head.empty()) return found;
    found.priority = number<std::int32_t>(cut(head, ' '));
    cut(head, ' ');  // window
    auto const size = number<std::size_t>(head);
    if (size > found.payload.size()) not_understood();
    found.payload.remove_prefix(size);
    return found;
}

std::optional<large_entry> read_large_entry(std::string_view entry) {
    if (!entry.starts_with('!')) return std::nullopt;
    auto rest = entry.substr(1);
    auto const bytes = number<std::size_t>(cut(rest, '\n'));
    auto const id = cut(rest, ' ');
    auto const deliveries = cut(rest, '\n');
    return large_entry{bytes, std::string{id}.append(" ").append(deliveries.substr(0, deliveries.find(' '))).append("\n")};
}

push_answer read_push_answer(reply_view said) {
    push_answer found;
    if (is_late(said)) {
        found.late = true;
        found.now_ms = said[1].integer();
        return found;
    }
    auto rest = said.text();
    cut(rest, ' ');
    found.batch = cut(rest, ' ');
    found.accepted = number<std::size_t>(cut(rest, ' '));
    found.now_ms = number(cut(rest, ' '));
    while (!rest.empty()) {
        auto twin = cut(rest, ' ');
        if (twin == "-") {
            found.told = false;
            continue;
        }
        auto const which = number<std::size_t>(cut(twin, '='));
        found.twins.emplace_back(which - 1, twin);
    }
    return found;
}

offer read_offer(std::string_view message) {
    auto head = cut(message, '\n');
    offer found{.now_ms = number(cut(head, ' '))};
    found.lease = std::chrono::milliseconds{number(cut(head, ' '))};
    found.token = head;
    found.entry = message;
    return found;
}

once_answer read_once_answer(reply_view said) {
    if (said.size() != 2) not_understood();
    auto rest = said[0].text();
    once_answer found{.late = rest == "late", .now_ms = said[1].integer()};
    if (found.late) return found;
    cut(rest, ' ');
    found.text = rest;
    return found;
}

std::int64_t read_number(std::string_view text) { return number(text); }

pull_answer read_pull_answer(reply_view said, bool is_of_jobs) {
    pull_answer found;
    if (is_late(said)) {
        found.late = true;
        found.now_ms = said[1].integer();
        return found;
    }
    auto rest = said.is_aggregate() ? said[0].text() : said.text();
    auto head = cut(rest, '\n');
    cut(head, ' ');
    found.now_ms = number(cut(head, ' '));
    found.look_again_ms = number(cut(head, ' '));
    auto flags = cut(head, ' ');
    auto const waits = cut(flags, ',');
    found.dropped = number(flags);
    found.waits = waits == "1";
    found.more = waits == "2";
    if (!is_of_jobs) found.victim = head;
    if (is_of_jobs && !head.empty()) {
        found.dropped_completed = number<std::uint64_t>(cut(head, ' '));
        found.dropped_failed = number<std::uint64_t>(head);
    }
    for (auto lost = cut(rest, '\n'); !lost.empty();) found.lost.push_back(number<std::size_t>(cut(lost, ' ')) - 1);
    while (!rest.empty()) found.tokens.push_back(cut(rest, ' '));
    return found;
}

}  // namespace lockstep::detail
