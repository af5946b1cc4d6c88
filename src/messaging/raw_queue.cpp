#include <lockstep/detail/raw_queue.hpp>

#include "lease/pause.hpp"
#include "messaging/depot.hpp"
#include "messaging/message_counts.hpp"
#include "messaging/raw_queue_parts.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using place = std::shared_ptr<depot>;

[[noreturn]] void refuse(std::string_view name, std::string_view what) { throw invalid_argument_error(fmt::format("queue '{}': {}", name, what)); }

void check(std::string_view name, queue_options const& how) {
    if (how.visibility < 20ms || how.visibility > 24h) refuse(name, fmt::format("visibility must be 20 ms to 24 h, not {} ms", how.visibility.count()));
    if (how.max_deliveries < 1 || how.max_deliveries > 1'000'000) {
        refuse(name, fmt::format("max_deliveries must be 1 to 1,000,000, not {}", how.max_deliveries));
    }
    if (how.max_length < 0 || how.max_length > 1'000'000'000'000) refuse(name, fmt::format("max_length must be 0 to 10^12, not {}", how.max_length));
    if (how.max_dead < 1 || how.max_dead > 1'000'000) refuse(name, fmt::format("max_dead must be 1 to 1,000,000, not {}", how.max_dead));
    if (how.retention < 1s || how.retention > longest_delay) {
        refuse(name, fmt::format("retention must be 1 s to 10 years, not {} ms", how.retention.count()));
    }
}

void check(std::string_view name, enqueue_options const& how, std::size_t count) {
    if (how.delay < 0ms || how.delay > longest_delay) refuse(name, fmt::format("delay must be 0 to 10 years, not {} ms", how.delay.count()));
    if (how.priority < -1'000'000 || how.priority > 1'000'000) {
        refuse(name, fmt::format("priority must be -1,000,000 to 1,000,000, not {}", how.priority));
    }
    if (how.key.size() > 512) refuse(name, fmt::format("a key must be 512 bytes at most, not {}", how.key.size()));
    if (how.key_window < 0ms || how.key_window > longest_delay) {
        refuse(name, fmt::format("key_window must be 0 to 10 years, not {} ms", how.key_window.count()));
    }
    if (!how.key.empty() && count > 1) refuse(name, "of many items with one key all but the first would be left out");
}

void check_lane(std::string_view name, std::string_view lane) {
    auto const is_allowed = [](char c) { return static_cast<unsigned char>(c) > ' ' && c != '\x7f' && c != '{' && c != '}'; };
    bool good = !lane.empty() && lane.size() <= 100;
    for (char const c : lane) good = good && is_allowed(c);
    if (!good) refuse(name, fmt::format("the name of a worker must be 1 to 100 bytes without spaces and braces, not '{}'", lane));
}

/// As queue_push.lua wants them.
std::string words_of(enqueue_options const& how) {
    if (how.delay == 0ms && how.priority == 0 && how.key.empty()) return {};
    return fmt::format("{} {} {} {}", how.delay.count(), how.priority, how.key.empty() ? 0 : how.key_window.count(), how.key);
}

using lane_list = std::vector<std::pair<std::string, std::int64_t>>;

/// What steal_count.lua says.
task<std::pair<queue_counts, lane_list>> count_lanes(place at) {
    auto const& what = at->what();
    std::array<std::string, 5> const keys{what.key_of("lanes"), what.key_of("later"), what.key_of("held"), what.key_of("dead"), what.key()};
    auto request = run_on(at, scripts::steal_count, keys, {});
    auto const said = co_await std::move(request);
    lane_list lanes;
    for (std::size_t i = 4; i + 1 < said.size(); i += 2) lanes.emplace_back(said[i].text(), said[i + 1].integer());
    co_return std::pair{queue_counts{said[0].integer(), said[1].integer(), said[2].integer(), said[3].integer()}, std::move(lanes)};
}

task<lane_list> only_lanes(place at) {
    auto counting = count_lanes(std::move(at));
    auto counted = co_await std::move(counting);
    co_return std::move(counted.second);
}

