#pragma once

// One request on its way: what to send, where it is now, and who hears of the end.
//
// It lives in the coroutine frame (or on the stack) of whoever waits for it, is linked from place to place and allocates nothing.
// Its places: nowhere (idle), the reactor's inbox (arriving), a connection's list of what is to be sent (waiting), a connection's
// list of what was sent (sent), or aside until it may be tried again (delayed). It ends exactly once, by `complete` or `fail`,
// in a turn. Destroyed before that it unlinks itself; a reply that still comes is dropped.

#include "redis/reactor.hpp"
#include "resp/output.hpp"

#include <lockstep/error.hpp>
#include <lockstep/reply.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace lockstep::redis {

class connection;
class request_queue;
class router;

class operation : public arrival, public detail::parked {
public:
    enum class place : std::uint8_t { idle, arriving, waiting, sent, delayed };

    operation() = default;
    /// On its way into a coroutine frame; only before it begins.
    operation(operation&& idle) noexcept
        : slot(idle.slot), replies(idle.replies), repeatable(idle.repeatable), fenced(idle.fenced), yields(idle.yields), router_(std::move(idle.router_)) {}
    operation(operation const&) = delete;
    operation& operator=(operation const&) = delete;

    /// Appends the request's bytes. Called again when it is sent again.
    virtual void encode(resp::output& out) = 0;
    /// A reply came, an error of the server included. For a request with several replies it is called for each.
    virtual void complete(reply_view answer) noexcept = 0;
    /// It will have no (further) reply.
    virtual void fail(errc reason, std::string_view why) noexcept = 0;
    /// It is about to be encoded, maybe again: forget the replies so far.
    virtual void restart() noexcept {}
    /// The error in which all its replies so far mean "did not run", given the last of them; empty when there is none.
    virtual std::string_view refusal(reply_view last) const noexcept { return last.is_error() ? last.text() : std::string_view{}; }
    /// The server does not know the script. True: it will now encode the whole script; send it again.
    virtual bool use_full_script() noexcept { return false; }

    /// Begins on `use_way`'s router, from any thread. Never ends inside this call. False: a stop was requested before, or the client is
    /// closed; nothing was started. A stop of the chain of tasks that waits for it is requested in `cancel`; null: nowhere.
    bool begin(reactor::clock::time_point deadline, detail::cancel_state* cancel);
    /// The way it will take, and whatever has to live as long (an aliasing pointer).
    void use_way(std::shared_ptr<router> way) noexcept { router_ = std::move(way); }
    /// Unlinks it from wherever it is. From any thread, but not while another thread is ending it.
    void abandon() noexcept;

    place where() const noexcept { return place_; }
    /// It was sent more than once, because a reply was lost.
    bool was_repeated() const noexcept { return reply_lost_; }
    /// A copy of it was handed to the socket, and it is not known that the server refused it. An answer says what became of its own copy only.
    bool may_have_run() const noexcept { return reply_lost_ || unheard_ || place_ == place::sent; }
    /// The server refused it for the time being (LOADING, BUSY, READONLY ...), at least once.
    bool was_put_off() const noexcept { return put_off_; }

    // What it wants; set before it begins.
    std::int16_t slot = -1;     ///< hash slot of its keys; -1: any node
    std::uint16_t replies = 1;  ///< how many the server will send
    bool repeatable : 1 = false;  ///< may run twice: sent again when its reply was lost
    bool fenced : 1 = false;    ///< answered by pushes, maybe by an error in-band, and then by the reply to a HELLO behind it
    bool yields : 1 = false;    ///< it has others told something, who are to hear that before its own reply comes
    bool asking = false;        ///< preceded by ASKING, once (a slot that moves)

private:
    // Here, where padding has room for it; the rest of the state is below.
    bool parked_ : 1 = false;        // registered with cancel_
    bool reply_lost_ : 1 = false;  // it was sent before, and the connection broke
    bool unheard_ : 1 = false;     // it left while it was sent
    bool put_off_ : 1 = false;     // the server answered that it can't take it just now
    bool begun_ = false;             // and not ended; a byte of its own, which a destructor on another thread may read

protected:
    ~operation() {
        if (place_ != place::idle) abandon();  // a connection's own, destroyed in a turn
    }
    /// For the destructor of each class that begins: the first thing it does, as a turn on another thread may be using all of the object
    /// until then. Not even its place may be looked at without the lock.
    void withdraw() noexcept {
        if (begun_) abandon();
    }

private:
    friend class connection;
    friend class request_queue;
    friend class router;

    void arrive() noexcept override;
    void fire() noexcept override;
    void cancel_requested(std::shared_ptr<detail::cancel_state> state) noexcept override;
    void cancel_here() noexcept override;

    void leave() noexcept;   // out of its place, whatever it is; still begun
    void finish() noexcept;  // out of everything: nothing refers to it any more
    void end(reply_view answer) noexcept;
    void end(errc reason, std::string_view why) noexcept;

    std::shared_ptr<router> router_;   // null: a connection's own, without deadline and cancellation
    detail::cancel_state* cancel_ = nullptr;
    request_queue* queue_ = nullptr;   // waiting or sent there
    std::uint32_t dropped_after_ = 0;  // sent: replies to drop behind this one's, of requests that were abandoned
    std::uint16_t outstanding_ = 0;    // sent: replies still to come
    std::uint8_t redirects_ = 0;       // how often the Cluster sent it on
    place place_ = place::idle;
};

using operation_list = boost::intrusive::list<operation, boost::intrusive::base_hook<list_hook>,
                                              boost::intrusive::constant_time_size<false>>;

}  // namespace lockstep::redis
