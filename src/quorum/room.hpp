#pragma once

// Those in this process who wait for the same resources, in their order. The first of them tries for all: at once, and whenever there is
// reason to. The reasons: the holder said so (a process that uses Lockstep wakes the first who told it that he waits), or time has passed.
//
// Nothing at the nodes knows who waits; the holder's process does. A waiter that is refused tells it, by the process's id in the token that
// is in its way. Released, it wakes the first and tells it of the others, who pass the list on to whoever holds it next. All of that are
// hints: what is lost is found out by the next look, which comes by time.

#include "quorum/grip.hpp"
#include "quorum/seeker.hpp"
#include "redis/reactor.hpp"

#include <boost/intrusive/list.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::quorum {

class fleet;

class room final : redis::timer, public std::enable_shared_from_this<room> {
public:
    using clock = redis::reactor::clock;

    room(std::shared_ptr<fleet> nodes, std::vector<std::string> const& keys, std::string key, std::uint64_t number);
    ~room();

    std::string const& key() const noexcept { return key_; }
    std::uint64_t number() const noexcept { return number_; }
    /// What the name of a waiter for these keys ends with.
    static std::string label_of(std::vector<std::string> const& keys);

    // In turns of home:
    void enter(seeker& who);
    void leave(seeker& who) noexcept;
    void time_is_over(seeker& who) noexcept;
    /// An attempt has ended.
    void ended(grip& attempt, outcome const& how);
    /// A node says that what stood in the way is gone there, and who else waits for it.
    void freed(std::size_t node, std::string_view token, std::vector<std::string> waiters);
    void close() noexcept;

private:
    using list = boost::intrusive::list<seeker, boost::intrusive::base_hook<redis::list_hook>, boost::intrusive::constant_time_size<false>>;

    void fire() noexcept override;
    void attempt(bool tells);
    void granted(grip& got);
    void look_again(outcome const& how);
    void give_up(seeker& who, outcome const& how) noexcept;
    std::string waiters() const;

    std::shared_ptr<fleet> nodes_;
    std::string key_;
    std::uint64_t number_;
    std::string entry_;  // this room, as a waiter
    list waiting_;
    grip* attempt_ = nullptr;  // for the first of them
    bool tells_ = false;       // it is one that tells the holder of us
    bool is_freed_ = false;    // meanwhile
    unsigned splits_ = 0;      // in a row
    bool is_reached_ = true;   // the last attempt met a majority
    std::string why_;          // if not
    clock::time_point last_contact_{};  // with a majority
    clock::time_point asked_at_{};      // by the attempt
    std::string freed_by_;         // the token that went last
    std::uint64_t freed_at_ = 0;   // a bit for each node that said so; all: acted upon
    std::vector<std::string> behind_;  // who waits behind us, by other processes' words
};

}  // namespace lockstep::quorum
