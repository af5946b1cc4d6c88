#include <lockstep/singleton.hpp>

#include "base/names.hpp"
#include "base/quiet_thread.hpp"
#include "base/random.hpp"
#include "base/uncancelled.hpp"
#include "core/core.hpp"
#include "election/election_state.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace lockstep {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

class singleton::worker {
public:
    worker(client& by, std::string_view name, std::function<void(leadership const&)> task, election_options const& options)
        : election_(by, name, options), task_(std::move(task)), pause_(*detail::checked_options(name, options).retry_period) {
        if (!task_) throw invalid_argument_error(fmt::format("singleton '{}' has no task", name));
        thread_ = base::quiet_thread([this] { work(); });
    }
    ~worker() { stop(); }

    void stop() noexcept {
        stop_.request_stop();
        std::call_once(joined_, [this] { thread_.join(); });
    }
    bool runs() const noexcept { return runs_; }
    election const& where() const noexcept { return election_; }

private:
    void work() noexcept {
        auto const stop = stop_.get_token();
        while (!stop.stop_requested()) {
            try {
                std::stop_source round;  // ends with one run of the task, so that a pause comes before the next
                std::stop_callback const ends{stop, [&round] { round.request_stop(); }};
                election_.run(
                    [&](leadership const& leads) {
                        run_task(leads);
                        round.request_stop();
                    },
                    round.get_token());
            } catch (cancelled_error const&) {
                return;  // the client was closed
            } catch (std::exception const& problem) {
                log(log_level::error, fmt::format("singleton '{}' can't stand for its election, and tries again: {}", election_.name(), problem.what()));
            }
            std::unique_lock guard{mutex_};
            wakes_.wait_for(guard, stop, pause_, [] { return false; });
        }
    }

    void run_task(leadership const& leads) noexcept {
        runs_ = true;
        try {
            task_(leads);
        } catch (std::exception const& problem) {
            log(log_level::error, fmt::format("the task of singleton '{}' threw, and is run again: {}", election_.name(), problem.what()));
        } catch (...) {
            log(log_level::error, fmt::format("the task of singleton '{}' threw, and is run again", election_.name()));
        }
        runs_ = false;
    }

    election election_;
    std::function<void(leadership const&)> task_;
    milliseconds pause_;
    std::atomic<bool> runs_{false};
    std::mutex mutex_;
    std::condition_variable_any wakes_;
    std::stop_source stop_;
    std::once_flag joined_;
    std::thread thread_;
};

singleton::singleton(client& by, std::string_view name, std::function<void(leadership const&)> task, election_options const& options)
    : worker_(std::make_unique<worker>(by, name, std::move(task), options)) {}
singleton::singleton(singleton&&) noexcept = default;
singleton& singleton::operator=(singleton&&) noexcept = default;
singleton::~singleton() = default;

void singleton::wait_for(task<void> work, leadership const& leads) {
    auto const token = leads.stop_token();
    try {
        sync_wait(std::move(work), token);
    } catch (cancelled_error const&) {
        if (!token.stop_requested()) throw;
    }
}

void singleton::stop() noexcept {
    if (worker_) worker_->stop();
}
bool singleton::runs_here() const noexcept { return worker_ && worker_->runs(); }
election const& singleton::where() const noexcept { return worker_->where(); }

// ---- once

namespace {

struct slot_of_time {
    std::shared_ptr<detail::core> owner;
    std::string name;
    std::string key;
    std::string token;
    milliseconds window;
    bool again_if_it_throws;
};

task<reply> ask(slot_of_time const& which, scripts::script const& script, bool with_window) {
    std::string_view const keys[] = {which.key};
    detail::argument const words[] = {detail::argument{which.token}, detail::argument{which.window.count()}};
    auto const slot = static_cast<std::int16_t>(redis::key_slot(which.key));
    return redis::run_script(which.owner->way(), script, keys, std::span{words}.first(with_window ? 2 : 1),
                             {.deadline = which.owner->deadline({}), .slot = which.owner->is_cluster() ? slot : std::int16_t{-1}, .repeatable = true});
}

task<bool> claim(slot_of_time which) {
    auto asking = ask(which, scripts::once_claim, true);
    auto const said = co_await std::move(asking);
    co_return said.integer() == 1;
}

/// What the work threw matters more than that this fails: then others may run it when the window is over.
task<void> give_back(slot_of_time which) {
    try {
        auto asking = ask(which, scripts::compare_and_delete, false);
        co_await std::move(asking);
    } catch (error const& problem) {
        log(log_level::warning, fmt::format("that run_once '{}' may be run again could not be told: {}", which.name, problem.what()));
    }
}

slot_of_time checked(client& by, std::string_view name, milliseconds window, bool has_work, run_once_options options) {
    auto const& core = detail::core_access::of(by);
    core->require_same_process();
    if (window < 1ms || window > 30 * 24h) {
        throw invalid_argument_error(fmt::format("run_once '{}': the window must be 1 ms to 30 days, not {} ms", name, window.count()));
    }
    if (!has_work) throw invalid_argument_error(fmt::format("run_once '{}' has nothing to run (work is empty)", name));
    return {core, std::string{name}, base::key_name(core->options().prefix, name, "once"), base::random_id(), window, options.again_if_it_throws};
}

task<bool> run_async(slot_of_time which, std::function<task<void>()> work) {
    auto claiming = claim(which);
    bool const mine = co_await std::move(claiming);
    if (!mine) co_return false;
    std::exception_ptr problem;
    try {
        auto running = work();
        co_await std::move(running);
    } catch (...) {
        problem = std::current_exception();
    }
    if (problem && which.again_if_it_throws) {
        auto giving = base::uncancelled(give_back(which));
        co_await giving;
    }
    if (problem) std::rethrow_exception(problem);
    co_return true;
}

}  // namespace

bool run_once(client& by, std::string_view name, milliseconds window, std::function<void()> const& work, run_once_options options) {
    auto const which = checked(by, name, window, static_cast<bool>(work), options);
    which.owner->require_blocking_is_allowed();
    if (!sync_wait(claim(which))) return false;
    try {
        work();
    } catch (...) {
        if (which.again_if_it_throws) sync_wait(give_back(which));
        throw;
    }
    return true;
}

task<bool> async_run_once(client& by, std::string_view name, milliseconds window, std::function<task<void>()> work, run_once_options options) {
    auto const has_work = static_cast<bool>(work);
    return run_async(checked(by, name, window, has_work, options), std::move(work));
}

}  // namespace lockstep
