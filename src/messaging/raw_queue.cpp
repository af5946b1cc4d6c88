#include <lockstep/detail/raw_queue.hpp>

#include "base/stored_time.hpp"
#include "base/words.hpp"
#include "lease/pause.hpp"
#include "messaging/depot.hpp"
#include "messaging/message_counts.hpp"
#include "messaging/raw_queue_parts.hpp"
#include "resp/cursor.hpp"
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
    if (how.max_deliveries && (*how.max_deliveries < 1 || *how.max_deliveries > 1'000'000)) {
        refuse(name, fmt::format("max_deliveries must be 1 to 1,000,000, not {}", *how.max_deliveries));
    }
    auto const check_number = [&](std::string_view what, std::optional<std::int64_t> value) {
        if (value && (*value < 0 || *value > 1'000'000'000'000)) refuse(name, fmt::format("{} must be 0 to 10^12, not {}", what, *value));
    };
    check_number("max_length", how.max_length);
    check_number("max_dead", how.max_dead);
    check_number("max_dead_bytes", how.max_dead_bytes);
    if (how.dead_retention && (*how.dead_retention < 0ms || *how.dead_retention > longest_delay)) {
        refuse(name, fmt::format("dead_retention must be 0 to 10 years, not {} ms", how.dead_retention->count()));
    }
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

/// What queue_count.lua and steal_count.lua begin with.
queue_counts read_counts(reply_view said) {
    return {said[0].integer(), said[1].integer(), said[2].integer(), said[3].integer(), said[4].integer(), said[5].integer() == 1};
}

using lane_list = std::vector<std::pair<std::string, std::int64_t>>;

/// What steal_count.lua says.
task<std::pair<queue_counts, lane_list>> count_lanes(place at) {
    auto const& what = at->what();
    std::array<std::string, 5> const keys{what.key_of("lanes"), what.key_of("later"), what.key_of("held"), what.key_of("dead"), what.key()};
    auto request = run_on(at, scripts::steal_count, keys, {});
    auto const said = co_await std::move(request);
    lane_list lanes;
    for (resp::cursor rest{said, 6}; rest.left() >= 2;) {
        auto const lane = rest.next().text();
        lanes.emplace_back(lane, rest.next().integer());
    }
    co_return std::pair{read_counts(said), std::move(lanes)};
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
    co_return read_counts(said);
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
    std::int64_t sum = 0;
    for (std::int64_t all = 1; sum < all;) {  // not what comes meanwhile, or it might never end
        std::vector<std::string> keys{what.key(),           what.key_of("ready"),  what.key_of("ranked"), what.key_of("later"),
                                      what.key_of("dedup"), what.key_of("recent"), what.key_of("room")};
        auto purging = depot::ask_once(at, scripts::queue_purge, std::move(keys), {});
        auto const text = co_await std::move(purging);
        auto const space = text.find(' ');
        auto const removed = read_number(std::string_view{text}.substr(0, space));
        if (removed == 0) break;
        if (sum == 0) all = removed + read_number(std::string_view{text}.substr(space + 1));
        sum += removed;
    }
    co_return sum;
}

/// What queue_letters.lua says of one.
raw_letter read_letter(reply_view::iterator at) {
    raw_letter letter;
    letter.id = (*at).text();
    std::int64_t ms = 0;
    std::from_chars(letter.id.data(), letter.id.data() + letter.id.size(), ms);
    letter.died = base::time_of_ms(ms);
    auto const deliveries = (*++at).text();
    std::from_chars(deliveries.data(), deliveries.data() + deliveries.size(), letter.deliveries);
    letter.reason = (*++at).text();
    auto const entry = (*++at).text();
    auto const large = read_large_entry(entry);
    auto const parts = read_entry(large ? std::string_view{large->head} : entry);
    letter.item = parts.id;
    letter.bytes = parts.payload;
    letter.size = large ? large->bytes : parts.payload.size();
    return letter;
}

