#include "checkers.hpp"

#include "support/chaos_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace lockstep::chaos {
namespace {

using key = std::pair<std::string, std::string>;  // who, name

std::string describe(hold_record const& one) {
    return fmt::format("{} on {}, fence {}, asked {} granted {} sure until {}", one.who, one.name, one.fence, one.asked,
                       one.granted, one.sure_until);
}

/// Whether a hold of this name that was asked for at `asked` may have ended before `at` because the clock jumped. Not if it was valid for
/// longer than its ttl after that: then the server has renewed it, and knew it all the time.
bool ended_early(std::vector<jump> const& jumps, std::string_view name, std::int64_t asked, std::int64_t at,
                 std::int64_t valid_until) {
    auto const ttl = std::chrono::nanoseconds{ttl_of(name)}.count();
    return std::any_of(jumps.begin(), jumps.end(), [&](jump const& one) {
        return asked <= one.done && one.begun <= at && valid_until <= one.done + ttl;
    });
}

/// Calls judge(new one, those it overlaps with) for every hold that overlaps with earlier ones of its name without an excuse.
void for_overlaps(history const& all, std::string_view kind,
                  std::function<void(hold_record const&, std::vector<hold_record const*> const&)> const& judge) {
    auto const jumps = jumps_in(all);
    auto const holds = holds_of(all, kind);
    std::map<std::string, std::vector<hold_record const*>> active;
    for (auto const& one : holds) {
        if (one.sure_until <= one.granted) continue;
        auto& others = active[one.name];
        std::erase_if(others, [&](hold_record const* other) { return other->sure_until <= one.granted; });
        std::vector<hold_record const*> overlapping;
        for (auto const* const other : others) {
            if (!ended_early(jumps, one.name, other->asked, one.granted, other->sure_until))
                overlapping.push_back(other);
        }
        if (ended_early(jumps, one.name, one.asked, one.granted, one.sure_until))
            overlapping.clear();  // perhaps before its holder heard of it
        judge(one, overlapping);
        others.push_back(&one);
    }
}

}  // namespace

std::vector<jump> jumps_in(history const& all) {
    std::vector<jump> found;
    for (auto const& one : all) {
        if (one.what == "deed" && one.note == "clock_forward") found.push_back({one.t, one.t});
        if (one.what == "deed" && one.note == "clock_forward done" && !found.empty()) found.back().done = one.t;
    }
    return found;
}

bool jumped_between(std::vector<jump> const& jumps, std::int64_t from, std::int64_t to) {
    return std::any_of(jumps.begin(), jumps.end(),
                       [&](jump const& one) { return from <= one.done && one.begun <= to; });
}

std::vector<hold_record> holds_of(history const& all, std::string_view kind) {
    std::vector<hold_record> found;
    std::map<key, std::int64_t> asked;
    std::map<key, std::size_t> current;
    for (auto const& one : all) {
        if (!one.name.starts_with(kind)) continue;
        key const whose{one.who, one.name};
        if (one.what == "ask") {
            asked[whose] = one.t;
            current.erase(whose);
        } else if (one.what == "change") {
            asked[whose] = one.t;  // if it is not changed, it goes on as it was
        } else if (one.what == "granted" || one.what == "adopted" || one.what == "changed") {
            current[whose] = found.size();
            found.push_back({.who = one.who,
                             .name = one.name,
                             .mode = one.note,
                             .fence = one.fence,
                             .permits = std::max<std::int64_t>(one.n, 1),
                             .asked = asked[whose],
                             .granted = one.t});
        } else if (one.what == "sure" && current.contains(whose)) {
            found[current[whose]].sure_until = one.t;
        } else if (one.what == "ended" || one.what == "detached") {
            current.erase(whose);
        }
    }
    return found;
}

complaints check_exclusion(history const& all, promises const& given, std::string_view kind) {
    complaints found;
    if (!given.memory) return found;
    for_overlaps(all, kind, [&](hold_record const& one, auto const& others) {
        for (auto const* const other : others)
            found.push_back("two holders: " + describe(*other) + "; and " + describe(one));
    });
    return found;
}

complaints check_bound(history const& all, promises const& given, std::int64_t limit, std::string_view kind) {
    complaints found;
    if (!given.memory) return found;
    for_overlaps(all, kind, [&](hold_record const& one, auto const& others) {
        auto sum = one.permits;
        for (auto const* const other : others) sum += other->permits;
        if (sum > limit) found.push_back(fmt::format("{} permits of {}: {}", sum, limit, describe(one)));
    });
    return found;
}

