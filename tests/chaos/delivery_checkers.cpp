#include "delivery_checkers.hpp"

#include "support/chaos_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace lockstep::chaos {
namespace {

using key = std::pair<std::string, std::string>;  // who, name
constexpr auto never = item_record::never;

std::int64_t lease_of(std::string_view name) { return std::chrono::nanoseconds{ttl_of(name)}.count(); }

}  // namespace

std::map<key, item_record> items_of(history const& all, std::string_view kind) {
    std::map<key, item_record> found;
    std::map<key, std::int64_t> asked;
    std::map<key, item_record*> current;
    for (auto const& one : all) {
        if (!one.name.starts_with(kind)) continue;
        key const whose{one.who, one.name};
        auto const item = [&]() -> item_record& {
            auto& it = found[{one.name, one.note}];
            it.name = one.name;
            it.value = one.note;
            return it;
        };
        if (one.what == "enqueue" || one.what == "add") {
            item().asked = one.t;
        } else if (one.what == "enqueued" || one.what == "added" || one.what == "refused") {
            item().answered = one.t;
            item().left_out = one.what == "refused" || (one.what == "enqueued" && one.n == 0);
        } else if (one.what == "take") {
            asked[whose] = one.t;
            current.erase(whose);
        } else if (one.what == "processed") {
            auto const since = asked.find(whose);
            item().deliveries.push_back({one.who, one.n, since == asked.end() ? one.t : since->second, one.t});
            current[whose] = &item();
        } else if (!current.contains(whose)) {
            continue;
        } else if (auto& mine = *current[whose]; one.what == "ack" || one.what == "handled") {
            ++mine.done;
            mine.first_done = std::min(mine.first_done, one.t);
        } else if (one.what == "acked") {
            mine.surely_done = std::min(mine.surely_done, one.t);
        } else if (one.what == "lost") {
            --mine.done;
        }
    }
    return found;
}

complaints check_delivered(history const& all, promises const& given, std::string_view kind) {
    complaints found;
    for (auto const& [_, one] : items_of(all, kind)) {
        auto const text = fmt::format("{} of {}", one.value, one.name);
        if (!one.deliveries.empty() && one.deliveries.front().given < one.asked) found.push_back("nobody put it there: " + text);
        if (!given.memory) continue;
        if (one.left_out && !one.deliveries.empty()) found.push_back("it was left out, and came all the same: " + text);
        bool const begins_anew = one.name == mortal_queue;  // with the first delivery, when it was dead
        if (!begins_anew && std::ranges::count(one.deliveries, 1, &item_record::delivery::number) > 1) found.push_back("it was put there twice: " + text);
        if (one.is_there() && one.done == 0) {
            found.push_back(fmt::format("it is lost: {}, acknowledged at {}, delivered {} times", text, one.answered, one.deliveries.size()));
        }
    }
    return found;
}

complaints check_done(history const& all, promises const& given, std::string_view kind) {
    complaints found;
    if (!given.memory) return found;
    auto const jumps = jumps_in(all);
    for (auto const& [_, one] : items_of(all, kind)) {
        for (auto const& again : one.deliveries) {
            // It may have come to that process before, for somebody else there; then it was still valid.
            bool const is_excused = jumped_between(jumps, again.asked - lease_of(one.name), again.given);
            if (again.asked <= one.surely_done || is_excused) continue;
            found.push_back(fmt::format("{} of {} was done at {}, and {}, who asked at {}, got it", one.value, one.name, one.surely_done, again.who, again.asked));
        }
    }
    return found;
}

