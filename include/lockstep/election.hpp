#pragma once

/// `election`: one leader among all programs that stand for the same name.
///
///     lockstep::election election{client, "scheduler", {.id = "node-1"}};
///     election.run([](lockstep::leadership const& leads) { schedule_until(leads.stop_token()); });
///     auto leadership = election.campaign();                // or by hand
///     auto leadership = co_await election.async_campaign();
///     if (auto leader = election.leader()) std::cout << leader->id << " leads in term " << leader->term << '\n';
///
/// Candidates stand in line at the server. Who resigns is followed at once; who dies, when its lease has run out. Each leader has a larger
/// term than all before it. Of those in line the one with the highest priority is next, and among equals the first.
///
/// What it promises, and what no lease can: at most one leader is `valid` at a time, by its own clock and the server's. One that is paused
/// finds out when it goes on, so what it writes should carry its term (docs/election.md).
///
/// Failure: as for `mutex`. Threads: everything may be called from any thread. Leaderships may outlive the election, but its health gate
/// ends with it.

#include <lockstep/client.hpp>
#include <lockstep/detail/time_after.hpp>
#include <lockstep/leadership.hpp>
#include <lockstep/text_ref.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lockstep {

class redlock_nodes;

namespace detail {
class health_gate;
class election_state;
class observation_state;
}  // namespace detail

/// What a candidate is asked for its health with: any callable that returns a bool, and takes nothing or a stop token, which trips when the
/// answer is not wanted any more because the election goes.
class health_check {
public:
    health_check() = default;
    template <class F>
        requires(!std::is_same_v<std::remove_cvref_t<F>, health_check> &&
                 (std::is_invocable_r_v<bool, F&, std::stop_token> || std::is_invocable_r_v<bool, F&>))
    health_check(F check) {
        if constexpr (std::is_same_v<F, std::function<bool()>> || std::is_same_v<F, std::function<bool(std::stop_token)>>) {
            if (!check) return;
        }
        if constexpr (std::is_invocable_r_v<bool, F&, std::stop_token>) {
            ask_ = std::move(check);
        } else {
            ask_ = [check = std::move(check)](std::stop_token const&) mutable -> bool { return check(); };
        }
    }

    explicit operator bool() const noexcept { return static_cast<bool>(ask_); }
    bool operator()(std::stop_token token = {}) const { return ask_(std::move(token)); }

private:
    std::function<bool(std::stop_token)> ask_;
};

/// ttl > renew_deadline > retry_period, or the constructor throws. Those that are left out follow from those that are set, so that one of them is enough.
struct election_options {
    /// How this candidate is known to others: 1 to 256 bytes without control characters. Empty: <host>-<pid>.
    text_ref id{};
    /// How long the server keeps the seat of a leader that is gone. [15 s; longer where `renew_deadline` or `retry_period` needs it]
    std::optional<std::chrono::milliseconds> ttl{};
    /// A leader that could not renew for this long steps down. At most nine tenths of `ttl`: the rest is for clocks that differ. [two thirds of `ttl`;
    /// twice `retry_period` if that is longer]
    std::optional<std::chrono::milliseconds> renew_deadline{};
    /// How often it renews, with ±20 % of jitter, at most every half of `renew_deadline`. `run` also waits this long after a failure. [a fifth of
    /// `renew_deadline`, at most two fifteenths of `ttl`]
    std::optional<std::chrono::milliseconds> retry_period{};

