#include "checkers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace lockstep::chaos {
namespace {

using key = std::pair<std::string, std::string>;  // who, name

/// When the server's clock jumped forward: begun and done.
std::vector<std::pair<std::int64_t, std::int64_t>> jumps_in(history const& all) {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    for (auto const& one : all) {
        if (one.what == "deed" && one.note == "clock_forward") found.emplace_back(one.t, one.t);
        if (one.what == "deed" && one.note == "clock_forward done" && !found.empty()) found.back().second = one.t;
    }
    return found;
}

/// Whether what was asked for at `asked` may have ended early before `at`.
bool excused(std::vector<std::pair<std::int64_t, std::int64_t>> const& jumps, std::int64_t asked, std::int64_t at) {
    return std::any_of(jumps.begin(), jumps.end(), [&](auto const& jump) { return asked <= jump.second && jump.first <= at; });
}

std::string describe(hold_record const& one) {
    return fmt::format("{} on {}, fence {}, asked {} granted {} sure until {}", one.who, one.name, one.fence, one.asked, one.granted,
                       one.sure_until);
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
            if (!excused(jumps, other->asked, one.granted)) overlapping.push_back(other);
        }
        judge(one, overlapping);
        others.push_back(&one);
    }
}

}  // namespace

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
        } else if (one.what == "granted") {
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
        } else if (one.what == "ended") {
            current.erase(whose);
        }
    }
    return found;
}

complaints check_exclusion(history const& all, promises const& given, std::string_view kind) {
    complaints found;
    if (!given.exclusion) return found;
    for_overlaps(all, kind, [&](hold_record const& one, auto const& others) {
        for (auto const* const other : others) found.push_back("two holders: " + describe(*other) + "; and " + describe(one));
    });
    return found;
}

complaints check_bound(history const& all, promises const& given, std::int64_t limit, std::string_view kind) {
    complaints found;
    if (!given.exclusion) return found;
    for_overlaps(all, kind, [&](hold_record const& one, auto const& others) {
        auto sum = one.permits;
        for (auto const* const other : others) sum += other->permits;
        if (sum > limit) found.push_back(fmt::format("{} permits of {}: {}", sum, limit, describe(one)));
    });
    return found;
}

complaints check_readers_writer(history const& all, promises const& given, std::string_view kind) {
    complaints found;
    if (!given.exclusion) return found;
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
        std::uint64_t let_in = 0;
        std::set<std::uint64_t> used;
    };
    struct visit {
        std::uint64_t floor = 0;  // when it asked
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
        } else if (one.what == "granted") {
            if (!what.used.insert(one.fence).second) found.push_back("a fence was given twice: " + text());
            if (one.fence <= mine.floor) found.push_back(fmt::format("a fence after {}: {}", mine.floor, text()));
            what.granted = std::max(what.granted, one.fence);
        } else if (one.what == "access" && one.n == 1) {
            if (one.fence < what.let_in) found.push_back(fmt::format("let in after {}: {}", what.let_in, text()));
            what.let_in = std::max(what.let_in, one.fence);
        } else if (one.what == "access") {
            if (one.fence >= what.let_in) found.push_back("refused without need: " + text());
            mine.refused = one.t;
        } else if (one.what == "sure" && mine.refused != 0 && given.exclusion && !excused(jumps, mine.asked, mine.refused)) {
            found.push_back("still sure after it was refused: " + text());
        }
    }
    return found;
}

complaints check_barrier(history const& all, std::size_t parties, std::string_view kind) {
    struct generation {
        std::set<std::string> passed, broken;
        std::int64_t last_arrival = 0, first_passed = 0;
        int completed = 0;
    };
    complaints found;
    std::map<std::pair<std::string, std::int64_t>, generation> generations;
    std::map<key, std::int64_t> under_way;  // arrived, and not known how it ended
    for (auto const& one : all) {
        if (!one.name.starts_with(kind)) continue;
        key const whose{one.who, one.name};
        if (one.what == "arrive") under_way[whose] = one.t;
        auto& turn = generations[{one.name, one.n}];
        if (one.what == "passed") {
            turn.passed.insert(one.who);
            turn.last_arrival = std::max(turn.last_arrival, under_way[whose]);
            if (turn.first_passed == 0) turn.first_passed = one.t;
        }
        if (one.what == "broken") turn.broken.insert(one.who);
        if (one.what == "completed") ++turn.completed;
        if (one.what == "passed" || one.what == "broken") under_way.erase(whose);
    }
    for (auto const& [which, turn] : generations) {
        auto const& name = which.first;
        auto const text = fmt::format("{}, generation {}", name, which.second);
        auto const unknown = static_cast<std::size_t>(
            std::count_if(under_way.begin(), under_way.end(), [&](auto const& one) { return one.first.second == name; }));
        if (turn.completed > 1) found.push_back("completed more than once: " + text);
        if (turn.passed.empty()) continue;
        if (!turn.broken.empty()) found.push_back("passed for some and broken for others: " + text);
        if (turn.passed.size() > parties) found.push_back("more passed than take part: " + text);
        if (turn.passed.size() + unknown < parties) found.push_back("passed without all: " + text);
        if (turn.last_arrival > turn.first_passed) found.push_back("passed before all had arrived: " + text);
    }
    return found;
}

complaints check_event(history const& all, std::string_view kind) {
    struct object {
        std::int64_t begun = 0, done = 0, waiting = 0, woken = 0, stored = 0;
    };
    complaints found;
    std::map<std::string, object> objects;
    for (auto const& one : all) {
        if (!one.name.starts_with(kind)) continue;
        auto& what = objects[one.name];
        if (one.what == "set") ++what.begun;
        if (one.what == "set_done") ++what.done;
        if (one.what == "wait") ++what.waiting;
        if (one.what == "woken" || one.what == "none") --what.waiting;
        if (one.what == "stored") what.stored += one.n;
        if (one.what == "woken" && ++what.woken > what.begun) {
            found.push_back(fmt::format("woken without a set: {} on {} at {}", one.who, one.name, one.t));
        }
    }
    for (auto const& [name, what] : objects) {
        if (what.woken + what.stored > what.begun) {
            found.push_back(fmt::format("{}: {} sets woke {} and left {}", name, what.begun, what.woken, what.stored));
        }
        if (what.woken + what.stored + what.waiting < what.done) {
            found.push_back(fmt::format("{}: of {} sets that were done only {} woke somebody, {} are left and {} may have been taken along",
                                        name, what.done, what.woken, what.stored, what.waiting));
        }
    }
    return found;
}

complaints check_nothing_left(history const& all) {
    complaints found;
    for (auto const& one : all) {
        if (one.what == "left") found.push_back(one.name + ": " + one.note);
    }
    return found;
}

}  // namespace lockstep::chaos
