// A socket to a client of the dashboard, with TLS or without. For Asio's and Beast's composed operations, with plain callbacks.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace lockstep::dashboard {

class connection {
public:
    using executor_type = boost::beast::tcp_stream::executor_type;
    using tls_context = std::shared_ptr<boost::asio::ssl::context>;

    // Without TLS when there is no context.
    connection(boost::asio::ip::tcp::socket socket, tls_context context) : tcp_(std::move(socket)), context_(std::move(context)) {
        if (context_) tls_.emplace(tcp_, *context_);
    }
    connection(connection const&) = delete;
    connection& operator=(connection const&) = delete;

    executor_type get_executor() noexcept { return tcp_.get_executor(); }
    boost::beast::tcp_stream& tcp() noexcept { return tcp_; }
    boost::asio::ip::tcp::socket& socket() noexcept { return tcp_.socket(); }
    bool encrypted() const noexcept { return tls_.has_value(); }

    // When encrypted().
    template <class Handler>
    void async_handshake(Handler&& handler) {
        tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
    }
    template <class Handler>
    void async_tls_shutdown(Handler&& handler) {
        tls_->async_shutdown(std::forward<Handler>(handler));
    }

    template <class Buffers, class Handler>
    void async_read_some(Buffers const& buffers, Handler&& handler) {
        if (tls_) return void(tls_->async_read_some(buffers, std::forward<Handler>(handler)));
        tcp_.async_read_some(buffers, std::forward<Handler>(handler));
    }
    template <class Buffers, class Handler>
    void async_write_some(Buffers const& buffers, Handler&& handler) {
        if (tls_) return void(tls_->async_write_some(buffers, std::forward<Handler>(handler)));
        tcp_.async_write_some(buffers, std::forward<Handler>(handler));
    }

private:
    boost::beast::tcp_stream tcp_;
    tls_context context_;
    std::optional<boost::asio::ssl::stream<boost::beast::tcp_stream&>> tls_;
};

}  // namespace lockstep::dashboard
