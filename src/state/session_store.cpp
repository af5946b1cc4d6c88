#include <lockstep/session_store.hpp>

#include "base/random.hpp"
#include "base/stored_time.hpp"
#include "resp/cursor.hpp"
#include "scripts/all.hpp"
#include "state/session_ids.hpp"
#include "state/session_store_state.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

namespace lockstep {

using std::chrono::milliseconds;

namespace {

using state = detail::session_store_ref;

constexpr std::int64_t page_size = 1'000;  // of a user's list

/// "": the text has not the form of an id, so there is no such session.
std::string handle_or_none(std::string_view id) { return detail::is_session_id(id) ? detail::session_handle_of(id) : std::string{}; }
std::string checked_handle(std::string_view text) { return detail::is_session_handle(text) ? std::string{text} : std::string{}; }

std::chrono::system_clock::time_point time_of(reply_view ms) { return base::time_of_ms(ms.integer()); }

task<std::optional<session_record>> run_read(state at, std::string handle, std::string what, std::string field) {
    if (handle.empty()) co_return std::nullopt;
    std::vector<std::string> const keys{at->session_key(handle)};
    std::vector<std::string> const words{std::move(what), std::move(field)};
    auto asking = at->run(scripts::session_read, keys, words);
    auto const said = co_await std::move(asking);
    if (said.size() < 4) co_return std::nullopt;
    session_record found{.user = std::string{said[1].text()},
                         .fields = {},
                         .version = static_cast<std::uint64_t>(said[0].integer()),
                         .begun = time_of(said[2]),
                         .ends = time_of(said[3])};
    for (resp::cursor rest{said, 4}; rest.left() >= 2;) {
        auto const name = rest.next().text();
        found.fields.emplace(name, rest.next().text());
    }
    co_return found;
}

task<std::optional<std::string>> run_get(state at, std::string handle, std::string field) {
    auto reading = run_read(std::move(at), std::move(handle), "field", std::move(field));
    auto found = co_await std::move(reading);
    if (!found || found->fields.empty()) co_return std::nullopt;
    co_return std::move(found->fields.begin()->second);
}

task<bool> run_touch(state at, std::string handle) {
    auto reading = run_read(std::move(at), std::move(handle), "touch", {});
    auto const found = co_await std::move(reading);
    co_return found.has_value();
}

task<session_outcome> run_update(state at, std::string handle, session_update changes) {
    if (handle.empty()) co_return session_outcome::absent;
    std::vector<std::string> const keys{at->session_key(handle)};
    std::vector<std::string> words{base::random_id(), std::to_string(changes.expected), std::to_string(changes.set.size())};
    for (auto const& [field, value] : changes.set) {
        words.push_back(field);
        words.push_back(value);
    }
    words.insert(words.end(), changes.erase.begin(), changes.erase.end());
    auto asking = detail::change_sessions(at, scripts::session_update, keys, std::move(words));
    auto const said = co_await std::move(asking);
    if (said[0].text() == "changed") co_return session_outcome::updated;
    co_return said[0].text() == "conflict" ? session_outcome::conflict : session_outcome::absent;
}

/// Part of a user's list, those that end first first.
struct listed {
    std::string handle;
    double ends;
};
struct page {
    double from = 0;        ///< those that end then or later
    std::int64_t skip = 0;  ///< but for so many
    std::int64_t count = page_size;
};
task<std::vector<listed>> look(state at, std::string user, page which) {
    auto const key = at->index_key(detail::session_group_of(user), user);
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

std::vector<std::string> handles_of(std::vector<listed> const& all) {
    std::vector<std::string> handles;
    for (auto const& one : all) handles.push_back(one.handle);
    return handles;
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
        auto handles = handles_of(some);
        auto looking = detail::settle_sessions(std::move(at), "keep", std::move(user), std::move(handles));
        co_await std::move(looking);
    } catch (error const&) {
        // Whoever grows the list next tries again; the session that was to be created is there.
    }
}

/// Of nobody if the user is "".
task<std::string> run_create(state at, std::string user, session_fields fields) {
    auto const group = user.empty() ? detail::any_session_group() : detail::session_group_of(user);
    auto id = detail::new_session_id(group);
    auto const handle = detail::session_handle_of(id);
    std::vector<std::string> keys{at->session_key(handle)};
    if (!user.empty()) keys.push_back(at->index_key(group, user));
    std::vector<std::string> words{handle, user, std::to_string(at->how.ttl.count()), std::to_string(at->how.lifetime.count())};
    for (auto const& [field, value] : fields) {
        words.push_back(field);
        words.push_back(value);
    }
    auto asking = detail::change_sessions(at, scripts::session_create, keys, std::move(words));
    auto const said = co_await std::move(asking);
    auto const length = said[1].integer();
    if (is_time_to_sweep(length)) {
        auto sweeping = sweep(std::move(at), std::move(user), length);
        co_await std::move(sweeping);
    }
    co_return id;
}

task<bool> run_destroy(state at, std::string handle) {
    if (handle.empty()) co_return false;
    auto asking = detail::user_of_session(at, handle);
    auto const user = co_await std::move(asking);
    if (!user) co_return false;
    std::vector<std::string> handles{std::move(handle)};
    auto destroying = detail::settle_sessions(std::move(at), "destroy", *user, std::move(handles));
    auto const gone = co_await std::move(destroying);
    co_return !gone.empty();
}

task<std::vector<std::string>> run_list(state at, std::string user) {
    std::vector<std::string> all;
    page next;
    while (true) {
        auto reading = look(at, user, next);
        auto const some = co_await std::move(reading);
        auto handles = handles_of(some);
        auto looking = detail::settle_sessions(at, "keep", user, std::move(handles));
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
            if (*one != at_end->handle) continue;
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
        auto handles = handles_of(some);
        auto destroying = detail::settle_sessions(at, "destroy", user, std::move(handles));
        auto const gone = co_await std::move(destroying);
        count += gone.size();
    }
}

}  // namespace

session_store::session_store(client& by, std::string_view name, session_store_options const& options)
    : state_(std::make_shared<detail::session_store_state const>(by, name, options)) {}

std::string session_store::create(std::string_view user, session_fields const& fields, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_create(user, fields), std::move(token));
}
task<std::string> session_store::async_create(std::string_view user, session_fields fields) {
    return run_create(state_, state_->checked_user(user), std::move(fields));
}

