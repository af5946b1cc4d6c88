#include "quorum/leg.hpp"

#include "quorum/fleet.hpp"
#include "quorum/grip.hpp"
#include "resp/encoder.hpp"
#include "scripts/all.hpp"

#include <charconv>
#include <utility>

namespace lockstep::quorum {
namespace {

std::uint64_t number_in(std::string_view text) noexcept {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

}  // namespace

void leg::ask(assignment const& order) {
    bool idle = false;
    {
        std::lock_guard const guard{of_->mutex_};
        if (busy) {
            next_ = order;
            if (std::exchange(next_is_posted_, true)) return;
        } else {
            idle = busy = true;
            ++of_->busy_;
        }
    }
    if (idle) return start(order);
    if (of_->nodes()->node(node_).home().hand_in(successor_)) return;
    // The client is closed: what is under way has ended or is about to.
    std::unique_lock guard{of_->mutex_};
    next_is_posted_ = false;
    if (running_) {
        now_.round = order.round;  // its end is the answer to this, too
        return;
    }
    guard.unlock();
    now_ = order;
    of_->voted(*this, vote::silent, nullptr, "its client is closed", false);
}

void leg::successor::arrive() noexcept {
    assignment order;
    bool was_running = false;
    {
        std::lock_guard const guard{self_.of_->mutex_};
        order = self_.next_;
        self_.next_is_posted_ = false;
        was_running = std::exchange(self_.running_, false);
    }
    if (was_running && (self_.where() == place::sent || self_.was_repeated())) self_.doubt();
    if (was_running) self_.abandon();
    if (order.what == request::remove && !self_.may_have_it()) {  // what was to put it there never left
        self_.now_ = order;
        return self_.of_->voted(self_, vote::no, nullptr, {}, false);
    }
    self_.start(order);
}

bool leg::may_have_it() const noexcept {
    std::lock_guard const guard{of_->mutex_};
    return touched || in_doubt;
}

std::uint64_t leg::connects() const noexcept {
    lockstep::statistics sum;
    of_->nodes()->node(node_).way()->add_to(sum);
    return sum.connects;
}

void leg::doubt() noexcept {
    if (!takes()) return;
    auto const now = connects();
    std::lock_guard const guard{of_->mutex_};
    bool const gone = was_repeated() || (in_doubt && doubted_at_ != now);
    in_doubt = true;
    doubted_at_ = gone ? never : now;
}

void leg::start(assignment const& what) {
    now_ = what;
    whole_script_ = false;
    auto& node = of_->nodes()->node(node_);
    use_way(node.way());
    slot = node.is_cluster() ? of_->what().slot : std::int16_t{-1};
    repeatable = what.what != request::set;  // sent again, a SET NX is refused because of the first one
    {
        std::lock_guard const guard{of_->mutex_};
        running_ = true;
    }
    if (!begin(what.deadline, nullptr)) of_->voted(*this, vote::silent, nullptr, "its client is closed", false);
}

void leg::encode(resp::output& out) {
    auto const& plan = of_->what();
    auto const head = [&](scripts::script const& script, bool fences, std::size_t arguments) {
        auto const keys = plan.keys.size() + (fences ? plan.fences.size() : 0);
        resp::command_header(out, 3 + keys + arguments);
        resp::bulk(out, std::string_view{whole_script_ ? "EVAL" : "EVALSHA"});
        resp::bulk(out, whole_script_ ? script.text : script.sha1);
        resp::bulk(out, keys);
        for (auto const& key : plan.keys) resp::bulk(out, key);
        if (!fences) return;
        for (auto const& key : plan.fences) resp::bulk(out, key);
    };
    auto const& token = of_->token_;
    switch (now_.what) {
        case request::set:
            resp::append_command(out, "SET", plan.keys.front(), token, "NX", "PX", now_.ttl.count());
            break;
        case request::acquire:
            head(scripts::redlock_acquire, true, 5);
            resp::bulk(out, token);
            resp::bulk(out, now_.ttl.count());
            resp::bulk(out, std::string_view{plan.is_fenced() ? "1" : "0"});
            resp::bulk(out, of_->told_.empty() ? std::string_view{} : std::string_view{of_->nodes()->channels()});
            resp::bulk(out, of_->told_);
            break;
        case request::fence:
            head(scripts::redlock_fence, true, 2);
            resp::bulk(out, token);
            resp::bulk(out, now_.fence);
            break;
        case request::extend:
            head(scripts::compare_and_extend, now_.again, 4);
            resp::bulk(out, token);
            resp::bulk(out, now_.ttl.count());
            resp::bulk(out, std::string_view{now_.again ? "1" : "0"});
            if (now_.again && plan.is_fenced()) {
                resp::bulk(out, now_.fence);
            } else {
                resp::bulk(out, std::string_view{});
            }
            break;
        case request::remove:
            if (plan.is_single() && of_->woken_.empty()) {
                head(scripts::compare_and_delete, false, 1);
                resp::bulk(out, token);
                break;
            }
            head(scripts::redlock_release, false, 3 + of_->woken_.size());
            resp::bulk(out, token);
            resp::bulk(out, of_->nodes()->channels());
            resp::bulk(out, std::string_view{of_->wakes_all_ ? "all" : "first"});
            for (auto const& one : of_->woken_) resp::bulk(out, one);
            break;
    }
}

void leg::complete(reply_view answer) noexcept try {
    if (answer.is_error()) {
        grip::findings more;
        more.errors = 1;
        return of_->voted(*this, vote::silent, &more, answer.text());
    }
    if (was_repeated()) doubt();
    switch (now_.what) {
        case request::set: return of_->voted(*this, answer.is_null() ? vote::no : vote::yes, nullptr);
        case request::acquire: {
            grip::findings more;
            if (answer[0].integer() == 1) {
                if (answer.size() < 3) return of_->voted(*this, vote::yes, nullptr);
                more.fence = number_in(answer[1].text());
                more.now_us = number_in(answer[2].text());
                return of_->voted(*this, vote::yes, &more);
            }
            more.left_ms = answer[1].integer();
            more.heard = answer[2].integer() > 0;
            more.tokens.emplace_back(answer[3].text());
            return of_->voted(*this, vote::no, &more);
        }
        case request::fence: {
            if (answer[0].integer() == 1) return of_->voted(*this, vote::yes, nullptr);
            grip::findings more;
            more.fence = number_in(answer[1].text());
            return of_->voted(*this, vote::no, &more);
        }
        case request::extend: return of_->voted(*this, vote_on_extension(answer.integer()), nullptr);
        case request::remove:
            if (in_doubt && !was_repeated() && connects() == doubted_at_) {
                std::lock_guard const guard{of_->mutex_};
                in_doubt = false;  // what was sent before on the same connection has run
            }
            // Sent twice because a reply was lost, the second one finds nothing: that is success.
            return of_->voted(*this, answer.integer() != 0 || was_repeated() ? vote::yes : vote::no, nullptr);
    }
} catch (std::exception const& problem) {
    of_->voted(*this, vote::silent, nullptr, problem.what());
}

/// Yes only where it has been held all the time. A key that was made again says so from the next round on if there is a fence, as somebody else's
/// would have been larger there; and without fences after a round that was won without it, and so shows that nobody else had a majority.
vote leg::vote_on_extension(std::int64_t said) noexcept {
    std::lock_guard const guard{of_->mutex_};
    bool const was_missing = std::exchange(missing, said == -1);
    touched |= now_.again;
    of_->changed_ |= was_missing != missing;
    if (said <= 0) return vote::no;
    auto const shown = of_->plan_->is_fenced() ? now_.round : of_->proven_;
    return said == 1 && (made_again_in == 0 || made_again_in < shown) ? vote::yes : vote::no;
}

void leg::fail(errc reason, std::string_view why) noexcept {
    if (reason != errc::unavailable) doubt();  // or no copy of it ran
    of_->voted(*this, vote::silent, nullptr, why);
}

}  // namespace lockstep::quorum
