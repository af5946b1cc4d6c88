#include "witness.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace lockstep::test {

witness::witness(std::string const& socket_path) : socket_{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)} {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    socket_path.copy(to.sun_path, sizeof to.sun_path - 1);
    auto const* const address = reinterpret_cast<sockaddr const*>(&to);
    while (::connect(socket_, address, sizeof to) != 0) {
        if (errno != EINTR) throw std::system_error{errno, std::generic_category(), socket_path};
    }
}

witness::~witness() { ::close(socket_); }

void witness::report(std::string const& line) {
    while (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) < 0) {
        if (errno != EINTR) throw std::runtime_error{"the referee is gone"};
    }
}

std::string witness::ask(std::string const& line) {
    report(line);
    char answer[2048];
    while (true) {
        auto const got = ::recv(socket_, answer, sizeof answer, 0);
        if (got > 0) return {answer, static_cast<std::size_t>(got)};
        if (got == 0 || errno != EINTR) throw std::runtime_error{"the referee is gone"};
    }
}

}  // namespace lockstep::test