complaints check_possession(history const& all, promises const& given, std::string_view kind) {
    // The same as of mutexes, one for each item.
    history holds;
    std::map<key, std::string> current;
    std::map<key, std::int64_t> asked;
    for (auto const& one : all) {
        if (one.what == "deed") holds.push_back(one);
        if (!one.name.starts_with(kind)) continue;
        key const whose{one.who, one.name};
        if (one.what == "take") {
            asked[whose] = one.t;
            current.erase(whose);
        } else if (one.what == "processed") {
            current[whose] = one.name + " " + one.note;
            // It may have come to that process before, for somebody else there.
            holds.push_back({.t = asked[whose] - lease_of(one.name), .who = one.who, .what = "ask", .name = current[whose]});
            holds.push_back({.t = one.t, .who = one.who, .what = "granted", .name = current[whose]});
        } else if (one.what == "sure" && current.contains(whose)) {
            holds.push_back({.t = one.t, .who = one.who, .what = "sure", .name = current[whose]});
        }
    }
    std::stable_sort(holds.begin(), holds.end(), [](event const& a, event const& b) { return a.t < b.t; });
    return check_exclusion(holds, given, kind);
}

// ---- order

namespace {

struct span {
    std::int64_t from = 0, to = never;
    bool stands_still = false;  // a queue's time does, from its last change before the clock is set back until the first one after
};

/// Of an item in a message (queue_offer.lua): for so long nobody else gets it.
constexpr auto message_lease = std::chrono::nanoseconds{std::chrono::milliseconds{400}}.count();

/// When something may have gone back unseen: somebody asked and left, or the answer came late.
std::vector<span> loose_times(history const& all, std::string_view kind) {
    constexpr auto owing = std::chrono::nanoseconds{std::chrono::seconds{10}}.count();  // by then, what somebody left behind was given back
    std::map<key, std::int64_t> open;
    std::vector<span> found;
    auto parted = never;
    auto const end = [&](key const& whose, std::int64_t at, bool left) {
        auto const since = open.find(whose);
        if (since == open.end()) return;
        bool const late = at - since->second > lease_of(whose.second) * 4 / 5;
        if (left || late) found.push_back({since->second, left && parted == never ? at + owing : at});
        open.erase(since);
    };
    for (auto const& one : all) {
        if (one.what == "parted") parted = one.t;
        if (one.what == "killed") {
            for (auto at = open.begin(); at != open.end();) {
                auto const whose = (at++)->first;
                if (whose.first.starts_with(one.who + ".")) end(whose, one.t, false);
            }
        }
        if (!one.name.starts_with(kind)) continue;
        key const whose{one.who, one.name};
        if (one.what == "take") open[whose] = one.t;
        if (one.what == "processed") end(whose, one.t, false);
        if (one.what == "none" || one.what == "failed") end(whose, one.t, true);
    }
    for (auto& one : found) {
        if (one.from < parted) one.to = std::min(one.to, parted);
    }
    return found;
}

/// When what is sent in a message may be read late, or seem to be old: it goes back unseen then.
std::vector<span> troubled_times(history const& all) {
    std::map<std::pair<std::string, std::int64_t>, std::int64_t> open;  // what ends it, and of whom
    std::vector<span> found;
    for (auto const& one : all) {
        if (one.what != "deed") continue;
        if (one.note == "lag" || one.note == "refuse") open[{"heal done", one.n}] = one.t;
        if (one.note == "nap" || one.note == "nap_holder") open[{"wake done", one.n}] = one.t;
        for (auto const* const brief : {"server_nap", "clock_back", "clock_forward"}) {
            if (one.note == brief) open[{one.note + " done", one.n}] = one.t;
        }
        auto const begun = open.find({one.note, one.n});
        if (begun == open.end()) continue;
        found.push_back({begun->second, one.t + message_lease, one.note == "clock_back done"});
        open.erase(begun);
    }
    return found;
}

}  // namespace

