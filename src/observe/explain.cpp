#include "lease/pause.hpp"
#include "observe/offload.hpp"
#include "observe/picture.hpp"

#include <lockstep/monitor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <utility>

// why(): from a name to those who hold it, from them to what they wait for, and so on. What a client waits for it says itself, so those on
// the way are asked to say it anew.

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using link = explanation::link;
using observe::reader;
using std::chrono::milliseconds;

constexpr std::size_t most_names = 200;
constexpr std::size_t most_links = 5'000;
constexpr milliseconds patience{300};

/// The census of these clients, after all that can answer have said something new.
task<observe::census> ask_anew(reader from, std::vector<std::string> ids) {
    auto counting = observe::take_census(from, ids);
    auto before = co_await std::move(counting);
    std::vector<std::string> reachable;
    for (auto const& [id, one] : before) {
        if (one.is.connected) reachable.push_back(id);
    }
    auto asking = observe::nudge(from, reachable, 1ms);
    bool const is_asked = co_await std::move(asking);
    if (!is_asked) co_return before;
    auto const until = std::chrono::steady_clock::now() + patience;
    while (!reachable.empty() && std::chrono::steady_clock::now() < until) {
        engine::pause rest{from.owner(), 10ms};
        co_await rest;
        auto looking = observe::take_census(from, reachable);
        auto now = co_await std::move(looking);
        std::erase_if(reachable, [&](std::string const& id) {
            auto const found = now.find(id);
            if (found != now.end() && found->second.said_ms <= before[id].said_ms) return false;
            if (found != now.end()) before[id] = std::move(found->second);
            return true;
        });
    }
    co_return before;
}

std::string describe(client_info const& who) {
    if (who.name.empty()) return fmt::format("client {}", who.id);
    return fmt::format("{} (pid {} on {})", who.name, who.pid, who.host);
}

