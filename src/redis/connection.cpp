#include "redis/connection.hpp"

#include "redis/verdict.hpp"
#include "resp/encoder.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::redis {

/// Keeps the connection honest: sent when nothing was heard for a while. Any answer proves life, also MISCONF or BUSY.
class connection::ping final : public operation {
public:
    explicit ping(connection& owner) noexcept : owner_(owner) {}
    ~ping() = default;
    void encode(resp::output& out) override { resp::append_command(out, "PING"); }
    void complete(reply_view answer) noexcept override {
        if (answer.is_error() && !is_alive_answer(answer.text())) owner_.lose(answer.text());
    }
    void fail(errc, std::string_view) noexcept override {}

private:
    connection& owner_;
};

connection::connection(std::shared_ptr<reactor> home, connection_settings settings, handshake greeting, locator find, events& listener)
    : home_(std::move(home)), settings_(std::move(settings)), greeting_(std::move(greeting)), find_(std::move(find)), events_(&listener),
      queue_(*this, settings_.max_pending), parser_(settings_.limits), backoff_(settings_.reconnect_min, settings_.reconnect_max),
      changed_(*home_), ping_(std::make_unique<ping>(*this)), batch_timer_(home_->executor()) {}

connection::~connection() = default;

void connection::open() noexcept {
    if (std::exchange(running_, true)) return;
    state_ = state::opening;
    start(live(shared_from_this()), [](std::exception_ptr) {});
}

void connection::submit(operation& request) noexcept {
    if (state_ == state::closed) return request.end(errc::cancelled, "the client is closed");
    if (state_ == state::refused) return request.end(refusal_, trouble_);
    queue_.push(request);
    open();
}

void connection::reconnect(std::string_view why) noexcept {
    if (state_ == state::ready) {
        lose(why);
    } else {
        hurry_ = true;
        changed_.wake();
    }
}

void connection::close(errc reason, std::string_view why) noexcept {
    if (state_ == state::closed) return;
    state_ = state::closed;
    events_ = nullptr;
    home_->disarm(*this);
    home_->forget(*this);
    batch_timer_.cancel();
    abandon_channel();
    queue_.fail_all(reason, why);
    changed_.wake();
}

void connection::retire(operation_list& to, std::string_view why) noexcept {
    if (state_ == state::closed) return;
    ping_->abandon();
    queue_.disconnected(channel_ && state_ == state::ready ? channel_->unsent() : 0, why);
    queue_.take_waiting(to);
    close(errc::unavailable, why);
}

void connection::abandon_channel() noexcept {
    if (auto const old = std::exchange(channel_, nullptr)) {
        counters_.bytes_received += old->bytes_in();
        counters_.bytes_sent += old->bytes_out();
        counters_.batches += old->writes();
        old->close();
    }
}

// ---- life

task<void> connection::live(std::shared_ptr<connection> self) {
    while (self->state_ != state::closed) {
        std::exception_ptr problem;
        try {
            co_await self->establish();
        } catch (...) {
            problem = std::current_exception();
        }
        while (self->state_ == state::ready) co_await self->changed_.for_ever();
        if (self->state_ == state::closed) break;
        if (problem) {
            self->abandon_channel();
            self->refuse_all(problem);
            auto const until = self->home_->now() + self->backoff_.next();
            while (self->pausing() && self->home_->now() < until) co_await self->changed_.until(until);
        }
        bool const wanted = self->events_ != nullptr && self->events_->wanted(*self);
        if (self->state_ == state::refused && !wanted) {  // go on when somebody comes
            self->state_ = state::idle;
            self->running_ = false;
            break;
        }
        if (self->state_ != state::closed) self->state_ = state::opening;
    }
}

task<void> connection::establish() {
    // The attempt's time runs in the timer of this object: when it is up, the channel is closed and what is awaited fails.
    attempt_ends_ = home_->now() + settings_.connect_timeout;
    home_->arm(*this, attempt_ends_);
    hurry_ = false;
    auto const where = co_await find_();
    if (state_ == state::closed) throw cancelled_error("closed");
    peer_ = where;
    attempt_ends_ = std::max(attempt_ends_, home_->now() + settings_.connect_timeout / 2);  // finding it took its time
    home_->arm(*this, attempt_ends_);
    parser_.reset();
    channel_ = std::make_shared<channel>(home_, static_cast<channel::user&>(*this));
    auto const stream = channel_;
    co_await stream->open(where, settings_.tls.get(), settings_.server_name);
    if (state_ == state::closed) throw cancelled_error("closed");
    co_await greet();
}

