#include "redis/router.hpp"

#include "base/random.hpp"
#include "redis/connection.hpp"
#include "redis/verdict.hpp"

namespace lockstep::redis {

bool router::reconsider(connection& from, operation& request, std::string_view refusal) noexcept {
    auto const judged = judge(refusal);
    if (!request.repeatable && !is_servers_own(refusal)) return false;
    switch (judged.what) {
        case verdict::deliver: return false;
        case verdict::noscript:
            if (!request.use_full_script()) return false;
            submit(request);
            return true;
        case verdict::moved:
        case verdict::ask: return redirect(from, request, judged);
        case verdict::read_only: not_master(from); break;
        case verdict::log_in: from.reconnect(refusal); break;
        case verdict::retry_later: break;
    }
    note_refusal(refusal);
    request.put_off_ = true;
    try_later(request);
    return true;
}

bool router::redirect(connection&, operation&, judgement const&) noexcept {
    return false;  // not a Cluster client: the user should see MOVED
}

void router::try_later(operation& request) noexcept {
    request.place_ = operation::place::delayed;
    request.redirects_ = 0;  // after a pause, being sent on is no longer a circle
    delayed_.push_back(request);
    if (linked()) return;
    auto const pause = std::chrono::milliseconds{10 + base::random_below(20)};
    home_->arm(*this, home_->now() + pause);
}

void router::fire() noexcept {
    operation_list due;
    due.splice(due.end(), delayed_);
    while (!due.empty()) {
        auto& request = due.front();
        request.unlink();
        request.place_ = operation::place::idle;
        submit(request);
    }
}

void router::end_delayed(errc reason, std::string_view why) noexcept {
    home_->disarm(*this);
    while (!delayed_.empty()) delayed_.front().end(reason, why);
}

void router::hear(reply_view push) noexcept {
    if (keys_ == nullptr || push.size() != 2 || !push[0].is_text() || push[0].text() != "invalidate") return;
    if (!push[1].is_aggregate()) return keys_->any_key_changed();
    for (auto const key : push[1]) {
        if (key.is_text()) keys_->key_changed(key.text());
    }
}

}  // namespace lockstep::redis
