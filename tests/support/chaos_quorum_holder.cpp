#include "chaos_quorum_holder.hpp"

#include "chaos_guardian.hpp"
#include "chaos_names.hpp"

#include <lockstep/error.hpp>

#include <chrono>
#include <stop_token>
#include <string>
#include <utility>

namespace lockstep::chaos {

using namespace std::chrono_literals;

quorum_holder::quorum_holder(actor& self, redlock_nodes const& nodes) : self_{self} {
    for (std::uint64_t i = 0; i < redlock_names; ++i) {
        auto const name = numbered("redlock", i);
        redlock_options const how{.ttl = ttl_of(name), .renew = i != 1, .retry_delay = 50ms, .retry_jitter = 30ms, .fence = true};
        if (i == 2) {
            locks_.emplace_back(nodes, std::vector<std::string>{name, name + "-more"}, how);
        } else {
            locks_.emplace_back(nodes, name, how);
        }
    }
    for (std::uint64_t i = 0; i < plain_names; ++i) {
        auto const name = numbered("plain", i);
        locks_.emplace_back(nodes, name, redlock_options{.ttl = ttl_of(name), .retry_delay = 50ms, .retry_jitter = 30ms});
    }
}

void quorum_holder::use_redlock() {
    auto const which = self_.below(locks_.size());
    bool const fenced = which < redlock_names;
    self_.turn_to(fenced ? numbered("redlock", which) : numbered("plain", which - redlock_names));
    self_.report("ask");
    auto held = guardian{self_}.ask([&](std::chrono::milliseconds time, std::stop_token token) { return locks_[which].try_acquire_for(time, std::move(token)); });
    if (!held) return;
    if (fenced) self_.about().fence = held->fence();
    self_.report("granted");
    use(std::move(*held));
}

/// To less than it has, or to more.
void quorum_holder::extend(redlock_lease& held) {
    try {
        held.extend(10ms + self_.up_to(self_.one_in(2) ? 200 : 2'000));
        self_.report("extended");
    } catch (error const& problem) {
        self_.report("not extended", problem.what());  // whether it is valid is for the lease to say
    }
}

void quorum_holder::use(redlock_lease held) try {
    if (self_.one_in(4)) extend(held);
    guardian{self_}.guard(held);
    if (self_.one_in(8)) {
        extend(held);
        guardian{self_}.guard(held);
    }
    if (self_.one_in(3)) {
        held = {};
    } else {
        held.release();
    }
    self_.report("ended");
} catch (error const& problem) {
    self_.report("ended", problem.what());
}

}  // namespace lockstep::chaos
