#include "dashboard/session.hpp"

#include "dashboard/stream.hpp"
#include "dashboard/text.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include <array>
#include <optional>

namespace lockstep::dashboard {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// The page needs nothing from elsewhere, and nobody may put it into a frame. See docs/dashboard.md.
constexpr std::string_view always =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
    "'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'\r\n"
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

class session : public std::enable_shared_from_this<session> {
public:
    session(asio::ip::tcp::socket socket, std::shared_ptr<session_parts> parts)
        : stream_(std::move(socket)), parts_(std::move(parts)), counted_(++parts_->connections) {}
    ~session() {
        if (counts_) --parts_->connections;
    }

    void start() {
        error_code ignored;
        auto const peer = stream_.socket().remote_endpoint(ignored);
        if (!ignored) peer_ = peer.address().to_string();
        if (counted_ > parts_->options.max_connections + most_refused) return;  // closed without a word
        if (counted_ > parts_->options.max_connections) {
            auto refused = refusal(503, "too many connections");
            refused.last = true;
            return write(std::move(refused));
        }
        read();
    }

private:
    void read() {
        parser_.emplace();
        parser_->header_limit(parts_->options.max_header_bytes);
        parser_->body_limit(parts_->options.max_body_bytes);
        stream_.expires_after(
            parts_->options.request_timeout);  // for all of it: a byte now and then keeps nobody's place
        http::async_read(
            stream_, buffer_, *parser_,
            [self = shared_from_this()](error_code const& failure, std::size_t) { self->on_read(failure); });
    }

    void on_read(error_code const& failure) {
        if (failure == http::error::header_limit) return refuse(431, "the request's header is too large");
        if (failure == http::error::body_limit) return refuse(413, "the request's body is too large");
        if (failure && failure.category() == http::make_error_code(http::error::bad_method).category() &&
            failure != http::error::end_of_stream && failure != http::error::partial_message)
            return refuse(400, "that is not HTTP/1.1");
        if (failure) return close();
        stream_.expires_never();  // the answer takes what it takes; writing it has a time of its own
        auto const asked = taken();
        head_only_ = asked.method == "HEAD";
        keep_alive_ = parser_->get().keep_alive();
        if (asked.path == "/api/stream") return begin_stream(asked);
        parts_->routes.handle(asked, [self = shared_from_this()](response made) {
            asio::post(self->stream_.get_executor(),
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
        asked.cookie = text(http::field::cookie);
        asked.authorization = text(http::field::authorization);
        asked.content_type = text(http::field::content_type);
        asked.etag = text(http::field::if_none_match);
        asked.csrf = text(boost::beast::string_view{csrf_header.data(), csrf_header.size()});
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
        counts_ = false;  // the stream counts on
        auto head =
            std::string{
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                "Connection: close\r\nX-Accel-Buffering: no\r\n"} +
            std::string{always} + "\r\n";
        auto seen = asked.last_event.empty() ? in_query(asked.query, "seen").value_or("") : asked.last_event;
        start_stream(std::move(stream_), parts_->news, std::move(head), std::move(seen), parts_->options.write_timeout,
                     [parts = parts_, asked] { return !parts->routes.check_stream(asked); },
                     [parts = parts_] { --parts->connections; });
    }

    void refuse(unsigned status, std::string_view why) {
        auto refused = refusal(status, why);
        refused.last = true;
        write(std::move(refused));
    }

    void write(response made) {
        keep_alive_ = keep_alive_ && !made.last;
        sent_ = std::move(made);
        auto const body = sent_.asset.empty() ? std::string_view{sent_.body} : sent_.asset;
        head_ = head_of(sent_, body.size(), keep_alive_);
        std::array<asio::const_buffer, 2> const parts{
            asio::buffer(head_),
            head_only_ || sent_.status == 304 ? asio::const_buffer{} : asio::buffer(body.data(), body.size())};
        stream_.expires_after(parts_->options.write_timeout);
        asio::async_write(stream_, parts, [self = shared_from_this()](error_code const& failure, std::size_t) {
            if (failure || !self->keep_alive_) return self->close();
            self->read();
        });
    }

    // Says that no more comes, and reads what is still on its way for a moment: a socket that is closed with something unread takes back
    // what was sent last.
    void close() {
        error_code ignored;
        stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
        stream_.expires_after(drain_time);  // for all of it
        if (!ignored) drain();
    }

    void drain() {
        buffer_.clear();
        if (++drained_ > most_drained) return;
        stream_.async_read_some(buffer_.prepare(4'096),
                                [self = shared_from_this()](error_code const& failure, std::size_t) {
                                    if (!failure) self->drain();
                                });
    }

    boost::beast::tcp_stream stream_;
    std::shared_ptr<session_parts> parts_;
    std::size_t counted_;
    bool counts_ = true;
    boost::beast::flat_buffer buffer_{64 * 1024};
    std::optional<http::request_parser<http::string_body>> parser_;
    std::string peer_;
    bool keep_alive_ = false;
    int drained_ = 0;
    bool head_only_ = false;
    response sent_;
    std::string head_;
};

}  // namespace

void start_session(asio::ip::tcp::socket socket, std::shared_ptr<session_parts> parts) {
    std::make_shared<session>(std::move(socket), std::move(parts))->start();
}

}  // namespace lockstep::dashboard
