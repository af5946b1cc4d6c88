#pragma once

/// What one process of a fleet does, and all are ready to do.
///
///     lockstep::singleton mailer{client, "mailer", [](lockstep::leadership const& leads) { send_mail_until(leads.stop_token()); }};
///     if (lockstep::run_once(client, "report-2026-11-15", 1h, [] { write_report(); })) ...   // it ran here
///
/// A `singleton` stands in the election of that name, on a thread of its own, and runs its task (a function, or a coroutine) while it leads. When the process that runs
/// it dies, the task moves to the next one. `run_once` is for what a schedule starts everywhere at about the same time.
///
/// Threads: everything may be called from any thread, but for destruction.

#include <lockstep/election.hpp>

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>

namespace lockstep {

/// A task that ends, or throws (which is logged), is run again after `retry_period`, here or elsewhere: it never just stops.
class singleton {
public:
    singleton(client& by, std::string_view name, std::function<void(leadership const&)> task, election_options const& options = {});
    /// A coroutine: `[](lockstep::leadership const& leads) -> lockstep::task<void> { ... }`. What it awaits is cancelled when it leads no more.
    template <class F>
        requires std::same_as<std::invoke_result_t<F const&, leadership const&>, lockstep::task<void>>
    singleton(client& by, std::string_view name, F task, election_options const& options = {})
        : singleton(by, name, std::function<void(leadership const&)>{[task](leadership const& leads) { wait_for(task(leads), leads); }}, options) {}
    singleton(singleton&&) noexcept;
    singleton& operator=(singleton&&) noexcept;
    /// As `stop`.
    ~singleton();

    /// Has the task end (by its stop token), waits for that, and hands it to the next process. Idempotent. Not from the task itself.
    void stop() noexcept;

    /// Does the task run in this process?
    bool runs_here() const noexcept;
    /// The election: who runs it (`leader`), and its changes (`observe`).
    election const& where() const noexcept;

private:
    static void wait_for(task<void> work, leadership const& leads);

    class worker;
    std::unique_ptr<worker> worker_;
};

struct run_once_options {
    /// What ran and threw may be run by somebody else within the window. It may then run twice in part: only for work that bears that.
    bool again_if_it_throws = false;
};

/// Of all who call this with the same name within `window` (1 ms to 30 days, from the first of them, by the server's clock) exactly one runs
/// `work`, at once and here: true. The others return false without waiting for it. Whoever dies in the middle is not replaced within
/// the window: for work that must be done to its end, use `singleton`, or a longer-lived record of what was done. Throws what `work` throws.
/// When the server could not be reached (`unavailable_error`, `indeterminate_error`) it did not run here, and perhaps nowhere.
bool run_once(client& by, std::string_view name, std::chrono::milliseconds window, std::function<void()> const& work, run_once_options options = {});
task<bool> async_run_once(client& by, std::string_view name, std::chrono::milliseconds window, std::function<task<void>()> work, run_once_options options = {});

}  // namespace lockstep
