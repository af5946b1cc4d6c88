#include "lease/hold.hpp"

#include "base/random.hpp"
#include "lease/caller.hpp"
#include "lease/hub.hpp"
#include "lease/room.hpp"
#include "lease/waiter.hpp"
#include "redis/verdict.hpp"
#include "resp/encoder.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

// A hold and its server: what it says, what it is answered, and how it gets what it wants. What comes then is in hold.cpp.

namespace lockstep::engine {
namespace {

using base::boot_clock;
using std::chrono::milliseconds;

constexpr milliseconds owing_pause{1'000};  // between two times that a cancellation is tried

constexpr std::pair<std::string_view, errc> explained_refusals[] = {{"LOCKSTEP_ARGUMENT ", errc::invalid_argument},
                                                                    {"LOCKSTEP_NOT_FOUND ", errc::not_found}};

}  // namespace

// ---- requests

void hold::become(std::shared_ptr<target const> what, std::uint64_t number, std::string_view client) {
    target_ = std::move(what);
    number_ = number;
    auto* at = std::copy(client.begin(), client.end(), id_);
    *at++ = '.';
    id_size_ = static_cast<std::uint8_t>(std::to_chars(at, id_ + sizeof id_, number).ptr - id_);
    state_ = state::idle;
    told_ = renewing_ = uncertain_ = evicted_ = leaving_ = unused_ = lost_ = looks_with_others = false;
    owed_until_ = {};
    wanted_by = nullptr;
    heard_by = nullptr;
    passes = 0;
    deadline_ms_ = 0;
    change_to_ = -1;
    set_number_ = 0;
    extended_to_ = milliseconds{0};
    asked_at = hub_.reactor().now();
    was_queued = false;
    trace.reset();
    ttl_ = target_->how.ttl;
    connects_ = hub_.connects();
    keep();
}

void hold::send(state what, clock::time_point deadline) noexcept {
    if (where() != place::idle) abandon();
    state_ = what;
    whole_script_ = false;
    target_->where->note_use();  // with renewals too: a server that lost the index is told again
    sent_at_ = boot_clock::now();
    auto const& room = *target_->where;
    use_way(room.owner()->way());
    slot = room.slot();
    repeatable = true;
    begin(deadline, nullptr);
}

void hold::encode(resp::output& out) {
    auto const& what = *target_;
    auto const& kind = what.where->kind();
    auto const& how = what.how;
    auto const head = [&](scripts::script const& script, std::size_t arguments) {
        resp::command_header(out, (kind.is_election ? 5 : 4) + arguments);
        resp::bulk(out, std::string_view{whole_script_ ? "EVAL" : "EVALSHA"});
        resp::bulk(out, whole_script_ ? script.text : script.sha1);
        resp::bulk(out, kind.is_election ? 2 : 1);
        resp::bulk(out, std::string_view{what.where->key()});
        if (kind.is_election) resp::bulk(out, std::string_view{what.changes});
    };
    auto const amount = kind.is_pool ? what.amount : std::int64_t{how.cohort_passes} + 1;
    switch (state_) {
        case state::asking:
            if (!token_.empty()) {
                head(kind.adopt, 5);
                resp::bulk(out, token_);
                resp::bulk(out, id());
                resp::bulk(out, ttl_.count());
                resp::bulk(out, std::string_view{what.rules});
                resp::bulk(out, deadline_ms_);
                break;
            }
            head(kind.acquire, kind.is_pool || kind.is_election ? 8 : 6);
            resp::bulk(out, id());
            resp::bulk(out, ttl_.count());
            resp::bulk(out, deadline_ms_);
            resp::bulk(out, amount);
            resp::bulk(out, wanted_by == nullptr || wanted_by->how().queues ? how.max_waiters : 0U);
            resp::bulk(out, std::string_view{what.rules});
            if (kind.is_pool) {
                resp::bulk(out, std::string_view{what.count});
                resp::bulk(out, std::string_view{what.mode});
            }
            if (kind.is_election) {
                resp::bulk(out, std::string_view{what.who});
                resp::bulk(out, what.priority);
            }
            break;
        case state::claiming:
            head(kind.claim, kind.is_election ? 5 : 4);
            resp::bulk(out, id());
            resp::bulk(out, ttl_.count());
            resp::bulk(out, amount);
            resp::bulk(out, std::string_view{what.rules});
            if (kind.is_election) resp::bulk(out, std::string_view{what.who});
            break;
        case state::held:
            if (change_to_ >= 0) {
                head(*kind.change, 6);
                resp::bulk(out, id());
                resp::bulk(out, change_to_);
            } else {
                head(kind.renew, 5);
                resp::bulk(out, id());
            }
            resp::bulk(out, ttl_.count());
            resp::bulk(out, std::string_view{what.rules});
            resp::bulk(out, set_number_);
            resp::bulk(out, deadline_ms_);
            break;
        default: {
            // What was used up by a grant that nobody got comes back.
            bool const undoes = unused_ && what.mode == "consume";
            head(kind.release, undoes || kind.is_election ? 4 : leaving_ ? 3 : 2);
            resp::bulk(out, id());
            resp::bulk(out, std::string_view{what.rules});
            if (kind.is_election) {
                resp::bulk(out, std::string_view{leaving_ ? "1" : ""});
                resp::bulk(out, std::string_view{lost_ ? "lost" : "resigned"});
                break;
            }
            if (leaving_ || undoes) resp::bulk(out, std::string_view{leaving_ ? "1" : ""});
            if (undoes) resp::bulk(out, what.amount);
        }
    }
}

void hold::complete(reply_view said) noexcept {
    auto const kept = target_;
    use_way(nullptr);
    if (said.is_error()) {
        auto const text = said.text();
        for (auto const& [word, reason] : explained_refusals) {
            if (text.starts_with(word)) return failed(reason, text.substr(word.size()), refusal::lasting);
        }
        return failed(errc::server, text, redis::may_pass(text) ? refusal::passing : refusal::lasting);
    }
    answer found;
    try {
        auto const& how = kept->how;
        found = read_answer(said, ttl_.count(), kept->where->kind().is_pool ? 1 : std::int64_t{how.cohort_passes} + 1);
    } catch (error const&) {
        found.what = word::unknown;
    }
    if (found.what == word::unknown) {
        uncertain_ = true;
        return fail(errc::protocol, "the server's answer to a script is not one of the script's");
    }
    kept->where->learn(found.now_ms);
    switch (state_) {
        case state::asking: uncertain_ = uncertain_ || was_repeated(); [[fallthrough]];
        case state::claiming: return answered_ask(found);
        case state::held: return answered_renewal(found);
        default: return answered_release(found);
    }
}

std::exception_ptr hold::unheard(errc reason, std::string_view why) const {
    if (reason != errc::timeout) return make_error(reason, std::string{why});
    return make_error(errc::indeterminate,
                      fmt::format("what became of the lease of '{}' at the server is not known: {}", target_->where->name(), why));
}

void hold::fail(errc reason, std::string_view why) noexcept {
    failed(reason, why, was_put_off() && reason != errc::cancelled ? refusal::passing : refusal::none);
}

void hold::failed(errc reason, std::string_view why, refusal how) noexcept {
    auto const kept = target_;
    use_way(nullptr);
    switch (state_) {
        case state::asking:
        case state::claiming:
            uncertain_ = uncertain_ || may_have_run();
            if (was_queued && how == refusal::passing) return wait_on();
            return kept->where->failed(*this, reason, why);
        case state::held:
            renewing_ = false;
            change_to_ = -1;
            settle_caller(unheard(reason, why));
            if (hub_.is_closing()) return;
            // What was not sent or answered in time is over; anything else may be better soon.
            return hub_.schedule(*this, std::min(end_as_steady(), hub_.reactor().now() + std::max(milliseconds{20}, ttl_ / 20)));
        default:
            hub_.count_release(-1);
            settle_caller(unheard(reason, why));
            if (hub_.is_closing()) return finish();
            // What was refused once more is owed no longer, but for what may still run.
            if (unused_ && how == refusal::lasting) return owe_what_may_run();
            // A lease ends by itself. A place in a queue does not: it is owed until the server has heard of it.
            if (hub_.reactor().now() >= owed_until_ && (!unused_ || how == refusal::passing)) return owe_what_may_run();
            state_ = state::owing;
            return hub_.schedule(*this, hub_.reactor().now() + owing_pause);
    }
}

// ---- asking and waiting

void hold::ask(milliseconds budget, std::string_view token) {
    token_ = token;
    told_ = false;
    auto& room = *target_->where;
    deadline_ms_ = room.server_now() + budget.count();
    hub_.unschedule(*this);
    ttl_ = target_->how.ttl;
    send(state::asking, hub_.reactor().now() + budget);
}

void hold::ask_later() noexcept {
    state_ = state::waiting;
    hub_.schedule(*this, hub_.reactor().now() + milliseconds{20});
}

void hold::wait_on() noexcept {
    if (state_ == state::claiming) return ask_later();  // what it was offered is not offered for long
    state_ = state::waiting;
    if (told_) return claim();
    agenda_time_ = hub_.reactor().now() + ttl_;
    target_->where->queued(*this, false);
}

void hold::claim() {
    told_ = false;
    hub_.unschedule(*this);
    ttl_ = target_->how.ttl;
    send(state::claiming, hub_.reactor().now() + release_time);
}

void hold::told() {
    if (state_ == state::waiting) return claim();
    told_ = state_ == state::asking || state_ == state::claiming;
}

void hold::answered_ask(answer const& said) noexcept {
    auto& room = *target_->where;
    if (said.what != word::granted) evicted_ = false;  // that was of what it had before
    switch (said.what) {
        case word::granted: return room.granted(*this, said);
        case word::queued: return queued(said);
        case word::busy: return said.asks_again ? room.ask_again(*this) : room.refused(*this);
        case word::gone:
            if (!token_.empty()) return room.refused(*this);
            [[fallthrough]];  // claimed too late: it joins the queue's tail
        default: return room.ask_again(*this);
    }
}

void hold::queued(answer const& said) noexcept {
    state_ = state::waiting;
    if (told_) return claim();
    // The first of the queue here looks when what is in the way can be over; not all processes at once.
    auto const spread = milliseconds{1 + static_cast<std::int64_t>(base::random_below(160))};
    auto const after = said.asks_again ? milliseconds{0} : std::min(milliseconds{said.left_ms} + spread, 2 * target_->how.ttl);
    agenda_time_ = hub_.reactor().now() + after;
    target_->where->queued(*this, said.is_new);
}

void hold::give_up() noexcept {
    uncertain_ = uncertain_ || may_have_run();
    wanted_by = nullptr;
    token_ = {};
    target_->where->no_longer_queued(*this);
    hub_.unschedule(*this);
    if (!uncertain_ && !was_queued) return finish();  // all that it asked for was refused, or never sent
    unused_ = true;
    owed_until_ = hub_.reactor().now() + std::max(ttl_, release_time);
    hub_.count_release(+1);
    leaving_ = hub_.is_closing();
    send(state::releasing, hub_.reactor().now() + release_time);
}

}  // namespace lockstep::engine
