// Of rate limits.
#include "delivery_checkers.hpp"
#include "support/chaos_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace lockstep::chaos {
namespace {

struct admission {
    std::int64_t asked = 0, answered = 0, cost = 1;
};

std::map<std::string, std::vector<admission>> admissions_of(history const& all, std::string_view kind) {
    std::map<std::string, std::vector<admission>> found;
    std::map<std::pair<std::string, std::string>, std::int64_t> asked;
    for (auto const& one : all) {
        if (!one.name.starts_with(kind)) continue;
        if (one.what == "decide") asked[{one.who, one.name}] = one.t;
        if (one.what == "allowed") found[one.name].push_back({asked[{one.who, one.name}], one.t, one.n});
    }
    return found;
}

/// How much may be let in within that time, at most.
std::int64_t most_within(std::string_view name, std::chrono::nanoseconds time) {
    auto const how = rate_of(name);
    auto const longer = time + time / 1'000;  // the server's clock is not quite this one
    if (how.burst != 0) return how.burst + how.limit * longer.count() / std::chrono::nanoseconds{how.per}.count();
    auto const windows = longer / std::chrono::nanoseconds{how.per} + 1;
    // One that weighs two windows of its own: so many in each of them.
    return how.limit * (name == "limit-1" ? windows + 1 : windows);
}

}  // namespace

complaints check_rate(history const& all, promises const& given, std::string_view kind) {
    constexpr auto longest = std::chrono::nanoseconds{std::chrono::seconds{2}}.count();  // more would tell little more
    complaints found;
    if (!given.memory) return found;
    auto const jumps = jumps_in(all);
    for (auto& [name, those] : admissions_of(all, kind)) {
        std::ranges::sort(those, {}, &admission::answered);
        for (auto const& first : those) {
            std::int64_t sum = 0;
            for (auto at = std::ranges::lower_bound(those, first.asked, {}, &admission::answered); at != those.end(); ++at) {
                auto const time = at->answered - first.asked;
                if (time > longest || jumped_between(jumps, first.asked, at->answered)) break;
                if (at->asked < first.asked) continue;
                sum += at->cost;
                auto const most = most_within(name, std::chrono::nanoseconds{time});
                if (sum <= most) continue;
                found.push_back(fmt::format("{} let in {} and not {} within {} us from {} on", name, sum, most, time / 1'000, first.asked));
                break;
            }
        }
    }
    return found;
}

}  // namespace lockstep::chaos