task<queue_counts> count(place at) {
    if (!at->lane().empty()) {
        auto counting = count_lanes(std::move(at));
        auto const counted = co_await std::move(counting);
        co_return counted.first;
    }
    auto const& what = at->what();
    std::array<std::string, 6> const keys{what.key_of("ready"), what.key_of("ranked"), what.key_of("later"), what.key_of("held"), what.key_of("dead"), what.key()};
    auto request = run_on(at, scripts::queue_count, keys, {});
    auto const said = co_await std::move(request);
    co_return queue_counts{said[0].integer(), said[1].integer(), said[2].integer(), said[3].integer()};
}

task<std::int64_t> purge_lanes(place at) {
    auto counting = count_lanes(at);
    auto counted = co_await std::move(counting);
    if (counted.second.empty()) counted.second.emplace_back(at->lane(), 0);
    std::int64_t sum = 0;
    for (auto const& [lane, length] : counted.second) {
        auto const& what = at->what();
        std::vector<std::string> keys{what.key(), at->lane_key(lane), what.key_of("lanes"), what.key_of("later")};
        std::vector<std::string> words{lane};
        auto purging = depot::run_once(at, scripts::steal_purge, std::move(keys), std::move(words));
        sum += co_await std::move(purging);
    }
    co_return sum;
}

task<std::int64_t> purge(place at) {
    if (!at->lane().empty()) {
        auto purging = purge_lanes(std::move(at));
        co_return co_await std::move(purging);
    }
    auto const& what = at->what();
    std::vector<std::string> keys{what.key(),           what.key_of("ready"), what.key_of("ranked"), what.key_of("later"),
                                  what.key_of("items"), what.key_of("dedup"), what.key_of("recent"), what.key_of("room")};
    auto purging = depot::run_once(at, scripts::queue_purge, std::move(keys), {});
    co_return co_await std::move(purging);
}

raw_letter read_letter(reply_view entry) {
    raw_letter letter;
    letter.id = entry[0].text();
    std::int64_t ms = 0;
    std::from_chars(letter.id.data(), letter.id.data() + letter.id.size(), ms);
    letter.died = std::chrono::system_clock::time_point{milliseconds{ms}};
    auto const fields = entry[1];
    for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
        auto const field = fields[i].text();
        auto const value = fields[i + 1].text();
        if (field == "n") std::from_chars(value.data(), value.data() + value.size(), letter.deliveries);
        if (field == "why") letter.reason = value;
        if (field != "item") continue;
        auto const parts = read_entry(value);
        letter.item = parts.id;
        letter.bytes = parts.payload;
    }
    return letter;
}

task<std::vector<raw_letter>> read_dead(place at, std::size_t most) {
    auto const key = at->what().key_of("dead");
    auto request = at->what().command({"XRANGE", key, "-", "+", "COUNT", most});
    auto const said = co_await std::move(request);
    std::vector<raw_letter> letters;
    for (auto const entry : said) letters.push_back(read_letter(entry));
    co_return letters;
}

task<std::int64_t> revive(place at, std::string_view what, std::string id) {
    auto const& of = at->what();
    std::string last = id;
    if (id.empty()) {
        // Not those that die meanwhile, or what dies again at once would be put back for ever.
        auto const dead = of.key_of("dead");
        auto request = of.command({"XREVRANGE", dead, "+", "-", "COUNT", 1});
        auto const newest = co_await std::move(request);
        if (newest.size() == 0) co_return 0;
        last = newest[0][0].text();
    }
    std::int64_t sum = 0;
    while (true) {
        std::vector<std::string> keys{of.key(),             at->lane().empty() ? of.key_of("ready") : at->lane_key(at->lane()), of.key_of("ranked"),
                                      of.key_of("waiting"), of.key_of("lanes"),                                                 of.key_of("dead")};
        std::vector<std::string> words{std::string{what}, id.empty() ? "-" : id, last, at->lane()};
        auto reviving = depot::run_once(at, scripts::queue_revive, std::move(keys), std::move(words));
        auto const count = co_await std::move(reviving);
        sum += count;
        if (count == 0 || !id.empty()) co_return sum;
    }
}

