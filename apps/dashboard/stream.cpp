#include "dashboard/stream.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>

#include <array>

namespace lockstep::dashboard {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::seconds heartbeat{5};   // so that a page notices a dead connection soon
constexpr std::size_t most_small = 64 * 1024;  // of samples that wait for a slow page

class stream final : public listener, public std::enable_shared_from_this<stream> {
public:
    stream(std::unique_ptr<connection> socket, std::shared_ptr<feed> from, std::string seen,
           std::chrono::milliseconds write_timeout, std::function<bool()> allowed, std::function<void()> ended)
        : socket_(std::move(socket)), from_(std::move(from)), seen_(std::move(seen)), write_timeout_(write_timeout),
          allowed_(std::move(allowed)), ended_(std::move(ended)), timer_(socket_->get_executor()), write_timer_(socket_->get_executor()) {}

    void start(std::string head) {
        small_ = std::move(head);
        small_ += "retry: 1000\n\n";
        from_->join(*this);
        listen();
        beat();
        news_ = from_->ready();
        write();
    }

    void state_changed() override {
        news_ = true;
        write();
    }

    void closed() override { end(); }

    void trouble_changed() override {
        trouble_news_ = true;
        write();
    }

    void send(std::string_view event, std::string const& data) override {
        if (small_.size() > most_small) return;
        small_ += "event: ";
        small_ += event;
        small_ += "\ndata: " + data + "\n\n";
        write();
    }

private:
    void write() {
        if (writing_ || over_) return;
        std::array<asio::const_buffer, 4> parts{};
        outgoing_ = std::exchange(small_, {});
        if (std::exchange(trouble_news_, false)) outgoing_ += trouble();
        parts[0] = asio::buffer(outgoing_);
        if (news_) {
            news_ = false;
            message_ = from_->message(seen_);
            seen_ = from_->state().version();
            // The time is that of sending, which pages that share the rest do not share.
            prefix_ = "event: state\nid: " + seen_ + "\ndata: {\"at_ms\":" + std::to_string(from_->now_ms()) + ',';
            parts[1] = asio::buffer(prefix_);
            parts[2] = asio::buffer(*message_) + 1;  // without its own brace
            parts[3] = asio::buffer("\n\n", 2);
        } else if (outgoing_.empty()) {
            return;
        }
        writing_ = true;
        write_timer_.expires_after(write_timeout_);
        write_timer_.async_wait([self = shared_from_this()](error_code const& failure) {
            if (!failure && self->writing_) self->end();
        });
        asio::async_write(*socket_, parts, [self = shared_from_this()](error_code const& failure, std::size_t) {
            self->writing_ = false;
            self->write_timer_.cancel();
            self->message_.reset();
            if (failure) return self->end();
            self->write();
        });
    }

    [[nodiscard]] std::string trouble() const {
        boost::json::object said{{"trouble", nullptr}};
        if (auto const& why = from_->trouble()) said["trouble"] = *why;
        return "event: trouble\ndata: " + boost::json::serialize(said) + "\n\n";
    }

    // A page sends nothing more; what ends is the connection.
    void listen() {
        socket_->async_read_some(asio::buffer(ignored_), [self = shared_from_this()](error_code const& failure, std::size_t) {
            if (failure) return self->end();
            self->listen();
        });
    }

    void beat() {
        timer_.expires_after(heartbeat);
        timer_.async_wait([self = shared_from_this()](error_code const& failure) {
            if (failure || self->over_) return;
            if (!self->allowed_()) return self->end();
            auto const& from = *self->from_;
            if (!self->writing_)
                self->send("beat", from.ready() ? "{\"at_ms\":" + std::to_string(from.now_ms()) + '}' : "{}");
            self->beat();
        });
    }

    void end() {
        if (std::exchange(over_, true)) return;
        from_->leave(*this);
        timer_.cancel();
        write_timer_.cancel();
        error_code ignored;
        socket_->socket().close(ignored);
        ended_();
    }

    std::unique_ptr<connection> socket_;
    std::shared_ptr<feed> from_;
    std::string seen_;
    std::chrono::milliseconds write_timeout_;
    std::function<bool()> allowed_;
    std::function<void()> ended_;
    asio::steady_timer timer_;
    asio::steady_timer write_timer_;  // not the socket's own, which would end the read that is always under way
    bool news_ = false;  // the state is ahead of what was sent
    bool trouble_news_ = true;  // always said at first: a page may have heard of one that is over
    bool writing_ = false;
    bool over_ = false;
    std::string small_;  // to be sent with the next write
    std::string outgoing_, prefix_;
    std::shared_ptr<std::string const> message_;
    std::array<char, 256> ignored_{};
};

}  // namespace

std::function<void()> start_stream(std::unique_ptr<connection> socket, std::shared_ptr<feed> from, std::string head, std::string seen,
                                   std::chrono::milliseconds write_timeout, std::function<bool()> allowed, std::function<void()> ended) {
    auto const started = std::make_shared<stream>(std::move(socket), std::move(from), std::move(seen), write_timeout, std::move(allowed), std::move(ended));
    started->start(std::move(head));
    return [weak = std::weak_ptr{started}] {
        if (auto const page = weak.lock()) page->closed();
    };
}

}  // namespace lockstep::dashboard
