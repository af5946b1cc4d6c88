#pragma once

/// What a user of the server must be allowed, and no more: for `lockstep acl`, and for health checks that find something missing.
///
/// Commands that a script calls need their own rights, so a new one in src/scripts must be added here: a unit test compares.

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::observe {

struct acl_needs {
    std::string_view prefix = "lockstep";
    bool cluster = false;  ///< the server is part of one
    bool looks = false;    ///< also what monitors read: SCAN sees the names of all keys, also of others
};

/// Rules as ACL SETUSER takes them, one word each, from nothing on: "-@all", "~lockstep:{*}:*", "+evalsha" ... Redis 7.0 and newer, and
/// Valkey, take all of them. Neither `on` nor a password is among them.
std::vector<std::string> acl_rules(acl_needs const& needs);

}  // namespace lockstep::observe
