#include "lease/take.hpp"

#include "base/random.hpp"
#include "core/core.hpp"
#include "lease/caller.hpp"
#include "lease/hub.hpp"
#include "lease/pause.hpp"
#include "lease/room.hpp"
#include "lease/session_pool.hpp"
#include "lease/waiter.hpp"
#include "redis/command.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::engine {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

milliseconds retry_pause(settings const& how) {
    auto const spread = static_cast<std::int64_t>(base::random_below(static_cast<std::uint64_t>(2 * how.retry_jitter.count()) + 1));
    return std::max(milliseconds{1}, how.retry_delay - how.retry_jitter + milliseconds{spread});
}

/// Without a place in the queue: a number of attempts with pauses between them, until `until`.
task<lease> attempt(std::shared_ptr<target const> what, clock::time_point until) {
    for (std::uint32_t left = what->how.attempts; left > 0; --left) {
        waiter mine{what, {.deadline = until, .queues = false}};
        co_await mine;
        if (mine.has_it()) co_return mine.take();
        auto const next = retry_pause(what->how);
        if (left == 1 || (until != clock::time_point::max() && clock::now() + next > until)) break;
        pause rest{what->where->owner(), next};
        co_await rest;
    }
    co_return lease{};
}

[[noreturn]] void time_out(target const& what) {
    auto const& how = what.how;
    auto const kind = what.where->kind().word;
    auto const failed = fmt::format("{} '{}' was not {}", kind, what.where->name(), kind == "event" ? "set" : "obtained");
    if (how.attempts != 0) throw timeout_error(fmt::format("{} in {} attempts", failed, how.attempts));
    throw timeout_error(fmt::format("{} within {} ms", failed, how.wait_limit.count()));
}

clock::time_point limit_of(settings const& how) {
    return how.wait_limit.count() == 0 ? clock::time_point::max() : clock::now() + how.wait_limit;
}

task<lease> take_in_attempts(std::shared_ptr<target const> what) {
    auto work = attempt(what, limit_of(what->how));
    auto got = co_await std::move(work);
    if (!got) time_out(*what);
    co_return got;
}

task<std::optional<lease>> try_in_attempts(std::shared_ptr<target const> what, clock::time_point until) {
    auto work = attempt(std::move(what), until);
    auto got = co_await std::move(work);
    if (!got) co_return std::nullopt;
    co_return std::optional<lease>{std::move(got)};
}

task<lease> take_in_queue(std::shared_ptr<target const> what) {
    waiter mine{what, {.deadline = limit_of(what->how)}};
    co_await mine;
    if (!mine.has_it()) time_out(*what);
    co_return mine.take();
}

task<std::optional<lease>> try_in_queue(std::shared_ptr<target const> what, waiter::terms how) {
    waiter mine{std::move(what), how};
    co_await mine;
    if (!mine.has_it()) co_return std::nullopt;
    co_return std::optional<lease>{mine.take()};
}

task<lease> adopt_token(std::shared_ptr<target const> what, std::string token) {
    waiter mine{what, {.queues = false, .token = token}};
    co_await mine;
    if (!mine.has_it()) {
        throw lease_lost_error(fmt::format("the detached lease of '{}' was adopted already, or has run out", what->where->name()));
    }
    co_return mine.take();
}

task<change_result> run_change(lease mine, std::int64_t amount) {
    auto& held = *hold::of(mine);
    caller call{held, hold::tenancy_of(mine), caller::wish::change, held.what()->how.ttl, amount};
    co_await call;
    if (call.changed) held.permits = amount;
    if (call.changed) co_return change_result{true, std::move(call.changed)};
    co_return change_result{false, std::move(mine)};
}

/// A refusal says of what.
task<reply> named(std::shared_ptr<room> where, task<reply> work) {
    try {
        co_return co_await std::move(work);
    } catch (server_error const& problem) {
        throw server_error(fmt::format("{} ({} '{}')", problem.text(), where->kind().word, where->name()));
    }
}

task<reply> ask(target const& what, scripts::script const& script, std::span<detail::argument const> arguments, clock::time_point until) {
    auto& room = *what.where;
    room.home().register_client();
    room.note_use();
    std::string_view const keys[] = {room.key()};
    redis::command_terms const terms{.deadline = until, .slot = room.slot(), .repeatable = true};
    return named(what.where, redis::run_script(room.owner()->way(), script, keys, arguments, terms));
}

/// In turns.
task<reply> change_until(std::shared_ptr<target const> what, scripts::script const& script, std::vector<std::string> words,
                         clock::time_point until) {
    auto& room = *what->where;
    words.emplace_back();
    while (true) {
        auto const left = std::chrono::ceil<milliseconds>(until - room.owner()->home().now());
        words.back() = std::to_string(room.server_now() + std::clamp(left, milliseconds{10}, room::longest_budget).count());
        std::vector<detail::argument> const arguments(words.begin(), words.end());
        auto question = ask(*what, script, arguments, until);
        reply said;
        try {
            said = co_await std::move(question);
        } catch (timeout_error const& problem) {
            throw indeterminate_error(fmt::format("whether '{}' was changed is not known: {}", room.name(), problem.what()));
        }
        if (said[0].text() != "late") co_return said;
        room.learn(said[1].integer());  // and now the server's time is known
    }
}

task<reply> run_change_once(std::shared_ptr<target const> what, scripts::script const& script, std::vector<std::string> words) {
    auto const limit = what->where->owner()->deadline({});
    pause turn{what->where->owner(), milliseconds{0}};
    co_await turn;
    auto const until = std::min(limit, what->where->owner()->home().now() + longest_try);
    auto& sessions = what->where->home().sessions();
    auto session = sessions.borrow();
    words.at(0) = session.id;
    words.at(1) = std::to_string(session.sequence);
    auto work = change_until(what, script, std::move(words), until);
    auto said = co_await std::move(work);
    sessions.give_back(std::move(session));
    co_return said;
}

}  // namespace

void require_usable(target const& what) { what.where->owner()->require_same_process(); }
void require_blocking(target const& what) {
    require_usable(what);
    what.where->owner()->require_blocking_is_allowed();
}

task<lease> take(std::shared_ptr<target const> what) {
    require_usable(*what);
    return what->how.attempts != 0 ? take_in_attempts(std::move(what)) : take_in_queue(std::move(what));
}

task<std::optional<lease>> try_take(std::shared_ptr<target const> what, std::chrono::steady_clock::time_point until) {
    require_usable(*what);
    bool const waits = until > clock::now();
    if (waits && what->how.attempts != 0) return try_in_attempts(std::move(what), until);
    if (waits) return try_in_queue(std::move(what), {.deadline = until});
    return try_in_queue(std::move(what), {.queues = false});
}

task<lease> adopt(std::shared_ptr<target const> what, std::string token) {
    require_usable(*what);
    return adopt_token(std::move(what), std::move(token));
}

task<change_result> change(lease held, std::int64_t amount) { return run_change(std::move(held), amount); }

task<reply> call(target const& what, scripts::script const& script, std::initializer_list<detail::argument> arguments) {
    require_usable(what);
    return ask(what, script, {arguments.begin(), arguments.size()}, what.where->owner()->deadline({}));
}

task<reply> change_once(std::shared_ptr<target const> what, scripts::script const& script, std::initializer_list<detail::argument> arguments) {
    require_usable(*what);
    std::vector<std::string> words(2);  // session and sequence
    for (auto const& one : arguments) words.emplace_back(one.view());
    return run_change_once(std::move(what), script, std::move(words));
}

}  // namespace lockstep::engine
