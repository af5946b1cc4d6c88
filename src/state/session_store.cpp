#include <lockstep/session_store.hpp>

#include "base/names.hpp"
#include "base/random.hpp"
#include "core/core.hpp"
#include "lease/hub.hpp"
#include "lease/pause.hpp"
#include "lease/server_clock.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"
#include "scripts/all.hpp"
#include "state/state_object.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

// An id is '<group, three hexadecimal digits><22 random characters>'. A group's keys share a slot:
//   <prefix>:{<store>/<group>}:session:<id>      and      <prefix>:{<store>/<group>}:sessions:<user>
// The group comes from the user's name, so that all that is done to a session and to the list of its user is one step of one script.

namespace lockstep {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

class detail::session_store_state {
public:
    session_store_state(client& by, std::string_view called, session_store_options const& options)
        : owner(core_access::of(by)), name(called), how(options), prefix(owner->options().prefix) {
        owner->require_same_process();
        base::encode_name(name);  // throws for one that is not allowed; with a group behind it, it is longer
        base::key_name(prefix, fmt::format("{}/000", name), "session");
        check("ttl", how.ttl);
        check("lifetime", how.lifetime);
    }

    std::string session_key(std::string_view id) const { return key("session", id.substr(0, 3), id); }
    std::string index_key(std::string_view group, std::string_view user) const { return key("sessions", group, user); }

    task<reply> run(scripts::script const& script, std::vector<std::string> const& keys, std::vector<std::string> const& words,
                    std::optional<redis::reactor::clock::time_point> until = {}) const;
    task<reply> command(std::vector<std::string> const& words, std::string_view key) const;

    void require_usable() const { owner->require_same_process(); }
    void require_blocking() const {
        owner->require_same_process();
        owner->require_blocking_is_allowed();
    }

    /// In turns: of the server that has this key. The nodes of a Cluster each have their own.
    engine::server_clock& clock_of(std::string_view key) const {
        auto* const common = owner->is_cluster() ? nullptr : &engine::hub::of(*owner).offset_ms;
        return clocks_.try_emplace(slot_of(key), common).first->second;
    }

    std::shared_ptr<core> owner;
    std::string name;
    session_store_options how;

private:
    std::int16_t slot_of(std::string_view key) const { return owner->is_cluster() ? static_cast<std::int16_t>(redis::key_slot(key)) : std::int16_t{-1}; }
    std::string key(std::string_view kind, std::string_view group, std::string_view rest) const {
        return fmt::format("{}:{}", base::key_name(prefix, fmt::format("{}/{}", name, group), kind), rest);
    }
    void check(std::string_view option, milliseconds time) const {
        if (time >= 1ms && time.count() <= 1'000'000'000'000) return;
        throw invalid_argument_error(fmt::format("session_store '{}': {} must be 1 to 10^12 ms, not {} ms", name, option, time.count()));
    }
    redis::command_terms terms(std::string_view key) const {
        return {.deadline = owner->deadline({}), .slot = slot_of(key), .repeatable = true, .errors_are_replies = true};
    }

