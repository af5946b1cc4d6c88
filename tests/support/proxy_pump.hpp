// The thread inside fault_proxy. It alone touches the sockets and the faults in force; others hand it functions to
// run. So no descriptor is ever closed under somebody's hands, where a reused number would send bytes to a stranger.
#pragma once

#include "endpoint.hpp"
#include "fault_proxy.hpp"
#include "port_reservation.hpp"
#include "scratch_dir.hpp"

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

struct pollfd;

namespace lockstep::test {

class proxy_pump {
public:
    using clock = std::chrono::steady_clock;

    // What befalls the bytes of one direction.
    struct faults {
        std::chrono::milliseconds delay{0};
        std::size_t bytes_per_second = 0;  // 0: as fast as it goes
        bool hold = false;
        bool swallow = false;
        bool corrupt_next = false;
        int drop_next = 0;
        std::optional<std::size_t> cut_after{};
    };

    explicit proxy_pump(endpoint server);
    ~proxy_pump();
    proxy_pump(proxy_pump const&) = delete;
    proxy_pump& operator=(proxy_pump const&) = delete;

    [[nodiscard]] endpoint address() const;
    [[nodiscard]] proxy_counters counters() const;

    // Runs it on the pump's thread and returns when it has run.
    void run(std::function<void()> const& change);

    // For use inside run().
    void change(direction way, std::function<void(faults&)> const& how);
    void cut();
    void strand();
    void deliver_stranded();
    [[nodiscard]] std::size_t held_back() const;
    void refuse();
    void heal();

private:
    struct chunk {
        std::string bytes;
        clock::time_point due;
    };

    // One direction of one connection.
    struct half {
        int from = -1;
        int to = -1;
        std::deque<chunk> queue{};
        std::size_t queued = 0;  // bytes
        clock::time_point next_send{};
        bool ended = false;     // `from` sends no more
        bool end_sent = false;  // and `to` has been told
        bool blocked = false;   // `to` takes no more for now
        bool lost = false;      // something was swallowed
    };

    struct connection {
        half up;    // to the server
        half down;  // to the client
        bool doomed = false;
    };

    void listen();
    void pump();
    void run_tasks();
    void accept_all();
    bool accept_one();
    void receive(connection& link, half& side, faults& fate);
    void deliver(connection& link, half& side, faults& fate, std::atomic<std::uint64_t>& counter);
    void deliver_all();
    void bury_the_dead();
    [[nodiscard]] std::vector<pollfd> interests() const;
    [[nodiscard]] int wait_ms() const;

    endpoint const server_;
    scratch_dir directory_;
    std::optional<port_reservation> port_;
    int listener_ = -1;
    int wake_ = -1;
    faults to_server_;
    faults to_client_;
    std::list<connection> connections_;
    struct stranded {
        int to;
        std::string bytes;
    };
    std::vector<stranded> stranded_;
    std::atomic<std::uint64_t> accepted_ = 0;
    std::atomic<std::uint64_t> open_ = 0;
    std::atomic<std::uint64_t> bytes_to_server_ = 0;
    std::atomic<std::uint64_t> bytes_to_client_ = 0;
    std::atomic<std::uint64_t> struck_ = 0;
    std::mutex mutex_;  // guards tasks_
    std::deque<std::packaged_task<void()>> tasks_;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace lockstep::test
