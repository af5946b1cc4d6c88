#pragma once

// One connection to one server, kept alive: finds the server, logs in, sends what waits, hands replies and pushes on, notices
// when the other side is gone, and begins again.
//
// Everything happens in turns of the reactor. It opens at the first request. A failure that trying again does not mend (wrong
// password, unsuitable server) ends all that waits at once; after a pause the next request tries anew. Any other failure leaves
// requests waiting within their deadlines, while the connection is tried again with a growing, jittered pause.

#include "base/backoff.hpp"
#include "redis/channel.hpp"
#include "redis/handshake.hpp"
#include "redis/request_queue.hpp"
#include "redis/router.hpp"
#include "resp/parser.hpp"
#include "resp/skipper.hpp"

#include <lockstep/options.hpp>
#include <lockstep/statistics.hpp>
#include <lockstep/task.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::redis {

/// What is the same for all connections of a client.
struct connection_settings {
    std::chrono::milliseconds connect_timeout;
    std::chrono::milliseconds reconnect_min;
    std::chrono::milliseconds reconnect_max;
    std::chrono::milliseconds keepalive_interval;
    std::chrono::milliseconds keepalive_timeout;
    std::size_t max_pending;
    std::size_t max_batch_bytes;
    std::chrono::microseconds batch_delay;
    resp::limits limits;
    std::shared_ptr<tls_settings> tls;  ///< null: plain
    std::string server_name;
    bool requests_block = false;  ///< they may take any time (BLPOP): no PING, and so no judgement, while one is under way
};

/// Thrown by a locator: to look again would not help.
struct permanent_failure {
    errc reason{};
    std::string text;
};

class connection final : public std::enable_shared_from_this<connection>,
                         request_queue::owner,
                         channel::user,
                         turn_end,
                         timer {
public:
    /// Whoever uses the connection. Called in turns.
    class events {
    public:
        /// Logged in; nothing was sent yet. The place to subscribe again: `connection::submit_first`.
        virtual void connected(connection&) noexcept {}
        virtual void disconnected(connection&) noexcept {}
        virtual void pushed(connection&, reply_view) noexcept {}
        /// Connected, but a PING is unanswered for more than a second.
        virtual void silent(connection&) noexcept {}
        /// An attempt to connect failed; it will be tried again.
        virtual void failed(connection&) noexcept {}
        /// Should it be kept open although no request waits?
        virtual bool wanted(connection&) noexcept { return false; }
        /// Trying again would not help; all requests were ended with this.
        virtual void refused(connection&, errc, std::string_view) noexcept {}
        virtual bool reconsider(connection&, operation&, std::string_view) noexcept { return false; }

    protected:
        ~events() = default;
    };
    /// Where the server is now; may take its time and may throw.
    using locator = std::function<task<endpoint>()>;

    connection(std::shared_ptr<reactor> home, connection_settings settings, handshake greeting, locator find, events& listener);

    ~connection();

    void submit(operation& request) noexcept;
    void submit_first(operation& request) noexcept { queue_.push_first(request); }
    /// Opens without waiting for a request.
    void open() noexcept;
    /// Drops the connection and opens it again: it leads to the wrong server.
    void reconnect(std::string_view why) noexcept;
    /// Hands out the requests that wait for the connection, for another one. Only those with a router; its own stay.
    void take_waiting(operation_list& to) noexcept { queue_.take_waiting(to); }
    /// For good, but the requests live on: those that did not run or may run twice are handed out, the others end as indeterminate.
    void retire(operation_list& to, std::string_view why) noexcept;
    /// For good. Requests end with `reason`. The listener hears nothing more.
    void close(errc reason, std::string_view why) noexcept;

    bool ready() const noexcept { return state_ == state::ready; }
    bool closed() const noexcept { return state_ == state::closed; }
    /// Why all requests are refused at the moment; nothing when they are not.
    std::optional<errc> refusal() const noexcept { return state_ == state::refused ? std::optional{refusal_} : std::nullopt; }
    std::string const& last_trouble() const noexcept { return trouble_; }
    endpoint const& peer() const noexcept { return peer_; }
    /// Grows with each successful log-in: a session's commands belong to one of them.
    std::uint64_t generation() const noexcept { return generation_; }
    std::size_t pending() const noexcept { return queue_.pending(); }
    void add_to(statistics& sum) const noexcept;

private:
    enum class state { idle, opening, ready, pausing, refused, closed };

    // The life of the connection, as a coroutine that keeps the object alive.
    static task<void> live(std::shared_ptr<connection> self);
    task<void> establish();
    task<void> greet();
    bool pausing() const noexcept { return !hurry_ && (state_ == state::pausing || state_ == state::refused); }
    void cut_attempt(std::string_view why) noexcept;
    void abandon_channel() noexcept;
    void refuse_all(std::exception_ptr problem) noexcept;

    // request_queue::owner
    void requests_waiting() noexcept override;
    std::string trouble() const override;
    bool reconsider(operation& request, std::string_view error) noexcept override;
    // channel::user
    void received() noexcept override;
    void writable() noexcept override;
    void broken(std::string_view why) noexcept override;
    // turn_end, timer
    void end_of_turn() noexcept override;
    void fire() noexcept override;

    void handle(reply_view message) noexcept;
    bool misread(std::string_view message) noexcept;
    bool skip(channel& stream) noexcept;
    void keep_alive() noexcept;
    void lose(std::string_view why) noexcept;
    void send_waiting() noexcept;
    void delay_batch() noexcept;

    class ping;

    std::shared_ptr<reactor> home_;
    connection_settings settings_;
    handshake greeting_;
    locator find_;
    events* events_;
    request_queue queue_;
    resp::parser parser_;
    std::optional<resp::skipper> skipping_;  // what is left of a reply that was too large
    base::backoff backoff_;
    change changed_;
    std::unique_ptr<ping> ping_;
    std::optional<asio::steady_timer> batch_timer_;  // none after close(): it must not outlive the executor's context
    bool batch_delayed_ = false;

    state state_ = state::idle;
    bool running_ = false;
    std::shared_ptr<channel> channel_;
    endpoint peer_;
    std::string trouble_;
    std::string logged_;  // the refusal that was logged last: once is enough, however often it is tried
    errc refusal_{};
    std::uint64_t generation_ = 0;
    std::size_t failures_ = 0;  // to connect, since ever
    reactor::clock::time_point attempt_ends_{};
    reactor::clock::time_point ready_since_{};
    reactor::clock::time_point heard_{};
    std::vector<reply> greeting_answers_;
    std::size_t greeting_expected_ = 0;  // 0: not greeting
    bool greeting_broken_ = false;
    bool hurry_ = false;  // cut the pause short
    statistics counters_{};
};

}  // namespace lockstep::redis
