// A socket and what was read from it: HTTP as a stranger would speak it, well or badly.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::test {

struct http_answer {
    int status = 0;
    std::string head{};
    std::string body{};
    [[nodiscard]] std::string header(std::string const& name) const;  // empty when there is none
};

class http_client {
public:
    // `receive_buffer` 0: as large as usual. `source`: the client's own address, if it is not to be 127.0.0.1.
    explicit http_client(std::uint16_t port, int receive_buffer = 0, char const* source = nullptr);
    ~http_client();
    http_client(http_client const&) = delete;
    http_client& operator=(http_client const&) = delete;

    void send(std::string const& bytes);
    // One whole answer; status 0 when the connection ended or nothing came in time.
    http_answer read(std::chrono::milliseconds timeout = std::chrono::seconds{10});
    // Until `text` was received; false when the connection ended or the time was over first.
    bool read_until(std::string const& text, std::chrono::milliseconds timeout = std::chrono::seconds{10});
    bool closed(std::chrono::milliseconds timeout = std::chrono::seconds{10});  // by the other side
    [[nodiscard]] std::string const& received() const { return received_; }
    void forget_until(std::size_t end) { received_.erase(0, end); }

private:
    bool more(std::chrono::steady_clock::time_point until);

    int socket_ = -1;
    bool ended_ = false;
    std::string received_;
};

// One request on a connection of its own. `extra` is further header lines, each with its \r\n; "Host:" there replaces the usual one.
http_answer get(std::uint16_t port, std::string const& path, std::string const& extra = "");
http_answer post(std::uint16_t port, std::string const& path, std::string const& body, std::string const& extra = "");

}  // namespace lockstep::test
