#include "proxy_pump.hpp"

#include "byte_stream.hpp"
#include "eventually.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace lockstep::test {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t read_at_once = 64 * 1024;
constexpr std::size_t queue_limit = 4 * 1024 * 1024;  // beyond it the sender feels the fault, as with a full window

int bound_socket(endpoint const& here) {
    auto const family = here.unix_path.empty() ? AF_INET : AF_UNIX;
    auto const descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int result = -1;
    if (here.unix_path.empty()) {
        int const on = 1;
        ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(here.port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        result = ::bind(descriptor, reinterpret_cast<sockaddr const*>(&address), sizeof address);
    } else {
        ::unlink(here.unix_path.c_str());
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, here.unix_path.data(),
                    std::min(here.unix_path.size(), sizeof address.sun_path - 1));
        result = ::bind(descriptor, reinterpret_cast<sockaddr const*>(&address), sizeof address);
    }
    if (result == 0 && ::listen(descriptor, 1024) == 0) return descriptor;
    ::close(descriptor);
    return -1;
}

}  // namespace

proxy_pump::proxy_pump(endpoint server) : server_{std::move(server)} {
    if (server_.unix_path.empty()) port_.emplace();
    listen();
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
    thread_ = std::thread{[this] { pump(); }};
}

proxy_pump::~proxy_pump() {
    run([this] { ending_ = true; });
    thread_.join();
    refuse();
    cut();
    for (auto const& one : stranded_) ::close(one.to);
    ::close(wake_);
}

endpoint proxy_pump::address() const {
    auto here = server_;
    if (port_) here.port = port_->port();
    if (!port_) here.unix_path = directory_.file("p");
    return here;
}

proxy_counters proxy_pump::counters() const {
    return {.accepted = accepted_,
            .open = open_,
            .bytes_to_server = bytes_to_server_,
            .bytes_to_client = bytes_to_client_,
            .struck = struck_};
}

void proxy_pump::listen() {
    if (listener_ >= 0) return;
    auto const listening = eventually([this] { return (listener_ = bound_socket(address())) >= 0; });
    if (!listening) throw std::system_error{errno, std::generic_category(), "listen on " + address().address()};
}

void proxy_pump::run(std::function<void()> const& change) {
    std::packaged_task<void()> task{change};
    auto done = task.get_future();
    {
        std::lock_guard const lock{mutex_};
        tasks_.push_back(std::move(task));
    }
    std::uint64_t const one = 1;
    [[maybe_unused]] auto const written = ::write(wake_, &one, sizeof one);
    done.get();
}

void proxy_pump::run_tasks() {
    std::uint64_t ignored = 0;
    [[maybe_unused]] auto const got = ::read(wake_, &ignored, sizeof ignored);
    while (true) {
        std::packaged_task<void()> task;
        {
            std::lock_guard const lock{mutex_};
            if (tasks_.empty()) return;
            task = std::move(tasks_.front());
            tasks_.pop_front();
        }
        task();
    }
}

void proxy_pump::change(direction way, std::function<void(faults&)> const& how) {
    if (way != direction::to_client) how(to_server_);
    if (way != direction::to_server) how(to_client_);
    // What is under way is lost with the rest.
    auto const drain = [](half& side, faults const& fate) {
        if (!fate.swallow || side.queue.empty()) return;
        side.queue.clear();
        side.queued = 0;
        side.lost = true;
    };
    for (auto& link : connections_) {
        drain(link.up, to_server_);
        drain(link.down, to_client_);
    }
}

void proxy_pump::cut() {
    accept_all();
    for (auto& link : connections_) link.doomed = true;
    bury_the_dead();
}

void proxy_pump::strand() {
    accept_all();
    for (auto& link : connections_) {
        std::string bytes;
        for (auto const& waiting : link.up.queue) bytes += waiting.bytes;
        if (!bytes.empty()) stranded_.push_back({.to = ::fcntl(link.up.to, F_DUPFD_CLOEXEC, 0), .bytes = std::move(bytes)});
        link.doomed = true;
    }
    to_server_.hold = false;
    bury_the_dead();
}

std::size_t proxy_pump::held_back() const {
    std::size_t bytes = 0;
    for (auto const& link : connections_) bytes += link.up.queued;
    return bytes;
}

