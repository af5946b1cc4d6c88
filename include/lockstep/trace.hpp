#pragma once

/// What happens to leases and waits, as records: for logs, tracing systems and the flight recorder.
///
///     lockstep::client client{{.trace = lockstep::json_lines("/var/log/locks.jsonl")}};
///     lockstep::trace_scope const scope{"order-4711"};   // what this thread begins from here on carries that id
///     auto lease = mutex.acquire();                      // {"what":"acquired","name":"report","trace":"order-4711",...}
///
/// Off by default, and free when off. A hook runs on the client's I/O thread, one call at a time and in order: keep it short, never
/// block there. What it throws is logged and dropped.
///
/// The flight recorder (`client_options::record`) writes the same records to a capped stream at the server, a moment later and
/// together: `lockstep history NAME` draws them, `lockstep verify` checks them.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep {

enum class trace_what : std::uint8_t {
    queued,     ///< it has to wait
    acquired,   ///< `waited` says how long it took
    released,   ///< `held` says how long it was held
    lost,       ///< `detail` says why
    timed_out,  ///< it gave up waiting
    cancelled,  ///< so too, because it was told to
    asked,      ///< somebody asks for it to be released
    passed,     ///< what it waited for at a latch, a barrier or a broadcast event has come; `detail`: broken, if the meeting was
    signalled,  ///< an event was set or cleared, a latch counted down; `detail` says which
};
std::string_view to_string(trace_what what) noexcept;

/// Valid during the call.
struct trace_record {
    trace_what what{};
    std::string_view kind;      ///< lock, recursive, shared, semaphore, event, election, broadcast, latch or barrier
    std::string_view use;       ///< owner, reader, writer, permits, signal, leader; of those who wait also set, open, others, place
    std::string_view name;
    std::string_view hold;      ///< its id at the server, `<client>.<n>`; empty while it has none
    std::uint64_t fence = 0;    ///< 0: none
    std::int64_t permits = 1;
    std::chrono::microseconds waited{0};
    std::chrono::microseconds held{0};
    std::chrono::system_clock::time_point at{};  ///< by the server's clock, as far as it is known here
    std::string_view trace;     ///< as set by `trace_scope`, or empty
    std::string_view detail;
};

using trace_hook = std::function<void(trace_record const&)>;

/// One record as one line of JSON, without the newline.
std::string to_json(trace_record const& record);

/// A hook that appends lines to a file. Throws `invalid_argument_error` when it can't be opened.
trace_hook json_lines(std::string const& path);

/// For as long as it lives, what its thread begins to acquire carries this id, at most 64 bytes of it. Scopes nest. Not for coroutines that
/// move to other threads: set it around the call that begins the operation.
class [[nodiscard]] trace_scope {
public:
    explicit trace_scope(std::string_view id) noexcept;
    ~trace_scope();
    trace_scope(trace_scope const&) = delete;
    trace_scope& operator=(trace_scope const&) = delete;

private:
    char before_[65];
};

}  // namespace lockstep
