#pragma once

/// Several names at once.
///
///     lockstep::multi_lock both{client, {"account-7", "account-9"}};
///     auto leases = both.acquire();                          // all of them or none
///     ledger.move(leases[0].fence(), leases[1].fence());     // one fence per name, in the order the names were given
///
///     auto some = lockstep::try_acquire_all(client, names);  // independent names: those that are free, in one round trip
///     lockstep::release_all(std::move(some));                // all in one round trip
///
/// `multi_lock` takes the names one after the other in one order that is the same everywhere, so those who use it cannot deadlock with
/// each other, also across the slots of a Cluster. They are the same locks as `mutex` has under these names. When a name is not obtained,
/// those obtained so far are given back.
///
/// Failure and threads: as for `mutex`; `lease_lost_error` when one was lost while waiting for the others. `leases` are moved like a lease and release what they hold when destroyed.

#include <lockstep/client.hpp>
#include <lockstep/detail/acquirable.hpp>
#include <lockstep/lease_options.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What a multi_lock holds: a lease for every name, in the order in which the names were given.
class [[nodiscard]] leases {
public:
    leases() noexcept = default;
    explicit leases(std::vector<lease> held) noexcept : held_(std::move(held)) {}

    std::size_t size() const noexcept { return held_.size(); }
    lease const& operator[](std::size_t index) const { return held_.at(index); }
    auto begin() const noexcept { return held_.begin(); }
    auto end() const noexcept { return held_.end(); }
    /// All of them.
    bool valid() const noexcept;
    /// Gives all back in one round trip and waits for it. Throws what the first of them throws that was lost; all are given back then too.
    void release();
    task<void> async_release();

private:
    std::vector<lease> held_;
};

class multi_lock {
public:
    /// 1 to 1,000 different names.
    multi_lock(client& by, std::vector<std::string> const& names, lease_options const& options = {});

    leases acquire(std::stop_token token = {});
    task<leases> async_acquire();
    std::optional<leases> try_acquire(std::stop_token token = {}) { return try_until({}, std::move(token)); }
    task<std::optional<leases>> async_try_acquire() { return async_try_until({}); }
    /// `time` is for all names together.
    template <class Rep, class Period>
    std::optional<leases> try_acquire_for(std::chrono::duration<Rep, Period> time, std::stop_token token = {}) {
        return try_until(detail::time_after(time), std::move(token));
    }
    template <class Rep, class Period>
    task<std::optional<leases>> async_try_acquire_for(std::chrono::duration<Rep, Period> time) {
        return async_try_until(detail::time_after(time));
    }
    template <class Clock, class Duration>
    std::optional<leases> try_acquire_until(std::chrono::time_point<Clock, Duration> time, std::stop_token token = {}) {
        return try_until(detail::time_after(time - Clock::now()), std::move(token));
    }
    template <class Clock, class Duration>
    task<std::optional<leases>> async_try_acquire_until(std::chrono::time_point<Clock, Duration> time) {
        return async_try_until(detail::time_after(time - Clock::now()));
    }

private:
    std::optional<leases> try_until(std::chrono::steady_clock::time_point until, std::stop_token token);
    task<std::optional<leases>> async_try_until(std::chrono::steady_clock::time_point until);

    std::vector<std::shared_ptr<engine::target const>> names_;  // as given
    std::vector<std::size_t> order_;                            // as they are taken
};

/// Tries each of these names once, independently of each other: a lease for each that was free, in their order, and nothing for the others.
std::vector<std::optional<lease>> try_acquire_all(client& by, std::vector<std::string> const& names, lease_options const& options = {});
task<std::vector<std::optional<lease>>> async_try_acquire_all(client& by, std::vector<std::string> const& names,
                                                              lease_options const& options = {});
/// Gives back what is there. Throws what the first of them throws that was lost; all are given back then too.
void release_all(std::vector<std::optional<lease>> held);
task<void> async_release_all(std::vector<std::optional<lease>> held);

}  // namespace lockstep
