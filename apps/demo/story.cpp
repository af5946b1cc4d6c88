#include "demo/story.hpp"

#include "demo/worker.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace lockstep::demo {
namespace {

using std::chrono::milliseconds;

std::string word(boost::json::object const& said, std::string_view key) {
    auto const* const found = said.if_contains(key);
    return found != nullptr && found->is_string() ? std::string{found->get_string()} : std::string{};
}

std::uint64_t fence_of(boost::json::object const& said) {
    auto const text = word(said, "fence");
    std::uint64_t fence = 0;
    std::from_chars(text.data(), text.data() + text.size(), fence);
    return fence;
}

milliseconds median(std::vector<milliseconds> times) {
    std::sort(times.begin(), times.end());
    return times.empty() ? milliseconds{0} : times[times.size() / 2];
}

std::string rounded_seconds(milliseconds time) { return fmt::format("{:.1f} s", static_cast<double>(time.count()) / 1'000); }

/// "the lock 'ledger'"
std::string described(std::string_view kind, std::string_view name) {
    return fmt::format("the {} '{}'", kind == "shared" ? "readers-writer lock" : kind, name);
}

std::string_view manner(std::string_view use) {
    if (use == "permits") return "a permit of ";
    if (use == "reader") return "as a reader ";
    return use == "writer" ? "as the writer " : "";
}

}  // namespace

void story::tell(clock::time_point at, std::string text, bool is_bad) {
    events_.push_back({at, std::move(text), is_bad});
    ++told_;
    if (events_.size() > 1'000) events_.pop_front();
}

bool story::said(std::string const& worker, std::string_view line) {
    std::int64_t ns = 0;
    auto const [end, wrong] = std::from_chars(line.data(), line.data() + line.size(), ns);
    if (wrong != std::errc{} || end == line.data() + line.size()) return false;
    clock::time_point const now{std::chrono::nanoseconds{ns}};
    line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
    boost::json::error_code problem;
    auto const value = boost::json::parse(boost::json::string_view{line.data(), line.size()}, problem);
    if (problem || !value.is_object()) return false;
    auto const& object = value.get_object();
    auto const what = word(object, "what");
    auto const name = word(object, "name");
    if (what.empty() || name.empty()) return false;
    auto& where = names_[name];
    where.kind = word(object, "kind");
    if (what == "queued") {
        where.waiting[worker] = 1;
    } else if (what == "acquired") {
        acquired(worker, where, name, object, now);
    } else if (what == "released" || what == "lost") {
        auto const fence = fence_of(object);
        where.holds.erase(word(object, "hold"));
        if (auto const turn = where.turns.find(fence); what == "released" && turn != where.turns.end()) {
            turn->second.end = now;
            if (auto const next = std::next(turn); next != where.turns.end()) check(where, name, next);
        }
        if (what == "lost") tell(now, fmt::format("{} lost {}: {}", worker, described(where.kind, name), word(object, "detail")), true);
    } else if (what == "met") {
        ++where.meetings;
        where.waiting.erase(worker);
    } else if (what == "broken") {
        ++where.broken;
        where.waiting.erase(worker);
        tell(now, fmt::format("{} finds the barrier '{}' broken, since a participant was killed, and arrives again", worker, name), true);
    } else if (what == "timed_out" || what == "cancelled") {
        where.waiting.erase(worker);
    }
    return true;
}

void story::acquired(std::string const& worker, name_state& where, std::string const& name, boost::json::object const& said, clock::time_point now) {
    auto const fence = fence_of(said);
    auto const use = word(said, "use");
    where.waiting.erase(worker);
    ++where.acquisitions;
    if (use == "owner" || use == "writer") {
        auto const [turn, is_new] = where.turns.try_emplace(fence, name_state::turn{now, {}});
        if (!is_new) {
            ++violations_;
            tell(now, fmt::format("VIOLATION: fence {} of '{}' was given twice", fence, name), true);
        }
        check(where, name, turn);
        if (auto const next = std::next(turn); next != where.turns.end()) check(where, name, next);
        if (where.turns.size() > 1'000) where.turns.erase(where.turns.begin());
    }
    where.largest_fence = std::max(where.largest_fence, fence);
    where.holds[word(said, "hold")] = {worker, use, fence, now};
    auto const dead = bereaved_.find(name);
    if (dead == bereaved_.end() || fence <= dead->second.fence) return;
    takeover const one{name, dead->second.worker, worker, dead->second.fence, fence,
                       std::chrono::duration_cast<milliseconds>(now - dead->second.at)};
    bereaved_.erase(dead);
    takeovers_.push_back(one);
    tell(now, fmt::format("{} took over {} {} after {} was killed; fencing token {}", one.by, described(where.kind, one.name),
                          rounded_seconds(one.after), one.from, one.fence));
}

void story::check(name_state const& where, std::string const& name, std::map<std::uint64_t, name_state::turn>::const_iterator which) {
    if (which == where.turns.begin()) return;
    auto const& before = *std::prev(which);
    if (which->second.begin >= std::max(before.second.begin, before.second.end)) return;
    ++violations_;
    tell(which->second.begin, fmt::format("VIOLATION: '{}' was had with fence {} before fence {} was given back", name, which->first, before.first), true);
}

void story::started(std::string const& worker, std::string const& object, clock::time_point now) {
    tell(now, fmt::format("{} {}", worker, workers_.insert(worker).second ? fmt::format("started, and uses '{}'", object) : "was started again"));
}

void story::killed(std::string const& worker, clock::time_point now) {
    ++kills_;
    std::string held, awaited;
    for (auto const& [name, where] : names_) {
        for (auto const& [id, one] : where.holds) {
            if (one.worker != worker) continue;
            held += fmt::format("{}{}{}", held.empty() ? "" : " and ", manner(one.use), described(where.kind, name));
            // Permits and readers leave room for others, so nobody has to take over from them.
            if (one.use == "owner" || one.use == "writer") bereaved_[name] = {worker, one.fence, now};
        }
        if (where.waiting.contains(worker)) awaited = described(where.kind, name);
    }
    std::string scene = " holding nothing";
    if (!awaited.empty()) scene = fmt::format(" waiting for {}", awaited);
    if (!held.empty()) scene = fmt::format(" holding {}: free within its ttl, {} s", held, ttl_ms / 1'000);
    tell(now, fmt::format("{} was killed{}", worker, scene), true);
    forget(worker);
}

void story::failed(std::string const& worker, clock::time_point now) {
    ++failures_;
    tell(now, fmt::format("{} ended unexpectedly", worker), true);
    forget(worker);
}

void story::forget(std::string const& worker) {
    for (auto& [name, where] : names_) {
        where.waiting.erase(worker);
        std::erase_if(where.holds, [&](auto const& one) { return one.second.worker == worker; });
    }
}

std::vector<std::string> story::held_by(std::string const& worker) const {
    std::vector<std::string> found;
    for (auto const& [name, where] : names_) {
        bool const has = std::any_of(where.holds.begin(), where.holds.end(), [&](auto const& one) { return one.second.worker == worker; });
        if (has) found.push_back(name);
    }
    return found;
}

boost::json::object story::summary(milliseconds length) const {
    boost::json::array names;
    for (auto const& [name, where] : names_) {
        names.push_back(boost::json::object{{"name", name}, {"kind", where.kind}, {"acquisitions", where.acquisitions},
                                            {"meetings", where.meetings}, {"broken", where.broken}});
    }
    std::vector<milliseconds> times;
    for (auto const& one : takeovers_) times.push_back(one.after);
    auto const longest = times.empty() ? milliseconds{0} : *std::max_element(times.begin(), times.end());
    return {{"what", "summary"}, {"length_ms", length.count()}, {"names", std::move(names)}, {"killed", kills_},
            {"failed", failures_}, {"takeovers", takeovers_.size()}, {"takeover_median_ms", median(times).count()},
            {"takeover_max_ms", longest.count()}, {"ttl_ms", ttl_ms}, {"violations", violations_}};
}

std::string story::text(milliseconds length) const {
    auto out = fmt::format("\nIn {:.0f} s:\n", static_cast<double>(length.count()) / 1'000);
    for (auto const& [name, where] : names_) {
        if (where.kind == "barrier") {
            out += fmt::format("  {:<10} {} arrivals passed it, {} found it broken by a killed worker\n", name, where.meetings, where.broken);
        } else {
            out += fmt::format("  {:<10} acquired {} times\n", name, where.acquisitions);
        }
    }
    out += fmt::format("  {} workers were killed", kills_);
    if (!takeovers_.empty()) {
        std::vector<milliseconds> times;
        for (auto const& one : takeovers_) times.push_back(one.after);
        out += fmt::format("; what they held was taken over {},\n  after {} (median), {} at most; the ttl is {} s",
                           times.size() == 1 ? "once" : fmt::format("{} times", times.size()), rounded_seconds(median(times)),
                           rounded_seconds(*std::max_element(times.begin(), times.end())), ttl_ms / 1'000);
    }
    out += fmt::format("\n  {}\n", violations_ == 0 ? "No lock had two holders at once; every new fencing token was larger."
                                                     : fmt::format("{} VIOLATIONS: see above.", violations_));
    return out;
}

}  // namespace lockstep::demo
