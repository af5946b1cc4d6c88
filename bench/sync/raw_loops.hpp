#pragma once

// The least that can be done between processes, on blocking sockets, as members of a crew: a token that goes around, and the scripts of the
// lock without the library around them.

#include "support/raw_connection.hpp"

namespace lockstep::bench {

/// BLPOP takes the token, RPUSH gives it back. Somebody must have pushed one.
void serve_token(endpoint const& where);
inline constexpr char const* token_list = "bench:token";

/// lock_acquire, wait for the push, lock_claim, lock_release. The scripts must be loaded.
void serve_scripts(endpoint const& where);

/// The same as one of two that hand the lock to each other (crew.hpp).
void serve_script_relay(endpoint const& where);

}  // namespace lockstep::bench
