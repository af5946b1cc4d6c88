#include "chaos_holder.hpp"

#include "chaos_guardian.hpp"
#include "chaos_names.hpp"

#include <lockstep/error.hpp>

#include <utility>

namespace lockstep::chaos {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

holder::holder(actor& self, client& by) : self_{self}, by_{by}, semaphores_(semaphore_names) {
    // Renewed and passed on among threads; strictly in order; and one that is not renewed.
    auto const mutex_with = [&](std::uint64_t which, lease_options how) {
        auto const name = numbered("mutex", which);
        how.ttl = ttl_of(name);
        mutexes_.emplace_back(by, name, how);
    };
    mutex_with(0, {.claim_window = 150ms});
    mutex_with(1, {.cohort_passes = 0, .claim_window = 150ms});
    mutex_with(2, {.renew = false, .claim_window = 100ms});
    for (std::uint64_t i = 0; i < shared_names; ++i) {
        auto const name = numbered("shared", i);
        shared_.emplace_back(by, name, lease_options{.ttl = ttl_of(name), .renew = i == 0, .claim_window = 150ms});
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
        try {
            return semaphore(which).try_acquire_for(time, permits, std::move(token));
        } catch (not_found_error const&) {  // a failover has lost it
            semaphores_[which].reset();
            throw;
        }
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
                 return lease::adopt(by_, token);
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
    found = counting_semaphore::create(by_, name, semaphore_permits, how);
    return *found;
}

// ---- one hold

void holder::hold(wish const& what, attempt const& take) {
    self_.turn_to(what.name);
    self_.report("ask");
    auto held = guardian{self_}.ask(take);
    if (!held) return;
    self_.about().fence = held->fence();
    self_.about().n = what.permits;
    self_.report(what.got, what.mode);
    use(std::move(*held), what.mode);
}

void holder::use(lease held, std::string const& asked_for) try {
    auto mode = asked_for;
    guardian{self_}.guard(held, mode);
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
    guardian{self_}.guard(held, mode);
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

}  // namespace lockstep::chaos
