#include "http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace lockstep::test {

namespace {

using std::chrono::steady_clock;

std::string lower(std::string text) {
    for (auto& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return text;
}

std::string host_line(std::string const& extra) {
    return lower(extra).find("host:") == std::string::npos ? "Host: localhost\r\n" : "";
}

}  // namespace

std::string http_answer::header(std::string const& name) const {
    auto const at = lower(head).find("\r\n" + lower(name) + ":");
    if (at == std::string::npos) return {};
    auto const from = head.find_first_not_of(' ', at + name.size() + 3);
    return head.substr(from, head.find("\r\n", from) - from);
}

http_client::http_client(std::uint16_t port, int receive_buffer, char const* source)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in from{};
    from.sin_family = AF_INET;
    if (source != nullptr && (::inet_pton(AF_INET, source, &from.sin_addr) != 1 || ::bind(socket_, reinterpret_cast<sockaddr const*>(&from), sizeof from) != 0))
        throw std::system_error{errno, std::generic_category(), std::string{"bind to "} + source};
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr const*>(&to), sizeof to) != 0)
        throw std::system_error{errno, std::generic_category(), "connect"};
}

http_client::~http_client() { ::close(socket_); }

void http_client::send(std::string const& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
        auto const n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) return;  // the other side has enough; what it said is read next
        sent += static_cast<std::size_t>(n);
    }
}

bool http_client::more(steady_clock::time_point until) {
    if (ended_) return false;
    auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_clock::now()).count();
    pollfd ready{socket_, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return false;
    char buffer[16'384];
    auto const n = ::recv(socket_, buffer, sizeof buffer, 0);
    ended_ = n <= 0;
    if (n > 0) received_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
}

http_answer http_client::read(std::chrono::milliseconds timeout) {
    auto const until = steady_clock::now() + timeout;
    http_answer answer;
    while (received_.find("\r\n\r\n") == std::string::npos)
        if (!more(until)) return {};
    auto const end = received_.find("\r\n\r\n") + 4;
    answer.head = received_.substr(0, end);
    answer.status = std::stoi(answer.head.substr(9, 3));
    auto const length = answer.header("Content-Length");
    std::size_t const wanted = length.empty() ? 0 : std::stoul(length);
    while (received_.size() < end + wanted)
        if (!more(until)) break;
    answer.body = received_.substr(end, wanted);
    received_.erase(0, end + wanted);
    return answer;
}

bool http_client::read_until(std::string const& text, std::chrono::milliseconds timeout) {
    auto const until = steady_clock::now() + timeout;
    while (received_.find(text) == std::string::npos)
        if (!more(until)) return false;
    return true;
}

bool http_client::closed(std::chrono::milliseconds timeout) {
    auto const until = steady_clock::now() + timeout;
    while (more(until)) {
    }
    return ended_;
}

http_answer get(std::uint16_t port, std::string const& path, std::string const& extra) {
    http_client peer{port};
    peer.send("GET " + path + " HTTP/1.1\r\n" + host_line(extra) + extra + "\r\n");
    return peer.read();
}

http_answer post(std::uint16_t port, std::string const& path, std::string const& body, std::string const& extra) {
    http_client peer{port};
    peer.send("POST " + path + " HTTP/1.1\r\n" + host_line(extra) +
              "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + extra +
              "\r\n" + body);
    return peer.read();
}

}  // namespace lockstep::test