complaints check_readers_writer(history const& all, promises const& given, std::string_view kind) {
    complaints found;
    if (!given.memory) return found;
    for_overlaps(all, kind, [&](hold_record const& one, auto const& others) {
        for (auto const* const other : others) {
            if (one.mode != "write" && other->mode != "write") continue;
            found.push_back("a writer is not alone: " + describe(*other) + "; and " + describe(one));
        }
    });
    return found;
}

complaints check_fences(history const& all, promises const& given, std::string_view kind) {
    struct object {
        std::uint64_t granted = 0;  // the largest
        std::uint64_t let_in = 0, let_in_to_write = 0;
        std::set<std::uint64_t> used;
    };
    struct visit {
        std::uint64_t floor = 0;  // when it asked
        std::uint64_t fence = 0;
        std::int64_t asked = 0;
        std::int64_t refused = 0;
    };
    complaints found;
    auto const jumps = jumps_in(all);
    std::map<std::string, object> objects;
    std::map<key, visit> visits;
    for (auto const& one : all) {
        if (!one.name.starts_with(kind)) continue;
        auto& what = objects[one.name];
        auto& mine = visits[{one.who, one.name}];
        auto const text = [&] { return fmt::format("{} on {} at {}, fence {}", one.who, one.name, one.t, one.fence); };
        if (one.what == "ask") {
            mine = {.floor = what.granted, .asked = one.t};
        } else if (one.what == "change") {
            mine.floor = what.granted;
        } else if (one.what == "granted" || one.what == "adopted" || one.what == "changed") {
            // Who adopts gets the fence of the one before, or a new one; who changes keeps its own, or gets a new one.
            bool const kept = one.what == "adopted" ? what.used.contains(one.fence)
                                                    : one.what == "changed" && one.fence == mine.fence;
            mine.fence = one.fence;
            if (kept) continue;
            if (!what.used.insert(one.fence).second) found.push_back("a fence was given twice: " + text());
            if (one.fence <= mine.floor) found.push_back(fmt::format("a fence after {}: {}", mine.floor, text()));
            what.granted = std::max(what.granted, one.fence);
        } else if (one.what == "access" && one.n == 1) {
            auto const before = one.note == "read" ? what.let_in_to_write : what.let_in;
            if (one.fence < before) found.push_back(fmt::format("let in after {}: {}", before, text()));
            what.let_in = std::max(what.let_in, one.fence);
            if (one.note != "read") what.let_in_to_write = std::max(what.let_in_to_write, one.fence);
        } else if (one.what == "access") {
            if (one.fence >= (one.note == "read" ? what.let_in_to_write : what.let_in))
                found.push_back("refused without need: " + text());
            mine.refused = one.t;
        } else if (one.what == "sure" && mine.refused != 0 && given.memory &&
                   !ended_early(jumps, one.name, mine.asked, mine.refused, one.t)) {
            found.push_back("still sure after it was refused: " + text());
        }
    }
    return found;
}

complaints check_told(history const& all) {
    complaints found;
    for (auto const& one : all) {
        if (one.what == "untold")
            found.push_back(fmt::format("{} lost {}, fence {}, and was not told", one.who, one.name, one.fence));
    }
    return found;
}

complaints check_changes(history const& all, promises const& given, std::string_view kind) {
    complaints found;
    std::map<std::string, std::vector<std::uint64_t>> kept;
    for (auto const& one : all) {
        if (one.what != "elected" || !one.name.starts_with(kind)) continue;
        auto& terms = kept[one.name];
        if (!terms.empty() && one.fence <= terms.back()) found.push_back(fmt::format("{}: term {} comes after {}", one.name, one.fence, terms.back()));
        terms.push_back(one.fence);
    }
    if (!given.memory) return found;
    for (auto const& one : all) {
        auto const known = kept.find(one.name);
        if (one.what != "granted" || known == kept.end() || one.fence < known->second.front()) continue;  // the oldest are not kept
        if (!std::ranges::binary_search(known->second, one.fence)) found.push_back(fmt::format("{}: nobody was told of term {}, of {}", one.name, one.fence, one.who));
    }
    return found;
}

}  // namespace lockstep::chaos
