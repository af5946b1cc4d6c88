#include "binary.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace lockstep::embedded {
namespace {

bool executable(std::string const& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

// The last four are not in the PATH of every user or service.
std::vector<std::string> search_directories() {
    std::vector<std::string> directories;
    auto const* const path = std::getenv("PATH");
    for (std::string_view rest = path != nullptr ? path : ""; !rest.empty();) {
        auto const end = std::min(rest.find(':'), rest.size());
        if (rest.front() == '/')
            directories.emplace_back(rest.substr(0, end));  // the server is started from another directory
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    for (auto const* const usual : {"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"})
        directories.emplace_back(usual);
    return directories;
}

std::string look_up(std::string const& name, std::vector<std::string> const& directories) {
    for (auto const& directory : directories) {
        if (auto path = fmt::format("{}/{}", directory, name); executable(path)) return path;
    }
    return {};
}

std::string named(std::string const& wanted, std::string_view from) {
    bool const is_path = wanted.find('/') != std::string::npos;
    auto found = is_path ? (executable(wanted) ? wanted : std::string{}) : look_up(wanted, search_directories());
    if (found.empty())
        throw invalid_argument_error{fmt::format("{} names {}, which is not an executable file", from, wanted)};
    if (found.front() == '/') return found;
    char* const absolute = ::realpath(found.c_str(), nullptr);
    if (absolute != nullptr) found = absolute;
    std::free(absolute);
    return found;
}

}  // namespace

std::string find_server_binary(std::string const& wanted) {
    if (!wanted.empty()) return named(wanted, "the option binary");
    auto const* const variable = std::getenv("LOCKSTEP_SERVER_BINARY");
    if (variable != nullptr && *variable != '\0') return named(variable, "LOCKSTEP_SERVER_BINARY");
    return find_server_binary_in(search_directories());
}

std::string find_server_binary_in(std::vector<std::string> const& directories) {
    for (auto const* const name : {"redis-server", "valkey-server"}) {
        if (auto path = look_up(name, directories); !path.empty()) return path;
    }
    throw unavailable_error{
        "no redis-server or valkey-server on this machine: install one (Debian, Ubuntu: apt-get install redis-server "
        "or valkey-server), name it in LOCKSTEP_SERVER_BINARY, or set LOCKSTEP_URL to a server elsewhere"};
}

}  // namespace lockstep::embedded
