#include "cli/standard_error.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <mutex>

namespace lockstep::cli {
namespace {

enum class kind { file, socket, other };

kind kind_of_standard_error() noexcept {
    struct stat about {};
    if (::fstat(STDERR_FILENO, &about) != 0 || S_ISREG(about.st_mode)) return kind::file;
    return S_ISSOCK(about.st_mode) ? kind::socket : kind::other;
}

/// The same pipe or terminal, opened once more: not to wait is said of what was opened, and the first is not ours alone.
int open_once_more() noexcept { return ::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); }

/// Of so many bytes what fits, at least one; else less than one.
ssize_t write_some(std::string_view bytes) noexcept {
    static kind const what = kind_of_standard_error();
    if (what == kind::file) return ::write(STDERR_FILENO, bytes.data(), bytes.size());
    if (what == kind::socket) return ::send(STDERR_FILENO, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    static int const own = open_once_more();
    if (own >= 0) return ::write(own, bytes.data(), bytes.size());
    // It may not be opened, a terminal of another user's say. A pipe or terminal that is ready takes this much.
    static std::mutex one_at_a_time;
    std::lock_guard const guard{one_at_a_time};
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&ready, 1, 0) <= 0 || (ready.revents & POLLOUT) == 0) return -1;
    return ::write(STDERR_FILENO, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
}

}  // namespace

void say_to_standard_error(std::string_view bytes) noexcept {
    while (!bytes.empty()) {
        auto const wrote = write_some(bytes);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
}

}  // namespace lockstep::cli
