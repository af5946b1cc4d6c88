#pragma once

// Which connection a request goes to, and what to do with a server that says "not me" or "not now".
//
// The answers that mean "did not run" are handled here within the request's own deadline, so that nobody above ever sees
// them: LOADING, BUSY, TRYAGAIN, CLUSTERDOWN, MASTERDOWN (a little later), READONLY (ask who is master now), NOSCRIPT (send the
// script), MOVED and ASK (Cluster). Everything else is the caller's answer.

#include "redis/operation.hpp"

#include "redis/url.hpp"

#include <lockstep/statistics.hpp>
#include <lockstep/task.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace lockstep::redis {

class connection;
class subscriptions;
struct judgement;

/// Hears of keys that were read by connections which the server tracks (`handshake::track`). In turns.
class key_listener {
public:
    virtual void key_changed(std::string_view key) noexcept = 0;
    /// All may have: they were flushed, or the connection was lost that would have told.
    virtual void any_key_changed() noexcept = 0;

protected:
    ~key_listener() = default;
};

class router : timer {
public:
    explicit router(std::shared_ptr<reactor> home) noexcept : home_(std::move(home)) {}
    virtual ~router() = default;

    reactor& home() const noexcept { return *home_; }

    /// In a turn: puts it on the right connection. It ends there sooner or later.
    virtual void submit(operation& request) noexcept = 0;
    /// In a turn: for good. Requests under way end as cancelled.
    virtual void close() noexcept = 0;
    /// In a turn: what this process listens to by these connections.
    virtual subscriptions& listening() noexcept = 0;
    virtual void add_to(statistics& sum) const noexcept = 0;
    /// In a turn: is there a connection to the node of that slot (-1: to any)?
    virtual bool reaches(std::int16_t slot) const noexcept = 0;
    /// Where a connection of one's own for that slot should lead (-1: any).
    virtual task<endpoint> find(std::int16_t slot) = 0;
    /// In a turn: what `find` said turned out to be wrong.
    virtual void distrust() noexcept {}
    /// In a turn: who hears of changed keys; null: nobody.
    void tell_of_keys(key_listener* who) noexcept { keys_ = who; }

    /// In a turn: `request` has left its connection because the server answered `refusal`. True: it was placed anew, and its
    /// owner hears nothing of that.
    bool reconsider(connection& from, operation& request, std::string_view refusal) noexcept;
    /// What the server last said when it could not take a request.
    std::string const& last_refusal() const noexcept { return last_refusal_; }
    std::uint64_t refusals() const noexcept { return refusals_; }

protected:
    /// A connection said this, on its own.
    void hear(reply_view push) noexcept;
    /// A connection that told of changed keys is gone.
    void lose_track() noexcept {
        if (keys_ != nullptr) keys_->any_key_changed();
    }
    /// Sets it aside for a little while.
    void try_later(operation& request) noexcept;
    void end_delayed(errc reason, std::string_view why) noexcept;
    void note_refusal(std::string_view text) {
        last_refusal_ = text;
        ++refusals_;
    }
    /// Out of a list that a connection handed out.
    static void release(operation& request) noexcept {
        request.unlink();
        request.place_ = operation::place::idle;
    }
    static std::uint8_t& redirects_of(operation& request) noexcept { return request.redirects_; }
    static void end(operation& request, errc reason, std::string_view why) noexcept { request.end(reason, why); }

    /// `from` says that it is no master.
    virtual void not_master(connection& from) noexcept = 0;
    /// MOVED or ASK. True: placed anew.
    virtual bool redirect(connection& from, operation& request, judgement const& to) noexcept;

private:
    void fire() noexcept override;  // the delayed ones again

    std::shared_ptr<reactor> home_;
    operation_list delayed_;
    std::string last_refusal_;
    std::uint64_t refusals_ = 0;
    key_listener* keys_ = nullptr;
};

}  // namespace lockstep::redis
