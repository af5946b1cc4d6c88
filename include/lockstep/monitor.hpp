#pragma once

/// `monitor`: who holds what, who waits, since when and why; and the means to end a hold that nobody will end.
///
///     lockstep::monitor monitor{client};
///     for (auto const& hold : monitor.active()) std::cout << hold.name << " is held by " << hold.owner.name << '\n';
///     std::cout << monitor.why("report").text();
///     auto watch = monitor.watch([](lockstep::snapshot const& now) { draw(now); });
///
/// What is held and queued is read from the server as it is; who the clients are and what they wait for is what they said of themselves
/// (docs/monitor.md says when). Which objects there are comes from an index that clients keep: one is listed at most 12 s after its first use;
/// asked for by its name it is found at once. Reading changes nothing and takes small steps: no command of it keeps the server for more than a few
/// milliseconds. Names of the client's prefix only. Works on Sentinel and Cluster; a Cluster is read node by node.
///
/// Failure: as `client` has it. Threads: everything may be called from any thread.

#include <lockstep/client.hpp>
#include <lockstep/leadership.hpp>
#include <lockstep/task.hpp>
#include <lockstep/text_ref.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

namespace observe { class latest_notes; }

/// A process, or rather one client in it.
struct client_info {
    std::string id;             ///< ids of its holds begin with this and a dot
    std::string name;           ///< empty, and so all that follows: it has not said who it is
    std::string host;
    std::int64_t pid = 0;
    std::string version;
    std::chrono::system_clock::time_point since{};  ///< when it was made, by its own clock
    bool connected = true;      ///< the server has a connection of it
    std::int64_t held = 0;      ///< as it said itself, some seconds ago
    std::int64_t waiting = 0;
    std::string parent{};       ///< id of the client of `lockstep run` or `elect` whose command this one belongs to
};

struct hold_info {
    std::string name;
    std::string kind;           ///< lock, recursive, shared, semaphore, event, election
    std::string use;            ///< owner, reader, writer, permits, signal, leader
    std::string id;             ///< of the hold
    client_info owner;
    /// As its client said last; before that, of a lock, the largest that its process may use. 0: it was offered, and not claimed yet.
    std::uint64_t fence = 0;
    std::int64_t permits = 1;
    bool offered = false;       ///< its owner has been told, and has not answered yet
    bool stale = false;         ///< its owner is gone or cut off: it said who it is, and has no connection and said nothing for 12 s
    std::chrono::milliseconds held_for{0};
    std::chrono::milliseconds remaining{0};
    std::size_t queue = 0;      ///< how many places are taken in the queue behind it
    std::string candidate{};    ///< of an election: the id of the leader, whose term is the fence
};

/// One place in a queue, or one client that waits for an event, a latch or a barrier.
struct wait_info {
    std::string name;
    std::string kind;           ///< lock, recursive, shared, semaphore, event, election, broadcast, latch, barrier
    std::string use;            ///< owner, reader, writer, permits, signal, leader, creation, set, open, others, place
    std::string id;             ///< of the place; empty where there is no queue
    client_info who;
    std::size_t position = 0;   ///< 1 is the next; 0: there is no order
    std::int64_t waiters = 1;   ///< threads and coroutines that share this place
    std::int64_t permits = 1;
    std::optional<std::chrono::milliseconds> waiting_for{};  ///< the longest of them, as their client said
    std::int64_t priority = 0;  ///< of a candidate
};

/// Who reads a stream together; or a channel of a bus.
struct group_info {
    std::string name;
    std::size_t consumers = 0;          ///< of a bus: connections that subscribe to this channel
    std::int64_t pending = 0;           ///< entries that were delivered and not acknowledged
    std::optional<std::int64_t> lag{};  ///< entries that were not delivered to anybody yet; nothing: the server does not know

    bool operator==(group_info const&) const = default;
};

struct object_info {
    std::string name;
    std::string kind;           ///< as in wait_info; or queue, lanes, jobs, stream, bus, value, map, counter, board, breaker, sessions, limiter
    /// Permits in all, signals stored, count of a latch, parties of a barrier (-1: not created yet); of a counter its number; of others how many
    /// items, jobs, entries, fields or members (of a board's newest period) wait or are there (0: there is no value); channels of a bus that somebody subscribes to; sessions of a
    /// store and keys of a limiter, which only `snapshot_options::scan` counts (otherwise -1; while the server has fewer and fewer keys, some may count twice).
    std::int64_t count = 0;
    /// Permits taken; arrived at a barrier; 1 when an event is set; items of a queue that are held, jobs that run, entries of a stream that are
    /// pending; subscribers of a bus; of a breaker 0: closed, 1: half open, 2: open.
    std::int64_t taken = 0;
    std::size_t holders = 0;
    std::size_t queue = 0;      ///< places in the queue, or clients that wait
    std::int64_t delayed = 0;   ///< of the `count` of a queue or of jobs, how many can't be taken yet
    std::int64_t dead = 0;      ///< dead letters of a queue or a stream; jobs that failed
    std::vector<group_info> groups{};  ///< of a stream, or channels of a bus (most subscribers first); 100 at most
    std::string type{};         ///< of jobs: each type of a name is an object of its own
    std::int64_t blocked = 0;   ///< jobs that wait for others; not in `count`
    bool paused = false;        ///< a queue or a type of jobs, of which nothing is delivered
};

