// Of those who meet: barriers and events; and of what is left when all have gone.
#include "checkers.hpp"
#include "support/chaos_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;
using key = std::pair<std::string, std::string>;  // who, name

constexpr auto never = std::numeric_limits<std::int64_t>::max();

constexpr std::int64_t in_ns(std::chrono::nanoseconds time) { return time.count(); }

/// When the process of this thread was killed.
class deaths {
public:
    explicit deaths(history const& all) {
        for (auto const& one : all) {
            if (one.what == "killed") when_[one.who] = one.t;
        }
    }
    std::int64_t of(std::string const& who) const {
        auto const found = when_.find(who.substr(0, who.rfind('.')));
        return found == when_.end() ? never : found->second;
    }

private:
    std::map<std::string, std::int64_t> when_;
};

// ---- barriers

/// One arrival and the time during which it may have been counted.
struct stay {
    std::string who, name, how;  ///< how: "" as long as it is not known
    std::int64_t from = 0, to = never;
    std::int64_t completed = 0;  ///< when it ran the completion function
    bool taken = false;

    bool may_count() const { return how.empty() || how == "unknown" || how == "passed"; }
};

std::vector<stay> stays_of(history const& all, std::string_view kind) {
    constexpr auto ghost =
        in_ns(4s);  // how long an arrival may be counted that nobody renews: some ttls, since clocks are set back
    std::vector<stay> found;
    std::map<key, std::size_t> current;
    deaths const killed{all};
    for (auto const& one : all) {
        if (!one.name.starts_with(kind)) continue;
        key const whose{one.who, one.name};
        if (one.what == "arrive") {
            current[whose] = found.size();
            auto const death = killed.of(one.who);
            found.push_back({.who = one.who,
                             .name = one.name,
                             .how = "",
                             .from = one.t,
                             .to = death == never ? never : death + ghost});
        } else if (auto const mine = current.find(whose); mine == current.end()) {
            continue;
        } else if (auto& it = found[mine->second]; one.what == "completed") {
            it.completed = one.t;
        } else if (one.what == "settled") {
            it.to = one.t;
        } else {
            it.how = one.what;
            it.to = one.what == "unknown" ? one.t + ghost : one.t;
            if (one.what != "unknown") current.erase(mine);
        }
    }
    return found;
}

/// Gives each meeting, in order of time, up to `parties` of those who were there, first those who left first: if they can be told apart
/// at all, this does it. Returns how many each got.
std::vector<std::int64_t> assign(std::vector<stay*>& stays, std::vector<std::int64_t> const& meetings,
                                 std::int64_t parties) {
    std::sort(stays.begin(), stays.end(), [](stay const* a, stay const* b) { return a->to < b->to; });
    std::vector<std::int64_t> counts;
    for (auto const at : meetings) {
        std::int64_t here = 0;
        for (auto* const one : stays) {
            if (here == parties) break;
            if (one->taken || one->from > at || one->to < at) continue;
            one->taken = true;
            ++here;
        }
        counts.push_back(here);
    }
    return counts;
}

// ---- events

struct wait_record {
    std::string who, name;
    std::int64_t from = 0, to = never;
    bool settled = false;
};

std::vector<wait_record> waits_of(history const& all, std::string_view kind) {
    std::vector<wait_record> found;
    std::map<key, std::size_t> current;
    for (auto const& one : all) {
        if (!one.name.starts_with(kind)) continue;
        key const whose{one.who, one.name};
        if (one.what == "wait") {
            current[whose] = found.size();
            found.push_back({.who = one.who, .name = one.name, .from = one.t});
        }
        if (!current.contains(whose)) continue;
        auto& mine = found[current[whose]];
        if (one.what == "woken" || one.what == "none" || one.what == "settled" || one.what == "heard") mine.to = one.t;
        if (one.what == "settled") mine.settled = true;
    }
    return found;
}

}  // namespace

complaints check_barrier(history const& all, promises const& given, std::int64_t parties, std::string_view kind) {
    complaints found;
    if (!given.memory) return found;
    auto stays = stays_of(all, kind);
    std::vector<std::int64_t> sure, possible;  // meetings: who completed one and passed knows that all did
    std::vector<stay*> passed, present;
    for (auto& one : stays) {
        if (one.completed != 0 && one.how == "passed") sure.push_back(one.completed);
        if (one.completed != 0 && one.may_count()) possible.push_back(one.completed);
        if (one.how == "passed") passed.push_back(&one);
        if (one.may_count()) present.push_back(&one);
    }
    std::sort(sure.begin(), sure.end());
    std::sort(possible.begin(), possible.end());

    // Whoever passed was at a meeting, and at every meeting there were enough. If each can be done, so can both at once.
    static_cast<void>(assign(passed, possible, parties));
    for (auto* const one : passed) {
        if (!one->taken)
            found.push_back(
                fmt::format("passed without a meeting: {} on {}, {} to {}", one->who, one->name, one->from, one->to));
        one->taken = false;
    }
    auto const counts = assign(present, sure, parties);
    for (std::size_t i = 0; i < sure.size(); ++i) {
        if (counts[i] == parties) continue;
        found.push_back(fmt::format("{} of {} met, or some of them were told that it was broken: {} at {}", counts[i],
                                    parties, kind, sure[i]));
    }
    return found;
}

std::map<std::string, std::int64_t> taken_along(history const& all, std::string_view kind) {
    std::map<std::string, std::int64_t> found;
    auto const jumps = jumps_in(all);
    deaths const killed{all};
    for (auto const& one : waits_of(all, kind)) {
        constexpr auto owing = in_ns(10s);  // by then, what a wait left behind was given back
        auto const until = one.settled ? one.to : one.to == never ? never : one.to + owing;
        bool const died = !one.settled && killed.of(one.who) <= until;
        bool const forgotten =
            until == never || one.to - one.from > in_ns(event_ttl) || jumped_between(jumps, one.from, until);
        if (died || forgotten) ++found[one.name];
    }
    return found;
}

complaints check_event(history const& all, promises const& given, std::string_view kind) {
    struct object {
        std::int64_t begun = 0, done = 0, woken = 0;
    };
    complaints found;
    if (!given.memory) return found;
    std::map<std::string, object> objects;
    for (auto const& one : all) {
        if (!one.name.starts_with(kind)) continue;
        auto& what = objects[one.name];
        if (one.what == "set") ++what.begun;
        if (one.what == "set_done") ++what.done;
        if (one.what == "woken" && ++what.woken > what.begun) {
            found.push_back(fmt::format("woken without a set: {} on {} at {}", one.who, one.name, one.t));
        }
    }
    auto taken = taken_along(all, kind);
    for (auto const& [name, what] : objects) {
        if (what.woken + taken[name] >= what.done) continue;
        found.push_back(fmt::format("{}: of {} sets that were done {} woke somebody and {} may have been taken along",
                                    name, what.done, what.woken, taken[name]));
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
