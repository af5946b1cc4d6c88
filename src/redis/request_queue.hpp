#pragma once

// The requests of one connection, without its socket: what waits to be sent, what was sent, which reply belongs to which, and what
// becomes of each when the connection breaks.
//
// Replies come in the order of the requests, so matching is taking the first of a list. A request that was abandoned after it was
// sent leaves a number behind, not a node: how many replies to drop after its predecessor's. Nothing here is
// proportional to the number of requests in flight, except when the connection breaks.

#include "redis/operation.hpp"

#include <cstddef>
#include <string>

namespace lockstep::redis {

class request_queue {
public:
    class owner {
    public:
        virtual void requests_waiting() noexcept = 0;       ///< there is something to send
        virtual std::string trouble() const = 0;            ///< why nothing is being sent; empty when connected
        /// The server refused it with this text; true: it was placed anew.
        virtual bool reconsider(operation& request, std::string_view refusal) noexcept = 0;

    protected:
        ~owner() = default;
    };

    request_queue(owner& holder, std::size_t max_pending) noexcept : owner_(holder), max_pending_(max_pending) {}

    /// Takes it; refuses at once when too many are pending.
    void push(operation& request) noexcept;
    /// Before all that wait: what a connection says first (subscriptions).
    void push_first(operation& request) noexcept;

    bool has_waiting() const noexcept { return !waiting_.empty(); }
    bool has_sent() const noexcept { return !sent_.empty() || drop_first_ != 0; }
    std::size_t pending() const noexcept { return pending_; }

    /// Encodes waiting requests until `out` has `until` bytes or more. Returns how many it encoded.
    std::size_t encode(resp::output& out, std::size_t until);

    /// An in-band reply. False: nobody asked for it, so the stream can't be trusted any more.
    bool reply(reply_view answer) noexcept;

    /// The reply that comes now can't be read: whoever waits for it ends with this error, and it counts as having come. False: it can't be told
    /// whose it is.
    bool fail_first(errc reason, std::string_view why) noexcept;

    /// The connection broke; the last `unsent` bytes that were encoded never left.
    /// Requests that certainly did not run, or may run twice, wait again in their order; the others end as indeterminate.
    void disconnected(std::size_t unsent, std::string_view why) noexcept;
    /// Everything that waits and belongs to a router, for another connection. What belongs to this connection stays.
    void take_waiting(operation_list& to) noexcept;
    /// All end with this error.
    void fail_all(errc reason, std::string_view why) noexcept;

private:
    friend class operation;

    void leave(operation& request) noexcept;      // taken out from its place here
    void run_out_of_time(operation& request) noexcept;
    std::uint32_t& drops_before(operation& request) noexcept;
    operation& take_first() noexcept;
    void mark_unsent(std::size_t unsent) noexcept;

    owner& owner_;
    std::size_t max_pending_;
    std::size_t pending_ = 0;
    operation_list waiting_;
    operation_list sent_;
    std::uint32_t drop_first_ = 0;  // replies to drop before that of the first one in sent_
};

}  // namespace lockstep::redis
