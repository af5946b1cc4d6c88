// A session goes on under another id, and perhaps as another user's.
//
// Where the keys of both may be in one script that is one step. In a Cluster the group of the user it gets may be in another slot: then the session is
// copied, and the old one ends if nothing was written to it meanwhile; else the copy goes, and it is tried again. At no moment does neither work.

#include "redis/slot.hpp"
#include "resp/cursor.hpp"
#include "scripts/all.hpp"
#include "state/session_ids.hpp"
#include "state/session_store_state.hpp"

#include <lockstep/error.hpp>

#include <utility>

namespace lockstep::detail {
namespace {

/// The session, and who it is for: `from` and `to` are "" where it is nobody's.
struct rotation {
    std::string old_handle, new_handle, from, to;
};

task<bool> rotate_in_place(session_store_ref at, rotation what) {
    std::vector<std::string> keys{at->session_key(what.old_handle), at->session_key(what.new_handle)};
    if (!what.to.empty()) keys.push_back(at->index_key(what.new_handle.substr(0, 3), what.to));
    if (!what.from.empty()) keys.push_back(at->index_key(what.old_handle.substr(0, 3), what.from));
    std::vector<std::string> words{what.old_handle, what.new_handle, what.to};
    auto rotating = change_sessions(at, scripts::session_rotate, std::move(keys), std::move(words));
    auto const said = co_await std::move(rotating);
    co_return said[0].text() == "rotated";
}

/// 'left', 'conflict' or 'absent'.
task<std::string> copy_and_leave(session_store_ref at, rotation what) {
    auto const old_key = at->session_key(what.old_handle);
    std::vector<std::string> const question{"HGETALL", old_key};
    auto reading = at->command(question, old_key);
    auto const all = co_await std::move(reading);
    std::string version;
    std::vector<std::string> fields{what.new_handle, what.to};
    for (resp::cursor rest{all}; rest.left() >= 2;) {
        auto const name = rest.next().text();
        auto const value = rest.next().text();
        if (name == "n") version = value;
        fields.emplace_back(name);
        fields.emplace_back(value);
    }
    if (version.empty()) co_return "absent";
    std::vector<std::string> const to_keys{at->session_key(what.new_handle),
                                           at->index_key(what.new_handle.substr(0, 3), what.to)};
    auto copying = change_sessions(at, scripts::session_copy, to_keys, std::move(fields));
    co_await std::move(copying);
    std::vector<std::string> from_keys{old_key, at->moved_key(what.old_handle)};
    if (!what.from.empty()) from_keys.push_back(at->index_key(what.old_handle.substr(0, 3), what.from));
    std::vector<std::string> words{what.old_handle, what.new_handle, version};
    auto leaving = change_sessions(at, scripts::session_leave, std::move(from_keys), std::move(words));
    auto const said = co_await std::move(leaving);
    std::string outcome{said[0].text()};
    if (outcome != "left") {
        std::vector<std::string> copy{what.new_handle};
        auto destroying = settle_sessions(at, "destroy", what.to, std::move(copy));
        co_await std::move(destroying);
    }
    co_return outcome;
}

}  // namespace

task<std::optional<std::string>> rotate_session(session_store_ref at, std::string id, std::string user) {
    if (!is_session_id(id)) co_return std::nullopt;
    auto const handle = session_handle_of(id);
    auto asking = user_of_session(at, handle);
    auto const owner = co_await std::move(asking);
    if (!owner) co_return std::nullopt;
    auto const group = user.empty() ? id.substr(0, 3) : session_group_of(user);
    auto const next_user = user.empty() ? *owner : user;
    while (true) {
        auto const fresh = new_session_id(group);
        rotation what{.old_handle = handle, .new_handle = session_handle_of(fresh), .from = *owner, .to = next_user};
        if (at->share_a_slot(group, id.substr(0, 3))) {
            auto rotating = rotate_in_place(at, std::move(what));
            bool const is_done = co_await std::move(rotating);
            if (is_done) co_return fresh;
            co_return std::nullopt;
        }
        auto moving = copy_and_leave(at, std::move(what));
        auto const outcome = co_await std::move(moving);
        if (outcome == "left") co_return fresh;
        if (outcome == "absent") co_return std::nullopt;
    }
}

}  // namespace lockstep::detail
