#include "redis/channel.hpp"

#include <lockstep/error.hpp>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <fmt/format.h>

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace lockstep::redis {
namespace {

constexpr std::size_t smallest_read = 16 * 1024;
constexpr std::size_t largest_read = 1024 * 1024;
constexpr std::size_t raw_size = 32 * 1024;
constexpr std::size_t keep_at_most = 4 * largest_read;  // a larger buffer is given back when it is empty

using boost::system::error_code;
using generic_endpoint = asio::generic::stream_protocol::endpoint;

std::vector<generic_endpoint> literal_address(endpoint const& where) {
    if (!where.path.empty()) return {generic_endpoint{asio::local::stream_protocol::endpoint{where.path}}};
    error_code error;
    auto const address = asio::ip::make_address(where.host, error);
    if (error) return {};
    return {generic_endpoint{asio::ip::tcp::endpoint{address, where.port}}};
}

/// The directory of a socket may be another user's by the time of the connection.
void require_same_user(int socket, endpoint const& where) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid()) return;
    throw unavailable_error(fmt::format("{} is served by a process of user {}, not of user {}", to_string(where), peer.uid, ::geteuid()));
}

}  // namespace

channel::channel(std::shared_ptr<reactor> home, user& listener)
    : home_(std::move(home)), user_(&listener), socket_(home_->executor()) {}

task<void> channel::open(endpoint where, tls_context const* tls, std::string server_name, std::size_t attempt) {
    if (tls != nullptr) tls_.emplace(*tls, server_name.empty() ? where.host : server_name);
    co_await connect(std::move(where), attempt);
    if (tls_) co_await shake_hands();
}

channel::addresses channel::resolve(endpoint const& where) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (int const problem = ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found); problem != 0) {
        return {{}, ::gai_strerror(problem)};
    }
    std::unique_ptr<addrinfo, void (*)(addrinfo*)> const owner{found, ::freeaddrinfo};
    addresses known;
    for (; found != nullptr; found = found->ai_next) known.all.emplace_back(found->ai_addr, found->ai_addrlen, IPPROTO_TCP);
    return known;
}

task<void> channel::connect(endpoint where, std::size_t attempt) {
    auto candidates = literal_address(where);
    if (candidates.empty()) {
        look_up_.emplace(*home_);  // getaddrinfo() takes its time, which is not ours
        auto resolving = look_up_->at([where] { return resolve(where); });
        auto found = co_await resolving;
        look_up_.reset();
        if (!found) throw unavailable_error(fmt::format("{}: the host name was not resolved in time", to_string(where)));
        if (found->all.empty()) throw unavailable_error(fmt::format("{}: the host name can't be resolved: {}", to_string(where), found->problem));
        candidates = std::move(found->all);
        // The first may be a black hole that takes the whole time of the attempt: each attempt begins with another.
        std::rotate(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(attempt % candidates.size()), candidates.end());
    }
    error_code error;
    for (auto const& candidate : candidates) {
        if (closed_) throw unavailable_error(fmt::format("{}: not connected in time", to_string(where)));
        error_code ignored;
        socket_.close(ignored);
        socket_.open(candidate.protocol(), error);
        if (error) continue;
        ::fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
        auto reach = [&](auto handler) { socket_.async_connect(candidate, std::move(handler)); };
        error = co_await wait_for(*home_, reach);
        if (!error) break;
    }
    if (closed_) throw unavailable_error(fmt::format("{}: not connected in time", to_string(where)));
    if (error) throw unavailable_error(fmt::format("{}: {}", to_string(where), error.message()));
    if (where.same_user) require_same_user(socket_.native_handle(), where);
    socket_.non_blocking(true, error);
    if (where.path.empty()) {
        socket_.set_option(asio::ip::tcp::no_delay{true}, error);
        socket_.set_option(asio::socket_base::keep_alive{true}, error);
    }
}

