#pragma once

/// `counting_semaphore`: a number of permits shared by all programs that use the same server.
///
///     auto slots = lockstep::counting_semaphore::create(client, "licences", 5);   // the same for everybody who comes later
///     auto lease = slots.acquire();                                               // one permit, or acquire(3)
///     auto same = lockstep::counting_semaphore::attach(client, "licences", 10s);  // waits until somebody has created it
///
/// Permits are leases: those of a holder that dies come back by themselves within its ttl. Waiters queue, first come, first served; a
/// request for many permits is not starved by requests for few. The semaphore exists for as long as any client has an object of it or a
/// lease, and for `semaphore_options::lease_ttl` after that (up to twice that). Then `attach` waits for it to be created again.
///
/// Failure: as for `mutex`; `not_found_error` when it does not exist any longer (its data was lost, or this client was cut off from the
/// server for longer than `lease_ttl`): create it again; `count_mismatch_error` from `create` when it exists with another count;
/// `not_held_error` when a lease is released twice; `invalid_argument_error` for more permits than there are. Threads: everything may be
/// called from any thread.

#include <lockstep/client.hpp>
#include <lockstep/detail/acquirable.hpp>
#include <lockstep/lease_options.hpp>

#include <cstdint>
#include <string_view>

namespace lockstep {

struct semaphore_options {
    lease_options lease{};                           ///< of every permit; `lease.retention` is not used here
    std::chrono::milliseconds lease_ttl{300'000};    ///< how long the semaphore stays when no client has it any longer
    std::int64_t max_permits = 4096;                 ///< the largest count that is accepted, up to 1,000,000,000
    enum class creation { script, optimistic };
    creation created_by = creation::script;          ///< optimistic: WATCH, MULTI and EXEC on a connection of its own
};

class counting_semaphore {
public:
    /// Creates it, or finds it with the same count.
    static counting_semaphore create(client& by, std::string_view name, std::int64_t permits, semaphore_options const& options = {},
                                     std::stop_token token = {});
    static task<counting_semaphore> async_create(client& by, std::string_view name, std::int64_t permits,
                                                 semaphore_options const& options = {});
    /// Waits until it is there, `time` at most; then `timeout_error`.
    static counting_semaphore attach(client& by, std::string_view name, std::chrono::milliseconds time,
                                     semaphore_options const& options = {}, std::stop_token token = {});
    static task<counting_semaphore> async_attach(client& by, std::string_view name, std::chrono::milliseconds time,
                                                 semaphore_options const& options = {});

    /// How many permits there are, and how many nobody has now (negative after `resize` to fewer than are held).
    std::int64_t count(std::stop_token token = {}) const;
    task<std::int64_t> async_count() const;
    std::int64_t available(std::stop_token token = {}) const;
    task<std::int64_t> async_available() const;
    /// Changes how many there are. Nobody loses a permit. Returns how many there were (there are, if a lost reply made it ask again).
    /// Who waits for more than there are then, also in `try_acquire_for`, ends at once with the `invalid_argument_error` that a new request
    /// for so many gets, and those behind it go on. If there are enough again before it hears of that, it waits on, behind all others.
    std::int64_t resize(std::int64_t permits, std::stop_token token = {});
    task<std::int64_t> async_resize(std::int64_t permits);

    /// As in <lockstep/mutex.hpp>, for so many permits in one lease.
    lease acquire(std::int64_t permits = 1, std::stop_token token = {}) { return of(permits).acquire(std::move(token)); }
    task<lease> async_acquire(std::int64_t permits = 1) { return of(permits).async_acquire(); }
    std::optional<lease> try_acquire(std::int64_t permits = 1, std::stop_token token = {}) {
        return of(permits).try_acquire(std::move(token));
    }
    task<std::optional<lease>> async_try_acquire(std::int64_t permits = 1) { return of(permits).async_try_acquire(); }
    template <class Duration>
    std::optional<lease> try_acquire_for(Duration time, std::int64_t permits = 1, std::stop_token token = {}) {
        return of(permits).try_acquire_for(time, std::move(token));
    }
    template <class Duration>
    task<std::optional<lease>> async_try_acquire_for(Duration time, std::int64_t permits = 1) {
        return of(permits).async_try_acquire_for(time);
    }
    template <class Time>
    std::optional<lease> try_acquire_until(Time time, std::int64_t permits = 1, std::stop_token token = {}) {
        return of(permits).try_acquire_until(time, std::move(token));
    }
    template <class Time>
    task<std::optional<lease>> async_try_acquire_until(Time time, std::int64_t permits = 1) {
        return of(permits).async_try_acquire_until(time);
    }

private:
    struct some : detail::acquirable {
        explicit some(std::shared_ptr<engine::target const> what) noexcept : acquirable(std::move(what)) {}
    };
    explicit counting_semaphore(std::shared_ptr<engine::target const> one, std::int64_t most) noexcept
        : one_(std::move(one)), most_(most) {}
    friend struct semaphore_access;
    some of(std::int64_t permits) const;

    std::shared_ptr<engine::target const> one_;
    std::int64_t most_;
};

}  // namespace lockstep
