#pragma once

/// `job_worker`: runs the jobs that a `job_client` schedules.
///
///     lockstep::job_worker worker{client, "shop", {.concurrency = 20}};
///     worker.handle<letter>("mail", [](letter const& what) { send(what); });                        // on a thread of the worker
///     worker.handle<std::string>("report", [](lockstep::job_context& job, std::string month) -> lockstep::task<std::string> {
///         co_await job.async_progress("reading");                                                  // on the client's I/O thread: must not block
///         co_return "done";
///     });
///     worker.start();
///     ...                                                     // works until stop() or the end of `worker`
///
/// What a handler returns is the job's result. One that throws is tried again after a pause, as the job's options say; the exception's text is kept. One
/// that throws `lockstep::reject` is not tried again; one that throws `lockstep::later` is run again after the delay that it names, and one that throws
/// `busy_error` (of `idempotency`: somebody else is doing it) after a growing delay of up to 30 s. Neither counts as a failure. At least once: a job whose
/// worker was killed is run again elsewhere when its lease ends. Only one try completes it: the others are refused.
///
/// A handler is told to stop (`stop_token()`, and coroutines by cancellation) when its job was cancelled, its time is over, its lease was lost, or the worker
/// or its client ends and does not wait for it. What it throws after the latter does not count as a failure, and its job is run elsewhere at once.
///
/// Tries that fail are logged, for each type in one line per 20 s at most, with how many they were. A worker of whose handlers most fail ("no database here")
/// takes fewer jobs of that type, down to one per 5 s, so that they are left to workers that can do them; one success in five and it takes all it may.
/// What is larger than 16 MiB as a result or 1 MiB as progress makes a job fail at once.
///
/// A handler that runs on when its job's time is over (`job_options::timeout`) is logged and counted (`stuck`); that job is not run here again until it has
/// ended, but elsewhere.
///
/// Failure: nothing is thrown at you after `start`. While the server is away it tries again, and logs that.
/// Threads: everything may be called from any thread, but for destruction. Not from a handler: `stop`, destruction. Destruction waits for handlers
/// (`job_worker_options::stop_limit`); on an I/O thread or one of the executor that the client lives on, where it can't wait, it only lets them end: await
/// `async_stop` before.

