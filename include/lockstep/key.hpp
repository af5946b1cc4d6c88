#pragma once

/// `key`: a key at the server as it is, for what other programs made, too.
///
///     lockstep::stream events{client, lockstep::key{"events"}};     // what `XADD events * type login` writes
///
/// An object that is given a name keeps its data under a key of Lockstep's own, `<prefix>:{<name>}:<kind>`. One that is given a `key` uses just that key. What
/// Lockstep keeps beside it (dead letters, what was given back, calls that count once) is under `<prefix>:{<tag>}:key:<key>:<kind>:...`. The tag is that of the key by
/// the rules of Redis Cluster, that is the text between its first braces, or else the whole key: so all are in one slot. Nothing is stored under other names.
///
/// A key has 1 to 512 bytes. One that has a `}` but no such tag (as `a}b` or `{}a`) is refused with `invalid_argument_error`: no other key can be made for its slot.

#include <string>
#include <string_view>

namespace lockstep {

struct key {
    explicit key(std::string_view name) : text(name) {}
    std::string text;
};

}  // namespace lockstep
