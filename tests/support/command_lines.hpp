// Lines that try every command of a server, with sub-commands and each of their options once, made from what COMMAND DOCS says of them.
#pragma once

#include "raw_client.hpp"

#include <map>
#include <string>
#include <vector>

namespace lockstep::test {

// Where a key stands; `with_keys` puts some there.
inline constexpr char const* key_place = "<key>";

struct command_line {
    std::string command;  // as an ACL rule has it: "get", "client|unblock"
    std::vector<std::string> words;

    [[nodiscard]] std::size_t keys() const;
    // The i-th key, and another one for the rest.
    [[nodiscard]] std::vector<std::string> with_keys(std::size_t i, std::string const& key, std::string const& rest) const;
};

[[nodiscard]] std::vector<command_line> lines_of_all_commands(raw_client& server);

}  // namespace lockstep::test
