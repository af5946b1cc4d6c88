#include "dashboard/session.hpp"

#include "dashboard/stream.hpp"
#include "dashboard/text.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/core/string.hpp>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep::dashboard {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// The page needs nothing from elsewhere, and nobody may put it into a frame. See docs/dashboard.md.
constexpr std::string_view always =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
    "'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Permissions-Policy: camera=(), geolocation=(), microphone=()\r\n";

std::string head_of(response const& made, std::size_t length, bool keep_alive) {
    std::string head = "HTTP/1.1 " + std::to_string(made.status) + ' ' +
                       std::string{http::obsolete_reason(static_cast<http::status>(made.status))} + "\r\n";
    head += "Content-Type: " + made.type + "\r\n";
    if (made.status != 304) head += "Content-Length: " + std::to_string(length) + "\r\n";
    head += keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
    bool cached = false;
    for (auto const& [name, value] : made.headers) {
        head += name + ": " + value + "\r\n";
        cached = cached || name == "Cache-Control";
    }
    if (!cached) head += "Cache-Control: no-store\r\n";
    head += always;
    return head + "\r\n";
}

constexpr int most_drained = 64;
constexpr std::size_t most_refused = 64;  // connections too many that are told so at one time
constexpr std::chrono::milliseconds drain_time{500};

using message = http::request<http::string_body>;

// How long a body is and for whom a request is meant must be beyond doubt: a proxy in front could read it otherwise than we do. Nothing when
// it is; else why not. RFC 9112: 3.2 (Host), 6.1 (Transfer-Encoding).
std::string_view doubt_about(message const& asked) {
    if (asked.count(http::field::host) != 1) return "a request has exactly one Host header";
    auto const host = asked[http::field::host];
    if (!is_authority({host.data(), host.size()})) return "the Host header is no host with a port";
    auto const encodings = asked.count(http::field::transfer_encoding);
    if (encodings == 0) return {};
    if (asked.version() < 11 || encodings > 1 || !boost::beast::iequals(asked[http::field::transfer_encoding], "chunked"))
        return "the only Transfer-Encoding that is understood is chunked";
    return {};
}

class session : public std::enable_shared_from_this<session> {
public:
    session(asio::ip::tcp::socket socket, std::shared_ptr<session_parts> parts)
        : stream_(std::make_unique<connection>(std::move(socket), parts->tls)), parts_(std::move(parts)), timer_(stream_->get_executor()) {}
    ~session() {
        if (admitted_) parts_->connections.remove(*admitted_);
        if (refused_) --parts_->refused;
    }

    void start() {
        error_code ignored;
        auto const peer = stream_->socket().remote_endpoint(ignored);
        if (!ignored) peer_ = peer.address().to_string();
        admitted_ = parts_->connections.admit(network_of(peer_), [weak = weak_from_this()] {
            if (auto const self = weak.lock()) self->drop();
        });
        if (!admitted_) {
            if (!stream_->encrypted() && may_refuse()) refuse(503, "too many connections");
            return;
        }
        // A client connects because it has something to send.
        timer_.expires_after(parts_->options.first_byte_timeout);
        timer_.async_wait([self = shared_from_this()](error_code const& failure) {
            if (!failure && !self->spoken_) self->drop();
        });
        stream_->socket().async_wait(asio::socket_base::wait_read, [self = shared_from_this()](error_code const& failure) {
            self->spoken_ = true;
            self->timer_.cancel();
            if (failure) return;
            if (!self->stream_->encrypted()) return self->read();
            self->stream_->tcp().expires_after(self->parts_->options.request_timeout);
            self->stream_->async_handshake([self](error_code const& failed) {
                if (!failed) self->read();
            });
        });
    }

private:
    // Another connection takes its place, or nothing came.
    void drop() {
        error_code ignored;
        timer_.cancel();
        if (std::exchange(delayed_, false) && may_refuse())
            return refuse(429, "too many requests with a token from your address wait already, after wrong ones; try again");
        if (stream_) stream_->socket().close(ignored);
    }

    // Whether one that has no place may be told so, or is closed without a word.
    bool may_refuse() {
        if (!std::exchange(refused_, true)) ++parts_->refused;
        return parts_->refused <= most_refused;
    }

    void set_state(activity now) {
        if (admitted_) parts_->connections.set_state(*admitted_, now, trusted_);
    }

    void read() {
        parser_.emplace();
        parser_->header_limit(parts_->options.max_header_bytes);
        parser_->body_limit(parts_->options.max_body_bytes);
        stream_->tcp().expires_after(parts_->options.request_timeout);  // for all of it: a byte now and then keeps nobody's place
        http::async_read(
            *stream_, buffer_, *parser_,
            [self = shared_from_this()](error_code const& failure, std::size_t) { self->on_read(failure); });
    }

    void on_read(error_code const& failure) {
        if (failure == http::error::header_limit) return refuse(431, "the request's header is too large");
        if (failure == http::error::body_limit) return refuse(413, "the request's body is too large");
        if (failure && failure.category() == http::make_error_code(http::error::bad_method).category() &&
            failure != http::error::end_of_stream && failure != http::error::partial_message)
            return refuse(400, "that is not HTTP/1.1");
        if (failure) return close();
        stream_->tcp().expires_never();  // the answer takes what it takes; writing it has a time of its own
        if (auto const doubt = doubt_about(parser_->get()); !doubt.empty()) return refuse(400, doubt);
        auto asked = taken();
        head_only_ = asked.method == "HEAD";
        is_post_ = asked.method == "POST";
        keep_alive_ = parser_->get().keep_alive();
        auto const delay = parts_->routes.delay(asked);
        if (delay.count() == 0) return answer(asked);
        delayed_ = true;
        set_state(activity::delayed);
        if (!delayed_) return;  // dropped at once
        timer_.expires_after(delay);
        timer_.async_wait([self = shared_from_this(), asked = std::move(asked)](error_code const& stopped) {
            if (!stopped && std::exchange(self->delayed_, false)) self->answer(asked);
        });
    }

