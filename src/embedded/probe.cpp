#include "probe.hpp"

#include "files.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lockstep::embedded {
namespace {

// BUSY, MISCONF, NOAUTH and the like refuse the PING but come from a server that is up.
answer meaning(std::string_view reply) {
    if (reply.starts_with("-LOADING")) return answer::loading;
    return reply.starts_with('+') || reply.starts_with('-') ? answer::alive : answer::silent;
}

// With a time limit on the socket, calls end at a signal even if its handler asks for their restart.
template <class F>
auto retried(std::chrono::steady_clock::time_point end, F call) {
    while (true) {
        auto const result = call();
        if (result >= 0 || errno != EINTR || std::chrono::steady_clock::now() >= end) return result;
    }
}

}  // namespace

probe_result probe(std::string const& socket_path, std::chrono::milliseconds patience) {
    auto const end = std::chrono::steady_clock::now() + patience;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_path.size() > max_socket_path) return {};
    std::memcpy(address.sun_path, socket_path.data(), socket_path.size());

    descriptor const socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (!socket) throw unavailable_error{fmt::format("can't open a socket: {}", std::strerror(errno))};
    auto const wait = std::max<std::int64_t>(patience.count(), 1);  // 0 would mean forever
    timeval const limit{.tv_sec = wait / 1000, .tv_usec = wait % 1000 * 1000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // for connect() too
    auto const connect = [&] { return ::connect(socket.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address); };
    if (retried(end, connect) != 0) {
        return {.state = errno == EAGAIN || errno == EINTR ? answer::silent : answer::nobody, .pid = 0};
    }
    ucred peer{};
    socklen_t size = sizeof peer;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
    if (peer.uid != ::geteuid()) {
        throw unavailable_error{fmt::format("{} is served by a process of user {}", socket_path, peer.uid)};
    }

    constexpr std::string_view ping = "*1\r\n$4\r\nPING\r\n";
    if (retried(end, [&] { return ::send(socket.get(), ping.data(), ping.size(), MSG_NOSIGNAL); }) < 0)
        return {.state = answer::nobody, .pid = peer.pid};
    char reply[64];
    auto const got = retried(end, [&] { return ::recv(socket.get(), reply, sizeof reply, 0); });
    if (got == 0) return {.state = answer::nobody, .pid = peer.pid};  // it ended just now
    if (got < 0) {
        bool const in_time = errno != EAGAIN && errno != EINTR;
        return {.state = in_time ? answer::nobody : answer::silent, .pid = peer.pid};
    }
    return {.state = meaning({reply, static_cast<std::size_t>(got)}), .pid = peer.pid};
}

}  // namespace lockstep::embedded
