#include "lease/pause.hpp"
#include "observe/offload.hpp"
#include "observe/picture.hpp"

#include <lockstep/monitor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string_view>
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
constexpr std::size_t most_holds = 20'000;    // of all names
constexpr std::size_t most_clients = 10'000;  // that are asked
constexpr std::size_t most_parents = 16;      // one above the other
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
    while (!reachable.empty() && std::chrono::steady_clock::now() < until && !from.is_time_over()) {
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
    auto operator<=>(command_wait const&) const = default;
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

/// A link between what was read, which is many times as large: thousands of them share it.
struct link_view {
    client_info const* waiter;
    std::string_view name, kind;
    client_info const* holder;
    bool by_command;

    link copy() const { return {*waiter, std::string{name}, std::string{kind}, *holder, by_command}; }
};

/// What was read, and the links in it. Nothing of the former changes when there are links.
struct relations {
    observe::census people;
    std::map<std::string, std::vector<hold_info>, std::less<>> holds;               // by name
    std::set<std::pair<std::string, std::string>, std::less<>> crowded;             // names and kinds with more holders than are listed
    std::set<command_wait> by_command;

    std::vector<link_view> links;
    std::vector<blockage> blockages;
    bool are_all = true;

    /// Where nobody holds what is awaited, nobody is in the way.
    void add(client_info const& waiter, std::string_view awaited, std::string_view kind, bool waits_by_command) {
        auto const held = holds.find(awaited);
        if (held == holds.end()) return;
        blockage here{.waiter = waiter.id,
                      .by_command = waits_by_command,
                      .any_frees = kind == "semaphore",
                      .is_complete = !crowded.contains(std::pair{std::string{awaited}, std::string{kind}}),
                      .holders = {}};
        for (auto const& one : held->second) {
            if (one.kind != kind) continue;
            if (links.size() >= most_links) {
                are_all = here.is_complete = false;
                break;
            }
            links.push_back({&waiter, awaited, kind, &one.owner, waits_by_command});
            here.holders.insert(one.owner.id);
        }
        if (!here.holders.empty()) blockages.push_back(std::move(here));
    }
    void add_waits() {
        for (auto const& [id, one] : people) {
            for (auto const& wait : one.waits) {
                if (keeps_from_going_on(wait)) add(one.is, wait.name, wait.kind, false);
            }
        }
    }
    void add_waits_by_command() {
        for (auto const& one : by_command) {
            if (auto const found = people.find(one.client); found != people.end()) add(found->second.is, one.name, one.kind, true);
        }
    }
    std::vector<link> copy_links() const {
        std::vector<link> all;
        all.reserve(links.size());
        for (auto const& one : links) all.push_back(one.copy());
        return all;
    }
};

/// Rings among the links, each found once: walks from every client and keeps the walks that come back to their beginning, where that is the
/// smallest id of the ring.
std::vector<std::vector<link>> find_rings(std::vector<link_view> const& links) {
    std::multimap<std::string_view, link_view const*> from;
    for (auto const& one : links) {
        if (one.by_command || one.waiter->id != one.holder->id) from.emplace(one.waiter->id, &one);
    }
    std::vector<std::vector<link>> rings;
    std::vector<link_view const*> path;
    std::set<std::string_view> on_path;
    std::size_t steps = 0;
    auto const walk = [&](auto const& self, std::string_view start, std::string_view at) -> void {
        auto const [first, last] = from.equal_range(at);
        for (auto one = first; one != last && rings.size() < 20 && ++steps < 100'000; ++one) {
            std::string_view const next = one->second->holder->id;
            if (next < start || on_path.contains(next)) {
                if (next != start) continue;
                rings.emplace_back();
                for (auto const* const part : path) rings.back().push_back(part->copy());
                rings.back().push_back(one->second->copy());
                continue;
            }
            path.push_back(one->second);
            on_path.insert(next);
            self(self, start, next);
            on_path.erase(next);
            path.pop_back();
        }
    };
    std::set<std::string_view> starts;
    for (auto const& [id, one] : from) starts.insert(id);
    for (auto const& start : starts) {
        on_path = {start};
        walk(walk, start, start);
    }
    return rings;
}

/// Rings of those who are stuck: no other can be in one.
std::vector<std::vector<link>> find_deadlocks(relations const& all) {
    auto const stuck = stuck_clients(all.blockages);
    std::vector<link_view> links;
    std::copy_if(all.links.begin(), all.links.end(), std::back_inserter(links),
                 [&](link_view const& one) { return stuck.contains(one.waiter->id) && stuck.contains(one.holder->id); });
    return find_rings(links);
}

task<explanation> explain(reader from, std::string name) {
    explanation made;
    made.name = name;
    auto const place = from.key(name, "lock");  // where notes of the whole stand
    auto const all = std::make_shared<relations>();
    std::set<std::string> asked;    // clients
    std::set<std::string> known;    // names
    std::deque<std::string> next;
    std::size_t listed = 0;         // holds
    auto const visit = [&](std::string const& one) {
        if (known.contains(one)) return;
        if (known.size() >= most_names) return from.note(place, fmt::format("only {} names of the chain are looked at", most_names));
        known.insert(one);
        next.push_back(one);
    };
    visit(name);
    while (!next.empty() && (made.name == next.front() || !from.is_late())) {
        auto const at = std::move(next.front());
        next.pop_front();
        std::vector<command_wait> parents;  // of those who wait here, and theirs
        auto const add_parent = [&](std::string const& parent, std::string const& kind) {
            if (parent.empty()) return;
            if (all->by_command.size() >= most_command_waits) return from.note(place, fmt::format("only {} waits of commands are looked at", most_command_waits));
            command_wait one{parent, at, kind};
            if (all->by_command.insert(one).second) parents.push_back(std::move(one));
        };
        auto looking = observe::take_picture(from, observe::survey_terms{{.name = at, .waiters = at == name ? 1'000U : waiters_of_a_link}, false});
        auto const seen = co_await std::move(looking);
        auto here = observe::describe(seen);
        if (at == name) made.waits = here.waits;
        std::vector<std::string> unknown;
        auto const ask = [&](std::string const& id) {
            if (asked.contains(id)) return;
            if (asked.size() >= most_clients) return from.note(place, fmt::format("only {} clients are asked", most_clients));
            asked.insert(id);
            unknown.push_back(id);
        };
        for (auto const& one : here.holds) ask(one.owner.id);
        for (auto const& one : here.waits) {
            if (one.kind != "election") add_parent(one.who.parent, one.kind);
        }
        // Their parents are known by what they wrote before, so that all are asked together.
        std::size_t checked = 0;
        for (std::size_t above = 0; checked < parents.size() && !from.is_late(); ++above) {
            if (above == most_parents) {
                from.note(place, fmt::format("only {} parents above each other are looked at", most_parents));
                break;
            }
            std::vector<std::string> ids;
            auto const end = parents.size();
            for (auto i = checked; i < end; ++i) ids.push_back(parents[i].client);
            auto reading = observe::take_census(from, std::move(ids));
            auto const answers = co_await std::move(reading);
            for (; checked < end; ++checked) {
                auto const found = answers.find(parents[checked].client);
                if (found == answers.end()) continue;
                auto const kind = parents[checked].kind;
                add_parent(found->second.is.parent, kind);
            }
        }
        for (auto const& one : parents) ask(one.client);
        auto asking = ask_anew(from, std::exchange(unknown, {}));
        auto answers = co_await std::move(asking);
        for (auto const& [id, one] : answers) {
            for (auto const& wait : one.waits) {
                if (keeps_from_going_on(wait)) visit(wait.name);
            }
        }
        all->people.merge(std::move(answers));
        for (auto const& one : parents) {
            auto const found = all->people.find(one.client);
            if (found == all->people.end()) continue;
            for (auto const& held : found->second.holds) visit(held.name);
        }
        for (auto const& object : seen.seen.objects) {
            if (object.is.holders > object.holds.size()) all->crowded.emplace(object.is.name, object.is.kind);
        }
        listed += here.holds.size();
        all->holds[at] = std::move(here.holds);
        if (listed < most_holds || next.empty()) continue;
        from.note(place, fmt::format("only {} holds of the chain are looked at", most_holds));
        break;
    }
    from.is_late();  // then not all of those who were asked could answer
    made.holds = all->holds[name];
    for (auto const& lock : all->holds[name]) {
        std::erase_if(made.holds, [&](hold_info const& one) { return observe::is_pair(lock, one); });
    }
    all->add_waits();
    made.chain = all->copy_links();
    all->add_waits_by_command();
    if (!all->are_all) from.note(place, fmt::format("only the first {} links of the chain are shown", most_links));
    auto const steps = all->links.size() * all->blockages.size();
    auto work = [all] { return find_deadlocks(*all); };
    auto finding = observe::offload(from, steps, std::move(work));
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
