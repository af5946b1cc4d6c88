#include "redis/connection.hpp"

#include "redis/verdict.hpp"
#include "resp/encoder.hpp"
#include "resp/shared_message.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::redis {

namespace {

/// Who has not logged in yet is a stranger, and what a server answers then is short.
resp::limits limits_of_greeting(resp::limits allowed) noexcept {
    constexpr std::size_t most = 64 * 1024;
    allowed.max_bulk = std::min(allowed.max_bulk, most);
    allowed.max_message = std::min(allowed.max_message, most);
    allowed.max_elements = std::min<std::size_t>(allowed.max_elements, 4'096);
    return allowed;
}

}  // namespace

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
      changed_(*home_), ping_(std::make_unique<ping>(*this)) {}

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
    if (state_ == state::ready) return lose(why);
    hurry_ = true;
    if (channel_) return cut_attempt(why);  // it may be the wrong server that lets us wait
    changed_.wake();
}

void connection::close(errc reason, std::string_view why) noexcept {
    if (state_ == state::closed) return;
    state_ = state::closed;
    events_ = nullptr;
    home_->disarm(*this);
    home_->forget(*this);
    batch_timer_.reset();
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
        }
        auto const until = self->home_->now() + self->backoff_.next();
        while (self->pausing() && self->home_->now() < until) co_await self->changed_.until(until);
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
    parser_.set_limits(limits_of_greeting(settings_.limits));
    skipping_.reset();
    std::shared_ptr<tls_context const> tls;
    if (settings_.tls) tls = settings_.tls->context();
    channel_ = std::make_shared<channel>(home_, static_cast<channel::user&>(*this));
    auto const stream = channel_;
    co_await stream->open(where, tls.get(), settings_.server_name, failures_);
    if (state_ == state::closed) throw cancelled_error("closed");
    co_await greet();
}

task<void> connection::greet() {
    greeting_answers_.clear();
    greeting_broken_ = false;
    auto const secret = greeting_.secret();
    greeting_expected_ = greeting_.say(channel_->out(), secret);
    channel_->start_reading();
    channel_->flush();
    while (greeting_answers_.size() < greeting_expected_ && !greeting_broken_ && state_ != state::closed) {
        co_await changed_.for_ever();
    }
    if (state_ == state::closed) throw cancelled_error("closed");
    if (greeting_broken_) throw unavailable_error(fmt::format("{}: {}", to_string(peer_), trouble_));
    greeting_expected_ = 0;
    greeting_.judge(std::exchange(greeting_answers_, {}), secret);
    parser_.set_limits(settings_.limits);
    state_ = state::ready;
    trouble_.clear();
    logged_.clear();
    ++generation_;
    ++counters_.connects;
    heard_ = ready_since_ = home_->now();
    home_->disarm(*this);  // the attempt's time
    if (settings_.keepalive_interval.count() > 0) home_->arm(*this, home_->now() + settings_.keepalive_interval);
    if (events_ != nullptr) events_->connected(*this);
    if (queue_.has_waiting()) requests_waiting();
}

void connection::refuse_all(std::exception_ptr problem) noexcept {
    greeting_expected_ = 0;
    ++failures_;
    home_->disarm(*this);
    state_ = state::pausing;
    errc reason = errc::unavailable;
    std::string text;
    bool for_good = false;
    try {
        std::rethrow_exception(std::move(problem));
    } catch (permanent_failure const& found) {
        reason = found.reason;
        text = found.text;
        for_good = true;
    } catch (error const& known) {
        reason = known.reason();
        text = known.what();
        for_good = reason == errc::authentication || reason == errc::unsuitable_server || reason == errc::invalid_argument;
    } catch (std::exception const& other) {
        text = other.what();
    }
    auto const where = to_string(peer_);
    bool const says_where = peer_ == endpoint{} || text.find(where) != std::string::npos;
    trouble_ = says_where ? fmt::format("no connection: {}", text) : fmt::format("no connection to {}: {}", where, text);
    if (!for_good) {
        if (events_ != nullptr) events_->failed(*this);
        return;
    }
    state_ = state::refused;
    refusal_ = reason;
    trouble_ = peer_ == endpoint{} ? text : fmt::format("{}: {}", to_string(peer_), text);  // none: it was not found
    if (std::exchange(logged_, trouble_) != trouble_) log(log_level::error, trouble_);
    queue_.fail_all(reason, trouble_);
    if (events_ != nullptr) events_->refused(*this, reason, trouble_);
}

