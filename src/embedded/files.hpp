#pragma once

// Descriptors, directories and locks of the embedded servers.
//
// A lock is an flock on a file that is never removed while its directory lives: the kernel drops it with its last holder, so
// nothing has to be cleaned up after a SIGKILL, and a child can hold it on by inheriting the descriptor.

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::embedded {

using deadline = std::chrono::steady_clock::time_point;

class descriptor {
public:
    descriptor() = default;
    explicit descriptor(int fd) : fd_{fd} {}
    ~descriptor() { close(); }
    descriptor(descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    descriptor& operator=(descriptor&& other) noexcept {
        if (this != &other) {
            close();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }

    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    void close() noexcept;

private:
    int fd_ = -1;
};

enum class lock_kind { shared, exclusive };

// A held lock. The destructor unlocks, for inherited copies too: a program that forks at the wrong moment must not keep it.
// `hand_over()` closes only this copy, so that the lock lives on in a child that inherited it.
class file_lock {
public:
    file_lock() = default;
    explicit file_lock(descriptor file) : file_{std::move(file)} {}
    ~file_lock() { unlock(); }
    file_lock(file_lock&&) = default;
    file_lock& operator=(file_lock&& other) noexcept {
        unlock();
        file_ = std::move(other.file_);
        return *this;
    }

    explicit operator bool() const noexcept { return static_cast<bool>(file_); }
    int get() const noexcept { return file_.get(); }
    void touch() const noexcept;  // sets the file's time to now
    void unlock() noexcept;
    void hand_over() noexcept { file_.close(); }

private:
    descriptor file_;
};

// Empty when another holds it, or until `end` in the second form. Throws unavailable_error when the file can't be opened.
file_lock try_lock(std::string const& path, lock_kind kind);
file_lock lock_until(std::string const& path, lock_kind kind, deadline end);

enum class links { refuse, follow };

// Makes the directory (0700) where it is missing, and checks that it is ours and that nobody else can write to it: someone else
// could have made it first, in a place like /tmp. `what` starts the message of the invalid_argument_error.
void require_own_directory(std::string const& path, std::string_view what, links links);
// Whether it exists and is a directory of ours.
bool is_own_directory(std::string const& path);
// Whether, besides, nobody else can write to it.
bool is_private_directory(std::string const& path);

// Reads all of a small file; empty when there is none. write_file replaces it in one step.
std::string read_file(std::string const& path);
void write_file(std::string const& path, std::string_view text);

// The last lines of a log, indented, to end an error message with.
std::string last_lines(std::string const& path);

// The longest path that fits sockaddr_un.
inline constexpr std::size_t max_socket_path = 107;
inline constexpr std::string_view socket_name = "redis.sock";

// "unix://" and the path, with everything a URL would read otherwise percent-encoded.
std::string socket_url(std::string_view path);

}  // namespace lockstep::embedded