std::string as_time(milliseconds time) {
    if (time < 10s) return fmt::format("{:.1f} s", static_cast<double>(time.count()) / 1'000);
    if (time < 2min) return fmt::format("{} s", time / 1s);
    if (time < 2h) return fmt::format("{} min", time / 1min);
    return fmt::format("{} h", time / 1h);
}

/// A client of `lockstep run` waits for its command, and that, or one that it runs, for a name.
struct command_wait {
    std::string client;
    std::string name, kind;
};

constexpr std::size_t most_command_waits = 1'000;
constexpr std::uint32_t waiters_of_a_link = 100;

/// Candidates wait for as long as they live, and work meanwhile: that they wait keeps nothing from going on.
bool keeps_from_going_on(observe::said_wait const& one) { return one.kind != "election"; }

/// What somebody waits for, with all who hold it.
struct blockage {
    std::string waiter;
    bool by_command = false;
    bool any_frees = false;  ///< each of the holders could end it alone, as with a semaphore; otherwise all of them must let go
    bool is_complete = true; ///< all holders are known
    std::set<std::string> holders;
};

/// Of these clients nobody goes on unless another of them does: each waits for one that must let go first, or for several of which all are among
/// them. (The largest such set: those of whom that is not true are taken out until none is left.)
std::set<std::string> stuck_clients(std::vector<blockage> const& all) {
    std::set<std::string> stuck;
    for (auto const& one : all) stuck.insert(one.waiter);
    auto const is_stuck = [&](blockage const& one) {
        auto const in = [&](std::string const& id) { return stuck.contains(id); };
        bool const by_another = std::any_of(one.holders.begin(), one.holders.end(), [&](auto const& id) { return (one.by_command || id != one.waiter) && in(id); });
        return by_another && (!one.any_frees || (one.is_complete && std::all_of(one.holders.begin(), one.holders.end(), in)));
    };
    for (bool is_done = false; !is_done;) {
        std::set<std::string> still;
        for (auto const& one : all) {
            if (stuck.contains(one.waiter) && is_stuck(one)) still.insert(one.waiter);
        }
        is_done = still.size() == stuck.size();
        stuck = std::move(still);
    }
    return stuck;
}

/// Rings among the links, each found once: walks from every client and keeps the walks that come back to their beginning, where that is the
/// smallest id of the ring.
std::vector<std::vector<link>> find_rings(std::vector<link> const& links) {
    std::multimap<std::string, link const*> from;
    for (auto const& one : links) {
        if (one.by_command || one.waiter.id != one.holder.id) from.emplace(one.waiter.id, &one);
    }
    std::vector<std::vector<link>> rings;
    std::vector<link const*> path;
    std::set<std::string> on_path;
    std::size_t steps = 0;
    auto const walk = [&](auto const& self, std::string const& start, std::string const& at) -> void {
        auto const [first, last] = from.equal_range(at);
        for (auto one = first; one != last && rings.size() < 20 && ++steps < 100'000; ++one) {
            auto const& next = one->second->holder.id;
            if (next < start || on_path.contains(next)) {
                if (next != start) continue;
                rings.emplace_back();
                for (auto const* const part : path) rings.back().push_back(*part);
                rings.back().push_back(*one->second);
                continue;
            }
            path.push_back(one->second);
            on_path.insert(next);
            self(self, start, next);
            on_path.erase(next);
            path.pop_back();
        }
    };
    std::set<std::string> starts;
    for (auto const& [id, one] : from) starts.insert(id);
    for (auto const& start : starts) {
        on_path = {start};
        walk(walk, start, start);
    }
    return rings;
}

task<explanation> explain(reader from, std::string name) {
    explanation made;
    made.name = name;
    std::set<std::string> asked;    // clients
    std::set<std::string> visited;  // names
    std::deque<std::string> next{name};
    observe::census people;
    std::vector<command_wait> by_command;
    std::map<std::string, std::vector<hold_info>> holds;
    std::set<std::pair<std::string, std::string>> crowded;  // names and kinds with more holders than are listed
    while (!next.empty() && visited.size() < most_names) {
        auto const at = std::move(next.front());
        next.pop_front();
        if (!visited.insert(at).second) continue;
        auto looking = observe::take_picture(from, observe::survey_terms{{.name = at, .waiters = at == name ? 1'000U : waiters_of_a_link}, false});
        auto const seen = co_await std::move(looking);
        auto here = observe::describe(seen);
        if (at == name) made.waits = here.waits;
        std::vector<std::string> unknown;
        auto const ask = [&](std::string const& id) {
            if (asked.insert(id).second) unknown.push_back(id);
        };
        for (auto const& one : here.holds) ask(one.owner.id);
        auto checked = by_command.size();
        for (auto const& one : here.waits) {
            if (one.kind != "election" && !one.who.parent.empty()) by_command.push_back({one.who.parent, at, one.kind});
        }
        do {
            for (auto i = checked; i < by_command.size(); ++i) ask(by_command[i].client);
            auto asking = ask_anew(from, std::exchange(unknown, {}));
            auto answers = co_await std::move(asking);
            for (auto const& [id, one] : answers) {
                for (auto const& wait : one.waits) {
                    if (keeps_from_going_on(wait)) next.push_back(wait.name);
                }
            }
            people.merge(std::move(answers));
            for (auto const end = by_command.size(); checked < end; ++checked) {
                auto const found = people.find(by_command[checked].client);
                if (found == people.end()) continue;
                for (auto const& held : found->second.holds) next.push_back(held.name);
                auto const& parent = found->second.is.parent;
                if (!parent.empty() && by_command.size() < most_command_waits) by_command.push_back({parent, at, by_command[checked].kind});
            }
        } while (checked < by_command.size());
        for (auto const& object : seen.seen.objects) {
            if (object.is.holders > object.holds.size()) crowded.emplace(object.is.name, object.is.kind);
        }
        holds[at] = std::move(here.holds);
    }
    made.holds = holds[name];
    for (auto const& lock : holds[name]) {
        std::erase_if(made.holds, [&](hold_info const& one) { return observe::is_pair(lock, one); });
    }
    std::vector<blockage> blockages;
    std::vector<link> all;
    auto const add = [&](client_info const& waiter, std::string const& awaited, std::string const& kind, bool waits_by_command) {
        blockage here{.waiter = waiter.id, .by_command = waits_by_command, .any_frees = kind == "semaphore", .is_complete = !crowded.contains({awaited, kind}), .holders = {}};
        for (auto const& held : holds[awaited]) {
            if (held.kind != kind) continue;
            all.push_back({waiter, awaited, kind, held.owner, waits_by_command});
            here.holders.insert(held.owner.id);
        }
        blockages.push_back(std::move(here));
    };
    for (auto const& [id, one] : people) {
        for (auto const& wait : one.waits) {
            if (!keeps_from_going_on(wait)) continue;
            if (all.size() >= most_links) {
                from.note(from.key(name, "lock"), fmt::format("only the first {} links of the chain are shown", most_links));
                break;
            }
            add(one.is, wait.name, wait.kind, false);
        }
    }
    made.chain = all;
    for (auto const& one : by_command) {
        if (auto const found = people.find(one.client); found != people.end()) add(found->second.is, one.name, one.kind, true);
    }
    auto const waiters = blockages.size();
    auto sift = [blockages = std::move(blockages)] { return stuck_clients(blockages); };
    auto sifting = observe::offload(from, waiters, std::move(sift));
    auto const stuck = co_await std::move(sifting);
    std::vector<link> links;
    std::copy_if(all.begin(), all.end(), std::back_inserter(links),
                 [&](link const& one) { return stuck.contains(one.waiter.id) && stuck.contains(one.holder.id); });
    auto const size = links.size();
    auto work = [links = std::move(links)] { return find_rings(links); };
    auto finding = observe::offload(from, size, std::move(work));
    made.cycles = co_await std::move(finding);
    made.notes = from.notes();
    co_return made;
}

}  // namespace

task<explanation> monitor::async_why(std::string_view name) {
    auto const& core = detail::core_access::of(*client_);
    core->require_same_process();
    reader from{core, notes_->begin()};
    from.key(name, "lock");  // throws where it is no name
    return explain(std::move(from), std::string{name});
}
explanation monitor::why(std::string_view name) { return sync_wait(async_why(name)); }

std::string explanation::text() const {
    std::string out;
    auto const line = [&](std::string const& more) { out += more + '\n'; };
    if (holds.empty() && waits.empty()) {
        line(fmt::format("Nobody holds '{}', and nobody waits for it.", name));
        for (auto const& one : notes) line("Not shown: " + one);
        return out;
    }
    if (holds.empty()) line(fmt::format("Nobody holds '{}'.", name));
    for (auto const& one : holds) {
        auto const state = one.offered ? std::string{"it was offered, and is not claimed yet"}
                                       : fmt::format("for {} so far, fence {}, {} left unless it is renewed", as_time(one.held_for), one.fence,
                                                     as_time(one.remaining));
        line(fmt::format("'{}' ({} {}) is held by {}: {}.", name, one.kind, one.use, describe(one.owner), state));
        if (one.stale) line("  Its owner is gone. It ends by itself when its time is over, or at once with: lockstep release.");
    }
    for (auto const& one : waits) {
        auto const since = one.waiting_for ? fmt::format(" for {}", as_time(*one.waiting_for)) : std::string{};
        auto const place = one.position == 0 ? std::string{} : fmt::format(", place {}", one.position);
        line(fmt::format("{} waits{}{}.", describe(one.who), since, place));
    }
    for (auto const& one : chain) line(fmt::format("{} itself waits for '{}' ({}), held by {}.", describe(one.waiter), one.name, one.kind, describe(one.holder)));
    for (auto const& ring : cycles) {
        line("Deadlock, unless one of these has another thread that lets go:");
        for (auto const& one : ring) {
            line(fmt::format("  {} waits for {}'{}', held by {}", describe(one.waiter), one.by_command ? "its command, which waits for " : "", one.name,
                             describe(one.holder)));
        }
    }
    for (auto const& one : notes) line("Not shown: " + one);
    return out;
}

}  // namespace lockstep