task<void> connection::greet() {
    greeting_answers_.clear();
    greeting_broken_ = false;
    greeting_expected_ = greeting_.say(channel_->out());
    channel_->start_reading();
    channel_->flush();
    while (greeting_answers_.size() < greeting_expected_ && !greeting_broken_ && state_ != state::closed) {
        co_await changed_.for_ever();
    }
    if (state_ == state::closed) throw cancelled_error("closed");
    if (greeting_broken_) throw unavailable_error(fmt::format("{}: {}", to_string(peer_), trouble_));
    greeting_expected_ = 0;
    greeting_.judge(std::exchange(greeting_answers_, {}));
    state_ = state::ready;
    trouble_.clear();
    backoff_.reset();
    ++generation_;
    ++counters_.connects;
    heard_ = home_->now();
    if (settings_.keepalive_interval.count() > 0) home_->arm(*this, home_->now() + settings_.keepalive_interval);
    if (events_ != nullptr) events_->connected(*this);
    if (queue_.has_waiting()) requests_waiting();
}

void connection::refuse_all(std::exception_ptr problem) noexcept {
    greeting_expected_ = 0;
    home_->disarm(*this);
    state_ = state::pausing;
    errc reason = errc::unavailable;
    std::string text;
    try {
        std::rethrow_exception(std::move(problem));
    } catch (error const& known) {
        reason = known.reason();
        text = known.what();
    } catch (std::exception const& other) {
        text = other.what();
    }
    trouble_ = fmt::format("no connection: {}", text);
    bool const for_good = reason == errc::authentication || reason == errc::unsuitable_server || reason == errc::invalid_argument;
    if (!for_good) {
        if (events_ != nullptr) events_->failed(*this);
        return;
    }
    state_ = state::refused;
    refusal_ = reason;
    trouble_ = fmt::format("{}: {}", to_string(peer_), text);
    log(log_level::error, trouble_);
    queue_.fail_all(reason, trouble_);
    if (events_ != nullptr) events_->refused(*this, reason, trouble_);
}

void connection::lose(std::string_view why) noexcept {
    if (state_ != state::ready) return;
    state_ = state::pausing;
    trouble_ = fmt::format("no connection to {}: {}", to_string(peer_), why);
    log(log_level::info, fmt::format("connection to {} lost: {}", to_string(peer_), why));
    ++counters_.reconnects;
    home_->disarm(*this);
    auto const unsent = channel_ ? channel_->unsent() : 0;
    abandon_channel();
    ping_->abandon();
    if (events_ != nullptr) events_->disconnected(*this);
    queue_.disconnected(unsent, trouble_);
    // The loop goes on in a turn of its own: whoever noticed the loss may be in the middle of the channel's data.
    home_->post([self = shared_from_this()] { self->changed_.wake(); });
}

// ---- bytes

void connection::broken(std::string_view why) noexcept {
    if (state_ == state::ready) return lose(why);
    trouble_ = why;
    greeting_broken_ = true;
    changed_.wake();
}

void connection::received() noexcept {
    heard_ = home_->now();
    auto const stream = channel_;
    while (stream == channel_ && channel_ != nullptr) {
        auto const status = parser_.parse(stream->unread());
        if (status == resp::status::ready) {
            auto const size = parser_.consumed();
            handle(parser_.message());
            stream->consume(size);
        } else if (status == resp::status::need_more) {
            stream->expect(parser_.bytes_missing());
            return;
        } else {
            auto const why = fmt::format("the server sent something that is not RESP: {}", parser_.error_text());
            log(log_level::error, fmt::format("{}: {}", to_string(peer_), why));
            stream->close();
            return broken(why);
        }
    }
}