    std::string prefix;
    mutable std::map<std::int16_t, engine::server_clock> clocks_;  ///< by slot; 1,024 groups at most
};

namespace {

using state = std::shared_ptr<detail::session_store_state const>;

constexpr std::int64_t page_size = 1'000;  // of a user's list

/// The server's errors name the store, never an id.
task<reply> checked(task<reply> answer, std::string store) {
    auto said = co_await std::move(answer);
    if (!said.is_error()) co_return said;
    throw server_error(fmt::format("{} (session_store '{}')", said.text(), store));
}

/// Of a script whose ARGV begin with deadline_ms, and which answers {word, number, now_ms, ...}, or {'late', 0, now_ms} when that has passed: so what was
/// given up does not happen later. Sent again it changes nothing, by the ids in its words. Goes on in a turn.
task<reply> change(state at, scripts::script const& script, std::vector<std::string> keys, std::vector<std::string> words) {
    engine::pause turn{at->owner, 0ms};
    co_await turn;
    auto const until = detail::end_of_tries(*at->owner);
    auto& clock = at->clock_of(keys.front());
    words.insert(words.begin(), std::string{});
    while (true) {
        words.front() = std::to_string(detail::latest_run(*at->owner, clock, until));
        reply said;
        try {
            auto asking = at->run(script, keys, words, until);
            said = co_await std::move(asking);
        } catch (timeout_error const& problem) {
            throw indeterminate_error(fmt::format("whether session_store '{}' was changed is not known: {}", at->name, problem.what()));
        }
        clock.learn(said[2].integer());
        if (said[0].text() != "late") co_return said;
    }
}

/// The same in every program, whatever it was compiled with.
std::string group_of(std::string_view user) { return fmt::format("{:03x}", redis::crc16::of(user) % 1024); }

bool is_id(std::string_view id) noexcept {
    auto const is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    auto const is_letter = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_'; };
    return id.size() == 25 && std::all_of(id.begin(), id.begin() + 3, is_hex) && std::all_of(id.begin() + 3, id.end(), is_letter);
}

std::chrono::system_clock::time_point time_of(reply_view ms) { return std::chrono::system_clock::time_point{milliseconds{ms.integer()}}; }

task<std::optional<session_record>> run_read(state at, std::string id, std::string what, std::string field) {
    if (!is_id(id)) co_return std::nullopt;
    std::vector<std::string> const keys{at->session_key(id)};
    std::vector<std::string> const words{std::move(what), std::move(field)};
    auto asking = at->run(scripts::session_read, keys, words);
    auto const said = co_await std::move(asking);
    if (said.size() < 4) co_return std::nullopt;
    session_record found{.user = std::string{said[1].text()},
                         .fields = {},
                         .version = static_cast<std::uint64_t>(said[0].integer()),
                         .begun = time_of(said[2]),
                         .ends = time_of(said[3])};
    for (std::size_t i = 4; i + 1 < said.size(); i += 2) found.fields.emplace(said[i].text(), said[i + 1].text());
    co_return found;
}

task<std::optional<std::string>> run_get(state at, std::string id, std::string field) {
    auto reading = run_read(std::move(at), std::move(id), "field", std::move(field));
    auto found = co_await std::move(reading);
    if (!found || found->fields.empty()) co_return std::nullopt;
    co_return std::move(found->fields.begin()->second);
}

task<bool> run_touch(state at, std::string id) {
    auto reading = run_read(std::move(at), std::move(id), "touch", {});
    auto const found = co_await std::move(reading);
    co_return found.has_value();
}

task<session_outcome> run_update(state at, std::string id, session_update changes) {
    if (!is_id(id)) co_return session_outcome::absent;
    std::vector<std::string> const keys{at->session_key(id)};
    std::vector<std::string> words{base::random_id(), std::to_string(changes.expected), std::to_string(changes.set.size())};
    for (auto const& [field, value] : changes.set) {
        words.push_back(field);
        words.push_back(value);
    }
    words.insert(words.end(), changes.erase.begin(), changes.erase.end());
    auto asking = change(at, scripts::session_update, keys, std::move(words));
    auto const said = co_await std::move(asking);
    if (said[0].text() == "changed") co_return session_outcome::updated;
    co_return said[0].text() == "conflict" ? session_outcome::conflict : session_outcome::absent;
}

/// Whose it is; nothing: there is none. Does not use it.
task<std::optional<std::string>> user_of(state at, std::string id) {
    auto const key = at->session_key(id);
    std::vector<std::string> const words{"HGET", key, "u"};
    auto asking = at->command(words, key);
    auto const said = co_await std::move(asking);
    if (said.is_null()) co_return std::nullopt;
    co_return std::string{said.text()};
}

task<std::optional<std::string>> run_rotate(state at, std::string id) {
    if (!is_id(id)) co_return std::nullopt;
    auto asking = user_of(at, id);
    auto const user = co_await std::move(asking);
    if (!user) co_return std::nullopt;
    auto const group = id.substr(0, 3);
    auto const fresh = group + base::random_id();
    std::vector<std::string> const keys{at->session_key(id), at->session_key(fresh), at->index_key(group, *user)};
    std::vector<std::string> const words{id, fresh};
    auto rotating = change(at, scripts::session_rotate, keys, words);
    auto const said = co_await std::move(rotating);
    if (said[0].text() != "rotated") co_return std::nullopt;
    co_return fresh;
}

/// 'destroy' or 'keep' those; the ones that were there.
task<std::vector<std::string>> settle(state at, std::string what, std::string user, std::vector<std::string> ids) {
    std::vector<std::string> found;
    if (ids.empty()) co_return found;
    std::vector<std::string> keys{at->index_key(ids.front().substr(0, 3), user)};
    for (auto const& id : ids) keys.push_back(at->session_key(id));
    bool const is_change = what == "destroy";
    std::vector<std::string> words{std::move(what)};
    words.insert(words.end(), ids.begin(), ids.end());
    task<reply> asking;
    if (is_change) {
        asking = change(at, scripts::session_destroy, keys, std::move(words));
    } else {
        words.insert(words.begin(), "0");  // may run at any time: an id that is gone does not come back
        asking = at->run(scripts::session_destroy, keys, words);
    }
    auto const said = co_await std::move(asking);
    for (auto one = std::next(said.begin(), 3); one != said.end(); ++one) found.emplace_back((*one).text());
    co_return found;
}

/// Part of a user's list, those that end first first.
struct listed {
    std::string id;
    double ends;
};
struct page {
    double from = 0;        ///< those that end then or later
    std::int64_t skip = 0;  ///< but for so many
    std::int64_t count = page_size;
};
task<std::vector<listed>> look(state at, std::string user, page which) {
    auto const key = at->index_key(group_of(user), user);
    auto const from = fmt::format("{:.0f}", which.from);
    auto const skip = std::to_string(which.skip);
    auto const count = std::to_string(which.count);
    std::vector<std::string> const words{"ZRANGE", key, from, "+inf", "BYSCORE", "LIMIT", skip, count, "WITHSCORES"};
    auto asking = at->command(words, key);
    auto const said = co_await std::move(asking);
    std::vector<listed> found;
    for (auto const one : said) found.push_back({std::string{one[0].text()}, one[1].real()});
    co_return found;
}

std::vector<std::string> ids_of(std::vector<listed> const& all) {
    std::vector<std::string> ids;
    for (auto const& one : all) ids.push_back(one.id);
    return ids;
}

// A session that ended for want of use stays in its user's list, which nobody may ever ask for. So each time that the list has grown by so many, twice
// as many of it are looked at, anywhere in it: so it is hardly ever much longer than twice the number of sessions.
constexpr std::int64_t growth = 32;

bool is_time_to_sweep(std::int64_t length) noexcept { return length > growth && length % growth == 0; }

task<void> sweep(state at, std::string user, std::int64_t length) {
    auto const places = static_cast<std::uint64_t>(length - 2 * growth + 1);
    page const somewhere{.skip = length <= 2 * growth ? 0 : static_cast<std::int64_t>(base::random_below(places)), .count = 2 * growth};
    try {
        auto reading = look(at, user, somewhere);
        auto const some = co_await std::move(reading);
        auto ids = ids_of(some);
        auto looking = settle(std::move(at), "keep", std::move(user), std::move(ids));
        co_await std::move(looking);
    } catch (error const&) {
        // Whoever grows the list next tries again; the session that was to be created is there.
    }
}

task<std::string> run_create(state at, std::string user, session_fields fields) {
    auto const group = group_of(user);
    auto const id = group + base::random_id();
    std::vector<std::string> const keys{at->session_key(id), at->index_key(group, user)};
    std::vector<std::string> words{id, user, std::to_string(at->how.ttl.count()), std::to_string(at->how.lifetime.count())};
    for (auto const& [field, value] : fields) {
        words.push_back(field);
        words.push_back(value);
    }
    auto asking = change(at, scripts::session_create, keys, std::move(words));
    auto const said = co_await std::move(asking);
    auto const length = said[1].integer();
    if (is_time_to_sweep(length)) {
        auto sweeping = sweep(std::move(at), std::move(user), length);
        co_await std::move(sweeping);
    }
    co_return id;
}

task<bool> run_destroy(state at, std::string id) {
    if (!is_id(id)) co_return false;
    auto asking = user_of(at, id);
    auto const user = co_await std::move(asking);
    if (!user) co_return false;
    std::vector<std::string> ids{std::move(id)};
    auto destroying = settle(std::move(at), "destroy", *user, std::move(ids));
    auto const gone = co_await std::move(destroying);
    co_return !gone.empty();
}

task<std::vector<std::string>> run_list(state at, std::string user) {
    std::vector<std::string> all;
    page next;
    while (true) {
        auto reading = look(at, user, next);
        auto const some = co_await std::move(reading);
        auto ids = ids_of(some);
        auto looking = settle(at, "keep", user, std::move(ids));
        auto const alive = co_await std::move(looking);
        all.insert(all.end(), alive.begin(), alive.end());
        if (std::ssize(some) < next.count) co_return all;
        // By time and not by place, so that what others destroy meanwhile moves nobody out of sight. The dead ones are out of the list; those alive
        // that end in the same ms as the last are to be passed over.
        auto const last = some.back().ends;
        if (last != next.from) next.skip = 0;
        next.from = last;
        auto one = alive.rbegin();
        for (auto at_end = some.rbegin(); at_end != some.rend() && at_end->ends == last && one != alive.rend(); ++at_end) {
            if (*one != at_end->id) continue;
            ++one, ++next.skip;
        }
    }
}

task<std::size_t> run_destroy_all(state at, std::string user) {
    std::size_t count = 0;
    while (true) {  // a thousand at a time, and those that came meanwhile
        auto reading = look(at, user, page{});
        auto const some = co_await std::move(reading);
        if (some.empty()) co_return count;
        auto ids = ids_of(some);
        auto destroying = settle(at, "destroy", user, std::move(ids));
        auto const gone = co_await std::move(destroying);
        count += gone.size();
    }
}

std::string checked_user(detail::session_store_state const& at, std::string_view user) {
    at.require_usable();
    if (user.empty() || user.size() > 512) {
        throw invalid_argument_error(fmt::format("session_store '{}': a user is 1 to 512 bytes, not {}", at.name, user.size()));
    }
    return std::string{user};
}

}  // namespace

task<reply> detail::session_store_state::run(scripts::script const& script, std::vector<std::string> const& keys, std::vector<std::string> const& words,
                                             std::optional<redis::reactor::clock::time_point> until) const {
    std::vector<std::string_view> const names(keys.begin(), keys.end());
    std::vector<argument> const arguments(words.begin(), words.end());
    auto with = terms(keys.front());
    if (until) with.deadline = *until;
    return checked(redis::run_script(owner->way(), script, names, arguments, with), name);
}

task<reply> detail::session_store_state::command(std::vector<std::string> const& words, std::string_view key) const {
    std::vector<argument> const arguments(words.begin(), words.end());
    return checked(redis::run_command(owner->way(), arguments, terms(key)), name);
}

session_store::session_store(client& by, std::string_view name, session_store_options const& options)
    : state_(std::make_shared<detail::session_store_state const>(by, name, options)) {}

std::string session_store::create(std::string_view user, session_fields const& fields, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_create(user, fields), std::move(token));
}
task<std::string> session_store::async_create(std::string_view user, session_fields fields) {
    return run_create(state_, checked_user(*state_, user), std::move(fields));
}

