#pragma once

/// `rate_limiter`: so much per time for each key, by all programs together.
///
///     lockstep::rate_limiter api{client, "api", {.limit = 100, .per = 1min}};
///     auto const decision = api.try_acquire("user-7");
///     if (!decision.allowed) return too_many_requests(decision.retry_after);
///
///     api.acquire("user-7", 5);          // waits for its turn instead; this one costs 5
///
/// Each decision is made by a script at the server, by the server's clock; those that are asked for at the same moment share a call, and each is
/// decided for itself. Keys come with their first use and expire by themselves.
/// All who use a name must use the same options. The three ways to count:
///
///  - `sliding_log`: exact. In no window of length `per`, wherever it begins, are more than `limit` admitted. About 25 bytes for each hit.
///  - `token_bucket`: `burst` at once, then one each `per / limit` (GCRA). At most burst + limit * t / per in any time t. About 120 bytes a key.
///  - `sliding_window`: two counters, the older one weighted. At most `limit` in each window of its own; where traffic was uneven
///    a window that begins elsewhere can see up to twice that. About 140 bytes a key.
///
/// Failure: a refusal is a value. Thrown are `invalid_argument_error` (a cost below 1 or above what can ever be there; a key or options
/// out of range), `timeout_error` (from `acquire` with a `wait_limit`, or no answer came within `command_timeout`), `unavailable_error`, `cancelled_error`,
/// `server_error`. A decision whose reply was lost is made again: it may be counted twice, never too little. What happens when no server answers is
/// up to `on_unavailable`: an error, or a decision made here.
///
/// Threads: everything may be called from any thread. The object may be destroyed while its tasks go on.

#include <lockstep/client.hpp>
#include <lockstep/detail/time_after.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

enum class rate_algorithm { sliding_log, sliding_window, token_bucket };

/// What becomes of a decision when no server answers in time.
enum class rate_policy {
    fail,    ///< `unavailable_error` or `timeout_error`
    admit,   ///< it is allowed
    refuse,  ///< it is not; `acquire` throws as with `fail`
    local,   ///< each object decides for itself: `burst` (or `limit`) at once and key, then one each `per / limit`
};

struct rate_limit_options {
    std::int64_t limit = 0;               ///< so much, 1 to 10^9 (at most 10^6 in a log), and at most one per µs
    std::chrono::microseconds per = std::chrono::seconds{1};  ///< in this time, 1 ms to 366 days
    rate_algorithm algorithm = rate_algorithm::sliding_log;
    std::int64_t burst = 0;               ///< how much a full bucket holds; 0: `limit`. Only for `token_bucket`
    /// All keys of this limiter in one slot of a Cluster, so that `try_acquire_all` is all or nothing. Else a Cluster spreads them.
    bool together = false;
    std::chrono::milliseconds wait_limit{0};  ///< how long `acquire` waits before `timeout_error`; 0 or `max()`: for ever
    /// So many keys that are known to be over their limit are refused here, without the server; 0: none. Never for longer than the
    /// server would, but for a `reset` by another object and a place in a bucket that a waiter gave back; those are seen after `longest_block`.
    std::size_t block_cache = 10'000;
    std::chrono::milliseconds longest_block{1'000};
    /// How long a question waits for the server, 1 ms to 1 day; until this object was first answered, at least the client's `connect_timeout`.
    std::chrono::milliseconds command_timeout{100};
    rate_policy on_unavailable = rate_policy::fail;
};
static_assert(std::is_trivially_destructible_v<rate_limit_options>);

struct rate_decision {
    bool allowed = false;
    std::int64_t limit = 0;                   ///< what can be there at most: `limit`, or the bucket's `burst`
    std::int64_t remaining = 0;               ///< what is left after this
    std::chrono::microseconds retry_after{0};  ///< when this would be allowed if nobody else came; 0 if it was
    std::chrono::microseconds reset{0};       ///< until all of it is there again
    std::chrono::system_clock::time_point at{};  ///< the server's time of the decision; of a local refusal: of the one it repeats
    bool local = false;                       ///< refused here, by the block cache or behind others who wait; or decided here, without a server
};

/// Of one object, since it was made.
struct rate_limiter_statistics {
    std::uint64_t asked = 0;             ///< of the server
    std::uint64_t allowed = 0;
    std::uint64_t refused = 0;           ///< also locally
    std::uint64_t refused_locally = 0;
    std::uint64_t without_server = 0;    ///< decided here by `on_unavailable`, as no server answered
    std::size_t blocked_keys = 0;        ///< now in the block cache; some may be over already
    std::size_t waiting = 0;             ///< in `acquire` and its kin, now
};

namespace detail {
struct limiter_state;
}

class rate_limiter {
public:
    /// Does not ask the server. Throws `invalid_argument_error` for a name that is not 1 to 512 bytes, or options out of range.
    rate_limiter(client& by, std::string_view name, rate_limit_options const& options);