task<void> channel::shake_hands() {
    raw_ = std::make_unique_for_overwrite<char[]>(raw_size);
    for (;;) {
        bool done = false;
        std::string failure;
        try {
            done = tls_->handshake();
        } catch (error const& problem) {
            failure = problem.what();  // an alert may still have to be sent
        }
        tls_->to_wire(wire_);
        while (!send(wire_, wire_sent_)) {
            if (closed_) throw unavailable_error("tls: the handshake was not done in time");
            if (errno != EAGAIN) throw unavailable_error("tls: " + std::generic_category().message(errno));
            auto writable = [&](auto handler) { socket_.async_wait(socket::wait_write, std::move(handler)); };
            if (auto const error = co_await wait_for(*home_, writable)) throw unavailable_error("tls: " + error.message());
        }
        if (!failure.empty()) throw unavailable_error(failure);
        if (done) co_return;
        auto readable = [&](auto handler) { socket_.async_read_some(asio::buffer(raw_.get(), raw_size), std::move(handler)); };
        auto const [error, size] = co_await wait_for<std::size_t>(*home_, readable);
        if (closed_) throw unavailable_error("tls: the handshake was not done in time");
        if (error) throw unavailable_error("tls: the server ended the handshake: " + error.message());
        tls_->from_wire({raw_.get(), size});
    }
}

void channel::close() noexcept {
    if (std::exchange(closed_, true)) return;
    user_ = nullptr;
    error_code ignored;
    socket_.close(ignored);
    if (look_up_) look_up_->give_up();
}

void channel::fail(std::string_view why) noexcept {
    auto* const listener = std::exchange(user_, nullptr);
    close();
    if (listener != nullptr) listener->broken(why);
}

bool channel::send(resp::output& bytes, std::size_t& sent) noexcept {
    while (sent != bytes.size()) {
        auto const size = ::send(socket_.native_handle(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size < 0) {
            if (errno == EINTR) continue;
            // Full, or broken: a broken socket is reported by the read side, which has the better reason.
            return false;
        }
        ++writes_;
        bytes_out_ += static_cast<std::uint64_t>(size);
        sent += static_cast<std::size_t>(size);
    }
    if (bytes.capacity() > keep_at_most) bytes.release();
    bytes.clear();
    sent = 0;
    return true;
}

bool channel::flush() noexcept try {
    if (closed_ || waits_for_room_) return false;
    bool all = false;
    if (tls_) {
        tls_->write(out_.view());
        if (out_.capacity() > keep_at_most) out_.release();
        out_.clear();
        tls_->to_wire(wire_);
        all = send(wire_, wire_sent_);
    } else {
        all = send(out_, out_sent_);
    }
    if (!all) wait_for_room();
    return all;
} catch (std::exception const& problem) {
    fail(problem.what());
    return false;
}

void channel::wait_for_room() {
    waits_for_room_ = true;
    socket_.async_wait(socket::wait_write, [self = shared_from_this()](error_code error) {
        reactor::turn const now{*self->home_};
        self->waits_for_room_ = false;
        if (self->closed_) return;
        if (error) return self->fail(error.message());
        if (self->flush() && self->user_ != nullptr) self->user_->writable();
    });
}

std::span<char> channel::make_room() { return in_.reserve(std::clamp(std::exchange(expected_, 0), smallest_read, largest_read)); }

void channel::start_reading() {
    if (closed_) return;
    asio::mutable_buffer into;
    if (tls_) {
        into = asio::buffer(raw_.get(), raw_size);
    } else {
        auto const room = make_room();
        into = asio::buffer(room.data(), room.size());
    }
    socket_.async_read_some(into, [self = shared_from_this()](error_code error, std::size_t size) {
        reactor::turn const now{*self->home_};
        self->on_read(error, size);
    });
}

void channel::on_read(error_code error, std::size_t size) noexcept try {
    if (closed_) return;
    if (error) return fail(error == asio::error::eof ? std::string{"the server closed the connection"} : error.message());
    bytes_in_ += size;
    if (tls_) {
        decrypt(size);
    } else {
        in_.commit(size);
        if (user_ != nullptr) user_->received();
    }
    home_->settle();  // answer first, then ask the socket for more
    start_reading();
} catch (std::exception const& problem) {
    fail(problem.what());
}

void channel::decrypt(std::size_t size) {
    tls_->from_wire({raw_.get(), size});
    for (;;) {
        auto const room = make_room();
        auto const got = tls_->read(room.data(), room.size());
        if (got == 0) break;
        in_.commit(got);
        if (user_ != nullptr) user_->received();
        if (closed_) return;
    }
    // What TLS itself has to say (a key update) goes out with the next flush, or now.
    tls_->to_wire(wire_);
    if (!wire_.empty()) flush();
}

}  // namespace lockstep::redis
