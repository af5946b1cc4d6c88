#include "config.hpp"

#include <fmt/format.h>

namespace lockstep::embedded {
namespace {

// As the server reads it: in double quotes, with escapes. A path may hold anything but a NUL.
std::string quoted(std::string const& text) {
    std::string out = "\"";
    for (char const byte : text) {
        bool const plain = byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
        out += plain ? std::string(1, byte) : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
    return out + "\"";
}

}  // namespace

std::string config_text(server_config const& config) {
    return fmt::format(
        "# Written by Lockstep at each start; changes are lost.\n"
        "port 0\n"  // never TCP
        "unixsocket {}\n"
        "unixsocketperm 700\n"
        "protected-mode yes\n"
        "daemonize no\n"
        "supervised no\n"
        "logfile \"\"\n"  // to standard output, where the errors of a bad configuration go too: one log
        "dir {}\n"
        "save \"\"\n"
        "appendonly {}\n"
        "appendfsync {}\n"
        "maxmemory {}\n"
        "maxmemory-policy noeviction\n",  // eviction takes locks first
        quoted(config.socket), quoted(config.directory), config.persistent ? "yes" : "no",
        config.sync_always ? "always" : "everysec", config.maxmemory);
}

}  // namespace lockstep::embedded
