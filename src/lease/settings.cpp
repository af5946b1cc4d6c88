#include "lease/settings.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <string_view>

namespace lockstep::engine {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds longest = 30 * 24h;

}  // namespace

settings resolve(lease_options const& own, lease_options const& defaults, std::string_view name) {
    auto const refuse = [name](std::string const& why) { throw invalid_argument_error(fmt::format("'{}': {}", name, why)); };
    auto const check = [&](milliseconds value, milliseconds least, std::string_view option, std::string_view meaning = {}) {
        if (value >= least && value <= longest) return;
        refuse(fmt::format("{} must be {} ms to 30 days{}, not {} ms", option, least.count(), meaning, value.count()));
    };
    auto const pick = [&](auto member, auto otherwise) {
        if ((own.*member).has_value()) return *(own.*member);
        return (defaults.*member).value_or(otherwise);
    };
    settings chosen{};
    chosen.ttl = pick(&lease_options::ttl, milliseconds{30s});
    check(chosen.ttl, 10ms, "ttl");
    chosen.renew = pick(&lease_options::renew, true);
    chosen.renew_every = pick(&lease_options::renew_every, 0ms);
    check(chosen.renew_every, 0ms, "renew_every", " (0: a third of ttl)");
    if (chosen.renew_every == 0ms) chosen.renew_every = chosen.ttl / 3;
    if (chosen.renew_every > chosen.ttl / 2) {
        refuse(fmt::format("renew_every must be at most half of ttl ({} ms), not {} ms", (chosen.ttl / 2).count(),
                           chosen.renew_every.count()));
    }
    chosen.max_hold = pick(&lease_options::max_hold, 0ms);
    check(chosen.max_hold, 0ms, "max_hold", " (0: no limit)");
    chosen.wait_limit = pick(&lease_options::wait_limit, 0ms);
    check(chosen.wait_limit, 0ms, "wait_limit", " (0: for ever)");
    chosen.attempts = pick(&lease_options::attempts, 0U);
    chosen.retry_delay = pick(&lease_options::retry_delay, 200ms);
    check(chosen.retry_delay, 1ms, "retry_delay");
    chosen.retry_jitter = pick(&lease_options::retry_jitter, 100ms);
    check(chosen.retry_jitter, 0ms, "retry_jitter");
    auto const passes = pick(&lease_options::cohort_passes, 128U);
    if (passes > 999) refuse(fmt::format("cohort_passes must be 0 to 999, not {}", passes));
    chosen.cohort_passes = static_cast<std::uint16_t>(passes);
    chosen.cohort_time = pick(&lease_options::cohort_time, 20ms);
    check(chosen.cohort_time, 0ms, "cohort_time");
    chosen.claim_window = pick(&lease_options::claim_window, 500ms);
    check(chosen.claim_window, 10ms, "claim_window");
    chosen.retention = pick(&lease_options::retention, milliseconds{1h});
    check(chosen.retention, 1000ms, "retention");
    auto const waiters = pick(&lease_options::max_waiters, std::size_t{100'000});
    if (waiters < 1 || waiters > 10'000'000) refuse(fmt::format("max_waiters must be 1 to 10,000,000, not {}", waiters));
    chosen.max_waiters = static_cast<std::uint32_t>(waiters);
    chosen.report = pick(&lease_options::report, true);
    return chosen;
}

}  // namespace lockstep::engine
