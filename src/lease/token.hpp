#pragma once

// The text of a detached lease: '<mark> <kind> <hold> <ttl_ms> <retention_ms> <name, encoded>'. It may have been through other programs.

#include <chrono>
#include <string>
#include <string_view>

namespace lockstep::engine {

struct kind;

struct lease_token {
    engine::kind const* kind = nullptr;
    std::string hold;
    std::chrono::milliseconds ttl{};
    std::chrono::milliseconds retention{};
    std::string name;
};

std::string write_token(lease_token const& token);
/// Throws `invalid_argument_error` for what is none.
lease_token read_token(std::string_view text);

}  // namespace lockstep::engine
