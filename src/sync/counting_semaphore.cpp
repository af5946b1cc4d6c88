#include <lockstep/counting_semaphore.hpp>

#include "lease/key_keepalive.hpp"
#include "lease/take.hpp"
#include "lease/waiter.hpp"
#include "resp/cursor.hpp"
#include "scripts/all.hpp"
#include "sync/targets.hpp"

#include <lockstep/error.hpp>
#include <lockstep/session.hpp>

#include <fmt/format.h>

#include <charconv>

namespace lockstep {

struct semaphore_access {
    /// It exists, and does so for as long as there is an object like this.
    static counting_semaphore make(std::shared_ptr<engine::target const> const& found, std::int64_t most) {
        auto one = std::make_shared<engine::target>(*found);
        one->kept = engine::key_keepalive::keep(*one->where->owner(), one->where->key(), one->how.retention);
        return counting_semaphore{std::move(one), most};
    }
};

namespace {

using creation = semaphore_options::creation;
using target_pointer = std::shared_ptr<engine::target const>;

target_pointer target_with(client& by, std::string_view name, semaphore_options const& options) {
    if (options.max_permits < 1 || options.max_permits > 1'000'000'000) {
        throw invalid_argument_error(fmt::format("semaphore '{}': max_permits must be 1 to 1,000,000,000, not {}", name, options.max_permits));
    }
    if (options.lease_ttl < std::chrono::seconds{1} || options.lease_ttl > std::chrono::hours{24 * 30}) {
        throw invalid_argument_error(
            fmt::format("semaphore '{}': lease_ttl must be 1 s to 30 days, not {} ms", name, options.lease_ttl.count()));
    }
    auto lease = options.lease;
    lease.retention = options.lease_ttl;
    return detail::make_target(by, engine::semaphore_kind, name, lease);
}

void check_count(engine::target const& what, std::int64_t permits, std::int64_t most) {
    if (permits >= 1 && permits <= most) return;
    throw invalid_argument_error(fmt::format("semaphore '{}': the number of permits must be 1 to {} (max_permits), not {}",
                                             what.where->name(), most, permits));
}

[[noreturn]] void explain(server_error const& problem, engine::target const& what, std::int64_t permits) {
    constexpr std::string_view mark = "LOCKSTEP_COUNT ";
    auto const text = problem.text();
    if (!text.starts_with(mark)) throw problem;
    auto const has = text.substr(mark.size(), text.find(' ', mark.size()) - mark.size());
    throw count_mismatch_error(fmt::format("the semaphore '{}' exists with {} permits, not {}", what.where->name(), has, permits));
}

task<counting_semaphore> create_by_script(target_pointer what, std::int64_t permits, std::int64_t most) {
    try {
        std::string from;  // those who wait for what it has not are turned away in steps
        while (from != "0") {
            auto work = engine::call(*what, scripts::pool_create, {permits, what->rules, from});
            auto const said = co_await std::move(work);
            if (!said[2].text().empty()) what->where->gave(what);
            from = std::to_string(said[3].integer());
        }
    } catch (server_error const& problem) {
        explain(problem, *what, permits);
    }
    co_return semaphore_access::make(what, most);
}

/// The same by optimistic locking: who finds the key changed since it looked, looks again. What is there is left to the script, which
/// compares the count and makes it stay longer. (Why a script inside MULTI: docs/decisions.md.)
task<counting_semaphore> create_optimistically(task<session> opening, target_pointer what, std::int64_t permits, std::int64_t most) {
    auto own = co_await std::move(opening);
    auto const& key = what->where->key();
    try {
        for (;;) {
            auto watching = own.async_command("WATCH", key);
            co_await std::move(watching);
            auto reading = own.async_command<std::optional<std::int64_t>>("HGET", key, "c");
            auto const found = co_await std::move(reading);
            if (found) break;
            auto making = own.async_execute(transaction{}.add("EVAL", scripts::pool_create.text, 1, key, permits, what->rules, ""));
            auto const done = co_await std::move(making);
            if (!done) continue;
            done->front().throw_if_error();
            if (!done->front()[2].text().empty()) what->where->gave(what);
            if (done->front()[3].integer() != 0) break;  // more are to be turned away
            co_return semaphore_access::make(what, most);
        }
    } catch (server_error const& problem) {
        throw server_error(fmt::format("{} (semaphore '{}')", problem.text(), what->where->name()));
    }
    auto finding = create_by_script(std::move(what), permits, most);
    co_return co_await std::move(finding);
}

/// No permit at all is granted as soon as there are any to be had.
task<counting_semaphore> wait_for_creation(target_pointer what, std::chrono::steady_clock::time_point until, std::int64_t most) {
    auto none = std::make_shared<engine::target>(*what);
    none->amount = 0;
    none->how.attempts = 0;  // it waits to be told
    auto work = engine::try_take(std::move(none), until);
    auto const there = co_await std::move(work);
    if (!there) throw timeout_error(fmt::format("nobody has created the semaphore '{}' in time", what->where->name()));
    co_return semaphore_access::make(what, most);
}

not_found_error missing(engine::target const& what) {
    return not_found_error(fmt::format("the semaphore '{}' does not exist: create it first", what.where->name()));
}

task<std::int64_t> read_field(target_pointer what, std::size_t field) {
    auto work = engine::call(*what, scripts::pool_read, {});
    auto const found = co_await std::move(work);
    if (found[0].integer() < 0) throw missing(*what);
    co_return resp::cursor{found, field}.next().integer();
}

task<std::int64_t> run_resize(target_pointer what, std::int64_t permits) {
    std::optional<std::int64_t> before;
    std::string from;  // those who wait for more than there are then are turned away in steps
    while (from != "0") {
        auto work = engine::change_once(what, scripts::pool_resize, {permits, from, what->rules});
        auto const said = co_await std::move(work);
        bool const there = said[0].text() == "resized";
        if (!there && before) break;
        if (!there) throw missing(*what);
        if (!said[3].text().empty()) what->where->gave(what);
        if (!before) before = said[1].integer();
        from = std::to_string(said[4].integer());
    }
    co_return *before;
}

}  // namespace

counting_semaphore counting_semaphore::create(client& by, std::string_view name, std::int64_t permits, semaphore_options const& options,
                                              std::stop_token token) {
    detail::core_access::of(by)->require_blocking_is_allowed();
    return sync_wait(async_create(by, name, permits, options), std::move(token));
}

task<counting_semaphore> counting_semaphore::async_create(client& by, std::string_view name, std::int64_t permits,
                                                          semaphore_options const& options) {
    auto what = target_with(by, name, options);
    check_count(*what, permits, options.max_permits);
    if (options.created_by == creation::script) return create_by_script(std::move(what), permits, options.max_permits);
    auto opening = by.async_open_session(what->where->key());
    return create_optimistically(std::move(opening), std::move(what), permits, options.max_permits);
}

counting_semaphore counting_semaphore::attach(client& by, std::string_view name, std::chrono::milliseconds time,
                                              semaphore_options const& options, std::stop_token token) {
    detail::core_access::of(by)->require_blocking_is_allowed();
    return sync_wait(async_attach(by, name, time, options), std::move(token));
}

task<counting_semaphore> counting_semaphore::async_attach(client& by, std::string_view name, std::chrono::milliseconds time,
                                                          semaphore_options const& options) {
    return wait_for_creation(target_with(by, name, options), detail::time_after(time), options.max_permits);
}

counting_semaphore::some counting_semaphore::of(std::int64_t permits) const {
    check_count(*one_, permits, most_);
    if (permits == 1) return some{one_};
    auto made = std::make_shared<engine::target>(*one_);
    made->amount = permits;
    return some{std::move(made)};
}

std::int64_t counting_semaphore::count(std::stop_token token) const {
    engine::require_blocking(*one_);
    return sync_wait(async_count(), std::move(token));
}
task<std::int64_t> counting_semaphore::async_count() const { return read_field(one_, 0); }

std::int64_t counting_semaphore::available(std::stop_token token) const {
    engine::require_blocking(*one_);
    return sync_wait(async_available(), std::move(token));
}
task<std::int64_t> counting_semaphore::async_available() const { return read_field(one_, 1); }

std::int64_t counting_semaphore::resize(std::int64_t permits, std::stop_token token) {
    engine::require_blocking(*one_);
    return sync_wait(async_resize(permits), std::move(token));
}
task<std::int64_t> counting_semaphore::async_resize(std::int64_t permits) {
    check_count(*one_, permits, most_);
    return run_resize(one_, permits);
}

}  // namespace lockstep