void connection::lose(std::string_view why) noexcept {
    if (state_ != state::ready) return;
    state_ = state::pausing;
    trouble_ = fmt::format("no connection to {}: {}", to_string(peer_), why);
    log(log_level::info, fmt::format("connection to {} lost: {}", to_string(peer_), why));
    ++counters_.reconnects;
    // One that breaks as soon as it is made counts as a failed attempt, or it would be made again without a pause.
    if (home_->now() - ready_since_ >= settings_.reconnect_min) backoff_.reset();
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
    auto const self = shared_from_this();  // a reply may be the reason to let go of this connection
    heard_ = home_->now();
    auto const stream = channel_;
    // A long row of replies is answered in a few writes instead of one, so that server and client work at the same time; and a reply that many
    // have waited for, in one of its own.
    constexpr std::size_t many = 16;
    auto const share = std::max(many, queue_.pending() / 4);
    std::size_t handled = 0;
    while (stream == channel_ && channel_ != nullptr) {
        if (skipping_ && !skip(*stream)) return;
        auto const status = parser_.parse(stream->unread());
        if (status == resp::status::ready) {
            auto const size = parser_.consumed();
            auto const before = home_->arrivals();
            bool is_kept = false;
            if (size < resp::input::large) {
                handle(parser_.message());
            } else {
                resp::shared_message const sharing{stream->unread().substr(0, size), stream->owner_of_unread()};
                handle(parser_.message());
                is_kept = sharing.is_kept();
            }
            if (is_kept) {
                stream->release(size);
            } else {
                stream->consume(size);
            }
            if (++handled % share == 0 || home_->arrivals() - before >= many) home_->settle();
        } else if (status == resp::status::need_more) {
            stream->expect(parser_.bytes_missing());
            return;
        } else {
            if (!misread(stream->unread())) return;
        }
    }
}

/// False: its end has not come yet, or never will.
bool connection::skip(channel& stream) noexcept {
    stream.consume(skipping_->skip(stream.unread()));
    if (skipping_->failed()) {
        stream.close();
        broken("the server sent something that is not RESP");
        return false;
    }
    if (!skipping_->done()) {
        stream.expect(skipping_->bytes_missing());
        return false;
    }
    skipping_.reset();
    return true;
}

/// True: it concerns one request only, which has ended, and the connection goes on.
bool connection::misread(std::string_view message) noexcept {
    bool const too_large = parser_.error() >= resp::parse_error::bulk_too_long;
    auto const why = fmt::format("{}: {}", too_large ? "the server sent more than is allowed" : "the server sent something that is not RESP",
                                 parser_.error_text());
    log(log_level::error, fmt::format("{}: {}", to_string(peer_), why));
    // To ask again would bring the same reply again. A lost push would be missed by nobody knows whom.
    if (too_large && state_ == state::ready && !message.starts_with('>')) {
        auto const stream = channel_;
        bool const is_one_reply = queue_.fail_first(errc::protocol, why);
        if (stream != channel_ || channel_ == nullptr) return false;  // who heard of it closed this
        if (is_one_reply && parser_.error() != resp::parse_error::line_too_long) {
            skipping_.emplace();
            parser_.reset();
            return true;
        }
    }
    channel_->close();
    broken(why);
    return false;
}

void connection::handle(reply_view message) noexcept {
    if (message.type() == reply_type::push) {
        ++counters_.pushes;
        if (events_ != nullptr) events_->pushed(*this, message);
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
    if (!batch_timer_) batch_timer_.emplace(home_->executor());
    batch_timer_->expires_after(settings_.batch_delay);
    batch_timer_->async_wait([weak = weak_from_this()](boost::system::error_code) {
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
    cut_attempt(fmt::format("not connected within {} ms", settings_.connect_timeout.count()));
}

void connection::cut_attempt(std::string_view why) noexcept {
    trouble_ = why;
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
    bool const may_ask = !settings_.requests_block || !queue_.has_sent();
    if (!asked && may_ask && silent >= settings_.keepalive_interval) queue_.push_first(*ping_);  // also when max_pending are pending
    auto look_again = (may_ask ? heard_ : now) + settings_.keepalive_interval;
    if (ping_->where() != operation::place::idle) {
        look_again = std::min(look_again + settings_.keepalive_timeout, now + std::chrono::seconds{1});
    }
    home_->arm(*this, std::max(look_again, now + std::chrono::milliseconds{10}));
}

// ---- the rest

std::string connection::trouble() const {
    if (state_ == state::ready) return {};
    if (!trouble_.empty()) return trouble_;
    if (peer_ == endpoint{}) return "not connected yet";
    return fmt::format("not connected to {} yet{}", to_string(peer_), settings_.tls ? ", which is asked for TLS (a port without TLS never answers that)" : "");
}

bool connection::reconsider(operation& request, std::string_view error) noexcept {
    if (request.router_ == nullptr) return false;  // this connection's own: a PING, a subscription
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