void connection::handle(reply_view message) noexcept {
    if (message.type() == reply_type::push) {
        ++counters_.pushes;
        bool const confirms = !message.empty() && message[0].is_text() && message[0].text().ends_with("subscribe");
        if (events_ != nullptr) events_->pushed(*this, message);
        if (confirms) queue_.confirm(message);
        return;
    }
    if (greeting_expected_ != 0 && state_ != state::ready) {
        greeting_answers_.emplace_back(message);
        if (greeting_answers_.size() == greeting_expected_) changed_.wake();
        return;
    }
    ++counters_.replies;
    if (!queue_.reply(message)) {
        log(log_level::error, fmt::format("{}: a reply that nobody asked for", to_string(peer_)));
        lose("the server sent a reply that nobody asked for");
    }
}

void connection::requests_waiting() noexcept {
    if (state_ != state::ready) return;
    if (settings_.batch_delay.count() == 0) return home_->at_end_of_turn(*this);
    delay_batch();
}

void connection::delay_batch() noexcept {
    if (std::exchange(batch_delayed_, true)) return;
    batch_timer_.expires_after(settings_.batch_delay);
    batch_timer_.async_wait([weak = weak_from_this()](boost::system::error_code) {
        auto const self = weak.lock();
        if (!self) return;
        reactor::turn const now{*self->home_};
        self->batch_delayed_ = false;
        self->send_waiting();
    });
}

void connection::end_of_turn() noexcept { send_waiting(); }

void connection::writable() noexcept { send_waiting(); }

void connection::send_waiting() noexcept {
    while (state_ == state::ready && !channel_->blocked()) {
        counters_.requests += queue_.encode(channel_->out(), settings_.max_batch_bytes);
        if (channel_->out().empty() || !channel_->flush()) return;
    }
}

// ---- time

void connection::fire() noexcept {
    if (state_ == state::ready) return keep_alive();
    // An attempt took too long.
    trouble_ = fmt::format("not connected within {} ms", settings_.connect_timeout.count());
    if (channel_) channel_->close();
    greeting_broken_ = true;
    if (greeting_expected_ != 0) changed_.wake();
}

void connection::keep_alive() noexcept {
    auto const now = home_->now();
    auto const silent = now - heard_;
    bool const asked = ping_->where() != operation::place::idle;
    if (asked && silent >= settings_.keepalive_interval + settings_.keepalive_timeout) {
        return lose(fmt::format("the server did not answer for {} ms",
                                std::chrono::duration_cast<std::chrono::milliseconds>(silent).count()));
    }
    if (asked && events_ != nullptr) events_->silent(*this);
    if (state_ != state::ready) return;
    if (!asked && silent >= settings_.keepalive_interval) queue_.push(*ping_);
    auto look_again = heard_ + settings_.keepalive_interval;
    if (ping_->where() != operation::place::idle) {
        look_again = std::min(look_again + settings_.keepalive_timeout, now + std::chrono::seconds{1});
    }
    home_->arm(*this, std::max(look_again, now + std::chrono::milliseconds{10}));
}

// ---- the rest

std::string connection::trouble() const {
    if (state_ == state::ready) return {};
    if (!trouble_.empty()) return trouble_;
    return peer_ == endpoint{} ? std::string{"not connected yet"} : fmt::format("not connected to {} yet", to_string(peer_));
}

bool connection::reconsider(operation& request, std::string_view error) noexcept {
    return events_ != nullptr && events_->reconsider(*this, request, error);
}

void connection::add_to(statistics& sum) const noexcept {
    sum.requests += counters_.requests;
    sum.replies += counters_.replies;
    sum.pushes += counters_.pushes;
    sum.connects += counters_.connects;
    sum.reconnects += counters_.reconnects;
    sum.batches += counters_.batches + (channel_ ? channel_->writes() : 0);
    sum.bytes_sent += counters_.bytes_sent + (channel_ ? channel_->bytes_out() : 0);
    sum.bytes_received += counters_.bytes_received + (channel_ ? channel_->bytes_in() : 0);
    sum.pending += queue_.pending();
    sum.connections += state_ == state::ready ? 1 : 0;
}

}  // namespace lockstep::redis
