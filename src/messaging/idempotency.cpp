#include <lockstep/idempotency.hpp>

#include "base/random.hpp"
#include "base/uncancelled.hpp"
#include "core/keyed.hpp"
#include "lease/pause.hpp"
#include "scripts/all.hpp"

#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <stop_token>
#include <utility>

namespace lockstep {

using namespace std::chrono_literals;

namespace detail {

struct idempotency_state {
    keyed at;
    idempotency_options options;
};

namespace {

using shared = std::shared_ptr<idempotency_state>;

struct attempt {
    shared state;
    std::string id;
    std::string key;
    std::string token = base::random_id();
};

attempt attempt_at(shared const& state, std::string_view id) {
    state->at.require_usable();
    if (id.empty() || id.size() > 1024) {
        throw invalid_argument_error(fmt::format("idempotency '{}': an id has 1 to 1024 bytes", state->at.name()));
    }
    return {.state = state, .id = std::string{id}, .key = state->at.key_of(id)};
}

task<reply> ask(attempt const& what, scripts::script const& script, std::vector<argument> const& words) {
    std::string_view const keys[] = {what.key};
    return what.state->at.run(script, keys, words, {});
}

/// False: it had been done.
task<bool> begin(attempt what) {
    auto asking = ask(what, scripts::idempotency_begin, {what.token, what.state->options.lease.count()});
    auto const said = co_await std::move(asking);
    if (said.text() == "busy") throw busy_error(fmt::format("idempotency '{}': somebody is doing '{}'", what.state->at.name(), what.id));
    co_return said.text() == "yours";
}

task<void> finish(attempt what) {
    auto asking = ask(what, scripts::idempotency_finish, {what.token, what.state->options.retention.count()});
    auto const said = co_await std::move(asking);
    if (said.integer() == 1) co_return;
    log(log_level::warning, fmt::format("idempotency '{}': the lease for '{}' ended before it was done; it may have been done twice", what.state->at.name(), what.id));
}

/// What the work threw matters more than that this fails: then the lease runs out.
task<void> give_back(attempt what) {
    try {
        auto const by = "by " + what.token;
        auto asking = ask(what, scripts::compare_and_delete, {by});
        co_await std::move(asking);
    } catch (error const& problem) {
        log(log_level::warning, fmt::format("idempotency '{}': that '{}' may be tried again could not be told: {}", what.state->at.name(), what.id, problem.what()));
    }
}

/// Renews the lease of an attempt, also one that ended while the server was away, until somebody else has begun.
task<void> keep(attempt what) {
    auto const lease = what.state->options.lease;
    auto const by = "by " + what.token;
    while (true) {
        engine::pause rest{what.state->at.owner(), std::max<std::chrono::milliseconds>(lease / 3, 1ms)};
        co_await rest;
        try {
            auto asking = ask(what, scripts::compare_and_extend, {by, lease.count(), "1", ""});
            auto const said = co_await std::move(asking);
            if (said.integer() == 0) co_return;
        } catch (cancelled_error const&) {
            throw;
        } catch (error const&) {
            // The next one makes up for it, or finish() says that it took too long.
        }
    }
}

/// While it lives the lease of an attempt is renewed.
class renewal {
public:
    explicit renewal(attempt const& what) {
        start(with_stop_token(keep(what), stop_.get_token()), [](std::exception_ptr) {});
    }
    ~renewal() { stop_.request_stop(); }
    renewal(renewal const&) = delete;

private:
    std::stop_source stop_;
};

task<bool> run_async(attempt what, std::function<task<void>()> work) {
    bool mine = false;
    try {
        auto beginning = begin(what);
        mine = co_await std::move(beginning);
    } catch (cancelled_error const&) {
        // The server may have heard it. Nobody waits for this: whoever cancels wants to go.
        start(give_back(what), [](std::exception_ptr) {});
        throw;
    }
    if (!mine) co_return false;
    std::exception_ptr problem;
    {
        renewal const renewing{what};
        try {
            auto running = work();
            co_await std::move(running);
        } catch (...) {
            problem = std::current_exception();
        }
    }
    if (problem) {
        auto giving = base::uncancelled(give_back(what));
        co_await giving;
        std::rethrow_exception(problem);
    }
    auto finishing = base::uncancelled(finish(what));
    co_await finishing;
    co_return true;
}

task<bool> look(attempt what) {
    auto asking = what.state->at.command({"GET", what.key});
    auto const said = co_await std::move(asking);
    co_return said.is_text() && said.text() == "done";
}

task<bool> remove(attempt what) {
    auto asking = ask(what, scripts::compare_and_delete, {"done"});
    auto const said = co_await std::move(asking);
    co_return said.integer() == 1;
}

}  // namespace
}  // namespace detail

idempotency::idempotency(client& by, std::string_view name, idempotency_options options)
    : state_(std::make_shared<detail::idempotency_state>(detail::idempotency_state{detail::keyed{by, name, "idempotency"}, options})) {
    for (auto const time : {options.retention, options.lease}) {
        if (time < 1ms || time > 366 * 24h) throw invalid_argument_error(fmt::format("idempotency '{}': retention and lease must be 1 ms to 366 days", name));
    }
}

bool idempotency::run(std::string_view id, std::function<void()> const& work) {
    if (!work) throw invalid_argument_error(fmt::format("idempotency '{}' has nothing to run", state_->at.name()));
    state_->at.require_blocking();
    auto const what = detail::attempt_at(state_, id);
    if (!sync_wait(detail::begin(what))) return false;
    try {
        detail::renewal const renewing{what};
        work();
    } catch (...) {
        sync_wait(detail::give_back(what));
        throw;
    }
    sync_wait(detail::finish(what));
    return true;
}

task<bool> idempotency::async_run(std::string_view id, std::function<task<void>()> work) {
    if (!work) throw invalid_argument_error(fmt::format("idempotency '{}' has nothing to run", state_->at.name()));
    return detail::run_async(detail::attempt_at(state_, id), std::move(work));
}

task<bool> idempotency::async_was_done(std::string_view id) const { return detail::look(detail::attempt_at(state_, id)); }
bool idempotency::was_done(std::string_view id) const {
    state_->at.require_blocking();
    return sync_wait(async_was_done(id));
}
task<bool> idempotency::async_forget(std::string_view id) { return detail::remove(detail::attempt_at(state_, id)); }
bool idempotency::forget(std::string_view id) {
    state_->at.require_blocking();
    return sync_wait(async_forget(id));
}

}  // namespace lockstep
