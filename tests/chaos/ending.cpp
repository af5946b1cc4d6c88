#include "ending.hpp"

#include "leftovers.hpp"
#include "support/chaos_names.hpp"
#include "support/eventually.hpp"

#include <lockstep/barrier.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/error.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/shared_mutex.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep::chaos {

using namespace std::chrono_literals;

ending::ending(world& where, std::function<void(event)> report)
    : world_{where}, report_{std::move(report)}, by_{{.url = where.url_for(0), .name = "end"}} {}

void ending::say(std::string const& what, std::string const& name, std::string const& note) const {
    report_({.t = boot_ns(), .who = "end", .what = what, .name = name, .note = note});
}

std::vector<lease> ending::take_all() const {
    std::vector<lease> all;
    auto const keep = [&](std::string const& name, std::optional<lease> held) {
        if (held) all.push_back(std::move(*held));
        if (!held) say("left", name, "it cannot be had any more");
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
    return all;
}

void ending::meet_nobody() const {
    for (std::size_t i = 0; i < barrier_names; ++i) {
        try {
            static_cast<void>(barrier{by_, numbered("barrier", i), parties_of(i)}.arrive_and_wait_for(50ms));
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

}  // namespace lockstep::chaos
