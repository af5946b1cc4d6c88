#pragma once

/// `shared_mutex`: many readers or one writer of a name, among all programs that use the same server.
///
///     lockstep::shared_mutex mutex{client, "catalogue"};
///     std::shared_lock reading{mutex};
///     auto writing = mutex.acquire();
///     auto reading = mutex.downgrade(std::move(writing));   // no writer comes between
///
/// Fair: all wait in one queue. A writer that waits lets no new reader pass, and readers that stand behind each other enter together.
/// Every hold, a reader's too, has a larger fence than all before it. `acquire`, `try_acquire` and their like (see <lockstep/mutex.hpp>)
/// are for writers; with `_shared` in the name for readers. It is SharedTimedLockable for threads.
///
/// Failure and threads: as for `mutex`.

#include <lockstep/client.hpp>
#include <lockstep/detail/acquirable.hpp>
#include <lockstep/lease_options.hpp>

#include <string_view>

namespace lockstep {

class shared_mutex : public detail::lockable {
public:
    shared_mutex(client& by, std::string_view name, lease_options const& options = {});

    lease acquire_shared(std::stop_token token = {}) { return shared_.acquire(std::move(token)); }
    task<lease> async_acquire_shared() { return shared_.async_acquire(); }
    std::optional<lease> try_acquire_shared(std::stop_token token = {}) { return shared_.try_acquire(std::move(token)); }
    task<std::optional<lease>> async_try_acquire_shared() { return shared_.async_try_acquire(); }
    template <class Duration>
    std::optional<lease> try_acquire_shared_for(Duration time, std::stop_token token = {}) {
        return shared_.try_acquire_for(time, std::move(token));
    }
    template <class Duration>
    task<std::optional<lease>> async_try_acquire_shared_for(Duration time) {
        return shared_.async_try_acquire_for(time);
    }
    template <class Time>
    std::optional<lease> try_acquire_shared_until(Time time, std::stop_token token = {}) {
        return shared_.try_acquire_until(time, std::move(token));
    }
    template <class Time>
    task<std::optional<lease>> async_try_acquire_shared_until(Time time) {
        return shared_.async_try_acquire_until(time);
    }

    /// A writer becomes a reader and keeps its fence; readers that wait may enter. Tokens of the lease before do not trip any more. Throws
    /// `lease_lost_error`; whatever it throws, the lease is given back.
    lease downgrade(lease writing);
    task<lease> async_downgrade(lease writing);

    struct upgrade {
        bool done = false;  ///< false: there are other readers, and `held` is the reader's lease as it was
        lease held;
    };
    /// The only reader becomes the writer, with a larger fence, before those who wait. Throws as `downgrade`.
    upgrade try_upgrade(lease reading);
    task<upgrade> async_try_upgrade(lease reading);

    void lock_shared() { shared_.lock(); }
    bool try_lock_shared() { return shared_.try_lock(); }
    template <class Duration>
    bool try_lock_shared_for(Duration const& time) {
        return shared_.try_lock_for(time);
    }
    template <class Time>
    bool try_lock_shared_until(Time const& time) {
        return shared_.try_lock_until(time);
    }
    void unlock_shared() noexcept { shared_.unlock(); }
    /// Of the calling thread's `lock_shared()`. Throw `not_held_error` without one.
    std::uint64_t fence_shared() const { return shared_.fence(); }
    std::stop_token stop_token_shared() const { return shared_.stop_token(); }

private:
    struct readers : detail::lockable {
        explicit readers(std::shared_ptr<engine::target const> what) : lockable(std::move(what)) {}
    };
    void require_mine(lease const& held) const;

    readers shared_;
};

}  // namespace lockstep