void check_letter(depot const& at, std::string_view id) {
    auto const is_digit = [](char c) { return (c >= '0' && c <= '9') || c == '-'; };
    for (char const c : id) {
        if (!is_digit(c)) refuse(at.what().name(), fmt::format("'{}' is not the id of a dead letter", id));
    }
}

}  // namespace

task<reply> run_on(place at, scripts::script const& script, std::span<std::string const> keys, std::span<argument const> words) {
    std::array<std::string_view, 16> views;
    for (std::size_t i = 0; i != keys.size(); ++i) views[i] = keys[i];
    return at->what().run(script, {views.data(), keys.size()}, words, {});
}

task<std::vector<enqueued>> send(place at, std::shared_ptr<queue_tally> tally, cargo load) {
    if (load.payloads.empty()) co_return std::vector<enqueued>{};
    shipment mine{std::move(at), std::move(load)};
    co_await mine;
    auto const is_in = [](enqueued const& one) { return one.is_new && !one.id.empty(); };
    if (tally) queue_tally::count(tally->enqueued, static_cast<std::uint64_t>(std::count_if(mine.done.begin(), mine.done.end(), is_in)));
    co_return std::move(mine.done);
}

task<std::optional<raw_item>> take(place at, std::shared_ptr<queue_tally> tally, raw_queue::until time, std::atomic<bool> const* stopping) {
    taker mine{at, time, stopping};
    co_await mine;
    if (mine.got) {
        queue_tally::count(tally->taken);
        mine.got->tally = std::move(tally);
        co_return std::optional<raw_item>{raw_item{std::move(mine.got)}};
    }
    if (!mine.once && stopping == nullptr && !at->is_connected()) {
        throw unavailable_error(fmt::format("queue '{}': no server could be reached in the time allowed", at->what().name()));
    }
    co_return std::nullopt;
}

raw_queue::raw_queue(client& by, std::string_view name, queue_options const& options, lane_options const& lane) {
    check(name, options);
    if (!lane.lane.empty()) check_lane(name, lane.lane);
    depot_ = depot::make(core_access::of(by), name, options, lane);
    auto counts = message_counts::of(*depot_->owner());
    auto* const mine = lane.lane.empty() ? &counts->queues : &counts->lanes;
    tally_ = std::shared_ptr<queue_tally>{std::move(counts), mine};
}

task<std::vector<enqueued>> raw_queue::async_enqueue(std::vector<std::string> what, enqueue_options const& how, bool waits, std::string_view lane) {
    depot_->what().require_usable();
    check(name(), how, what.size());
    if (!depot_->lane().empty()) check_lane(name(), lane);
    return send(depot_, tally_, {std::move(what), words_of(how), !how.key.empty(), waits, std::string{lane}});
}

task<std::optional<raw_item>> raw_queue::async_dequeue(until time) {
    depot_->what().require_usable();
    return take(depot_, tally_, time, nullptr);
}

task<queue_counts> raw_queue::async_counts() const {
    depot_->what().require_usable();
    return count(depot_);
}

task<lane_list> raw_queue::async_lanes() const {
    depot_->what().require_usable();
    return only_lanes(depot_);
}

task<std::int64_t> raw_queue::async_purge() {
    depot_->what().require_usable();
    return purge(depot_);
}

task<std::vector<raw_letter>> raw_queue::async_dead(std::size_t most) const {
    depot_->what().require_usable();
    return read_dead(depot_, most);
}

task<std::int64_t> raw_queue::async_requeue(std::string_view id) {
    depot_->what().require_usable();
    check_letter(*depot_, id);
    return revive(depot_, "back", std::string{id});
}

task<std::int64_t> raw_queue::async_drop(std::string_view id) {
    depot_->what().require_usable();
    check_letter(*depot_, id);
    return revive(depot_, "drop", std::string{id});
}

void raw_queue::require_blocking() const { depot_->what().require_blocking(); }
std::string const& raw_queue::name() const noexcept { return depot_->what().name(); }

}  // namespace lockstep::detail
