#include "redis/config_file.hpp"

#include <lockstep/log.hpp>

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <system_error>

namespace lockstep::redis {

std::string problem_of_file(std::string const& file) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) return "can't be opened: " + std::generic_category().message(errno);
    return S_ISREG(info.st_mode) ? "" : "is a directory, a pipe or a device, not a regular file";
}

void warn_if_exposed(std::string const& file, std::string_view description) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0 || (info.st_mode & (S_IRGRP | S_IROTH)) == 0) return;
    static auto& mutex = *new std::mutex;  // never destroyed: a client that outlives main() may still connect
    static auto& warned = *new std::set<std::string>;
    {
        std::lock_guard const guard{mutex};
        if (!warned.insert(file).second) return;
    }
    log(log_level::warning, fmt::format("security: {} {} can be read by other users (mode {:04o}): chmod 600 it", description, file, info.st_mode & 07777U));
}

}  // namespace lockstep::redis
