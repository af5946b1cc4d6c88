#pragma once

/// `shared_value`: one value that all programs read and change, with a version.
///
///     lockstep::shared_value<int> limit{client, "limit"};
///     limit.set(10);
///     if (auto now = limit.get()) std::cout << now->value << " is version " << now->version << '\n';
///     limit.compare_and_set(now->version, 11);                       // nothing: somebody was faster
///     limit.update([](std::optional<int> const& now) { return now.value_or(0) + 1; });
///     limit.set(12, {.fence = lease.fence()});                       // refused if a later holder has written
///     auto next = limit.wait_newer(now->version, 1min);              // nothing: it was not changed
///     auto watch = limit.watch([](auto const& now) { if (now) apply(now->value); });
///
/// `get` is linearizable: it sees every write that was answered before it began (on one server, and between failovers). A write whose reply was
/// lost counts once: it is not repeated over what somebody else wrote meanwhile.
///
/// A value without ttl stays until it is erased. The largest fence is remembered for `retention` after the value has ended, and the server keeps
/// the bytes of one that ended by its ttl as long as that; where no fence was ever given, for 2 minutes. Versions grow in any case: see the docs.
///
/// Failure: `stale_fence_error`, `conversion_error` (what is there is no T), `unavailable_error`, `timeout_error` (from `update`: lost
/// against others again and again), `cancelled_error` and `indeterminate_error` (from writes: it may have been written, once, at most 5 s later),
/// `invalid_argument_error`, `server_error`.
///
/// Threads: everything may be called from any thread. The object may be destroyed while its tasks go on. A near cache: <lockstep/near_cache.hpp>.

#include <lockstep/client.hpp>
#include <lockstep/codec.hpp>
#include <lockstep/detail/shared_value.hpp>
#include <lockstep/task.hpp>
#include <lockstep/versioned.hpp>
#include <lockstep/watching.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

namespace lockstep {

template <class T, class Codec = codec<T>>
class shared_value {
public:
    static_assert(codec_for<Codec, T>, "T needs a codec: see <lockstep/codec.hpp>, and <lockstep/json.hpp> for structs and containers");
    using result = std::optional<versioned<T>>;

    /// Does not ask the server.
    shared_value(client& by, std::string_view name, shared_value_options const& options = {}) : raw_(by, name, options) {}

    /// Nothing: there is no value.
    result get(std::stop_token token = {}) const { return raw_.require_blocking(), sync_wait(async_get(), std::move(token)); }
    task<result> async_get() const { return decoded(raw_.read()); }

    /// The version it got.
    std::uint64_t set(T const& value, write_options how = {}, std::stop_token token = {}) {
        return raw_.require_blocking(), sync_wait(async_set(value, how), std::move(token));
    }
    task<std::uint64_t> async_set(T const& value, write_options how = {}) { return raw_.set(Codec::encode(value), how); }

    /// Only if `version` is what is there; 0: if there is no value. Nothing: it is not.
    std::optional<std::uint64_t> compare_and_set(std::uint64_t version, T const& value, write_options how = {}, std::stop_token token = {}) {
        return raw_.require_blocking(), sync_wait(async_compare_and_set(version, value, how), std::move(token));
    }
    task<std::optional<std::uint64_t>> async_compare_and_set(std::uint64_t version, T const& value, write_options how = {}) {
        return raw_.compare_and_set(version, Codec::encode(value), how);
    }

    /// Reads, calls `change` with what is there (a `std::optional<T> const&`) and writes the T that it returns; again if somebody was faster. A
    /// `change` that returns a `std::optional<T>` may return nothing: then nothing is written. Returns what is there afterwards.
    /// The blocking form calls it on this thread, the other on the client's I/O thread, where it must not block.
    template <class F>
    result update(F change, write_options how = {}, std::stop_token token = {}) {
        raw_.require_blocking();
        for (detail::update_attempts attempts{raw_};; attempts.pause(token)) {
            auto const found = get(token);
            auto next = detail::apply_change<T>(change, found);
            if (!next) return found;
            if (auto const made = compare_and_set(found ? found->version : 0, *next, how, token)) return versioned<T>{*std::move(next), *made};
        }
    }
    template <class F>
    task<result> async_update(F change, write_options how = {}) {
        return update_in_turns(raw_, std::move(change), how);
    }

    /// False: there was none.
    bool erase(write_options how = {}, std::stop_token token = {}) { return raw_.require_blocking(), sync_wait(async_erase(how), std::move(token)); }
    task<bool> async_erase(write_options how = {}) { return raw_.erase(how); }
    bool exists(std::stop_token token = {}) const { return raw_.require_blocking(), sync_wait(async_exists(), std::move(token)); }
    task<bool> async_exists() const { return raw_.exists(); }

    /// Waits, by push, until there is a value with a larger version than this one; at once if there is. An erased value is none. 0: any.
    /// Nothing: none came in that time; however short that is, it is looked once, which may take the `command_timeout`.
    result wait_newer(std::uint64_t version, std::chrono::milliseconds time, std::stop_token token = {}) const {
        return raw_.require_blocking(), sync_wait(async_wait_newer(version, time), std::move(token));
    }
    task<result> async_wait_newer(std::uint64_t version, std::chrono::milliseconds time) const { return decoded(raw_.wait_newer(version, time)); }
    versioned<T> wait_newer(std::uint64_t version, std::stop_token token = {}) const {
        return raw_.require_blocking(), sync_wait(async_wait_newer(version), std::move(token));
    }
    task<versioned<T>> async_wait_newer(std::uint64_t version) const { return surely(raw_.wait_newer(version, std::nullopt)); }

    /// Calls the handler with what is there now, and then with what it is after changes (nothing: it was erased), by push, on the client's I/O
    /// thread: keep it short, never block there. Versions grow from call to call, except after a failover that lost the last writes: then it hears of
    /// what is left. When changes follow fast or the connection was lost, it hears of the latest only; that a ttl ran out, when it looks next, which
    /// it does once a minute. In force on return; ends with what is returned.
    watching watch(std::function<void(result const&)> handler) const { return raw_.require_blocking(), sync_wait(async_watch(std::move(handler))); }
    task<watching> async_watch(std::function<void(result const&)> handler) const {
        if (!handler) return raw_.watch({});
        return raw_.watch([handler = std::move(handler)](std::optional<detail::raw_value> const& now) { handler(as_result(now)); });
    }

private:
    static result as_result(std::optional<detail::raw_value> const& found) {
        if (!found) return std::nullopt;
        return versioned<T>{Codec::decode(found->bytes), found->version};
    }
    static task<result> decoded(task<std::optional<detail::raw_value>> reading) {
        auto const found = co_await std::move(reading);
        co_return as_result(found);
    }
    static task<versioned<T>> surely(task<std::optional<detail::raw_value>> waiting) {
        auto const found = co_await std::move(waiting);
        co_return versioned<T>{Codec::decode(found->bytes), found->version};
    }
    template <class F>
    static task<result> update_in_turns(detail::raw_shared_value raw, F change, write_options how) {
        detail::update_attempts attempts{raw};
        while (true) {
            auto reading = decoded(raw.read());
            auto const found = co_await std::move(reading);
            auto next = detail::apply_change<T>(change, found);
            if (!next) co_return found;
            auto writing = raw.compare_and_set(found ? found->version : 0, Codec::encode(*next), how);
            auto const made = co_await std::move(writing);
            if (made) co_return versioned<T>{*std::move(next), *made};
            auto pausing = attempts.async_pause();
            co_await std::move(pausing);
        }
    }

    detail::raw_shared_value raw_;
};

}  // namespace lockstep
