#pragma once

/// `atomic_counter`: a 64-bit number that all programs count with.
///
///     lockstep::atomic_counter orders{client, "orders"};
///     auto number = orders.fetch_add(1);         // the number before; add() returns the one after
///     std::int64_t expected = 10;
///     orders.compare_exchange(expected, 0);      // as std::atomic: false, and `expected` is what it is
///
/// It is 0 before its first use. Each call counts once, also when its reply was lost and it had to be sent again. Any number of calls may be
/// under way at once. It stays for good, or, with a `ttl`, until it was not changed for so long.
///
/// Failure: `invalid_argument_error` (it would not fit into 64 bits; nothing was changed), `unavailable_error`, `cancelled_error` and
/// `indeterminate_error` (it may have counted, once, at most 5 s later), `server_error`.
///
/// Threads: everything may be called from any thread. The object may be destroyed while its tasks go on.

#include <lockstep/client.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>

namespace lockstep {

namespace detail {
class counter_state;
}

struct atomic_counter_options {
    std::chrono::milliseconds ttl{0};  ///< gone when it was not changed for so long; 0: it stays
};

class atomic_counter {
public:
    /// Does not ask the server.
    atomic_counter(client& by, std::string_view name, atomic_counter_options const& options = {});

    std::int64_t get(std::stop_token token = {}) const;
    task<std::int64_t> async_get() const;

    /// What it is after.
    std::int64_t add(std::int64_t n = 1, std::stop_token token = {});
    task<std::int64_t> async_add(std::int64_t n = 1);
    /// What it was before.
    std::int64_t fetch_add(std::int64_t n = 1, std::stop_token token = {});
    task<std::int64_t> async_fetch_add(std::int64_t n = 1);

    /// What it was before.
    std::int64_t set(std::int64_t value, std::stop_token token = {});
    task<std::int64_t> async_set(std::int64_t value);

    /// Sets it if it is `expected`; otherwise false, and `expected` is what it is.
    bool compare_exchange(std::int64_t& expected, std::int64_t desired, std::stop_token token = {});
    /// What it was before: it was set if that is `expected`.
    task<std::int64_t> async_compare_exchange(std::int64_t expected, std::int64_t desired);

private:
    std::shared_ptr<detail::counter_state const> state_;
};

}  // namespace lockstep
