#pragma once

// One node's part in a hold: the request that is under way there, one at a time, and what is known of the node.
//
// Requests begin and end in turns of the node. A new one takes the place of one that has not been answered: that can still run, but before
// the new one, because both take the same connection; unless it breaks in between. Then nobody knows, and the node is in doubt: what
// is released there is released a second time, a while later. So it is where a request was sent again because its connection broke.

#include "quorum/ballot.hpp"
#include "redis/operation.hpp"

#include <chrono>
#include <cstdint>

namespace lockstep::quorum {

class grip;

enum class request : std::uint8_t {
    set,      ///< SET key token NX PX ttl
    acquire,  ///< the same by redlock_acquire.lua: several keys, fences, who waits
    fence,    ///< redlock_fence.lua
    extend,   ///< compare_and_extend.lua
    remove,   ///< compare_and_delete.lua, or redlock_release.lua
};

struct assignment {
    request what = request::set;
    std::chrono::milliseconds ttl{0};
    redis::reactor::clock::time_point deadline{};
    std::uint64_t fence = 0;
    std::uint32_t round = 0;
    bool again = false;  ///< extend: a key that does not exist is made again
};

class leg final : public redis::operation {
public:
    leg() noexcept : successor_(*this) {}
    ~leg() { withdraw(); }

    void belong(grip& of, std::size_t node) noexcept {
        of_ = &of;
        node_ = node;
    }
    std::size_t node() const noexcept { return node_; }

    // In turns of home:
    /// Asks the node, instead of what it is being asked.
    void ask(assignment const& order);

    // Under the hold's lock:
    bool busy = false;      ///< something is under way
    bool in_doubt = false;  ///< something may run there that nobody waits for any more
    bool touched = false;   ///< our token was put there, or may have been
    bool missing = false;   ///< its last answer to an extension: the key does not exist
    /// The last round that may have put our token there again, and what it holds since then says nothing about the time before. 0: none has.
    std::uint32_t made_again_in = 0;

    bool matters = false;  ///< at home: something of ours may be there that has to be removed

private:
    friend class grip;

    /// Brings the next request into a turn of the node, where the one before can be abandoned.
    class successor final : public redis::arrival {
    public:
        explicit successor(leg& self) noexcept : self_(self) {}
        ~successor() = default;
        void arrive() noexcept override;
        void fire() noexcept override {}
        leg& self_;
    };

    static constexpr std::uint64_t never = ~std::uint64_t{0};

    void start(assignment const& what);  // in a turn of the node, or idle
    void doubt() noexcept;               // in a turn of the node
    bool may_have_it() const noexcept;
    vote vote_on_extension(std::int64_t said) noexcept;
    /// What is under way puts our token there, if it runs.
    bool takes() const noexcept { return now_.what == request::set || now_.what == request::acquire || (now_.what == request::extend && now_.again); }
    std::uint64_t connects() const noexcept;
    void encode(resp::output& out) override;
    void complete(reply_view answer) noexcept override;
    void fail(errc reason, std::string_view why) noexcept override;
    bool use_full_script() noexcept override { return !std::exchange(whole_script_, true); }

    grip* of_ = nullptr;
    std::size_t node_ = 0;
    assignment now_;
    assignment next_;              // under the hold's lock
    bool next_is_posted_ = false;  // likewise
    std::uint64_t doubted_at_ = 0;  // likewise: how often the node had been connected then; `never`: on a connection that is gone
    bool running_ = false;         // likewise: the operation has begun and not ended
    bool whole_script_ = false;
    successor successor_;
};

}  // namespace lockstep::quorum
