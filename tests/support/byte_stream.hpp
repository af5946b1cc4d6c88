// The bytes under raw_client: a blocking socket, with or without TLS.
#pragma once

#include "endpoint.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>

namespace lockstep::test {

// All calls throw std::runtime_error on failure, and when one socket operation takes longer than the timeout.
class byte_stream {
public:
    virtual ~byte_stream() = default;
    [[nodiscard]] virtual std::size_t read_some(char* into, std::size_t room) = 0;  // 0 at the end of the stream
    virtual void write_all(std::string_view bytes) = 0;
    [[nodiscard]] virtual bool closed_by_peer() = 0;
};

// A connected socket, descriptor owned by the caller; non-blocking when asked. Throws std::system_error.
[[nodiscard]] int connect_socket(endpoint const& to, bool non_blocking = false,
                                 std::chrono::milliseconds timeout = std::chrono::seconds{5});

// With `to.tls`, the peer's chain and address are verified, always: a test server with a bad certificate is refused.
[[nodiscard]] std::unique_ptr<byte_stream> open_stream(endpoint const& to, std::chrono::milliseconds timeout);

}  // namespace lockstep::test
