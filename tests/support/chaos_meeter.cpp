#include "chaos_meeter.hpp"

#include "chaos_names.hpp"

#include <lockstep/error.hpp>
#include <lockstep/event.hpp>

#include <stdexcept>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;

// Not an error of Lockstep's.
struct change_of_mind : std::runtime_error {
    change_of_mind() : runtime_error{"the completion function does not want to"} {}
};

std::string explain(error const& problem) { return problem.code().message() + ": " + problem.what(); }

lockstep::event open_event(actor& self, client& by) {
    return {by, self.about().name, {.ttl = event_ttl, .claim_window = 150ms}};
}

}  // namespace

meeter::meeter(actor& self, client& by) : self_{self}, by_{by} {
    for (std::uint64_t i = 0; i < barrier_names; ++i) {
        barriers_.emplace_back(
            by, numbered("barrier", i), parties_of(i), [this] { complete(); }, lease_options{.ttl = 600ms});
    }
}

// ---- events

void meeter::set_event() try {
    self_.turn_to(event_name(boot_ns()));
    self_.report("set");
    open_event(self_, by_).set();
    self_.report("set_done");
} catch (indeterminate_error const&) {
    self_.report("unknown");
} catch (error const& problem) {
    self_.report("failed", explain(problem));
}

void meeter::wait_for_event() try {
    self_.turn_to(event_name(boot_ns()));
    auto const connects = by_.statistics().connects;
    bool woken = false;
    self_.report("wait");
    try {
        second_thoughts const mind{self_.one_in(6) ? std::optional{self_.up_to(60)} : std::nullopt};
        woken = open_event(self_, by_).wait_for(self_.up_to(self_.one_in(2) ? 20 : 300), mind.token());
        self_.report(woken ? "woken" : "none");
    } catch (cancelled_error const&) {
        self_.report("none", "cancelled");
    }
    settle(connects, woken);
} catch (error const& problem) {
    self_.report("failed", explain(problem));
}

// On the same connection a question comes after what gave up the wait. After another one, something may be owed for a while.
void meeter::settle(std::uint64_t connects_before, bool woken) {
    if (!woken) static_cast<void>(open_event(self_, by_).is_set());
    self_.report(by_.statistics().connects == connects_before ? "settled" : "heard");
}

// ---- barriers

/// Runs on the thread that arrived last, before anybody goes on.
void meeter::complete() {
    if (self_.one_in(20)) throw change_of_mind{};
    self_.report("completed");
}

void meeter::use_barrier() {
    auto const connects = by_.statistics().connects;
    if (meet()) return;
    // On the same connection the arrival is taken back between two answers to questions that come after.
    try {
        for (int i = 0; i < 3; ++i) by_.command("EXISTS", "lockstep:{" + self_.about().name + "}:barrier");
    } catch (error const&) {
        return;
    }
    if (by_.statistics().connects == connects) self_.report("settled");
}

bool meeter::meet() try {
    auto const which = self_.below(barriers_.size());
    self_.turn_to(numbered("barrier", which));
    second_thoughts const mind{self_.one_in(15) ? std::optional{self_.up_to(100)} : std::nullopt};
    self_.report("arrive");
    bool const passed = barriers_[which].arrive_and_wait_for(50ms + self_.up_to(400), mind.token());
    self_.report(passed ? "passed" : "gave_up");
    return true;
} catch (broken_barrier_error const&) {
    self_.report("broken");
    return true;
} catch (change_of_mind const&) {
    self_.report("broken", "its own doing");
    return true;
} catch (cancelled_error const&) {
    self_.report("unknown", "cancelled");
    return false;
} catch (indeterminate_error const& problem) {
    self_.report("unknown", problem.what());
    return true;
} catch (error const& problem) {
    self_.report("failed", explain(problem));
    return true;
}

}  // namespace lockstep::chaos
