#include "redis/request_queue.hpp"

#include "redis/router.hpp"
#include "resp/encoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::redis {
namespace {

/// The reply to HELLO, and to nothing else.
bool is_greeting(reply_view answer) { return answer.type() == reply_type::map && !answer.find("proto").is_null(); }

}  // namespace

void request_queue::push(operation& request) noexcept {
    if (pending_ >= max_pending_) {
        request.end(errc::unavailable, fmt::format("{} requests are pending, the most that max_pending allows: slow down, or raise it", pending_));
        return;
    }
    request.place_ = operation::place::waiting;
    request.queue_ = this;
    waiting_.push_back(request);
    ++pending_;
    owner_.requests_waiting();
}

void request_queue::push_first(operation& request) noexcept {
    request.place_ = operation::place::waiting;
    request.queue_ = this;
    waiting_.push_front(request);
    ++pending_;
    owner_.requests_waiting();
}

std::size_t request_queue::encode(resp::output& out, std::size_t until) {
    std::size_t count = 0;
    while (!waiting_.empty() && out.size() < until) {
        auto& request = waiting_.front();
        // A server writes first to whom it came to owe something last. With something before it, its caller is owed a reply before others are told.
        bool const asks = std::exchange(request.asking, false);
        if (asks || (request.yields && out.empty())) {
            resp::append_command(out, asks ? "ASKING" : "PING");
            ++(sent_.empty() ? drop_first_ : sent_.back().dropped_after_);  // its reply is nobody's
        }
        request.restart();
        request.encode(out);
        request.unlink();
        request.place_ = operation::place::sent;
        request.outstanding_ = request.replies;
        request.dropped_after_ = 0;
        sent_.push_back(request);
        ++count;
    }
    return count;
}

operation& request_queue::take_first() noexcept {
    auto& request = sent_.front();
    drop_first_ = std::exchange(request.dropped_after_, 0);
    request.unlink();
    request.place_ = operation::place::idle;
    request.queue_ = nullptr;
    --pending_;
    return request;
}

bool request_queue::reply(reply_view answer) noexcept {
    if (drop_first_ != 0) {
        --drop_first_;
        return true;
    }
    if (sent_.empty()) return false;
    auto& request = sent_.front();
    bool const refused = request.fenced && request.outstanding_ == 2 && answer.is_error();
    if (request.fenced && !refused && !is_greeting(answer)) return false;
    bool const last = request.fenced ? !refused : request.outstanding_ == 1;
    if (!last) {
        --request.outstanding_;
        request.complete(answer);
        return true;
    }
    take_first();
    auto const refusal = request.refusal(answer);
    if (!refusal.empty() && owner_.reconsider(request, refusal)) return true;
    request.end(answer);
    return true;
}

bool request_queue::fail_first(errc reason, std::string_view why) noexcept {
    if (drop_first_ != 0) {
        --drop_first_;
        return true;
    }
    if (sent_.empty() || sent_.front().fenced) return false;
    auto const others = sent_.front().outstanding_ - 1;
    auto& request = take_first();
    drop_first_ += others;
    request.unheard_ = true;
    request.end(reason, why);
    return true;
}

std::uint32_t& request_queue::drops_before(operation& request) noexcept {
    auto const at = sent_.iterator_to(request);
    return at == sent_.begin() ? drop_first_ : std::prev(at)->dropped_after_;
}

void request_queue::leave(operation& request) noexcept {
    if (request.place_ == operation::place::sent) {
        drops_before(request) += request.outstanding_ + std::exchange(request.dropped_after_, 0);
        request.unheard_ = true;
    }
    request.unlink();
    request.place_ = operation::place::idle;
    request.queue_ = nullptr;
    --pending_;
}

void request_queue::run_out_of_time(operation& request) noexcept {
    bool const was_sent = request.place_ == operation::place::sent;
    auto const trouble = owner_.trouble();
    leave(request);
    if (!was_sent) {
        request.end(trouble.empty() ? errc::timeout : errc::unavailable,
                    trouble.empty() ? "the request could not be sent in its time" : trouble);
    } else if (request.repeatable) {
        request.end(errc::timeout, "the server did not answer in the request's time");
    } else {
        request.end(errc::indeterminate, "the server did not answer in the request's time; the request may have run");
    }
}

void request_queue::mark_unsent(std::size_t unsent) noexcept {
    // From the last one back: a request whose last byte did not leave did not run. Its length is found by encoding it again, so
    // that nothing has to be remembered for each. Abandoned ones have no length any more: stop there.
    resp::output scratch;
    while (unsent != 0 && !sent_.empty() && sent_.back().dropped_after_ == 0) {
        auto& request = sent_.back();
        scratch.clear();
        request.encode(scratch);
        unsent -= std::min(unsent, scratch.size());
        request.unlink();
        request.place_ = operation::place::waiting;
        waiting_.push_front(request);
    }
}

void request_queue::disconnected(std::size_t unsent, std::string_view why) noexcept {
    mark_unsent(unsent);
    drop_first_ = 0;
    operation_list again;
    operation_list lost;
    while (!sent_.empty()) {
        auto& request = sent_.front();
        request.unlink();
        request.place_ = operation::place::waiting;  // so that whoever is abandoned meanwhile just goes
        request.dropped_after_ = 0;
        request.reply_lost_ = true;
        (request.repeatable ? again : lost).push_back(request);
    }
    waiting_.splice(waiting_.begin(), again);
    auto const text = fmt::format("the connection broke before the reply came ({}); the request may have run", why);
    while (!lost.empty()) {
        auto& request = lost.front();
        leave(request);
        request.end(errc::indeterminate, text);
    }
    if (!waiting_.empty()) owner_.requests_waiting();
}

void request_queue::take_waiting(operation_list& to) noexcept {
    for (auto at = waiting_.begin(); at != waiting_.end();) {
        auto& request = *at++;
        if (request.router_ == nullptr) continue;
        leave(request);
        request.place_ = operation::place::delayed;  // linked in a list of somebody else's
        to.push_back(request);
    }
}

void request_queue::fail_all(errc reason, std::string_view why) noexcept {
    operation_list all;
    for (auto& request : sent_) request.unheard_ = true;
    all.splice(all.end(), sent_);
    all.splice(all.end(), waiting_);
    drop_first_ = 0;
    for (auto& request : all) {
        request.place_ = operation::place::waiting;
        request.dropped_after_ = 0;
    }
    std::string const text{why};
    while (!all.empty()) {
        auto& request = all.front();
        leave(request);
        request.end(reason, text);
    }
}

}  // namespace lockstep::redis
