// A tiny blocking Redis client with its own parser. It shares nothing with Lockstep, so that what it sees on a server
// is evidence about Lockstep and not an echo of it.
#pragma once

#include "byte_stream.hpp"
#include "endpoint.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::test {

struct reply {
    enum class kind { nil, status, error, integer, bulk, array };

    kind type = kind::nil;
    std::string text{};  // of a status, an error or a bulk
    std::int64_t integer = 0;
    std::vector<reply> elements{};

    [[nodiscard]] bool is_error() const { return type == kind::error; }
    [[nodiscard]] bool is_nil() const { return type == kind::nil; }
};

[[nodiscard]] std::string describe(reply const& value);  // for failure messages

// RESP2, one request at a time. Anything that goes wrong on the wire throws std::runtime_error, and the connection is
// of no further use; an error reply is a value like any other. One thread at a time.
class raw_client {
public:
    explicit raw_client(endpoint const& to, std::chrono::milliseconds timeout = std::chrono::seconds{5});

    reply command(std::vector<std::string> const& arguments);
    reply must(std::vector<std::string> const& arguments);  // throws on an error reply too

    // The two halves, for pipelines, subscriptions and replies that are meant never to be read.
    void send(std::vector<std::string> const& arguments);
    [[nodiscard]] reply read();

    [[nodiscard]] bool closed_by_server() { return stream_->closed_by_peer(); }

private:
    [[nodiscard]] std::string read_until_line_end();
    [[nodiscard]] std::string read_exactly(std::size_t count);
    void fill();

    std::unique_ptr<byte_stream> stream_;
    std::string buffer_;
    std::size_t position_ = 0;
};

}  // namespace lockstep::test
