#include "ending.hpp"

#include "leftovers.hpp"
#include "support/chaos_names.hpp"
#include "support/eventually.hpp"

#include <lockstep/barrier.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/election.hpp>
#include <lockstep/error.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/redlock.hpp>
#include <lockstep/shared_mutex.hpp>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace lockstep::chaos {

using namespace std::chrono_literals;

ending::ending(world& where, std::function<void(event)> report)
    : world_{where}, report_{std::move(report)}, by_{{.url = where.url_for(0), .name = "end"}} {}

void ending::say(std::string const& what, std::string const& name, std::string const& note) const {
    report_({.t = boot_ns(), .who = "end", .what = what, .name = name, .note = note});
}

possessions ending::take_all(crowd others) const {
    possessions all;
    auto const keep = [&](std::string const& name, std::optional<lease> held) {
        if (!held) return say("left", name, "it cannot be had any more");
        all.leases.push_back(std::move(*held));
    };
    for (std::size_t i = 0; i < mutex_names; ++i) {
        auto const name = numbered("mutex", i);
        keep(name, mutex{by_, name}.try_acquire_for(10s));
    }
    for (std::size_t i = 0; i < shared_names; ++i) {
        auto const name = numbered("shared", i);
        keep(name, shared_mutex{by_, name}.try_acquire_for(10s));
    }
    for (std::size_t i = 0; i < semaphore_names; ++i) {
        auto const name = numbered("semaphore", i);
        keep(name, counting_semaphore::create(by_, name, semaphore_permits).try_acquire_for(10s, semaphore_permits));
    }
    for (std::size_t i = 0; i < election_names; ++i) {
        auto const name = numbered("election", i);
        // Before those who live; and behind the dead, who are found out when it is their turn.
        auto leads = election{by_, name, {.priority = others == crowd::living ? 1'000 : 0}}.try_campaign_for(10s);
        if (leads) all.leaderships.push_back(std::move(*leads));
        if (!leads) say("left", name, "nobody can lead any more");
    }
    return all;
}

void ending::meet_nobody() const {
    for (std::size_t i = 0; i < barrier_names; ++i) {
        try {
            static_cast<void>(barrier{by_, numbered("barrier", i), parties_of(i), lease_options{.ttl = 600ms}}.arrive_and_wait_for(50ms));
        } catch (broken_barrier_error const&) {
            // One of the dead was found out.
        }
    }
}

void ending::take_signal(std::string const& name) const {
    say("wait", name);
    bool const woken = lockstep::event{by_, name}.wait_for(10s);
    say(woken ? "woken" : "none", name);
    say("settled", name);
    if (!woken) say("left", name, "a signal that cannot be had");
}

void ending::set_and_take(std::string const& name) const {
    say("set", name);
    lockstep::event{by_, name}.set();
    say("set_done", name);
    take_signal(name);
}

void ending::take_signals() const {
    for (auto const& one : events_at(world_)) {
        for (auto i = one.signals; i > 0; --i) take_signal(one.name);
    }
    // Who died while it was suspected stays in the queue until it has been offered a signal that nobody else wanted.
    constexpr int most = 200;
    for (int turn = 0; turn < most; ++turn) {
        bool nobody = true;
        for (auto const& one : events_at(world_)) {
            if (one.is_waited_for || turn == 0) nobody = false, set_and_take(one.name);
        }
        if (nobody) break;
    }
    // Who took one is remembered for a while. After that, whoever comes cleans up.
    auto const nobody_has_any = [this] {
        bool none = true;
        for (auto const& one : events_at(world_)) {
            if (one.in_use) none = false, static_cast<void>(lockstep::event{by_, one.name}.clear());
        }
        return none;
    };
    if (!test::eventually(nobody_has_any)) say("left", "event", "somebody has a signal for ever");
}

void leave_nothing_at_the_nodes(world& where, std::function<void(event)> const& report) {
    auto const left = [&](std::string const& name, std::string const& note) {
        report({.t = boot_ns(), .who = "end", .what = "left", .name = name, .note = note});
    };
    std::vector<std::string> urls;
    std::istringstream all{where.url_for(0)};
    for (std::string one; std::getline(all, one, ' ');) urls.push_back(one);
    {
        redlock_nodes const nodes{urls};
        for (std::size_t i = 0; i < redlock_names; ++i) {
            auto const name = numbered("redlock", i);
            if (!redlock{nodes, name}.try_acquire_for(10s)) left(name, "it cannot be had any more");
        }
        for (std::size_t i = 0; i < plain_names; ++i) {
            auto const name = numbered("plain", i);
            if (!redlock{nodes, name}.try_acquire_for(10s)) left(name, "it cannot be had any more");
        }
        for (std::size_t i = 0; i < election_names; ++i) {
            auto const name = numbered("election", i);
            if (!election{nodes, name}.try_campaign_for(10s)) left(name, "nobody can lead any more");
        }
    }
    for (auto* const node : where.masters()) {
        auto const others = [&] {
            std::string found;
            for (auto const& key : node->must({"KEYS", "*"}).elements) {
                bool const remembers = key.text.ends_with(":leader") && node->must({"PTTL", key.text}).integer > 0;
                bool const is_fence = key.text.find(":redlock-fence") != std::string::npos;
                if (!is_fence && !remembers) found += " " + key.text;
            }
            return found;
        };
        if (!test::eventually([&] { return others().empty(); })) left("node", "keys:" + others());
    }
}

void tell_changes(world& where, std::function<void(event)> const& report) {
    for (auto* const server : where.masters()) {
        for (std::size_t i = 0; i < election_names; ++i) {
            auto const name = numbered("election", i);
            for (auto const& entry : server->command({"XRANGE", "lockstep:{" + name + "}:changes", "-", "+"}).elements) {
                auto const& fields = entry.elements.at(1).elements;  // what, term, ms, who and their values
                if (fields.at(1).text != "elected") continue;
                report({.t = boot_ns(), .who = "end", .what = "elected", .name = name, .fence = std::stoull(fields.at(3).text)});
            }
        }
    }
}

}  // namespace lockstep::chaos
