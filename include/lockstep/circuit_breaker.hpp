#pragma once

/// `circuit_breaker`: stops calling what does not work, for a whole fleet at once, and finds out with a few calls when it works again.
///
///     lockstep::circuit_breaker payments{client, "payments", {.failure_threshold = 20, .sampling = 10s, .recovery_timeout = 30s}};
///     auto receipt = payments.execute([&] { return pay(order); });                    // `circuit_open_error` while it is open
///     auto later = payments.execute([&] { return pay(order); }, [&] { return queue_up(order); });  // or the fallback
///     auto same = co_await payments.async_execute([&] { return async_pay(order); });  // the operation, and a fallback, return a `lockstep::task`
///
/// Closed, calls go through; their outcomes are counted here and reported in batches (`report_interval`, and at once when the threshold may
/// be reached), so a call costs no command. When the counts of all processes within `sampling` reach the threshold it opens for all: the
/// server pushes that to them. After `recovery_timeout` it is half open: `half_open_probes` calls at a time in the whole fleet may try, each
/// with a lease, so that one that is killed does not block the others. One that fails opens it again; `successes_to_close` close it.
///
/// A call that is cancelled says nothing about what it called: a `cancelled_error` while a stop was requested of this call counts as neither a
/// success nor a failure, is thrown on, and its fallback does not run. The blocking `execute` takes the caller's stop token to tell that apart from an
/// operation that cancels itself, for a time limit of its own; without a token every `cancelled_error` is taken for the caller's.
///
/// Without a server, or with one that only refuses (out of memory), it works by the counts of this process alone, and says so in `state()`: from
/// when the server has been silent for `server_timeout`, or has refused a report, until it takes one again. One that is held open by hand stays so meanwhile.
/// What the server refuses with is logged. All who use a name must use the same options.
///
/// Failure: `circuit_open_error` (the operation was not called), `cancelled_error` (a stop was requested), whatever the operation throws, `invalid_argument_error` for options out of range.
/// `open`, `close` and `flush` need the server: `unavailable_error`, `server_error`, `timeout_error` (`flush`), `indeterminate_error` (`open`, `close`: it
/// may have happened, once, or happen at most 5 s later). Then nothing has changed here.
///
/// Threads: everything may be called from any thread. Handlers run on the client's I/O thread and must not block there.

#include <lockstep/client.hpp>
#include <lockstep/detail/own_cancellation.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lockstep {

enum class circuit { closed, open, half_open };
std::string_view to_string(circuit state) noexcept;

struct circuit_status {
    circuit state = circuit::closed;
    std::uint64_t version = 0;  ///< grows with every change; 0: it was never changed, or the server is not known
    std::chrono::milliseconds age{0};  ///< since the server was last heard on this
    std::chrono::milliseconds retry_after{0};  ///< open: until probes may go
    bool held = false;          ///< open until it is closed by hand
    bool local = false;         ///< by the counts of this process alone: the server was not heard, or refuses
};

struct circuit_change {
    circuit from = circuit::closed;
    circuit to = circuit::closed;
    std::uint64_t version = 0;
    bool local = false;
};