// The server closes when it has read, carried out and answered everything.
void proxy_pump::deliver_stranded() {
    for (auto const& [to, bytes] : std::exchange(stranded_, {})) {
        ::fcntl(to, F_SETFL, ::fcntl(to, F_GETFL) & ~O_NONBLOCK);
        for (std::size_t sent = 0; sent < bytes.size();) {
            auto const now = ::send(to, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
            if (now <= 0) break;
            sent += static_cast<std::size_t>(now);
        }
        ::shutdown(to, SHUT_WR);
        char answers[4096];
        while (::recv(to, answers, sizeof answers, 0) > 0) {
        }
        ::close(to);
        ++struck_;
    }
}

// The address stays ours (a reserved port, a file in a private directory) but nobody listens: ECONNREFUSED.
void proxy_pump::refuse() {
    accept_all();
    if (listener_ >= 0) ::close(listener_);
    listener_ = -1;
}

void proxy_pump::heal() {
    to_server_ = {};
    to_client_ = {};
    for (auto& link : connections_) {
        if (link.up.lost || link.down.lost) link.doomed = true;
        for (auto* const side : {&link.up, &link.down}) {
            side->next_send = {};
            for (auto& waiting : side->queue) waiting.due = {};
        }
    }
    listen();
    deliver_all();
    bury_the_dead();
}

void proxy_pump::pump() {
    while (!ending_) {
        auto ready = interests();
        ::poll(ready.data(), ready.size(), wait_ms());
        if (ready[0].revents != 0) {
            run_tasks();
            continue;  // connections may be gone: what poll said is no longer true
        }
        if (ready[1].revents != 0) accept_all();
        // In the order of interests(); a connection just accepted stands behind them.
        auto link = connections_.begin();
        for (std::size_t i = 2; i < ready.size(); i += 2, ++link) {
            link->up.blocked = link->up.blocked && ready[i + 1].revents == 0;
            link->down.blocked = link->down.blocked && ready[i].revents == 0;
            if (ready[i].revents != 0) receive(*link, link->up, to_server_);
            if (ready[i + 1].revents != 0 && !link->doomed) receive(*link, link->down, to_client_);
        }
        deliver_all();
        bury_the_dead();
    }
}

std::vector<pollfd> proxy_pump::interests() const {
    std::vector<pollfd> wanted{{.fd = wake_, .events = POLLIN, .revents = 0},
                               {.fd = listener_, .events = POLLIN, .revents = 0}};
    auto const watch = [&wanted](int descriptor, half const& reads, half const& writes) {
        short events = 0;
        if (!reads.ended && reads.queued < queue_limit) events |= POLLIN;
        if (writes.blocked) events |= POLLOUT;
        // Without a wish, no look: poll reports a hang-up always, and would not let us sleep.
        wanted.push_back({.fd = events != 0 ? descriptor : -1, .events = events, .revents = 0});
    };
    for (auto const& link : connections_) {
        watch(link.up.from, link.up, link.down);
        watch(link.down.from, link.down, link.up);
    }
    return wanted;
}

int proxy_pump::wait_ms() const {
    auto next = clock::time_point::max();
    auto const consider = [&next](half const& side, faults const& fate) {
        if (side.queue.empty() || side.blocked || fate.hold) return;
        next = std::min(next, std::max(side.queue.front().due, side.next_send));
    };
    for (auto const& link : connections_) {
        consider(link.up, to_server_);
        consider(link.down, to_client_);
    }
    if (next == clock::time_point::max()) return -1;
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(next - clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60000));
}

// A client is connected as soon as the kernel has queued it: before refuse() and cut() these count as existing
// connections.
void proxy_pump::accept_all() {
    while (listener_ >= 0 && accept_one()) {
    }
}

bool proxy_pump::accept_one() {
    auto const client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) return false;
    ++accepted_;
    int const on = 1;
    if (port_) ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    try {
        auto const server = connect_socket(server_, true);
        connections_.push_back({.up = {.from = client, .to = server}, .down = {.from = server, .to = client}});
        ++open_;
    } catch (std::exception const&) {
        ::close(client);  // the server is not there
    }
    return true;
}

void proxy_pump::receive(connection& link, half& side, faults& fate) {
    if (side.ended || side.queued >= queue_limit) return;
    std::string bytes(read_at_once, '\0');
    auto const got = ::recv(side.from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        side.ended = true;
        side.lost = side.lost || fate.swallow;
        if (got < 0 && !fate.swallow) link.doomed = true;
        return;
    }
    if (fate.swallow) {
        side.lost = true;
        return;
    }
    if (fate.drop_next > 0) {
        --fate.drop_next;
        ++struck_;
        link.doomed = true;
        return;
    }
    bytes.resize(static_cast<std::size_t>(got));
    if (fate.corrupt_next) {
        // The first byte too: the type of a RESP reply or of a TLS record, so that it can't pass for something else.
        for (std::size_t i = 0; i < bytes.size(); i += 16) bytes[i] = static_cast<char>(bytes[i] ^ 0x80);
        fate.corrupt_next = false;
        ++struck_;
    }
    side.queued += bytes.size();
    side.queue.push_back({.bytes = std::move(bytes), .due = clock::now() + fate.delay});
}

void proxy_pump::deliver(connection& link, half& side, faults& fate, std::atomic<std::uint64_t>& counter) {
    auto const now = clock::now();
    while (!side.queue.empty() && !link.doomed && !side.blocked && !fate.hold) {
        auto& next = side.queue.front();
        if (next.due > now || side.next_send > now) return;
        auto size = next.bytes.size();
        if (fate.bytes_per_second > 0) size = std::min(size, std::max<std::size_t>(1, fate.bytes_per_second / 50));
        if (fate.cut_after) size = std::min(size, *fate.cut_after);
        auto const sent = size == 0 ? 0 : ::send(side.to, next.bytes.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            side.blocked = errno == EAGAIN;
            link.doomed = !side.blocked;
            return;
        }
        auto const count = static_cast<std::size_t>(sent);
        counter += count;
        side.queued -= count;
        next.bytes.erase(0, count);
        if (next.bytes.empty()) side.queue.pop_front();
        if (fate.bytes_per_second > 0) side.next_send = now + count * 1'000'000us / fate.bytes_per_second;
        if (fate.cut_after && (*fate.cut_after -= count) == 0) {
            fate.cut_after.reset();
            ++struck_;
            link.doomed = true;
        }
    }
    if (side.queue.empty() && side.ended && !side.end_sent && !side.lost) {
        ::shutdown(side.to, SHUT_WR);
        side.end_sent = true;
    }
}

void proxy_pump::deliver_all() {
    for (auto& link : connections_) {
        deliver(link, link.up, to_server_, bytes_to_server_);
        deliver(link, link.down, to_client_, bytes_to_client_);
        if (link.up.end_sent && link.down.end_sent) link.doomed = true;
    }
}

void proxy_pump::bury_the_dead() {
    std::erase_if(connections_, [this](connection const& link) {
        if (!link.doomed) return false;
        ::close(link.up.from);
        ::close(link.up.to);
        --open_;
        return true;
    });
}

}  // namespace lockstep::test