struct timing {
    std::uint64_t count = 0;
    std::chrono::microseconds average{0}, p50{0}, p95{0}, p99{0}, max{0};  ///< percentiles to within an eighth
};

struct name_statistics {
    std::string name;           ///< empty: all names together
    std::string kind;
    std::uint64_t acquisitions = 0;
    std::uint64_t waits = 0;    ///< of these, how many were queued first
    std::uint64_t timeouts = 0;
    std::uint64_t losses = 0;
    timing held{};
    timing waited{};
};

/// Everything at one time. Ordered by name.
struct snapshot {
    std::chrono::system_clock::time_point at{};  ///< the server's
    std::vector<object_info> objects;
    std::vector<hold_info> holds;
    std::vector<wait_info> waits;
    std::vector<client_info> clients;
    std::vector<std::string> notes{};  ///< what could not be read, and why, for people: "<key>: ...", a line for each key
    std::size_t left_out = 0;   ///< objects beyond `snapshot_options::limit`, or that can't be read; servers with too many channels to list buses
    std::string trouble;        ///< of a watch: why the server could not be read just now; then the rest is what it was before
};

struct snapshot_options {
    /// Only this one, whose keys are read themselves; empty: all. Without boards with periods. `clients` are then those that hold it or wait for it.
    text_ref name{};
    text_ref pattern{}; ///< only names that fit, with * and ? as in Redis
    std::size_t limit = 100'000;  ///< objects
    std::size_t holders = 1'000;  ///< holds of each object that are listed; the rest is only counted
    std::size_t waiters = 100;  ///< places of each queue that are listed; the rest is only counted
    /// Looks through all keys of the server instead of the index that clients keep. Takes long where there are many; finds what was used only
    /// by clients older than 0.2 or with `monitoring = false`, and counts the sessions of stores and the keys of limiters.
    bool scan = false;
    std::chrono::milliseconds within{0};  ///< a longer look ends with what it has found, and `notes` says so; 0: the client's `command_timeout`
};
static_assert(std::is_trivially_destructible_v<snapshot_options>);

/// Who waits for whom.
struct explanation {
    struct link {
        client_info waiter;
        std::string name, kind;  ///< waits for this
        client_info holder;      ///< which this one holds
        bool by_command = false; ///< it is `lockstep run` or `elect`: its command waits, and it waits for its command
    };
    std::string name;
    std::vector<hold_info> holds;
    std::vector<wait_info> waits;
    std::vector<link> chain;    ///< from the holders on: what they wait for themselves, and who holds that
    /// Rings in the chain: clients each of which waits for what the next one holds. A deadlock, unless one of them has threads or
    /// coroutines of its own that will let go.
    std::vector<std::vector<link>> cycles;
    std::vector<std::string> notes{};  ///< as in a snapshot
    std::string text() const;   ///< for people
};

struct contention_info {
    std::string name, kind;
    std::size_t queue = 0;
    std::optional<std::chrono::milliseconds> longest{};  ///< who waits longest now
    client_info longest_by{};
    timing waited{};            ///< all that was counted
};

struct audit_entry {
    std::string id;             ///< of the entry: its time in ms, and a random text
    std::chrono::system_clock::time_point at{};
    std::string action;         ///< release, force-release or ask
    std::string name, kind, hold;
    std::uint64_t fence = 0;
    std::string owner;          ///< whose it was: name host pid
    std::string by;             ///< who did it
    std::string reason;
    std::string outcome;        ///< done, gone, renewed, unheard, unknown; requested: whoever did it did not live to see the end
};

struct release_options {
    bool force = false;         ///< also one whose owner is there
    text_ref by{};      ///< who does this; empty: user@host of this process
    text_ref reason{};
};

