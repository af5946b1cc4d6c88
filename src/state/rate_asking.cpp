#include "state/rate_asking.hpp"

#include "redis/slot.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <algorithm>
#include <exception>
#include <initializer_list>
#include <vector>

namespace lockstep::detail {
namespace {

using std::chrono::microseconds;

constexpr std::int64_t first_us = 1'700'000'000'000'000;  // of rate_bucket.lua
constexpr std::size_t most_together = 32;                 // one that is refused by a long log costs some 50 us

rate_decider& as_decider(engine::passenger& who) noexcept { return static_cast<rate_decider&>(who); }

std::string_view word_of(rate_question::way how) noexcept {
    switch (how) {
        case rate_question::way::each: return "each";
        case rate_question::way::all: return "all";
        case rate_question::way::look: return "look";
    }
    return "look";
}

}  // namespace

rate_rules::rate_rules(rate_limit_options const& options)
    : algorithm(options.algorithm), limit(options.limit), per_us(options.per.count()), burst(options.burst == 0 ? options.limit : options.burst),
      interval((per_us * ticks_per_us + limit - 1) / limit),
      furthest(std::min<std::int64_t>(interval * burst, furthest_reservation.count() * ticks_per_us)),
      ttl_ms(is_bucket() ? (interval * burst + furthest) / (1'000 * ticks_per_us) + 2 : per_us / 500 + 2) {}

std::int16_t rate_slot(core const& owner, std::string_view full_key) {
    return owner.is_cluster() ? static_cast<std::int16_t>(redis::key_slot(full_key)) : std::int16_t{-1};
}

redis::command_terms rate_terms(core const& owner, request_limit const& limit, std::int16_t slot) {
    return {.deadline = limit.deadline(owner), .slot = slot, .repeatable = true};
}

task<reply> ask_rate(core& owner, request_limit const& limit, rate_rules const& rules, std::int16_t slot, std::span<std::string_view const> keys,
                     rate_question const& what) {
    auto const run = [&](scripts::script const& script, std::initializer_list<argument> words) {
        return redis::run_script(owner.way(), script, keys, {words.begin(), words.size()}, rate_terms(owner, limit, slot));
    };
    auto const how = word_of(what.how);
    switch (rules.algorithm) {
        case rate_algorithm::sliding_log: return run(scripts::rate_log, {what.cost, how, rules.limit, rules.per_us});
        case rate_algorithm::sliding_window: return run(scripts::rate_window, {what.cost, how, rules.limit, rules.per_us, rules.ttl_ms});
        case rate_algorithm::token_bucket: break;
    }
    if (what.cost == 1 && what.how == rate_question::way::each) return run(scripts::rate_bucket, {rules.interval, rules.burst, rules.ttl_ms});
    return run(scripts::rate_bucket, {rules.interval, rules.burst, rules.ttl_ms, what.cost, how, what.ahead});
}

rate_answer::rate_answer(rate_rules const& rules, reply const& said, std::size_t keys, rate_question const& what)
    : rules_(rules), what_(what), at_(said.begin()) {
    std::size_t const each = rules.algorithm == rate_algorithm::sliding_window ? 3 : 1;
    if (said.size() != 2 + keys * each) throw protocol_error("a script of a rate limiter answered something that is not understood");
    common_.limit = rules.most();
    common_.allowed = next_number() == 1;
    common_.at = std::chrono::system_clock::time_point{microseconds{next_number()}};
}

std::int64_t rate_answer::next_number() { return (*at_++).as<std::int64_t>(); }

rate_decision rate_answer::next() {
    switch (rules_.algorithm) {
        case rate_algorithm::sliding_log: return next_of_log();
        case rate_algorithm::sliding_window: return next_of_window();
        case rate_algorithm::token_bucket: break;
    }
    return next_of_bucket();
}

rate_decision rate_answer::next_of_log() {
    auto made = common_;
    auto const said = *at_++;
    bool const is_counted = !said.is_aggregate();
    if (is_each()) made.allowed = is_counted;
    made.remaining = (is_counted ? said : said[0]).as<std::int64_t>();
    made.retry_after = microseconds{is_counted ? 0 : said[1].as<std::int64_t>()};
    made.reset = microseconds{is_counted ? rules_.per_us : said[2].as<std::int64_t>()};
    return made;
}

rate_decision rate_answer::next_of_window() {
    auto made = common_;
    auto const remaining = *at_++;
    made.retry_after = microseconds{next_number()};
    made.reset = microseconds{next_number()};
    made.remaining = remaining.as<std::int64_t>();
    if (is_each()) made.allowed = made.retry_after.count() == 0;
    return made;
}

rate_decision rate_answer::next_of_bucket() {
    auto made = common_;
    auto const in_us = [](std::int64_t ticks) {
        return microseconds{(std::max<std::int64_t>(ticks, 0) + rate_rules::ticks_per_us - 1) / rate_rules::ticks_per_us};
    };
    auto const full = rules_.interval * rules_.burst;
    auto const after = next_number();
    if (is_each()) made.allowed = after <= full + what_.ahead;
    bool const is_taken = made.allowed && what_.how != rate_question::way::look;
    auto const missing = is_taken ? after : after - rules_.interval * what_.cost;
    made.remaining = std::max<std::int64_t>(full - missing, 0) / rules_.interval;
    made.retry_after = in_us(after - full);
    made.reset = in_us(missing);
    return made;
}

std::int64_t bucket_after(reply_view said) { return (said[1].as<std::int64_t>() - first_us) * rate_rules::ticks_per_us + said[2].as<std::int64_t>(); }

std::size_t rate_calls::count_together(line const& waiting) const {
    auto const& first = static_cast<rate_decider const&>(waiting.front());
    std::size_t count = 0;
    for (auto const& one : waiting) {
        auto const& who = static_cast<rate_decider const&>(one);
        bool const may_be_elsewhere = who.slot != -1 && who.full_key != first.full_key;  // while a slot of a Cluster moves, some of its keys are
        if (who.cost != first.cost || may_be_elsewhere || count == most_together) break;
        ++count;
    }
    return count;
}

task<void> rate_calls::send(engine::shared_call& what) {
    auto const& first = as_decider(*what.aboard.front());
    rate_question const question{.cost = first.cost};
    std::vector<std::string_view> keys;
    keys.reserve(what.aboard.size());
    for (auto* const one : what.aboard) keys.push_back(as_decider(*one).full_key);
    reply said;
    bool is_refused = false;
    try {
        auto asking = ask_rate(*owner(), *limit_, rules_, first.slot, keys, question);
        said = co_await std::move(asking);
    } catch (server_error const& problem) {
        std::string_view const why = problem.what();
        is_refused = why.starts_with("NOPERM") || why.starts_with("CROSSSLOT");  // nothing has run
        if (!is_refused || keys.size() == 1) throw;
    }
    limit_->answered();
    if (is_refused) {
        send_each(what);
        co_return;
    }
    rate_answer answer{rules_, said, keys.size(), question};
    for (auto*& place : what.aboard) {
        auto* const one = std::exchange(place, nullptr);
        try {
            auto const made = answer.next();
            if (one == nullptr) continue;
            as_decider(*one).made = made;
            one->finish();
        } catch (...) {
            if (one != nullptr) one->fail(std::current_exception());
        }
    }
}

}  // namespace lockstep::detail