task<std::vector<raw_letter>> read_dead(place at, std::size_t most, std::string after) {
    std::vector<raw_letter> letters;
    std::array<std::string, 1> const keys{at->what().key_of("dead")};
    for (std::size_t bytes = 0; letters.size() < most && bytes <= at->limits().budget;) {
        std::array<argument, 4> const words{after, std::min<std::size_t>(most - letters.size(), 1'000), at->limits().budget, at->limits().largest};
        auto request = run_on(at, scripts::queue_letters, keys, words);
        auto const said = co_await std::move(request);
        if (said.size() < 4) break;  // a letter has four fields
        auto one = static_cast<reply_view const&>(said).begin();
        for (std::size_t i = 0; i != said.size() / 4; ++i) {
            letters.push_back(read_letter(one));
            for (int fields = 0; fields != 4; ++fields) ++one;
            bytes += letters.back().bytes.size();
        }
        after = letters.back().id;
    }
    co_return letters;
}

/// One letter, or without an id all that died so long ago. Not those that die meanwhile, or what dies again at once would be put back for ever.
task<std::int64_t> revive(place at, std::string_view what, std::string id, milliseconds older_than) {
    auto const& of = at->what();
    std::string last = id.empty() ? fmt::format("-{}", older_than.count()) : id;
    std::int64_t sum = 0;
    while (true) {
        std::vector<std::string> keys{of.key(),             at->lane().empty() ? of.key_of("ready") : at->lane_key(at->lane()), of.key_of("ranked"),
                                      of.key_of("waiting"), of.key_of("lanes"),                                                 of.key_of("dead")};
        std::vector<std::string> words{std::string{what}, id.empty() ? "-" : id, last, at->lane()};
        auto reviving = depot::ask_once(at, scripts::queue_revive, std::move(keys), std::move(words));
        auto const text = co_await std::move(reviving);
        std::string_view rest = text;
        auto const count = read_number(base::cut(rest, ' '));
        last = rest;
        sum += count;
        if (count == 0 || !id.empty()) co_return sum;
    }
}

void check_letter(depot const& at, std::string_view id, milliseconds older_than = {}) {
    if (older_than < 0ms || older_than > longest_delay) {
        refuse(at.what().name(), fmt::format("older_than must be 0 to 10 years, not {} ms", older_than.count()));
    }
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

task<bool> set_paused(place at, bool pauses, std::string job_type) {
    auto const& what = at->what();
    auto const& key = what.key();
    std::vector<std::string> keys{key, what.key_of(at->lane().empty() ? "ready" : "lanes")};
    for (auto const* const part : {"ranked", "later", "held", "waiting"}) keys.push_back(what.key_of(part));
    keys.push_back(job_type.empty() ? what.key_of("types") : key.substr(0, key.rfind(":q:")) + ":types");
    std::vector<std::string> words{pauses ? "pause" : "resume", std::move(job_type)};
    auto changing = depot::run_once(std::move(at), scripts::queue_pause, std::move(keys), std::move(words));
    co_return co_await std::move(changing) == 1;
}

task<std::vector<enqueued>> send(place at, std::shared_ptr<queue_tally> tally, cargo load, raw_queue::until until) {
    if (load.payloads.empty()) co_return std::vector<enqueued>{};
    auto const largest = at->limits().payload;
    for (auto const& one : load.payloads) {
        if (one.size() <= largest) continue;
        throw invalid_argument_error(fmt::format("'{}': a payload must be {} bytes at most, not {}: 128 MiB, or half of the client's max_reply_bytes if that is less",
                                                 at->what().name(), largest, one.size()));
    }
    shipment mine{std::move(at), std::move(load), until};
    try {
        co_await mine;
    } catch (error const& problem) {
        if (mine.payloads.size() == 1) throw;
        auto const unknown = mine.under_way == 0 ? std::string{} : fmt::format("; of {} others that is not known", mine.under_way);
        throw_error(problem.reason(), fmt::format("{} ({} of {} items were enqueued{})", problem.what(), mine.done.size(), mine.payloads.size(), unknown));
    }
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

task<std::vector<enqueued>> raw_queue::async_enqueue(std::vector<std::string> what, enqueue_options const& how, until time, std::string_view lane) {
    depot_->what().require_usable();
    check(name(), how, what.size());
    auto const most = depot_->how().max_length.value_or(0);
    if (most > 0 && static_cast<std::int64_t>(what.size()) > most) {
        refuse(name(), fmt::format("{} items can never be in a queue whose max_length is {}: enqueue them in parts", what.size(), most));
    }
    if (!depot_->lane().empty()) check_lane(name(), lane);
    return send(depot_, tally_, {std::move(what), words_of(how), !how.key.empty(), time != until::min(), std::string{lane}}, time);
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

task<bool> raw_queue::async_pause(bool pauses) {
    depot_->what().require_usable();
    return set_paused(depot_, pauses, {});
}

task<std::vector<raw_letter>> raw_queue::async_dead(std::size_t most, std::string_view after) const {
    depot_->what().require_usable();
    check_letter(*depot_, after);
    return read_dead(depot_, most, std::string{after});
}

task<std::int64_t> raw_queue::async_requeue(std::string_view id, milliseconds older_than) {
    depot_->what().require_usable();
    check_letter(*depot_, id, older_than);
    return revive(depot_, "back", std::string{id}, older_than);
}

task<std::int64_t> raw_queue::async_drop(std::string_view id, milliseconds older_than) {
    depot_->what().require_usable();
    check_letter(*depot_, id, older_than);
    return revive(depot_, "drop", std::string{id}, older_than);
}

void raw_queue::require_blocking() const { depot_->what().require_blocking(); }
std::string const& raw_queue::name() const noexcept { return depot_->what().name(); }

}  // namespace lockstep::detail
