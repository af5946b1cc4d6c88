#pragma once

/// A Lua script, embedded at build time from `src/scripts/<name>.lua`; "scripts/all.hpp" (generated) declares one constant
/// per file as `lockstep::scripts::<name>`, and `all()`.
///
/// To add one, write the file: its header comment is checked against the KEYS and ARGV it uses, and the build fails when
/// they differ (cmake/embed_scripts.cmake has the rules).

#include <string_view>

namespace lockstep::scripts {

struct script {
    std::string_view name;  ///< the file's name without ".lua"
    std::string_view text;  ///< the file and what it includes, byte for byte: what EVAL sends
    std::string_view sha1;  ///< of `text`, 40 hexadecimal digits: what EVALSHA sends
    unsigned keys;          ///< KEYS declared one by one; a script that declares `KEYS[n..]` takes n - 1 or more
    bool read_only = false; ///< sent by EVALSHA_RO: a user that may only read can run it, and the server refuses its writes
};

}  // namespace lockstep::scripts