complaints check_order(history const& all, promises const& given, std::string_view kind) {
    complaints found;
    if (!given.memory) return found;
    auto const items = items_of(all, kind);
    auto const loose = loose_times(all, kind);
    auto const troubled = troubled_times(all);
    // In order of when they came first: the last one to be put there so far.
    std::vector<item_record const*> came;
    for (auto const& [_, one] : items) {
        if (!one.deliveries.empty() && one.asked != never) came.push_back(&one);
    }
    auto const first_of = [](item_record const* one) { return one->deliveries.front().given; };
    std::ranges::sort(came, {}, first_of);
    std::vector<item_record const*> latest;
    for (auto const* const one : came) latest.push_back(!latest.empty() && latest.back()->asked > one->asked ? latest.back() : one);
    for (auto const* const one : came) {
        auto const first = std::ranges::find(one->deliveries, 1, &item_record::delivery::number);
        if (first == one->deliveries.end()) continue;
        auto const before = std::ranges::lower_bound(came, first->asked, {}, first_of) - came.begin();
        if (before == 0 || latest[static_cast<std::size_t>(before) - 1]->asked <= one->answered) continue;
        if (std::ranges::any_of(loose, [&](span const& any) { return any.from <= first->asked && one->asked <= any.to; })) continue;
        auto const* const other = latest[static_cast<std::size_t>(before) - 1];
        auto const may_be_leased = [&](span const& any) {
            auto const counted_from = any.stands_still ? std::max(one->answered, any.to) : one->answered;
            return any.from <= first->asked && one->answered <= any.to && other->asked < counted_from + message_lease;
        };
        if (std::ranges::any_of(troubled, may_be_leased)) continue;
        found.push_back(fmt::format("{} of {}, there since {}, was asked for at {}: after {} had come, which was put there at {}", one->value, one->name,
                                    one->answered, first->asked, other->value, other->asked));
    }
    return found;
}

complaints check_keys(history const& all, promises const& given, std::string_view kind) {
    complaints found;
    if (!given.memory) return found;
    auto const items = items_of(all, kind);
    std::map<key, std::vector<item_record const*>> by_key;
    for (auto const& [_, one] : items) {
        if (!one.key().empty()) by_key[{one.name, one.key()}].push_back(&one);
    }
    for (auto const& [_, those] : by_key) {
        for (auto const* const one : those) {
            if (one->answered == never) continue;
            bool has_reason = !one->left_out || one->key().starts_with('w');
            for (auto const* const other : those) {
                if (other == one) continue;
                bool const was_there = other->is_there() && other->answered < one->asked && one->answered < other->first_done;
                bool const may_have_been = !other->left_out && other->asked < one->answered && one->asked < other->surely_done;
                if (one->is_there() && was_there) found.push_back(fmt::format("{} and {} of {} have the same key", other->value, one->value, one->name));
                has_reason = has_reason || may_have_been;
            }
            if (!has_reason) found.push_back(fmt::format("{} of {} was left out, and none has its key", one->value, one->name));
        }
    }
    return found;
}

complaints check_entries(history const& all, promises const& given, std::string_view kind) {
    using id = std::pair<std::uint64_t, std::int64_t>;
    complaints found;
    if (!given.memory) return found;
    std::map<key, id> ids;  // by name and value
    for (auto const& one : all) {
        if (one.what == "added" && one.name.starts_with(kind)) ids[{one.name, one.note}] = {one.fence, one.n};
    }
    std::map<std::string, id> largest;
    std::map<key, id> floor, last;
    for (auto const& one : all) {
        if (!one.name.starts_with(kind)) continue;
        key const whose{one.who, one.name};
        if (one.what == "add") floor[whose] = largest[one.name];
        if (one.what == "added") {
            id const mine{one.fence, one.n};
            if (mine <= floor[whose]) found.push_back(fmt::format("{} of {} has the id {}-{}, which is not the largest", one.note, one.name, mine.first, mine.second));
            largest[one.name] = std::max(largest[one.name], mine);
        }
        if (one.what != "processed" || one.n != 1 || !ids.contains({one.name, one.note})) continue;
        auto const mine = ids[{one.name, one.note}];
        if (mine <= last[whose]) found.push_back(fmt::format("{} got {} of {} after a later one", one.who, one.note, one.name));
        last[whose] = mine;
    }
    return found;
}

}  // namespace lockstep::chaos
