#pragma once

// What can be held: which scripts keep it at the server, under which word in its key. The scripts of every kind take the same
// arguments in the same order and answer alike (src/scripts), so that one engine drives them all.

#include "scripts/script.hpp"

#include <cstdint>
#include <string_view>

namespace lockstep::engine {

struct kind {
    std::string_view word;  ///< last part of the key
    scripts::script const& acquire;
    scripts::script const& claim;
    scripts::script const& renew;
    scripts::script const& release;
    scripts::script const& adopt;
    scripts::script const* change;  ///< to another amount; null: there is none
    scripts::script const& evict;   ///< ends somebody else's hold
    bool is_pool;  ///< has permits to count; `acquire` takes the pool's count and mode after the rules
    bool is_election = false;  ///< the scripts also have the stream of changes, and are told who leads (election_acquire.lua)
};

extern kind const lock_kind;
extern kind const recursive_kind;
extern kind const shared_kind;
extern kind const semaphore_kind;
extern kind const event_kind;
extern kind const election_kind;

/// What a hold of so much is, in a word for people: owner, reader, writer, permits, creation, signal or leader.
std::string_view use_of(kind const& what, std::int64_t amount) noexcept;

/// By its word; null: none.
kind const* find_kind(std::string_view word) noexcept;

}  // namespace lockstep::engine
