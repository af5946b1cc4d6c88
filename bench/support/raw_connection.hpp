#pragma once

// The least a client can do: a blocking socket, a batch of commands in one write, replies counted by a minimal scanner.
//
// It is the raw loop that others are measured against, and the bench's own way to talk to its server.

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::bench {

/// By unix socket where there is a path, else by TCP on the loopback interface.
struct endpoint {
    int port = 0;
    std::string path{};
};

/// One command as bytes.
std::string encoded(std::initializer_list<std::string_view> words);

/// Throws std::runtime_error on any failure, also when the server answers an error.
class raw_connection {
public:
    explicit raw_connection(endpoint const& where);
    ~raw_connection();
    raw_connection(raw_connection const&) = delete;
    raw_connection& operator=(raw_connection const&) = delete;

    /// Writes the batch and reads `replies` replies, all of which must begin with `type` ('+', '$', ':').
    void exchange(std::string_view batch, std::size_t replies, char type);

    void send(std::string_view bytes) { write_all(bytes); }
    /// The next reply or push, whole and as it came; valid until the next call.
    std::string_view receive();

    /// One command; the text of its simple, integer or bulk reply.
    std::string command(std::initializer_list<std::string_view> words);

private:
    void write_all(std::string_view bytes);
    void read_more();
    std::size_t reply_at(std::size_t from) const noexcept;  // its length, 0: not complete

    int socket_ = -1;
    std::vector<char> buffer_;
    std::size_t end_ = 0;
    std::size_t taken_ = 0;  // by receive(), and still in the buffer
};

}  // namespace lockstep::bench