/// For the constructor. At least one of `failure_threshold` and `failure_ratio` must be given; either opens it.
struct circuit_breaker_options {
    std::int64_t failure_threshold = 0;  ///< so many failures within `sampling`; 0: not by number
    double failure_ratio = 0;            ///< such a part of the calls within `sampling`, up to 1; 0: not by ratio
    std::int64_t minimum_calls = 10;     ///< the ratio counts from so many calls on
    std::chrono::milliseconds sampling{10'000};          ///< 100 ms to 1 day; what is up to a ninth older may count, too
    std::chrono::milliseconds recovery_timeout{30'000};  ///< 1 ms to 1 day
    int half_open_probes = 1;            ///< how many may try at a time, in all processes together, 1 to 1,000
    int successes_to_close = 1;          ///< 1 to 1,000
    std::chrono::milliseconds probe_lease{30'000};  ///< after that a probe of which nothing was heard is given up; 10 ms to 1 day
    /// On how many machines, by their host names, a process must have seen its share of it (threshold / so many failures, or the ratio), so that
    /// one bad machine can't open it for all. 1: any.
    int quorum_of_reporters = 1;
    std::chrono::milliseconds report_interval{200};  ///< 1 ms to 1 min
    std::chrono::milliseconds max_age{5'000};        ///< what was heard longer ago is read again, in the background, when it is used; 10 ms to 1 day
    std::chrono::milliseconds server_timeout{2'000};  ///< so long the server may be silent; 10 ms to 1 day
    std::function<bool(std::exception_ptr const&)> counts{};  ///< does this count as a failure? Else it is a success. Empty: all do. From any thread
    std::function<void(circuit_change const&)> on_change{};   ///< on the client's I/O thread
};

namespace detail {
class breaker_state;

struct breaker_pass {
    std::uint64_t generation = 0;
    std::string probe{};  ///< empty: no probe
};
enum class breaker_outcome { ok, failed, none };

breaker_pass admit(breaker_state& by, std::stop_token token = {});
std::optional<breaker_pass> try_admit(breaker_state& by, std::stop_token token = {});  ///< nothing: it is open
task<breaker_pass> async_admit(std::shared_ptr<breaker_state> by);
task<std::optional<breaker_pass>> async_try_admit(std::shared_ptr<breaker_state> by);
void settle(breaker_state& by, breaker_pass& pass, breaker_outcome how) noexcept;
/// `is_stopped`: a stop was requested of the call that ended so.
breaker_outcome outcome_of(breaker_state& by, std::exception_ptr const& problem, bool is_stopped) noexcept;
}  // namespace detail

/// Leave to make one call. Say how it went; one that goes without that counts as neither.
class [[nodiscard]] circuit_permit {
public:
    circuit_permit(circuit_permit&& other) noexcept : by_(std::move(other.by_)), pass_(std::move(other.pass_)) {}
    circuit_permit& operator=(circuit_permit&& other) noexcept {
        if (this == &other) return *this;
        tell(detail::breaker_outcome::none);
        by_ = std::move(other.by_);
        pass_ = std::move(other.pass_);
        return *this;
    }
    ~circuit_permit() { tell(detail::breaker_outcome::none); }

    void success() noexcept { tell(detail::breaker_outcome::ok); }
    void failure() noexcept { tell(detail::breaker_outcome::failed); }
    bool is_probe() const noexcept { return !pass_.probe.empty(); }

private:
    friend class circuit_breaker;
    circuit_permit(std::shared_ptr<detail::breaker_state> by, detail::breaker_pass pass) noexcept : by_(std::move(by)), pass_(std::move(pass)) {}
    static task<circuit_permit> from(std::shared_ptr<detail::breaker_state> by);
    void tell(detail::breaker_outcome how) noexcept {
        if (auto const by = std::exchange(by_, nullptr)) detail::settle(*by, pass_, how);
    }

    std::shared_ptr<detail::breaker_state> by_;
    detail::breaker_pass pass_;
};

namespace detail {

/// Settles a pass when it goes: as not tried, unless it was told.
class pass_guard {
public:
    pass_guard(breaker_state& by, breaker_pass pass) noexcept : by_(by), pass_(std::move(pass)) {}
    pass_guard(pass_guard const&) = delete;
    ~pass_guard() {
        if (!told_) settle(by_, pass_, breaker_outcome::none);
    }
    void tell(breaker_outcome how) noexcept {
        if (!std::exchange(told_, true)) settle(by_, pass_, how);
    }

private:
    breaker_state& by_;
    breaker_pass pass_;
    bool told_ = false;
};

/// `how`: what the operation's end counts as.
template <class Operation>
auto guarded(breaker_state& by, breaker_pass pass, Operation& operation, std::stop_token const& token, breaker_outcome& how)
    -> std::invoke_result_t<Operation&> {
    pass_guard guard{by, std::move(pass)};
    try {
        if constexpr (std::is_void_v<std::invoke_result_t<Operation&>>) {
            operation();
            guard.tell(breaker_outcome::ok);
        } else {
            decltype(auto) value = operation();
            guard.tell(breaker_outcome::ok);
            if constexpr (std::is_reference_v<decltype(value)>) {
                return static_cast<decltype(value)>(value);
            } else {
                return value;
            }
        }
    } catch (...) {
        how = outcome_of(by, std::current_exception(), !token.stop_possible() || token.stop_requested());
        guard.tell(how);
        throw;
    }
}

template <class T, class Operation>
task<T> async_guarded(breaker_state& by, breaker_pass pass, Operation& operation, breaker_outcome& how) {
    pass_guard guard{by, std::move(pass)};
    auto* const cancellation = co_await own_cancellation{};
    try {
        auto work = operation();
        if constexpr (std::is_void_v<T>) {
            co_await std::move(work);
            guard.tell(breaker_outcome::ok);
        } else {
            T value = co_await std::move(work);
            guard.tell(breaker_outcome::ok);
            co_return value;
        }
    } catch (...) {
        how = outcome_of(by, std::current_exception(), cancellation != nullptr && cancellation->requested());
        guard.tell(how);
        throw;
    }
}

template <class T, class Operation>
task<T> async_execute(std::shared_ptr<breaker_state> by, Operation operation) {
    auto asking = async_admit(by);
    auto pass = co_await std::move(asking);
    auto how = breaker_outcome::none;
    auto work = async_guarded<T>(*by, std::move(pass), operation, how);
    co_return co_await std::move(work);
}

template <class T, class Operation, class Fallback>
task<T> async_execute(std::shared_ptr<breaker_state> by, Operation operation, Fallback fallback) {
    auto asking = async_try_admit(by);
    auto pass = co_await std::move(asking);
    if (pass) {
        auto how = breaker_outcome::none;
        auto work = async_guarded<T>(*by, std::move(*pass), operation, how);
        try {
            co_return co_await std::move(work);
        } catch (...) {
            if (how != breaker_outcome::failed) throw;
        }
    }
    auto instead = fallback();
    co_return co_await std::move(instead);
}

}  // namespace detail

class circuit_breaker {
public:
    /// Does not ask the server. Throws `invalid_argument_error` for a name that is not 1 to 512 bytes, or options out of range.
    circuit_breaker(client& by, std::string_view name, circuit_breaker_options options);
    circuit_breaker(circuit_breaker&&) noexcept = default;
    circuit_breaker& operator=(circuit_breaker&&) noexcept = default;
    /// What was counted and not reported yet is reported in the background.
    ~circuit_breaker();

    /// Calls it, unless the circuit is open: then `circuit_open_error`. `token`: by which the caller cancels the call, the one that `operation` uses too.
    template <class Operation>
    auto execute(Operation&& operation, std::stop_token token = {}) -> std::invoke_result_t<Operation&> {
        auto how = detail::breaker_outcome::none;
        return detail::guarded(*state_, detail::admit(*state_, token), operation, token, how);
    }
    /// With an open circuit, and when the operation fails in a way that counts, `fallback()` is the result. Other errors are thrown: those that do
    /// not count, `cancelled_error` of a call that was to stop, and misuse of the breaker (`would_deadlock_error`, a client that was closed or is from before a fork()).
    template <class Operation, class Fallback>
        requires std::is_invocable_v<Fallback&>
    auto execute(Operation&& operation, Fallback&& fallback, std::stop_token token = {}) -> std::invoke_result_t<Operation&> {
        if (auto pass = detail::try_admit(*state_, token)) {
            auto how = detail::breaker_outcome::none;
            try {
                return detail::guarded(*state_, std::move(*pass), operation, token, how);
            } catch (...) {
                if (how != detail::breaker_outcome::failed) throw;
            }
        }
        return fallback();
    }
    /// The same for an operation that returns a `task<T>`. It is called and awaited on the client's I/O thread.
    template <class Operation>
    auto async_execute(Operation operation) -> std::invoke_result_t<Operation&> {
        using task_type = std::invoke_result_t<Operation&>;
        return detail::async_execute<typename task_type::value_type>(state_, std::move(operation));
    }
    /// As `execute` with a fallback; that returns such a task, too.
    template <class Operation, class Fallback>
        requires std::is_same_v<std::invoke_result_t<Fallback&>, std::invoke_result_t<Operation&>>
    auto async_execute(Operation operation, Fallback fallback) -> std::invoke_result_t<Operation&> {
        using task_type = std::invoke_result_t<Operation&>;
        return detail::async_execute<typename task_type::value_type>(state_, std::move(operation), std::move(fallback));
    }

    /// To call in one's own way. `allow` throws `circuit_open_error` where `try_allow` returns nothing. They ask the server only for the first
    /// state, and for a probe.
    circuit_permit allow();
    std::optional<circuit_permit> try_allow();
    task<circuit_permit> async_allow();
    task<std::optional<circuit_permit>> async_try_allow();

    /// As far as is known here; does not ask the server.
    circuit_status state() const;
    /// Asks the server.
    circuit_status look(std::stop_token token = {});
    task<circuit_status> async_look();

    /// By hand, for all. Open until `close`, without probes, also where no server can be heard; or for so long, after which probes go.
    void open(std::optional<std::chrono::milliseconds> time = {}, std::stop_token token = {});
    task<void> async_open(std::optional<std::chrono::milliseconds> time = {});
    /// Closed, with no counts, whatever was before.
    void close(std::stop_token token = {});
    task<void> async_close();
    /// Reports what was counted here now, and returns when the server has it.
    void flush(std::stop_token token = {});
    task<void> async_flush();

private:
    std::shared_ptr<detail::breaker_state> state_;
};

}  // namespace lockstep
