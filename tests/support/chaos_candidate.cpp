#include "chaos_candidate.hpp"

#include "chaos_guardian.hpp"
#include "chaos_names.hpp"

#include <lockstep/error.hpp>

#include <chrono>
#include <stop_token>
#include <string>
#include <utility>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;

election_options options_for(std::string const& name, std::string const& who) {
    auto const ttl = ttl_of(name);
    return {.id = who, .ttl = ttl, .renew_deadline = ttl * 4 / 5, .retry_period = ttl / 4, .claim_window = 150ms};
}

}  // namespace

candidate::candidate(actor& self, client& by) : self_{self} {
    for (std::uint64_t i = 0; i < election_names; ++i) {
        auto const name = numbered("election", i);
        auto how = options_for(name, self.about().who);
        if (i == 1) {
            how.priority = static_cast<int>(self.below(3));
            how.give_way = true;
            how.heartbeat_interval = 100ms;
        }
        elections_.emplace_back(by, name, how);
    }
}

candidate::candidate(actor& self, redlock_nodes const& nodes) : self_{self} {
    for (std::uint64_t i = 0; i < election_names; ++i) {
        auto const name = numbered("election", i);
        auto how = options_for(name, self.about().who);
        how.require_quorum = true;
        how.heartbeat_interval = 100ms;
        elections_.emplace_back(nodes, name, how);
    }
}

void candidate::use_election() {
    auto& where = elections_[self_.below(elections_.size())];
    self_.turn_to(where.name());
    self_.report("ask");
    auto leads = guardian{self_}.ask([&](std::chrono::milliseconds time, std::stop_token token) { return where.try_campaign_for(time, std::move(token)); });
    if (!leads) return;
    self_.about().fence = leads->term();
    self_.report("granted");
    lead(std::move(*leads));
}

void candidate::lead(leadership leads) try {
    guardian{self_}.guard(leads);
    if (self_.one_in(3)) {
        leads = {};
    } else {
        leads.resign();
    }
    self_.report("ended");
} catch (error const& problem) {
    self_.report("ended", problem.what());
}

}  // namespace lockstep::chaos
