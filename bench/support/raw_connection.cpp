#include "support/raw_connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace lockstep::bench {
namespace {

int connect_to(endpoint const& where) {
    int const made = ::socket(where.path.empty() ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = -1;
    if (where.path.empty()) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(where.port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int const on = 1;
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        result = connect(made, reinterpret_cast<sockaddr const*>(&address), sizeof address);
    } else {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        where.path.copy(address.sun_path, sizeof address.sun_path - 1);
        result = connect(made, reinterpret_cast<sockaddr const*>(&address), sizeof address);
    }
    if (result == 0) return made;
    auto const why = std::string{"can't connect to the server: "} + std::strerror(errno);
    close(made);
    throw std::runtime_error(why);
}

}  // namespace

std::string encoded(std::initializer_list<std::string_view> words) {
    auto bytes = "*" + std::to_string(words.size()) + "\r\n";
    for (auto const word : words) bytes.append("$" + std::to_string(word.size()) + "\r\n").append(word).append("\r\n");
    return bytes;
}

raw_connection::raw_connection(endpoint const& where) : socket_(connect_to(where)), buffer_(64 * 1024) {}

raw_connection::~raw_connection() { close(socket_); }

void raw_connection::write_all(std::string_view bytes) {
    while (!bytes.empty()) {
        auto const size = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) throw std::runtime_error(std::string{"write: "} + std::strerror(errno));
        bytes.remove_prefix(static_cast<std::size_t>(size));
    }
}

void raw_connection::read_more() {
    if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
    for (;;) {
        auto const size = ::recv(socket_, buffer_.data() + end_, buffer_.size() - end_, 0);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) throw std::runtime_error("the server closed the connection");
        end_ += static_cast<std::size_t>(size);
        return;
    }
}

std::size_t raw_connection::reply_at(std::size_t from) const noexcept {
    auto const* const begin = buffer_.data() + from;
    auto const left = end_ - from;
    auto const* const line = left == 0 ? nullptr : static_cast<char const*>(std::memchr(begin, '\n', left));
    if (line == nullptr) return 0;
    auto const head = static_cast<std::size_t>(line - begin) + 1;
    bool const parts = *begin == '*' || *begin == '>' || *begin == '%';
    if ((*begin != '$' && !parts) || begin[1] == '-') return head;
    std::size_t count = 0;
    for (auto const* digit = begin + 1; *digit != '\r'; ++digit)
        count = count * 10 + static_cast<std::size_t>(*digit - '0');
    if (!parts) return head + count + 2 <= left ? head + count + 2 : 0;
    auto size = head;
    for (auto more = *begin == '%' ? 2 * count : count; more != 0; --more) {
        auto const part = reply_at(from + size);
        if (part == 0) return 0;
        size += part;
    }
    return size;
}

std::string_view raw_connection::receive() {
    for (;;) {
        if (auto const size = reply_at(taken_); size != 0) {
            std::string_view const whole{buffer_.data() + taken_, size};
            taken_ += size;
            return whole;
        }
        std::memmove(buffer_.data(), buffer_.data() + taken_, end_ - taken_);
        end_ -= taken_;
        taken_ = 0;
        read_more();
    }
}

void raw_connection::exchange(std::string_view batch, std::size_t replies, char type) {
    write_all(batch);
    std::size_t at = std::exchange(taken_, 0);
    while (replies != 0) {
        auto const size = reply_at(at);
        if (size != 0) {
            if (buffer_[at] != type) throw std::runtime_error("the server answered " + std::string(&buffer_[at], size));
            at += size;
            --replies;
            continue;
        }
        std::memmove(buffer_.data(), buffer_.data() + at, end_ - at);
        end_ -= at;
        at = 0;
        read_more();
    }
    if (at != end_) throw std::runtime_error("the server sent more than was asked for");
    end_ = 0;
}

std::string raw_connection::command(std::initializer_list<std::string_view> words) {
    write_all(encoded(words));
    auto const whole = receive();
    auto const head = whole.find("\r\n");
    if (whole.front() == '-') throw std::runtime_error("the server answered " + std::string{whole.substr(0, head)});
    if (whole.front() != '$') return std::string{whole.substr(1, head - 1)};
    return whole[1] == '-' ? std::string{} : std::string{whole.substr(head + 2, whole.size() - head - 4)};
}

}  // namespace lockstep::bench
