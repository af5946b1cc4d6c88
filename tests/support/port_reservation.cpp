#include "port_reservation.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace lockstep::test {

namespace {

int first_outgoing_port() {
    int first = 0;
    std::ifstream{"/proc/sys/net/ipv4/ip_local_port_range"} >> first;
    return first > 11000 ? std::min(first, 65536) : 32768;
}

// The descriptor of the claim, or -1 when another test has this port.
int claim(int port) {
    auto const name = "lockstep-test-port-" + std::to_string(port);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // a leading NUL: the abstract namespace
    auto const length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    auto const descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (::bind(descriptor, reinterpret_cast<sockaddr const*>(&address), length) == 0) return descriptor;
    ::close(descriptor);
    return -1;
}

bool nobody_listens(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto const descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int const on = 1;  // as servers do: connections in TIME_WAIT do not count
    ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    auto const free = ::bind(descriptor, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0;
    ::close(descriptor);
    return free;
}

}  // namespace

port_reservation::port_reservation() {
    static auto const end = first_outgoing_port();
    std::random_device seed;
    std::uniform_int_distribution<int> any{10000, end - 1};
    for (int attempt = 0; attempt < 1000; ++attempt) {
        port_ = any(seed);
        claim_ = claim(port_);
        if (claim_ >= 0 && nobody_listens(port_)) return;
        if (claim_ >= 0) ::close(claim_);
    }
    throw std::runtime_error{"no free port on 127.0.0.1"};
}

port_reservation::~port_reservation() {
    if (claim_ >= 0) ::close(claim_);
}

port_reservation::port_reservation(port_reservation&& other) noexcept
    : port_{std::exchange(other.port_, 0)}, claim_{std::exchange(other.claim_, -1)} {}

port_reservation& port_reservation::operator=(port_reservation&& other) noexcept {
    std::swap(port_, other.port_);
    std::swap(claim_, other.claim_);
    return *this;
}

}  // namespace lockstep::test