std::optional<std::string> session_store::get(std::string_view id, std::string_view field, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_get(id, field), std::move(token));
}
task<std::optional<std::string>> session_store::async_get(std::string_view id, std::string_view field) {
    state_->require_usable();
    return run_get(state_, std::string{id}, std::string{field});
}

std::optional<session_record> session_store::read(std::string_view id, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_read(id), std::move(token));
}
task<std::optional<session_record>> session_store::async_read(std::string_view id) {
    state_->require_usable();
    return run_read(state_, std::string{id}, "all", {});
}

bool session_store::touch(std::string_view id, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_touch(id), std::move(token));
}
task<bool> session_store::async_touch(std::string_view id) {
    state_->require_usable();
    return run_touch(state_, std::string{id});
}

session_outcome session_store::update(std::string_view id, session_update const& changes, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_update(id, changes), std::move(token));
}
task<session_outcome> session_store::async_update(std::string_view id, session_update changes) {
    state_->require_usable();
    return run_update(state_, std::string{id}, std::move(changes));
}

std::optional<std::string> session_store::rotate(std::string_view id, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_rotate(id), std::move(token));
}
task<std::optional<std::string>> session_store::async_rotate(std::string_view id) {
    state_->require_usable();
    return run_rotate(state_, std::string{id});
}

bool session_store::destroy(std::string_view id, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_destroy(id), std::move(token));
}
task<bool> session_store::async_destroy(std::string_view id) {
    state_->require_usable();
    return run_destroy(state_, std::string{id});
}

std::vector<std::string> session_store::list(std::string_view user, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_list(user), std::move(token));
}
task<std::vector<std::string>> session_store::async_list(std::string_view user) { return run_list(state_, checked_user(*state_, user)); }

std::size_t session_store::destroy_all(std::string_view user, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_destroy_all(user), std::move(token));
}
task<std::size_t> session_store::async_destroy_all(std::string_view user) { return run_destroy_all(state_, checked_user(*state_, user)); }

}  // namespace lockstep
