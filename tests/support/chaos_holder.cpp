#include "chaos_holder.hpp"

#include "chaos_names.hpp"

#include <lockstep/error.hpp>

#include <thread>
#include <utility>

namespace lockstep::chaos {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

holder::holder(actor& self) : self_{self}, semaphores_(semaphore_names) {
    // Renewed and passed on among threads; strictly in order; and one that is not renewed.
    auto const mutex_with = [&](std::uint64_t which, lease_options how) {
        auto const name = numbered("mutex", which);
        how.ttl = ttl_of(name);
        mutexes_.emplace_back(self.by, name, how);
    };
    mutex_with(0, {.claim_window = 150ms});
    mutex_with(1, {.cohort_passes = 0, .claim_window = 150ms});
    mutex_with(2, {.renew = false, .claim_window = 100ms});
    for (std::uint64_t i = 0; i < shared_names; ++i) {
        auto const name = numbered("shared", i);
        shared_.emplace_back(self.by, name, lease_options{.ttl = ttl_of(name), .renew = i == 0, .claim_window = 150ms});
    }
}

void holder::use_mutex() {
    auto const which = self_.below(mutexes_.size());
    auto& from = mutexes_[which];
    hold({.name = numbered("mutex", which)},
         [&](milliseconds time, std::stop_token token) { return from.try_acquire_for(time, std::move(token)); });
}

void holder::use_semaphore() {
    auto const which = self_.below(semaphore_names);
    auto const permits = self_.one_in(2) ? 1 : 1 + static_cast<std::int64_t>(self_.below(semaphore_permits));
    hold({.name = numbered("semaphore", which), .permits = permits}, [&](milliseconds time, std::stop_token token) {
        return semaphore(which).try_acquire_for(time, permits, std::move(token));
    });
}

void holder::use_shared() {
    auto const which = self_.below(shared_.size());
    auto& from = shared_[which];
    bool const writes = self_.one_in(3);
    hold({.name = numbered("shared", which), .mode = writes ? "write" : "read"},
         [&](milliseconds time, std::stop_token token) {
             return writes ? from.try_acquire_for(time, std::move(token))
                           : from.try_acquire_shared_for(time, std::move(token));
         });
}

void holder::adopt() {
    auto const found = from_json(self_.ask("wanted"));
    if (!found) return;
    auto const end = found->note.find('|');  // what comes before it is the mode
    hold({.name = found->name, .mode = found->note.substr(0, end), .permits = found->n, .got = "adopted"},
         [&, token = found->note.substr(end + 1)](milliseconds, std::stop_token const&) -> std::optional<lease> {
             try {
                 return lease::adopt(self_.by, token);
             } catch (lease_lost_error const&) {
                 return std::nullopt;  // too late, or not the first
             }
         });
}

counting_semaphore& holder::semaphore(std::size_t which) {
    auto& found = semaphores_[which];
    if (found && !self_.one_in(20)) return *found;
    // Now and then again: a failover may have lost it.
    auto const name = numbered("semaphore", which);
    semaphore_options const how{.lease = {.ttl = ttl_of(name), .renew = which == 0, .claim_window = 150ms}};
    found = counting_semaphore::create(self_.by, name, semaphore_permits, how);
    return *found;
}

// ---- one hold

void holder::hold(wish const& what, attempt const& take) {
    self_.turn_to(what.name);
    self_.report("ask");
    auto held = ask(take);
    if (!held) return;
    self_.about().fence = held->fence();
    self_.about().n = what.permits;
    self_.report(what.got, what.mode);
    use(std::move(*held), what.mode);
}

std::optional<lease> holder::ask(attempt const& take) try {
    auto const kind = self_.below(8);
    second_thoughts const mind{kind == 2 ? std::optional{self_.up_to(60)} : std::nullopt};
    auto held = take(kind == 0 ? 0ms : kind == 1 ? self_.up_to(100) : 3'000ms, mind.token());
    if (!held) self_.report("none");
    return held;
} catch (cancelled_error const&) {
    self_.report("none", "cancelled");
    return std::nullopt;
} catch (error const& problem) {
    self_.report("failed", problem.code().message() + ": " + problem.what());
    return std::nullopt;
}

void holder::use(lease held, std::string const& asked_for) try {
    auto mode = asked_for;
    guard(held, mode);
    if (!mode.empty() && self_.one_in(3)) change(held, mode);
    give_up(std::move(held), mode);
} catch (error const& problem) {
    self_.report("ended", problem.what());
}

/// A writer stays as a reader, a reader becomes the writer if it is alone.
void holder::change(lease& held, std::string& mode) {
    auto& from = shared_[self_.about().name.back() == '0' ? 0 : 1];
    self_.report("change");
    if (mode == "write") {
        held = from.downgrade(std::move(held));
    } else {
        auto result = from.try_upgrade(std::move(held));
        held = std::move(result.held);
        if (!result.done) return;
    }
    mode = mode == "write" ? "read" : "write";
    self_.about().fence = held.fence();
    self_.report("changed", mode);
    guard(held, mode);
}

void holder::give_up(lease held, std::string const& mode) {
    switch (self_.below(16)) {
        case 0: {
            auto const token = held.detach();
            return self_.report("detached", mode + "|" + token);
        }
        case 1:
        case 2:
        case 3:
        case 4: held = {}; break;
        default: held.release(); break;
    }
    self_.report("ended");
}

bool holder::is_sure(lease const& held) {
    auto const time = boot_ns();
    if (!held.valid()) return false;
    self_.report_at(time, "sure");
    return true;
}

/// Uses what the lease guards, for a moment or for longer than the lease lasts without renewals.
void holder::guard(lease const& held, std::string const& mode) {
    auto const kind = self_.below(100);
    auto const length = kind < 3 ? self_.up_to(2'500) : kind < 40 ? self_.up_to(12) : 0ms;
    bool const fenced = !self_.about().name.starts_with("semaphore");  // those who share it come in any order
    auto const lost = held.stop_token();
    auto const end = std::chrono::steady_clock::now() + length;
    do {
        if (!is_sure(held)) return expect_to_be_told(lost);
        if (fenced) static_cast<void>(self_.ask("access", mode));
        if (length != 0ms) std::this_thread::sleep_for(2ms);
    } while (std::chrono::steady_clock::now() < end);
    is_sure(held);
}

/// Whoever relies on the token must hear of the loss too. Counted in sleeps: this process may be stopped meanwhile.
void holder::expect_to_be_told(std::stop_token const& lost) {
    for (int i = 0; i < 400 && !lost.stop_requested(); ++i) std::this_thread::sleep_for(5ms);
    if (!lost.stop_requested()) self_.report("untold");
}

}  // namespace lockstep::chaos
