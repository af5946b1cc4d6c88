#pragma once

/// `session_store`: sessions of users, found by an id that nobody can guess, as web programs keep them.
///
///     lockstep::session_store sessions{client, "web", {.ttl = 30min}};
///     auto id = sessions.create("ada", {{"theme", "dark"}});
///     auto theme = sessions.get(id, "theme");                      // reading it is using it: its ttl begins anew
///     sessions.update(id, {.set = {{"cart", "17"}}, .erase = {"theme"}});
///     sessions.destroy_all("ada");                                 // log out everywhere
///
///     auto visitor = sessions.create_anonymous();                  // somebody who has not logged in
///     visitor = sessions.rotate(visitor, "ada").value();           // and now has: same data, the old id is gone
///
/// A session ends when it was not used for `ttl` (give or take a hundredth), and `lifetime` after it began in any case. Each operation is one step for all
/// who look: an update is seen whole or not at all, and there is no moment at which both ids of a rotation work (but for a log-in in a Cluster, where the
/// old one may work a moment longer). An id has 128 random bits from the kernel; ids are secrets, and never logged. One that is not of this form is not
/// asked for at the server. The server never sees an id: what is stored there is its handle, which has the SHA-256 of it instead, so who can read the
/// server's keys cannot use them as ids. `list` gives handles, with which a session can be looked at and destroyed.
///
/// The sessions of a user are on one server of a Cluster, those of different users spread over all (1,024 groups by user, which the id names).
///
/// Failure: nothing or false means that there is no such session (any more). Otherwise `invalid_argument_error`, `unavailable_error` (no answer within
/// `command_timeout`), `cancelled_error`, `server_error`; from what changes something `indeterminate_error`: it may have happened, or happen at most 5 s
/// later, and once. A lost reply loses nothing and changes nothing twice (for an update: unless 8 others of the same
/// session came between). Threads: everything may be called from any thread. The object may be destroyed while its tasks go on.

#include <lockstep/client.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep {

namespace detail {
class session_store_state;
}

struct session_store_options {
    std::chrono::milliseconds ttl{1'800'000};                  ///< unused for so long, it ends
    std::chrono::milliseconds lifetime{30LL * 86'400'000};     ///< it ends so long after its beginning in any case
    /// How long a call waits for the server, 1 ms to 1 day; until this object was first answered, at least the client's `connect_timeout`.
    std::chrono::milliseconds command_timeout{100};
};
static_assert(std::is_trivially_destructible_v<session_store_options>);

using session_fields = std::map<std::string, std::string, std::less<>>;

struct session_record {
    std::string user;  ///< "": nobody has logged in
    session_fields fields;
    std::uint64_t version = 0;  ///< grows with each update
    std::chrono::system_clock::time_point begun{};
    std::chrono::system_clock::time_point ends{};  ///< at the latest
};

struct session_update {
    session_fields set{};
    std::vector<std::string> erase{};
    std::uint64_t expected = 0;  ///< only if this is its version; 0: any
};

enum class session_outcome {
    updated,
    conflict,  ///< it has another version than expected; nothing was changed
    absent,    ///< there is no such session
};

class session_store {
public:
    /// Does not ask the server.
    session_store(client& by, std::string_view name, session_store_options const& options = {});

    /// The id of a new session. A user is 1 to 512 bytes; fields may be called as you like.
    std::string create(std::string_view user, session_fields const& fields = {}, std::stop_token token = {});
    task<std::string> async_create(std::string_view user, session_fields fields = {});
    /// Of somebody who has not logged in, until `rotate` says who it is.
    std::string create_anonymous(session_fields const& fields = {}, std::stop_token token = {});
    task<std::string> async_create_anonymous(session_fields fields = {});

    /// One field. Nothing: no such session, or no such field.
    std::optional<std::string> get(std::string_view id, std::string_view field, std::stop_token token = {});
    task<std::optional<std::string>> async_get(std::string_view id, std::string_view field);
    /// All of it.
    std::optional<session_record> read(std::string_view id, std::stop_token token = {});
    task<std::optional<session_record>> async_read(std::string_view id);
    /// It is used, and nothing read. False: there is none.
    bool touch(std::string_view id, std::stop_token token = {});
    task<bool> async_touch(std::string_view id);

    /// A field that is both set and erased is erased.
    session_outcome update(std::string_view id, session_update const& changes, std::stop_token token = {});
    task<session_outcome> async_update(std::string_view id, session_update changes);

    /// The id under which it goes on; the old one is gone in the same step. Nothing: there is no such session.
    std::optional<std::string> rotate(std::string_view id, std::stop_token token = {});
    task<std::optional<std::string>> async_rotate(std::string_view id);
    /// The same at a log-in: from now on it is this user's, and in the user's list.
    std::optional<std::string> rotate(std::string_view id, std::string_view user, std::stop_token token = {});
    task<std::optional<std::string>> async_rotate(std::string_view id, std::string_view user);
    /// False: there was none (any more): somebody else destroyed it, or this call did before its reply was lost and it was sent again.
    bool destroy(std::string_view id, std::stop_token token = {});
    task<bool> async_destroy(std::string_view id);

    /// What a session is known by where its id must not be seen, as in a list of a user's devices. "": this is not an id. Does not ask the server.
    static std::string handle_of(std::string_view id);
    /// All of it, by its handle; this does not use it.
    std::optional<session_record> peek(std::string_view handle, std::stop_token token = {});
    task<std::optional<session_record>> async_peek(std::string_view handle);
    /// As `destroy`.
    bool destroy_handle(std::string_view handle, std::stop_token token = {});
    task<bool> async_destroy_handle(std::string_view handle);

    /// Handles of the user's sessions; this does not use them.
    std::vector<std::string> list(std::string_view user, std::stop_token token = {});
    task<std::vector<std::string>> async_list(std::string_view user);
    /// How many there were. One that is begun at the same time may stay.
    std::size_t destroy_all(std::string_view user, std::stop_token token = {});
    task<std::size_t> async_destroy_all(std::string_view user);

private:
    std::shared_ptr<detail::session_store_state const> state_;
};

}  // namespace lockstep