    /// May it be now? Counted if so, not if not. `key`: 1 to 512 bytes.
    rate_decision try_acquire(std::string_view key, std::int64_t cost = 1, std::stop_token token = {});
    task<rate_decision> async_try_acquire(std::string_view key, std::int64_t cost = 1);

    /// The same for many different keys in one round trip, 1,000 at most. With `together` either all are counted or none, and all are `allowed` or
    /// none (`retry_after` shows which are to blame). Otherwise each is decided for itself; what the server says is wrong with one key (another type's) is
    /// thrown when all are decided.
    std::vector<rate_decision> try_acquire_all(std::span<std::string_view const> keys, std::int64_t cost = 1, std::stop_token token = {});
    task<std::vector<rate_decision>> async_try_acquire_all(std::span<std::string_view const> keys, std::int64_t cost = 1);

    /// Waits for its turn. Those of this object that wait for a key come in the order of their calls (from a bucket: of its answers). From a bucket the place is reserved by
    /// one call and then waited for; if a wait is given up, its place is given back unless others have queued behind it.
    rate_decision acquire(std::string_view key, std::int64_t cost = 1, std::stop_token token = {});
    task<rate_decision> async_acquire(std::string_view key, std::int64_t cost = 1);
    /// The same within a time. Not `allowed`: it would take longer, which is said as soon as it is known; behind others of this object who wait for
    /// this key, with the times of the first of them.
    template <class Rep, class Period>
    rate_decision try_acquire_for(std::string_view key, std::chrono::duration<Rep, Period> time, std::int64_t cost = 1, std::stop_token token = {}) {
        return wait_until_steady(key, cost, detail::time_after(time), std::move(token));
    }
    template <class Rep, class Period>
    task<rate_decision> async_try_acquire_for(std::string_view key, std::chrono::duration<Rep, Period> time, std::int64_t cost = 1) {
        return async_wait_until_steady(key, cost, detail::time_after(time));
    }
    template <class Clock, class Duration>
    rate_decision try_acquire_until(std::string_view key, std::chrono::time_point<Clock, Duration> time, std::int64_t cost = 1, std::stop_token token = {}) {
        return wait_until_steady(key, cost, detail::time_after(time - Clock::now()), std::move(token));
    }
    template <class Clock, class Duration>
    task<rate_decision> async_try_acquire_until(std::string_view key, std::chrono::time_point<Clock, Duration> time, std::int64_t cost = 1) {
        return async_wait_until_steady(key, cost, detail::time_after(time - Clock::now()));
    }

    /// What `try_acquire` would say. Nothing is counted.
    rate_decision peek(std::string_view key, std::int64_t cost = 1, std::stop_token token = {}) const;
    task<rate_decision> async_peek(std::string_view key, std::int64_t cost = 1) const;

    /// Forgets what was counted for this key. Those of this object who wait in line for it go on at once, those of others within a minute.
    /// `indeterminate_error`: its reply was lost or did not come in time; it may have been reset, or be so later. It is not sent again by itself, as that
    /// would forget what was counted since.
    void reset(std::string_view key, std::stop_token token = {});
    task<void> async_reset(std::string_view key);

    rate_limiter_statistics statistics() const;

private:
    rate_decision wait_until_steady(std::string_view key, std::int64_t cost, std::chrono::steady_clock::time_point until, std::stop_token token);
    task<rate_decision> async_wait_until_steady(std::string_view key, std::int64_t cost, std::chrono::steady_clock::time_point until);

    std::shared_ptr<detail::limiter_state> state_;
};

}  // namespace lockstep
