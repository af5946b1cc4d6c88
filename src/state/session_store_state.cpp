#include "state/session_store_state.hpp"

#include "base/names.hpp"
#include "lease/hub.hpp"
#include "lease/pause.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"
#include "scripts/all.hpp"
#include "state/state_object.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep::detail {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

session_store_state::session_store_state(client& by, std::string_view called, session_store_options const& options)
    : owner(core_access::of(by)), name(called), how(options), prefix_(owner->options().prefix),
      limit_(options.command_timeout) {
    owner->require_same_process();
    base::encode_name(name);  // throws for one that is not allowed; with a group behind it, it is longer
    base::key_name(prefix_, fmt::format("{}/000", name), "session");
    check("ttl", how.ttl);
    check("lifetime", how.lifetime);
    require_command_timeout("session_store", name, how.command_timeout);
}

task<reply> session_store_state::heard(task<reply> answer) const {
    auto said = co_await std::move(answer);
    limit_.answered();
    if (!said.is_error()) co_return said;
    throw server_error(fmt::format("{} (session_store '{}')", said.text(), name));
}

task<reply> session_store_state::run_until(time_point until, scripts::script const& script,
                                           std::vector<std::string> const& keys,
                                           std::vector<std::string> const& words) const {
    if (owner->objects().is_new(noted_)) {
        // It has no key of its own; while it is used it is told anew before its time is over.
        constexpr milliseconds told_anew_within = 45s;
        owner->objects().add(base::key_name(prefix_, name, "sessions"), how.ttl + told_anew_within);
    }
    std::vector<std::string_view> const names(keys.begin(), keys.end());
    std::vector<argument> const arguments(words.begin(), words.end());
    return heard(redis::run_script(owner->way(), script, names, arguments, terms(keys.front(), until)));
}

namespace {

/// `at` outlives it, as those who wait for it hold that.
task<reply> in_time(session_store_state const& at, task<reply> answer) {
    try {
        co_return co_await std::move(answer);
    } catch (timeout_error const& problem) {
        throw unavailable_error(
            fmt::format("session_store '{}': the server did not answer in time: {}", at.name, problem.what()));
    }
}

}  // namespace

task<reply> session_store_state::run(scripts::script const& script, std::vector<std::string> const& keys,
                                     std::vector<std::string> const& words) const {
    return in_time(*this, run_until(deadline(), script, keys, words));
}

task<reply> session_store_state::command(std::vector<std::string> const& words, std::string_view key) const {
    std::vector<argument> const arguments(words.begin(), words.end());
    return in_time(*this, heard(redis::run_command(owner->way(), arguments, terms(key, deadline()))));
}

void session_store_state::require_blocking() const {
    owner->require_same_process();
    owner->require_blocking_is_allowed();
}

std::string session_store_state::checked_user(std::string_view user) const {
    require_usable();
    if (user.empty() || user.size() > 512) {
        throw invalid_argument_error(
            fmt::format("session_store '{}': a user is 1 to 512 bytes, not {}", name, user.size()));
    }
    return std::string{user};
}

bool session_store_state::share_a_slot(std::string_view one_group, std::string_view other) const {
    return slot_of(key("session", one_group, "")) == slot_of(key("session", other, ""));
}

engine::server_clock& session_store_state::clock_of(std::string_view key) const {
    auto* const common = owner->is_cluster() ? nullptr : &engine::hub::of(*owner).offset_ms;
    return clocks_.try_emplace(slot_of(key), common).first->second;
}

std::int16_t session_store_state::slot_of(std::string_view key) const {
    return owner->is_cluster() ? static_cast<std::int16_t>(redis::key_slot(key)) : std::int16_t{-1};
}

std::string session_store_state::key(std::string_view kind, std::string_view group, std::string_view rest) const {
    return fmt::format("{}:{}", base::key_name(prefix_, fmt::format("{}/{}", name, group), kind), rest);
}

void session_store_state::check(std::string_view option, milliseconds time) const {
    if (time >= 1ms && time.count() <= 1'000'000'000'000) return;
    throw invalid_argument_error(
        fmt::format("session_store '{}': {} must be 1 to 10^12 ms, not {} ms", name, option, time.count()));
}

redis::command_terms session_store_state::terms(std::string_view key, time_point until) const {
    return {.deadline = until, .slot = slot_of(key), .repeatable = true, .errors_are_replies = true};
}

task<reply> change_sessions(session_store_ref at, scripts::script const& script, std::vector<std::string> keys,
                            std::vector<std::string> words) {
    engine::pause turn{at->owner, 0ms};
    co_await turn;
    auto const until = std::min(at->deadline(), end_of_tries(*at->owner));
    auto& clock = at->clock_of(keys.front());
    words.insert(words.begin(), std::string{});
    while (true) {
        words.front() = std::to_string(latest_run(*at->owner, clock, until));
        reply said;
        try {
            auto asking = at->run_until(until, script, keys, words);
            said = co_await std::move(asking);
        } catch (timeout_error const& problem) {
            throw indeterminate_error(
                fmt::format("whether session_store '{}' was changed is not known: {}", at->name, problem.what()));
        }
        clock.learn(said[2].integer());
        if (said[0].text() != "late") co_return said;
    }
}

task<std::optional<std::string>> user_of_session(session_store_ref at, std::string handle) {
    auto const key = at->session_key(handle);
    std::vector<std::string> const words{"HGET", key, "u"};
    auto asking = at->command(words, key);
    auto const said = co_await std::move(asking);
    if (said.is_null()) co_return std::nullopt;
    co_return std::string{said.text()};
}

task<std::vector<std::string>> settle_sessions(session_store_ref at, std::string what, std::string user,
                                               std::vector<std::string> handles) {
    std::vector<std::string> found;
    if (handles.empty()) co_return found;
    std::vector<std::string> keys{at->index_key(handles.front().substr(0, 3), user)};
    for (auto const& handle : handles) keys.push_back(at->session_key(handle));
    bool const is_change = what == "destroy";
    std::vector<std::string> words{std::move(what)};
    words.insert(words.end(), handles.begin(), handles.end());
    task<reply> asking;
    if (is_change) {
        asking = change_sessions(at, scripts::session_destroy, keys, std::move(words));
    } else {
        words.insert(words.begin(), "0");  // may run at any time: a handle that is gone does not come back
        asking = at->run(scripts::session_destroy, keys, words);
    }
    auto const said = co_await std::move(asking);
    for (auto one = std::next(said.begin(), 3); one != said.end(); ++one) found.emplace_back((*one).text());
    co_return found;
}

}  // namespace lockstep::detail
