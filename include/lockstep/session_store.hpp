#pragma once

/// `session_store`: sessions of users, found by an id that nobody can guess, as web programs keep them.
///
///     lockstep::session_store sessions{client, "web", {.ttl = 30min}};
///     auto id = sessions.create("ada", {{"theme", "dark"}});
///     auto theme = sessions.get(id, "theme");                      // reading it is using it: its ttl begins anew
///     sessions.update(id, {.set = {{"cart", "17"}}, .erase = {"theme"}});
///     id = sessions.rotate(id).value();                            // after a log-in: same data, the old id is gone
///     for (auto const& one : sessions.list("ada")) ...
///     sessions.destroy_all("ada");                                 // log out everywhere
///
/// A session ends when it was not used for `ttl` (give or take a hundredth), and `lifetime` after it began in any case. Each operation is one step for all
/// who look: an update is seen whole or not at all, and there is no moment at which both ids of a rotation work. An id has 128 random bits from the
/// kernel; ids are secrets, and never logged. One that is not of this form is not asked for at the server.
///
/// The sessions of a user are on one server of a Cluster, those of different users spread over all (1,024 groups by user, which the id names).
///
/// Failure: nothing or false means that there is no such session (any more). Otherwise `invalid_argument_error`, `unavailable_error`,
/// `timeout_error`, `cancelled_error`, `server_error`; from what changes something `indeterminate_error`: it may have happened, or happen at most 5 s
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
#include <vector>

namespace lockstep {

namespace detail {
class session_store_state;
}

struct session_store_options {
    std::chrono::milliseconds ttl{1'800'000};                  ///< unused for so long, it ends
    std::chrono::milliseconds lifetime{30LL * 86'400'000};     ///< it ends so long after its beginning in any case
};

using session_fields = std::map<std::string, std::string, std::less<>>;

struct session_record {
    std::string user;
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
    /// False: there was none (any more): somebody else destroyed it, or this call did before its reply was lost and it was sent again.
    bool destroy(std::string_view id, std::stop_token token = {});
    task<bool> async_destroy(std::string_view id);

    /// Ids of the user's sessions; this does not use them.
    std::vector<std::string> list(std::string_view user, std::stop_token token = {});
    task<std::vector<std::string>> async_list(std::string_view user);
    /// How many there were. One that is begun at the same time may stay.
    std::size_t destroy_all(std::string_view user, std::stop_token token = {});
    task<std::size_t> async_destroy_all(std::string_view user);

private:
    std::shared_ptr<detail::session_store_state const> state_;
};

}  // namespace lockstep
