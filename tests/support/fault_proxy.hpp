// A stretch of bad network between a client and a server.
//
//     fault_proxy proxy{server.address()};
//     lockstep::client client{proxy.url()};
//     proxy.drop_replies(1);                  // the next request is carried out, its reply lost, the connection cut
//
// It passes bytes and knows nothing of RESP or TLS, so it stands before any server. A fault stays until heal(), unless
// it says "next"; faults add up. A method returns when its fault is in force: bytes that arrive later are subject to
// it.
#pragma once

#include "endpoint.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::test {

class proxy_pump;

enum class direction { to_server, to_client, both };

struct proxy_counters {
    std::uint64_t accepted = 0;         // connections so far
    std::uint64_t open = 0;             // connections now
    std::uint64_t bytes_to_server = 0;  // passed on, not those swallowed
    std::uint64_t bytes_to_client = 0;
    std::uint64_t struck = 0;  // "next" faults that found their bytes: proof that the test tested something
};

// Any thread.
class fault_proxy {
public:
    // Listens on TCP if the server does, else on a unix socket of its own.
    explicit fault_proxy(endpoint const& server);
    ~fault_proxy();
    fault_proxy(fault_proxy const&) = delete;
    fault_proxy& operator=(fault_proxy const&) = delete;

    [[nodiscard]] endpoint address() const;  // for a TLS server, with its CA
    [[nodiscard]] std::string url() const;
    [[nodiscard]] int port() const { return address().port; }

    void delay(std::chrono::milliseconds time, direction way = direction::both);
    void throttle(std::size_t bytes_per_second, direction way = direction::both);  // each connection by itself
    void hold(direction way = direction::both);  // nothing passes; heal() lets it all through, in order

    // Swallows everything, also ends of connections, and keeps the sockets open: a peer that vanished. Connections can
    // still be made. heal() cuts those that lost something: a stream with a hole in it does not exist in TCP.
    void half_open(direction way = direction::both);

    void corrupt(direction way = direction::to_client);                       // the next bytes that arrive, once
    void cut_after(std::size_t bytes, direction way = direction::to_client);  // the next so many pass, then their
                                                                              // connection is cut
    void drop_replies(int count = 1);  // the next replies are swallowed, and the connection of each is cut at once
    void cut();                        // all connections, now
    void strand();                     // the same, but what hold() keeps from the server stays on its way: deliver_stranded()
    void deliver_stranded();           // and returns when the server has carried it out; its answers reach nobody
    [[nodiscard]] std::size_t held_back() const;  // bytes that hold() keeps from the server now
    void refuse();                     // new connections; those that exist go on
    void heal();                       // all as in the beginning

    [[nodiscard]] proxy_counters counters() const;

private:
    std::unique_ptr<proxy_pump> pump_;
};

}  // namespace lockstep::test