std::string session_store::create_anonymous(session_fields const& fields, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_create_anonymous(fields), std::move(token));
}
task<std::string> session_store::async_create_anonymous(session_fields fields) {
    state_->require_usable();
    return run_create(state_, {}, std::move(fields));
}

std::optional<std::string> session_store::get(std::string_view id, std::string_view field, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_get(id, field), std::move(token));
}
task<std::optional<std::string>> session_store::async_get(std::string_view id, std::string_view field) {
    state_->require_usable();
    return run_get(state_, handle_or_none(id), std::string{field});
}

std::optional<session_record> session_store::read(std::string_view id, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_read(id), std::move(token));
}
task<std::optional<session_record>> session_store::async_read(std::string_view id) {
    state_->require_usable();
    return run_read(state_, handle_or_none(id), "all", {});
}

bool session_store::touch(std::string_view id, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_touch(id), std::move(token));
}
task<bool> session_store::async_touch(std::string_view id) {
    state_->require_usable();
    return run_touch(state_, handle_or_none(id));
}

session_outcome session_store::update(std::string_view id, session_update const& changes, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_update(id, changes), std::move(token));
}
task<session_outcome> session_store::async_update(std::string_view id, session_update changes) {
    state_->require_usable();
    return run_update(state_, handle_or_none(id), std::move(changes));
}

std::optional<std::string> session_store::rotate(std::string_view id, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_rotate(id), std::move(token));
}
task<std::optional<std::string>> session_store::async_rotate(std::string_view id) {
    state_->require_usable();
    return detail::rotate_session(state_, std::string{id}, {});
}
std::optional<std::string> session_store::rotate(std::string_view id, std::string_view user, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_rotate(id, user), std::move(token));
}
task<std::optional<std::string>> session_store::async_rotate(std::string_view id, std::string_view user) {
    return detail::rotate_session(state_, std::string{id}, state_->checked_user(user));
}

bool session_store::destroy(std::string_view id, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_destroy(id), std::move(token));
}
task<bool> session_store::async_destroy(std::string_view id) {
    state_->require_usable();
    return run_destroy(state_, handle_or_none(id));
}

std::string session_store::handle_of(std::string_view id) { return handle_or_none(id); }

std::optional<session_record> session_store::peek(std::string_view handle, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_peek(handle), std::move(token));
}
task<std::optional<session_record>> session_store::async_peek(std::string_view handle) {
    state_->require_usable();
    return run_read(state_, checked_handle(handle), "peek", {});
}

bool session_store::destroy_handle(std::string_view handle, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_destroy_handle(handle), std::move(token));
}
task<bool> session_store::async_destroy_handle(std::string_view handle) {
    state_->require_usable();
    return run_destroy(state_, checked_handle(handle));
}

std::vector<std::string> session_store::list(std::string_view user, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_list(user), std::move(token));
}
task<std::vector<std::string>> session_store::async_list(std::string_view user) { return run_list(state_, state_->checked_user(user)); }

std::size_t session_store::destroy_all(std::string_view user, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_destroy_all(user), std::move(token));
}
task<std::size_t> session_store::async_destroy_all(std::string_view user) { return run_destroy_all(state_, state_->checked_user(user)); }

}  // namespace lockstep