struct history_entry {
    std::string id;             ///< in the stream
    std::string what;           ///< as trace_what
    std::string kind, use, name, hold, trace, detail;
    std::string owner;          ///< name host pid
    std::uint64_t fence = 0;
    std::int64_t permits = 1;
    std::chrono::system_clock::time_point at{};
    std::chrono::microseconds waited{0}, held{0};
    std::uint64_t missing = 0;  ///< records of this owner before this one that were dropped
};

struct watch_options {
    snapshot_options what{};
    std::chrono::milliseconds at_most_every{250};
    std::chrono::milliseconds at_least_every{1'000};  ///< without news, look so often: what a dead client held ends without a word
};

/// Ends when it goes. When `stop` returns the handler does not run and will not run again, unless called from the handler itself.
class [[nodiscard]] watch {
public:
    class state;
    watch() noexcept = default;
    explicit watch(std::shared_ptr<state> shared) noexcept : state_(std::move(shared)) {}
    watch(watch&&) noexcept = default;
    watch& operator=(watch&& other) noexcept;
    ~watch();
    void stop() noexcept;

private:
    std::shared_ptr<state> state_;
};

class monitor {
public:
    /// The client must outlive it.
    explicit monitor(client& by);
    /// As `snapshot::notes`, of the latest call: a key that somebody else wrote hides nothing but itself.
    std::vector<std::string> notes() const;
    std::string client_id() const;  ///< `client_info::id` of its client

    lockstep::snapshot snapshot(snapshot_options options = {});
    task<lockstep::snapshot> async_snapshot(snapshot_options options = {});

    std::vector<hold_info> active(std::string_view name = {});
    task<std::vector<hold_info>> async_active(std::string_view name = {});
    std::vector<wait_info> waiters(std::string_view name = {});
    task<std::vector<wait_info>> async_waiters(std::string_view name = {});
    /// Holds whose owner's client is gone.
    std::vector<hold_info> stale();
    task<std::vector<hold_info>> async_stale();
    std::vector<client_info> clients();
    task<std::vector<client_info>> async_clients();

    /// What clients counted and said, most acquisitions first; the first is the total. A name is kept for a day after its last use.
    std::vector<name_statistics> statistics(std::string_view name = {});
    task<std::vector<name_statistics>> async_statistics(std::string_view name = {});
    /// Names somebody waits for now, or whose average wait is above `limit`; the longest wait first.
    std::vector<contention_info> contention(std::chrono::milliseconds limit = std::chrono::milliseconds{100});
    task<std::vector<contention_info>> async_contention(std::chrono::milliseconds limit = std::chrono::milliseconds{100});
    explanation why(std::string_view name);
    task<explanation> async_why(std::string_view name);
    /// Ends a hold at the server: the next in line gets it, with a larger fence, and its owner hears that it is lost. Without `force` only
    /// a stale one (otherwise `invalid_argument_error` says who has it): its process is dead or cut off from the server, and what it does
    /// meanwhile only fences make harmless. False: it was over already. Written to the audit log first. Throws `indeterminate_error` when
    /// the answer was lost.
    bool release(hold_info const& which, release_options options = {});
    task<bool> async_release(hold_info which, release_options options = {});
    /// Asks its owner to let go: trips the lease's `at_risk_token`. True: its process was reached.
    bool ask(hold_info const& which, release_options options = {});
    task<bool> async_ask(hold_info which, release_options options = {});
    /// The newest first.
    std::vector<audit_entry> audit(std::size_t most = 100);
    task<std::vector<audit_entry>> async_audit(std::size_t most = 100);

    /// What the flight recorder has (`client_options::record`), the oldest first; of all names if none is given.
    std::vector<history_entry> history(std::string_view name = {}, std::size_t most = 10'000);
    task<std::vector<history_entry>> async_history(std::string_view name = {}, std::size_t most = 10'000);

    /// Who led an election when, as far as the server remembers; the newest first. Nothing of elections over independent nodes.
    std::vector<leader_change> changes(std::string_view name, std::size_t most = 100);
    task<std::vector<leader_change>> async_changes(std::string_view name, std::size_t most = 100);

    /// Calls with what is there now, and again when something changed. On the client's I/O thread: keep it short, never block there.
    lockstep::watch watch(std::function<void(lockstep::snapshot const&)> handler, watch_options options = {});

private:
    client* client_;
    std::shared_ptr<observe::latest_notes> notes_;
};

/// Where the records of a flight recorder contradict what was promised.
struct violation {
    std::string name, kind;
    std::string what;           ///< overlap; fence; or missing: records were dropped, so that more may have happened than is seen
    history_entry first, second;
    std::string text;           ///< for people
};
/// Overlapping holds of what only one may hold, and fences that do not grow. Records as `history` returns them.
std::vector<violation> verify(std::vector<history_entry> const& records);

}  // namespace lockstep
