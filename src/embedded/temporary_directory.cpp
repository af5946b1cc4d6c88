#include "temporary_directory.hpp"

#include <lockstep/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace lockstep::embedded {
namespace {

constexpr std::string_view prefix = "lockstep-server-";
constexpr std::string_view pattern = "lockstep-server-XXXXXX";

// Removes what a server leaves: files, one level of them and the lock last, so that a half-removed directory is found again.
void empty_and_remove(std::string const& path) noexcept {
    std::error_code ignored;
    std::string const lock = path + "/lock";
    for (std::filesystem::directory_iterator entry{path, ignored}, end; !ignored && entry != end;
         entry.increment(ignored)) {
        if (entry->path() != lock) std::filesystem::remove_all(entry->path(), ignored);
    }
    ::unlink(lock.c_str());
    ::rmdir(path.c_str());
}

bool stale_candidate(std::string const& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

// Best effort: whatever can't be read or locked stays.
void remove_stale(std::string const& base) noexcept try {
    std::error_code ignored;
    for (std::filesystem::directory_iterator entry{base, ignored}, end; !ignored && entry != end;
         entry.increment(ignored)) {
        auto const path = entry->path().string();
        if (!entry->path().filename().string().starts_with(prefix) || !stale_candidate(path)) continue;
        // Not created here: a directory without a lock file is one that is being made.
        descriptor file{::open((path + "/lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
        if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
        file_lock const held{std::move(file)};
        empty_and_remove(path);
    }
} catch (...) {  // out of memory, at most: no reason not to start a server
}

std::string base_directory() {
    auto const* const variable = std::getenv("TMPDIR");
    std::string const wanted = variable != nullptr ? variable : "";
    bool const fits = wanted.size() + 1 + pattern.size() + 1 + socket_name.size() <= max_socket_path;
    bool const usable = wanted.starts_with('/') && fits && ::access(wanted.c_str(), W_OK | X_OK) == 0;
    return usable ? wanted : "/tmp";
}

}  // namespace

temporary_directory::temporary_directory() {
    auto const base = base_directory();
    remove_stale(base);
    while (!lock_) {
        path_ = fmt::format("{}/{}", base, pattern);
        if (::mkdtemp(path_.data()) == nullptr) {
            throw unavailable_error{fmt::format("can't make a directory in {}: {}", base, std::strerror(errno))};
        }
        // Someone else's remove_stale may come between the making and the locking; then the next one is ours.
        descriptor file{::open((path_ + "/lock").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
        if (!file && errno == ENOENT) continue;
        if (!file) throw unavailable_error{fmt::format("can't write in {}: {}", path_, std::strerror(errno))};
        int locked = -1;
        do locked = ::flock(file.get(), LOCK_EX);
        while (locked != 0 && errno == EINTR);
        if (locked != 0) throw unavailable_error{fmt::format("can't lock a file in {}: {}", path_, std::strerror(errno))};
        struct stat info {};
        if (::fstat(file.get(), &info) == 0 && info.st_nlink > 0) lock_ = file_lock{std::move(file)};
    }
}

void temporary_directory::remove() noexcept {
    if (!lock_) return;
    empty_and_remove(path_);
    lock_.unlock();
}

}  // namespace lockstep::embedded
