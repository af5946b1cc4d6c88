// A TCP port of 127.0.0.1 that no other test on this machine takes, for as long as this object lives.
#pragma once

namespace lockstep::test {

// "Bind to port 0, look, close" leaves a window in which another test gets the same port, and a server that is down
// between two lives leaves an even larger one. Here the port is claimed by binding a socket in the abstract namespace
// whose name holds the number: atomic, seen by all processes, and gone by itself when the owner dies. Ports lie below
// the range the kernel uses for outgoing connections, so no client can sit on one by chance.
//
// Programs that are not tests know nothing of it: whoever starts a server still tries another port if the bind fails.
class port_reservation {
public:
    port_reservation();
    ~port_reservation();
    port_reservation(port_reservation&& other) noexcept;
    port_reservation& operator=(port_reservation&& other) noexcept;

    [[nodiscard]] int port() const { return port_; }

private:
    int port_ = 0;
    int claim_ = -1;
};

}  // namespace lockstep::test
