// Something on a TCP port that is no Redis: whatever is said to it, it answers with the same bytes.
#pragma once

#include "port_reservation.hpp"

#include <atomic>
#include <string>
#include <thread>

namespace lockstep::test {

class stub_peer {
public:
    // With `hang_up` the connection is closed behind the first answer.
    explicit stub_peer(std::string answer, bool hang_up = false);
    ~stub_peer();
    stub_peer(stub_peer const&) = delete;
    stub_peer& operator=(stub_peer const&) = delete;

    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_.port()); }
    [[nodiscard]] int accepted() const { return accepted_; }

private:
    void serve();

    port_reservation port_;
    std::string answer_;
    bool hang_up_;
    int listener_ = -1;
    int wake_ = -1;
    std::atomic<int> accepted_{0};
    std::thread thread_;
};

}  // namespace lockstep::test
