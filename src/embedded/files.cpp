#include "files.hpp"

#include <lockstep/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace lockstep::embedded {

using namespace std::chrono_literals;

void descriptor::close() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void file_lock::touch() const noexcept { ::futimens(file_.get(), nullptr); }

void file_lock::unlock() noexcept {
    if (file_) ::flock(file_.get(), LOCK_UN);
    file_.close();
}

file_lock try_lock(std::string const& path, lock_kind kind) {
    while (true) {
        descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
        if (!file) throw unavailable_error{fmt::format("can't open {}: {}", path, std::strerror(errno))};
        int const how = (kind == lock_kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
        while (::flock(file.get(), how) != 0) {
            if (errno == EWOULDBLOCK) return {};
            if (errno != EINTR) throw unavailable_error{fmt::format("can't lock {}: {}", path, std::strerror(errno))};
        }
        // A cleaner of old files may have removed it meanwhile: then this lock is one that nobody else will see.
        struct stat mine {
        }, current{};
        if (::fstat(file.get(), &mine) == 0 && ::stat(path.c_str(), &current) == 0 && mine.st_ino == current.st_ino &&
            mine.st_dev == current.st_dev) {
            return file_lock{std::move(file)};
        }
    }
}

// Polls, since flock has no deadline; a lock is held for microseconds, or while a server starts or ends.
file_lock lock_until(std::string const& path, lock_kind kind, deadline end) {
    for (auto pause = 1ms;; pause = std::min(pause * 2, 8ms)) {
        if (auto lock = try_lock(path, kind)) return lock;
        if (std::chrono::steady_clock::now() >= end) return {};
        std::this_thread::sleep_for(pause);
    }
}

namespace {

void make_parents(std::string const& path) {
    for (auto slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        ::mkdir(path.substr(0, slash).c_str(), 0700);  // what fails here shows in the last step
    }
}

}  // namespace

void require_own_directory(std::string const& path, std::string_view what, links links) {
    auto const refuse = [&](std::string_view why) {
        throw invalid_argument_error{fmt::format("{} {} {}", what, path, why)};
    };
    if (::mkdir(path.c_str(), 0700) != 0 && errno == ENOENT) {
        make_parents(path);
        if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
            refuse(fmt::format("can't be made: {}", std::strerror(errno)));
    }
    // Opened, then looked at: what is checked is what is there, not what was there before it was exchanged.
    int const follow = links == links::refuse ? O_NOFOLLOW : 0;
    descriptor const directory{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow)};
    struct stat info {};
    if (!directory) {
        auto const reason = errno;
        if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode))
            refuse("is a symbolic link; it must be a directory");
        refuse(fmt::format("can't be opened: {}", std::strerror(reason)));
    }
    if (::fstat(directory.get(), &info) != 0) refuse(std::strerror(errno));
    if (info.st_uid != ::geteuid()) {
        refuse(
            fmt::format("belongs to user {}, not to user {}; remove it or choose another", info.st_uid, ::geteuid()));
    }
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        refuse("can be written to by others; chmod 700 it or choose another");
}

namespace {

bool is_own_directory(std::string const& path, mode_t forbidden) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & forbidden) == 0;
}

}  // namespace

bool is_own_directory(std::string const& path) { return is_own_directory(path, 0); }
bool is_private_directory(std::string const& path) { return is_own_directory(path, S_IWGRP | S_IWOTH); }

std::string read_file(std::string const& path) {
    descriptor const file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
    std::string text;
    char buffer[4096];
    while (file) {
        auto const got = ::read(file.get(), buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
}

void write_file(std::string const& path, std::string_view text) {
    auto const fail = [&path] {
        throw unavailable_error{fmt::format("can't write {}: {}", path, std::strerror(errno))};
    };
    auto const fresh = path + ".new";
    ::unlink(fresh.c_str());
    descriptor const file{::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    if (!file) fail();
    while (!text.empty()) {
        auto const written = ::write(file.get(), text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail();
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::rename(fresh.c_str(), path.c_str()) != 0) fail();
}

std::string last_lines(std::string const& path) {
    constexpr int wanted = 8;
    auto text = read_file(path);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (text.empty()) return " (its log is empty)";
    auto start = text.size();
    for (int lines = 0; lines < wanted && start != std::string::npos && start > 0; ++lines)
        start = text.rfind('\n', start - 1);
    auto const tail = start == std::string::npos || start == 0 ? text : text.substr(start + 1);
    std::string indented;
    for (std::size_t from = 0; from <= tail.size();) {
        auto const end = std::min(tail.find('\n', from), tail.size());
        indented += "\n    " + tail.substr(from, end - from);
        from = end + 1;
    }
    return "; its last words:" + indented;
}

std::string socket_url(std::string_view path) {
    constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._~-";
    std::string url = "unix://";
    for (char const byte : path) {
        if (plain.find(byte) != std::string_view::npos) {
            url += byte;
        } else {
            url += fmt::format("%{:02X}", static_cast<unsigned char>(byte));
        }
    }
    return url;
}

}  // namespace lockstep::embedded
