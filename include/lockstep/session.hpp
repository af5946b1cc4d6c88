#pragma once

/// `session`: a connection of one's own, for what a shared one can't do: WATCH, and commands that block.
///
///     auto session = client.open_session();
///     session.command("WATCH", "stock");
///     auto stock = session.command<int>("GET", "stock");
///     auto done = session.execute(transaction{}.add("SET", "stock", stock - 1));
///     if (!done) ...                                        // somebody else changed it meanwhile
///
/// It is never repaired: when its connection breaks, what was watched is gone, so every further command throws `unavailable_error`
/// (the one that was under way `indeterminate_error`). Open a new one and begin again.
///
/// Threads: one at a time.

#include <lockstep/reply.hpp>
#include <lockstep/request.hpp>
#include <lockstep/task.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

namespace lockstep {

namespace detail {
class session_state;

task<reply> async_execute(std::shared_ptr<session_state> owner, request const& command);
task<std::optional<std::vector<reply>>> async_execute(std::shared_ptr<session_state> owner, transaction commands);
}  // namespace detail

class session {
public:
    explicit session(std::shared_ptr<detail::session_state> state) noexcept;
    session(session&&) noexcept = default;
    session& operator=(session&& other) noexcept;
    ~session();

    template <class T = reply, class... Args>
    T command(std::string_view name, Args const&... args) {
        return execute<T>(request{name, args...});
    }
    template <class T = reply, class... Args>
    task<T> async_command(std::string_view name, Args const&... args) {
        return async_execute<T>(request{name, args...});
    }
    template <class T = reply>
    T execute(request const& command, std::stop_token token = {}) {
        require_blocking_is_allowed();
        return sync_wait(async_execute<T>(command), std::move(token));
    }
    template <class T = reply>
    task<T> async_execute(request const& command) {
        return detail::as_task_of<T>(detail::async_execute(state_, command));
    }
    /// Nothing when a watched key changed.
    std::optional<std::vector<reply>> execute(transaction commands, std::stop_token token = {});
    task<std::optional<std::vector<reply>>> async_execute(transaction commands);

private:
    void require_blocking_is_allowed() const;
    std::shared_ptr<detail::session_state> state_;
};

}  // namespace lockstep