#include <lockstep/codec.hpp>
#include <lockstep/detail/raw_jobs.hpp>

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace lockstep {

/// What a handler can know of its job, and say of it. Lives as long as the handler runs.
class job_context {
public:
    std::string const& id() const noexcept { return raw_.id(); }
    /// Which try this is, from 1 on: those before it threw, or took too long.
    std::int32_t attempt() const noexcept { return raw_.attempt(); }
    /// How often it was begun, from 1 on: those before it may have died with their worker.
    std::int32_t deliveries() const noexcept { return raw_.deliveries(); }
    /// When the schedule that it comes from was due (`job_client::cron`); zero if it comes from none.
    std::chrono::system_clock::time_point due() const noexcept { return raw_.due(); }
    /// May it still complete, as far as can be known without asking?
    bool is_valid() const noexcept { return raw_.is_valid(); }
    std::stop_token stop_token() const noexcept { return raw_.stop_token(); }
    /// Kept with the job, and told to those who observe. Throws `lease_lost_error` when the job is not ours any more.
    void progress(std::string text) { raw_.progress(std::move(text)); }
    task<void> async_progress(std::string text) { return raw_.async_progress(std::move(text)); }

    /// In a flow: ids of the jobs for which this one waited, in no certain order.
    std::vector<std::string> const& parents() const noexcept { return raw_.parents(); }
    /// What one of these returned. Nothing: it did not complete, or is forgotten (which it is not while this one runs). Throws
    /// `invalid_argument_error` for what is not a parent, `protocol_error` for a result larger than `client_options::max_reply_bytes` allows.
    template <class T, codec_for<T> Codec = codec<T>>
    std::optional<T> parent_result(std::string_view id) {
        raw_.require_blocking();
        return sync_wait(async_parent_result<T, Codec>(id));
    }
    template <class T, codec_for<T> Codec = codec<T>>
    task<std::optional<T>> async_parent_result(std::string_view id) {
        return decoded<T, Codec>(raw_.async_parent_result(id));
    }

    explicit job_context(detail::raw_job raw) noexcept : raw_(std::move(raw)) {}

private:
    template <class T, class Codec>
    static task<std::optional<T>> decoded(task<std::optional<std::string>> asking) {
        auto bytes = co_await std::move(asking);
        if (!bytes) co_return std::nullopt;
        co_return std::optional<T>{Codec::decode(*bytes)};
    }

    detail::raw_job raw_;
};

namespace detail {

template <class R>
struct job_result {
    static constexpr bool is_task = false;
    using type = R;
};
template <class R>
struct job_result<task<R>> {
    static constexpr bool is_task = true;
    using type = R;
};

template <class T, class F>
decltype(auto) call_job(F& handler, job_context& context, T& payload) {
    if constexpr (std::invocable<F&, job_context&, T&>) return handler(context, payload);
    else return handler(payload);
}

template <class R, class F, class T>
task<std::string> run_job(F& handler, job_context context, T payload) {
    auto work = call_job<T>(handler, context, payload);
    if constexpr (std::is_void_v<R>) {
        co_await std::move(work);
        co_return std::string{};
    } else {
        auto result = co_await std::move(work);
        co_return codec<R>::encode(result);
    }
}

}  // namespace detail

class job_worker {
public:
    /// Does not ask the server. Throws `invalid_argument_error` for a bad name and options out of range.
    job_worker(client& by, std::string_view name, job_worker_options const& how = {}) : raw_(by, name, how) {}

    /// `handler(T)` or `handler(job_context&, T)`, which returns nothing or a result: a function, run on threads of the worker, or a coroutine. Before `start`;
    /// once for each type.
    template <class T, codec_for<T> Codec = codec<T>, class F>
    void handle(std::string_view type, F handler, handle_options const& how = {}) {
        auto const kept = std::make_shared<F>(std::move(handler));
        using called = decltype(detail::call_job<T>(*kept, std::declval<job_context&>(), std::declval<T&>()));
        using result = detail::job_result<called>;
        if constexpr (result::is_task) {
            raw_.handle(type, how, detail::raw_job_worker::as_task{[kept](detail::raw_job& raw) {
                return detail::run_job<typename result::type, F, T>(*kept, job_context{raw}, T(Codec::decode(raw.payload())));
            }});
        } else {
            raw_.handle(type, how, detail::raw_job_worker::on_thread{[kept](detail::raw_job& raw) {
                T payload = Codec::decode(raw.payload());
                job_context context{raw};
                if constexpr (std::is_void_v<called>) {
                    detail::call_job<T>(*kept, context, payload);
                    return std::string{};
                } else {
                    return codec<std::remove_cvref_t<called>>::encode(detail::call_job<T>(*kept, context, payload));
                }
            }});
        }
    }

    /// Throws `std::system_error` where there can't be so many threads.
    void start() { raw_.start(); }
    /// No more jobs are taken; handlers that run finish, however long they take, and what they did is told to the server. Returns then.
    void stop(std::stop_token token = {}) { raw_.stop(std::move(token)); }
    task<void> async_stop() { return raw_.async_stop(); }
    /// The same within a time limit: the stop tokens of running handlers trip at once (coroutines are cancelled). After the limit, or when they throw, their
    /// jobs are given back, so that other workers run them at once; that counts as neither a failure nor a crash. Returns whether all handlers have ended.
    /// Those that have not run on, and what they return is ignored: destruction waits for them. A server that does not answer delays it by 2 s at most.
    bool stop(std::chrono::milliseconds limit, std::stop_token token = {}) { return raw_.stop_within(limit, std::move(token)); }
    task<bool> async_stop(std::chrono::milliseconds limit) { return raw_.async_stop_within(limit); }
    /// The same without waiting.
    void request_stop() noexcept { raw_.request_stop(); }

    std::uint64_t completed() const noexcept { return raw_.completed(); }  ///< jobs whose handler returned, here
    std::uint64_t failed() const noexcept { return raw_.failed(); }        ///< tries that failed, here
    /// Handlers that run on here though the time of their jobs has been over for a second or more: they do not heed their stop tokens. Functions among them
    /// keep a thread each.
    std::size_t stuck() const noexcept { return raw_.stuck(); }

private:
    detail::raw_job_worker raw_;
};

}  // namespace lockstep