    /// 0 to 1000. The highest of those in line is next.
    int priority = 0;
    /// A leader steps down when a candidate of higher priority stands in line; it looks every `heartbeat_interval`. Over nodes that is how often it
    /// says that it leads, and how often observers look.
    bool give_way = false;
    std::chrono::milliseconds heartbeat_interval{1'000};

    /// False, or what it throws: this one does not stand, and steps down if it leads. It is asked every `health_interval`, on a thread of its
    /// own. One that does not return within `health_timeout` counts as false. The election's destructor trips the stop token that it is given, if it
    /// takes one, and waits for it for `health_timeout` at most: one that hangs for longer than that must own what it uses.
    health_check healthy{};
    std::chrono::milliseconds health_interval{1'000};
    std::chrono::milliseconds health_timeout{5'000};

    /// This many replicas must have heard of it within `replica_timeout` before it leads; otherwise it is given back and tried again. A leader
    /// steps down when that many have not heard of it for `renew_deadline`, which is at least `replica_timeout` and `retry_period` together.
    unsigned min_replicas = 0;
    std::optional<std::chrono::milliseconds> replica_timeout{};  ///< [1 s, or less where `renew_deadline` leaves less]

    /// Refuse one server: two can lead for a while after it failed over. Only with `redlock_nodes`, of which there must be so many.
    bool require_quorum = false;
    std::size_t minimum_nodes = 3;

    /// How long a candidate that was told of its turn may take, and how long the server remembers an unused election. As `lease_options`.
    std::chrono::milliseconds claim_window{500};
    std::chrono::milliseconds retention{3'600'000};
};

struct observe_options {
    /// `leader_change::position` of the last one known; empty: from now on; "0": all that the server still has (about the last 1000).
    text_ref after{};
};

/// Ends when it goes: when `stop` returns the handler does not run and will not run again, unless it was called from the handler itself.
class [[nodiscard]] observation {
public:
    observation() noexcept = default;
    explicit observation(std::shared_ptr<detail::observation_state> state) noexcept;
    observation(observation&&) noexcept = default;
    observation& operator=(observation&& other) noexcept;
    ~observation();
    void stop() noexcept;

private:
    std::shared_ptr<detail::observation_state> state_;
};

class election {
public:
    /// Does not ask the server. Throws `invalid_argument_error` that names the option and what is allowed.
    election(client& by, std::string_view name, election_options const& options = {});
    /// Over independent nodes: the leader has a redlock with a fence on most of them, and steps down when they are gone. Not possible there:
    /// priorities, `min_replicas`, and `observe` from an earlier position. Its header is <lockstep/redlock.hpp>.
    election(redlock_nodes const& nodes, std::string_view name, election_options const& options = {});
    election(election&&) noexcept;
    election& operator=(election&&) noexcept;
    ~election();

    /// Stands until it leads.
    leadership campaign(std::stop_token token = {});
    task<leadership> async_campaign();
    /// Nothing: it does not lead by then.
    std::optional<leadership> try_campaign(std::stop_token token = {}) { return try_until({}, std::move(token)); }
    task<std::optional<leadership>> async_try_campaign() { return async_try_until({}); }
    template <class Rep, class Period>
    std::optional<leadership> try_campaign_for(std::chrono::duration<Rep, Period> time, std::stop_token token = {}) {
        return try_until(detail::time_after(time), std::move(token));
    }
    template <class Rep, class Period>
    task<std::optional<leadership>> async_try_campaign_for(std::chrono::duration<Rep, Period> time) {
        return async_try_until(detail::time_after(time));
    }

    /// Stands, and calls `on_elected` here, on this thread, when it leads; again and again until a stop is requested. It leads for as long as
    /// that call lasts, which should end soon after the leadership's stop token trips; that also trips when `stop` is requested. Then
    /// it resigns, or, if the leadership was lost meanwhile, `on_lost` is called. What they throw ends it, after it has resigned; but for
    /// `leadership_lost_error` when it is lost, as `check()` throws it.
    /// A server that can't be reached is tried again.
    void run(std::function<void(leadership const&)> on_elected, std::function<void(leadership const&)> on_lost = {}, std::stop_token stop = {});
    void run(std::function<void(leadership const&)> on_elected, std::stop_token stop) { run(std::move(on_elected), {}, std::move(stop)); }
    /// The same for coroutines: the task that `on_elected` makes is cancelled when the leadership's token trips. Ends when it is cancelled.
    task<void> async_run(std::function<task<void>(leadership const&)> on_elected, std::function<void(leadership const&)> on_lost = {});

    /// Has the leadership that this object gave last step down, as its health gate would: `run` resigns when the work has ended.
    void resign() noexcept;

    std::optional<leader_info> leader() const;  ///< nothing: nobody leads
    task<std::optional<leader_info>> async_leader() const;

    /// Calls the handler with every change, each once and in order, also after reconnects, on the client's I/O thread: keep it short, never
    /// block there. It is in force on return. Needs no candidate.
    observation observe(std::function<void(leader_change const&)> handler, observe_options const& options = {}) const;
    task<observation> async_observe(std::function<void(leader_change const&)> handler, observe_options const& options = {}) const;

    std::string const& id() const noexcept;
    std::string const& name() const noexcept;

private:
    void begin(std::shared_ptr<detail::election_state> state, election_options const& options);
    std::optional<leadership> try_until(std::chrono::steady_clock::time_point until, std::stop_token token);
    task<std::optional<leadership>> async_try_until(std::chrono::steady_clock::time_point until);

    std::shared_ptr<detail::election_state> state_;
    std::unique_ptr<detail::health_gate> gate_;
};

}  // namespace lockstep
