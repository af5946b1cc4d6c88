#include "cli/view.hpp"

#include "cli/duration.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace lockstep::cli {
namespace {

using key = std::pair<std::string, std::string>;  // name and kind

struct row {
    object_info const* what;
    std::vector<hold_info const*> holds;
    std::chrono::milliseconds held_for{0};
};

std::string left(hold_info const& one) { return one.stale ? "gone, " + show(one.remaining) : show(one.remaining); }

style style_of(object_info const& what, bool stale) {
    if (stale) return style::red;
    if (what.queue != 0) return style::yellow;
    return what.holders != 0 ? style::green : style::dim;
}

/// Of the group that is furthest behind: the others have not more to wait for.
std::string behind(object_info const& what) {
    if (what.groups.empty()) return {};
    std::optional<std::int64_t> most;
    for (auto const& one : what.groups) most = std::max(most, one.lag);
    auto const groups = what.groups.size() == 1 ? what.groups.front().name : fmt::format("{} groups", what.groups.size());
    return fmt::format(", {}: {} behind, {} pending", groups, most ? std::to_string(*most) : "?", what.taken);
}

/// The first two always, the others if there are any.
std::string of_jobs(object_info const& what) {
    auto text = fmt::format("{}: {} waiting, {} running", what.type, what.count - what.delayed, what.taken);
    if (what.delayed != 0) text += fmt::format(", {} delayed", what.delayed);
    if (what.blocked != 0) text += fmt::format(", {} blocked", what.blocked);
    if (what.dead != 0) text += fmt::format(", {} failed", what.dead);
    if (what.paused) text += ", paused";
    return text;
}

std::string counted(std::int64_t count, std::string_view what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

std::string of_bus(object_info const& what) {
    auto const channels = what.groups.size() == 1 ? what.groups.front().name : counted(what.count, "channel");
    return fmt::format("{}: {}", channels, counted(what.taken, "subscriber"));
}

}  // namespace

std::string show(client_info const& who) {
    if (who.name.empty()) return who.id.empty() ? "?" : "client " + who.id;
    return fmt::format("{}@{}:{}", who.name, who.host, who.pid);
}

std::string show_time(std::chrono::system_clock::time_point at) {
    auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
    std::time_t const seconds = ms / 1000;
    std::tm parts{};
    ::localtime_r(&seconds, &parts);
    return fmt::format("{:%H:%M:%S}.{:03}", parts, ms % 1000);
}

bool in_use(object_info const& what) {
    if (what.holders != 0 || what.queue != 0) return true;
    if (what.kind == "event" || what.kind == "broadcast") return what.taken != 0 || what.count > 0;
    if (what.kind == "barrier" || what.kind == "breaker") return what.taken != 0;
    if (what.kind == "stream") return what.taken != 0 || std::ranges::any_of(what.groups, [](group_info const& one) { return one.lag.value_or(0) > 0; });
    if (what.kind == "sessions" || what.kind == "limiter" || what.kind == "bus") return what.count != 0;  // less than 0: not counted
    return (what.kind == "queue" || what.kind == "lanes" || what.kind == "jobs") && (what.paused || what.count + what.taken + what.dead + what.blocked > 0);
}

std::string state_of(object_info const& what) {
    auto const dead = what.dead == 0 ? std::string{} : fmt::format(", {} dead", what.dead);
    if (what.kind == "semaphore") return what.count < 0 ? "not made yet" : fmt::format("{} of {} taken", what.taken, what.count);
    if (what.kind == "event") return counted(what.count, "signal");
    if (what.kind == "broadcast") return what.taken != 0 ? "set" : "not set";
    if (what.kind == "latch") return what.taken >= what.count ? "open" : fmt::format("{} of {} counted", what.taken, what.count);
    if (what.kind == "barrier") return fmt::format("{} of {} came", what.taken, what.count);
    if (what.kind == "queue" || what.kind == "lanes") return fmt::format("{} waiting, {} held{}{}", what.count, what.taken, dead, what.paused ? ", paused" : "");
    if (what.kind == "stream") return fmt::format("{} in it{}{}", what.count, behind(what), dead);
    if (what.kind == "jobs") return of_jobs(what);
    if (what.kind == "bus") return of_bus(what);
    if ((what.kind == "sessions" || what.kind == "limiter") && what.count < 0) return "used lately";
    if (what.kind == "sessions") return counted(what.count, "session");
    if (what.kind == "limiter") return counted(what.count, "key");
    if (what.kind == "map" || what.kind == "board") return fmt::format("{} in it", what.count);
    if (what.kind == "value") return what.count != 0 ? "set" : "not set";
    if (what.kind == "counter") return std::to_string(what.count);
    if (what.kind == "breaker") return what.taken == 0 ? "closed" : what.taken == 1 ? "half open" : "open";
    if (what.kind == "shared" && what.holders > 1) return fmt::format("{} readers", what.holders);
    return what.holders != 0 ? "held" : "free";
}

/// A leader is known by the id under which it stands.
std::string holder_of(hold_info const& one) { return one.candidate.empty() ? show(one.owner) : fmt::format("{}, {}", one.candidate, show(one.owner)); }

table table_of(snapshot const& now, order by, bool all) {
    std::map<key, std::vector<hold_info const*>> holds;
    for (auto const& one : now.holds) holds[{one.name, one.kind}].push_back(&one);
    std::vector<row> rows;
    for (auto const& one : now.objects) {
        if (!all && !in_use(one)) continue;
        row made{.what = &one, .holds = holds[{one.name, one.kind}]};
        for (auto const* const hold : made.holds) made.held_for = std::max(made.held_for, hold->held_for);
        rows.push_back(std::move(made));
    }
    if (by == order::held) std::ranges::stable_sort(rows, std::greater{}, &row::held_for);
    if (by == order::queue) std::ranges::stable_sort(rows, std::greater{}, [](row const& one) { return one.what->queue; });

    table shown{{{"NAME", align::left, true}, {"KIND"}, {"STATE"}, {"HOLDER", align::left, true}, {"FOR", align::right}, {"LEFT", align::right}, {"QUEUE", align::right}}};
    for (auto const& one : rows) {
        bool const stale = std::ranges::any_of(one.holds, [](auto const* hold) { return hold->stale; });
        auto const how = style_of(*one.what, stale);
        auto const* const first = one.holds.empty() ? nullptr : one.holds.front();
        auto holder = first == nullptr ? std::string{} : holder_of(*first);
        if (first != nullptr && first->offered) holder += " (offered)";
        if (one.what->holders > 1) holder += fmt::format(" and {} more", one.what->holders - 1);
        shown.add({{one.what->name, style::bold}, one.what->kind, {state_of(*one.what), how}, holder, first == nullptr ? "" : show(one.held_for),
                   {first == nullptr ? "" : left(*first), stale ? style::red : style::plain}, one.what->queue == 0 ? "" : std::to_string(one.what->queue)});
    }
    return shown;
}

table table_of(std::vector<hold_info> const& holds) {
    table shown{{{"HOLDER", align::left, true}, {"KIND"}, {"AS"}, {"FENCE", align::right}, {"FOR", align::right}, {"LEFT", align::right}, {"HOLD"}}};
    for (auto const& one : holds) {
        auto const as = one.permits > 1 && one.kind == "semaphore" ? fmt::format("{} {}", one.permits, one.use) : one.use;
        shown.add({{holder_of(one), one.stale ? style::red : style::green}, one.kind, one.offered ? as + " (offered)" : as,
                   one.fence == 0 ? "" : std::to_string(one.fence), show(one.held_for), {left(one), one.stale ? style::red : style::plain}, one.id});
    }
    return shown;
}

table table_of(std::vector<wait_info> const& waits) {
    table shown{{{"NO", align::right}, {"WAITING", align::left, true}, {"KIND"}, {"FOR"}, {"THREADS", align::right}, {"SINCE", align::right}}};
    for (auto const& one : waits) {
        auto const wants = one.permits > 1 && one.kind == "semaphore" ? fmt::format("{} {}", one.permits, one.use) : one.use;
        shown.add({one.position == 0 ? "" : std::to_string(one.position), {show(one.who), style::yellow}, one.kind, wants, std::to_string(one.waiters),
                   one.waiting_for ? show(*one.waiting_for) : "?"});
    }
    return shown;
}

}  // namespace lockstep::cli
