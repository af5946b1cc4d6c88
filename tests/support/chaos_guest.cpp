#include "chaos_guest.hpp"

#include "chaos_names.hpp"

#include <lockstep/error.hpp>

namespace lockstep::chaos {

guest::guest(actor& self, client& by) : self_{self} {
    for (std::uint64_t i = 0; i < limit_names; ++i) {
        auto const name = numbered("limit", i);
        auto const most = rate_of(name);
        limiters_.emplace_back(by, name,
                               rate_limit_options{.limit = most.limit,
                                                  .per = most.per,
                                                  .algorithm = i == 0   ? rate_algorithm::sliding_log
                                                               : i == 1 ? rate_algorithm::sliding_window
                                                                        : rate_algorithm::token_bucket,
                                                  .burst = most.burst,
                                                  .block_cache = self.one_in(2) ? 0U : 10U,
                                                  .command_timeout = std::chrono::seconds{10}});
    }
}

/// Comes more than once, as people do. The key has the limiter's name, so that its slot is that of the name.
void guest::ask_for_admission() try {
    auto const which = self_.below(limiters_.size());
    auto const name = numbered("limit", which);
    auto& limiter = limiters_[which];
    self_.turn_to(name);
    for (auto times = self_.below(6); times > 0; --times) {
        auto const cost = self_.one_in(4) ? 1 + static_cast<std::int64_t>(self_.below(4)) : 1;
        self_.report("decide");
        auto const made = self_.one_in(8) ? limiter.try_acquire_for(name, self_.up_to(200), cost) : limiter.try_acquire(name, cost);
        self_.about().n = cost;
        self_.report(made.allowed ? "allowed" : "refused");
    }
} catch (error const& problem) {
    self_.report("failed", problem.code().message() + ": " + problem.what());
}

}  // namespace lockstep::chaos
