#pragma once

/// `client`: the way to the server, one for the whole process.
///
///     lockstep::client client;                                 // LOCKSTEP_URL, REDIS_URL, or this user's embedded server
///     client.command("SET", "greeting", "hello");
///     auto text = client.command<std::string>("GET", "greeting");
///     auto same = co_await client.async_command<std::string>("GET", "greeting");
///
/// One multiplexed connection per server node, however many threads, coroutines and objects use it; it opens at the first request,
/// so construction does not block and does not fail because the server is down. A client has an I/O thread of its own;
/// `<lockstep/asio.hpp>` puts it on your executor instead.
///
/// Failure: `server_error` (the server's own answer), `timeout_error` (not answered in time, safe to repeat), `indeterminate_error`
/// (the reply is lost and it may have run), `unavailable_error` (no server in the time allowed), `authentication_error`,
/// `unsuitable_server_error` (docs/errors.md says what each asks of you), `would_deadlock_error` (a blocking form on the I/O thread).
///
/// Threads: everything may be called from any thread. In a child made by fork() everything throws; make a new client there.
/// Destruction closes: requests under way end in `cancelled_error`.

#include <lockstep/options.hpp>
#include <lockstep/reply.hpp>
#include <lockstep/request.hpp>
#include <lockstep/session.hpp>
#include <lockstep/statistics.hpp>
#include <lockstep/subscription.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

namespace detail {
class core;
struct core_access;

task<reply> async_execute(core& owner, request const& command);
task<reply> async_command(core& owner, std::span<argument const> words);

}  // namespace detail

class client {
public:
    client();
    explicit client(std::string_view url);
    explicit client(client_options const& options);
    ~client();
    client(client&&) noexcept;
    client& operator=(client&&) noexcept;

    /// Runs one command and returns its reply as a `T`. An error of the server is thrown.
    template <class T = reply, class... Args>
    T command(std::string_view name, Args const&... args) {
        require_blocking_is_allowed();
        return sync_wait(async_command<T>(name, args...));
    }
    template <class T = reply, class... Args>
    task<T> async_command(std::string_view name, Args const&... args) {
        detail::argument const words[] = {detail::argument{name}, detail::argument{args}...};
        return detail::as_task_of<T>(detail::async_command(*core_, words));
    }

    template <class T = reply>
    T execute(request const& command, std::stop_token token = {}) {
        require_blocking_is_allowed();
        return sync_wait(async_execute<T>(command), std::move(token));
    }
    template <class T = reply>
    task<T> async_execute(request const& command) {
        return detail::as_task_of<T>(detail::async_execute(*core_, command));
    }

    /// One reply per command, in order. Errors of the server are replies here (`reply::is_error`).
    std::vector<reply> execute(pipeline commands, std::stop_token token = {});
    task<std::vector<reply>> async_execute(pipeline commands);

    /// One reply per command, or nothing when a watched key changed (only possible in a `session`). If the server refused a command
    /// before running any, `server_error`.
    std::optional<std::vector<reply>> execute(transaction commands, std::stop_token token = {});
    task<std::optional<std::vector<reply>>> async_execute(transaction commands);

    /// A connection of one's own, for WATCH and for commands that block. In a Cluster it leads to the node that has `key`.
    session open_session(std::string_view key = {});
    task<session> async_open_session(std::string_view key = {});

    /// Listens on a connection of its own. Returns when the server has confirmed it. See <lockstep/subscription.hpp>.
    subscription subscribe(std::string_view channel, message_handler handler);
    subscription subscribe(subscription_options options);
    task<subscription> async_subscribe(subscription_options options);

    /// How it is known, for monitors and logs: without secrets.
    std::string description() const;
    lockstep::statistics statistics() const;

    /// Ends everything under way with `cancelled_error` and stops the I/O thread. Idempotent; also done by the destructor.
    void close() noexcept;

private:
    friend struct detail::core_access;
    explicit client(std::shared_ptr<detail::core> core) noexcept;
    void require_blocking_is_allowed() const;

    std::shared_ptr<detail::core> core_;
};

}  // namespace lockstep