    void answer(request const& asked) {
        trusted_ = parts_->routes.wants_token() && parts_->routes.knows(asked);  // where nobody logs in, nobody is
        set_state(activity::answering);
        if (asked.path == "/api/stream") return begin_stream(asked);
        parts_->routes.handle(asked, [self = shared_from_this()](response made) {
            asio::post(self->stream_->get_executor(),
                       [self, made = std::move(made)]() mutable { self->write(std::move(made)); });
        });
    }

    request taken() {
        auto& from = parser_->get();
        auto const text = [&](auto field) { return std::string{from[field]}; };
        std::string_view const target{from.target().data(), from.target().size()};
        auto const question = target.find('?');
        request asked;
        asked.method = std::string{from.method_string()};
        asked.path = std::string{target.substr(0, question)};
        if (question != std::string_view::npos) asked.query = std::string{target.substr(question + 1)};
        asked.host = text(http::field::host);
        asked.origin = text(http::field::origin);
        asked.authorization = text(http::field::authorization);
        asked.content_type = text(http::field::content_type);
        asked.etag = text(http::field::if_none_match);
        asked.session = text(boost::beast::string_view{session_header.data(), session_header.size()});
        asked.fetch_site = text("Sec-Fetch-Site");
        asked.last_event = text("Last-Event-ID");
        asked.body = std::move(from.body());
        asked.peer = peer_;
        return asked;
    }

    void begin_stream(request const& asked) {
        if (auto refused = parts_->routes.check_stream(asked)) return write(std::move(*refused));
        if (parts_->news->listeners() >= parts_->options.max_streams)
            return write(refusal(503, "too many pages follow already"));
        auto head =
            std::string{
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                "Connection: close\r\nX-Accel-Buffering: no\r\n"} +
            std::string{always} + "\r\n";
        auto seen = asked.last_event.empty() ? in_query(asked.query, "seen").value_or("") : asked.last_event;
        // The stream takes this connection's place in the table.
        auto const admitted = std::exchange(admitted_, std::nullopt);
        auto drop = start_stream(std::move(stream_), parts_->news, std::move(head), std::move(seen), parts_->options.write_timeout,
                                 [parts = parts_, asked] { return !parts->routes.check_stream(asked); },
                                 [parts = parts_, admitted] {
                                     if (admitted) parts->connections.remove(*admitted);
                                 });
        if (!admitted) return;
        parts_->connections.set_drop(*admitted, std::move(drop));
        parts_->connections.set_state(*admitted, activity::streaming, trusted_);
    }

    void refuse(unsigned status, std::string_view why) {
        auto refused = refusal(status, why);
        refused.last = true;
        write(std::move(refused));
    }

    void write(response made) {
        keep_alive_ = keep_alive_ && !made.last && !(is_post_ && made.status >= 400);
        sent_ = std::move(made);
        auto const body = sent_.asset.empty() ? std::string_view{sent_.body} : sent_.asset;
        head_ = head_of(sent_, body.size(), keep_alive_);
        std::array<asio::const_buffer, 2> const parts{
            asio::buffer(head_),
            head_only_ || sent_.status == 304 ? asio::const_buffer{} : asio::buffer(body.data(), body.size())};
        stream_->tcp().expires_after(parts_->options.write_timeout);
        asio::async_write(*stream_, parts, [self = shared_from_this()](error_code const& failure, std::size_t) {
            self->set_state(activity::idle);
            if (failure || !self->keep_alive_) return self->close();
            self->read();
        });
    }

    // Says that no more comes, and reads what is still on its way for a moment: a socket that is closed with something unread takes back
    // what was sent last.
    void close() {
        stream_->tcp().expires_after(drain_time);  // for all of it
        if (!stream_->encrypted()) return end_sending();
        stream_->async_tls_shutdown([self = shared_from_this()](error_code const&) { self->end_sending(); });
    }

    void end_sending() {
        error_code failure;
        stream_->socket().shutdown(asio::ip::tcp::socket::shutdown_send, failure);
        if (!failure) drain();
    }

    void drain() {
        buffer_.clear();
        if (++drained_ > most_drained) return;
        stream_->tcp().async_read_some(buffer_.prepare(4'096),
                                       [self = shared_from_this()](error_code const& failure, std::size_t) {
                                           if (!failure) self->drain();
                                       });
    }

    std::unique_ptr<connection> stream_;  // null when a stream has it
    std::shared_ptr<session_parts> parts_;
    asio::steady_timer timer_;
    std::optional<connection_table::id> admitted_;
    bool refused_ = false;
    bool delayed_ = false;
    bool spoken_ = false;
    bool trusted_ = false;
    boost::beast::flat_buffer buffer_{64 * 1024};
    std::optional<http::request_parser<http::string_body>> parser_;
    std::string peer_;
    bool keep_alive_ = false;
    int drained_ = 0;
    bool head_only_ = false;
    bool is_post_ = false;
    response sent_;
    std::string head_;
};

}  // namespace

void start_session(asio::ip::tcp::socket socket, std::shared_ptr<session_parts> parts) {
    std::make_shared<session>(std::move(socket), std::move(parts))->start();
}

}  // namespace lockstep::dashboard
