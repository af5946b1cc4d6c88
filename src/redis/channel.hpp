#pragma once

// A byte stream to one server: TCP or unix socket, plain or TLS. Opened once, closed once, never reused.
//
// Reading runs by itself once started. Writing is "append to out(), then flush()": a flush makes one non-blocking write and goes to
// the reactor only when the socket is full. All calls in a turn; what the user is told comes in a turn.

#include "redis/aside.hpp"
#include "redis/await.hpp"
#include "redis/reactor.hpp"
#include "redis/tls.hpp"
#include "redis/url.hpp"
#include "resp/input.hpp"
#include "resp/output.hpp"

#include <lockstep/task.hpp>

#include <boost/asio/generic/stream_protocol.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::redis {

class channel : public std::enable_shared_from_this<channel> {
public:
    class user {
    public:
        virtual void received() noexcept = 0;                    ///< there is more in unread()
        virtual void writable() noexcept = 0;                    ///< all of out() has left after a full socket
        virtual void broken(std::string_view why) noexcept = 0;  ///< nothing more will come

    protected:
        ~user() = default;
    };

    channel(std::shared_ptr<reactor> home, user& listener);

    /// Connects and, with a context, does the TLS handshake. Throws `unavailable_error`. A `close()` meanwhile ends it.
    /// `attempt` counts the failures before: of a name's addresses, another one is tried first each time.
    task<void> open(endpoint where, tls_context const* tls, std::string server_name, std::size_t attempt);
    void start_reading();
    /// From here on the user hears nothing more. The bytes stay readable until this object goes.
    void close() noexcept;

    resp::output& out() noexcept { return out_; }
    /// True: everything has left. False: `writable()` will be called, or the channel is broken.
    bool flush() noexcept;
    bool blocked() const noexcept { return waits_for_room_; }
    /// Bytes of out() that certainly did not leave. With TLS only what was not encrypted yet.
    std::size_t unsent() const noexcept { return out_.size() - out_sent_; }

    std::string_view unread() const noexcept { return in_.unread(); }
    void consume(std::size_t bytes) noexcept { in_.consume(bytes); }
    void release(std::size_t bytes) { in_.release(bytes); }
    /// Keeps the bytes that are unread now where they are; null where they are few.
    std::shared_ptr<void const> owner_of_unread() const noexcept { return in_.owner(); }
    /// At least this much is missing: makes the next read large enough, up to a limit.
    void expect(std::size_t bytes) noexcept { expected_ = bytes; }

    std::uint64_t bytes_in() const noexcept { return bytes_in_; }
    std::uint64_t bytes_out() const noexcept { return bytes_out_; }
    std::uint64_t writes() const noexcept { return writes_; }

private:
    using socket = asio::basic_stream_socket<asio::generic::stream_protocol, asio::any_io_executor>;

    /// What a name stands for, or why that is not known.
    struct addresses {
        std::vector<asio::generic::stream_protocol::endpoint> all;
        std::string problem;
    };
    static addresses resolve(endpoint const& where);
    task<void> connect(endpoint where, std::size_t attempt);
    task<void> shake_hands();
    bool send(resp::output& bytes, std::size_t& sent) noexcept;
    std::span<char> make_room();
    void on_read(boost::system::error_code error, std::size_t size) noexcept;
    void decrypt(std::size_t size);
    void wait_for_room();
    void fail(std::string_view why) noexcept;

    std::shared_ptr<reactor> home_;
    user* user_;
    socket socket_;
    std::optional<aside<addresses>> look_up_;
    std::optional<tls_filter> tls_;
    resp::output out_;   // as the protocol wrote it
    std::size_t out_sent_ = 0;
    resp::output wire_;  // the same encrypted
    std::size_t wire_sent_ = 0;
    bool waits_for_room_ = false;
    bool closed_ = false;

    resp::input in_;
    std::size_t expected_ = 0;
    std::unique_ptr<char[]> raw_;  // TLS: what came from the wire

    std::uint64_t bytes_in_ = 0;
    std::uint64_t bytes_out_ = 0;
    std::uint64_t writes_ = 0;
};

}  // namespace lockstep::redis
