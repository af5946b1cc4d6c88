#include "stub_peer.hpp"

#include "eventually.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

namespace lockstep::test {

stub_peer::stub_peer(std::string answer, bool hang_up) : answer_{std::move(answer)}, hang_up_{hang_up} {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int const on = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port_.port()));
    auto const bound =
        eventually([&] { return ::bind(listener_, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0; });
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!bound || wake_ < 0 || ::listen(listener_, 64) != 0)
        throw std::system_error{errno, std::generic_category(), "stub_peer"};
    thread_ = std::thread{[this] { serve(); }};
}

stub_peer::~stub_peer() {
    std::uint64_t const one = 1;
    [[maybe_unused]] auto const written = ::write(wake_, &one, sizeof one);
    thread_.join();
    ::close(listener_);
    ::close(wake_);
}

void stub_peer::serve() {
    std::vector<pollfd> ready{{.fd = wake_, .events = POLLIN, .revents = 0},
                              {.fd = listener_, .events = POLLIN, .revents = 0}};
    while (true) {
        ::poll(ready.data(), ready.size(), -1);
        if (ready[0].revents != 0) break;
        for (std::size_t i = ready.size(); i-- > 2;) {
            if (ready[i].revents == 0) continue;
            char bytes[4096];
            auto const got = ::recv(ready[i].fd, bytes, sizeof bytes, MSG_DONTWAIT);
            if (got > 0) ::send(ready[i].fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
            if (got > 0 && !hang_up_) continue;
            ::close(ready[i].fd);
            ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(i));
        }
        if (ready[1].revents != 0) {
            auto const accepted = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (accepted < 0) continue;
            ++accepted_;
            ready.push_back({.fd = accepted, .events = POLLIN, .revents = 0});
        }
    }
    for (std::size_t i = 2; i < ready.size(); ++i) ::close(ready[i].fd);
}

}  // namespace lockstep::test
