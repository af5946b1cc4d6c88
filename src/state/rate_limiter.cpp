#include <lockstep/rate_limiter.hpp>

#include "base/names.hpp"
#include "core/keyed.hpp"
#include "lease/pause.hpp"
#include "redis/command.hpp"
#include "scripts/all.hpp"
#include "state/block_cache.hpp"
#include "state/line.hpp"
#include "state/local_limits.hpp"
#include "state/rate_asking.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <unordered_set>

// What is asked, and how those who ask at once share a call: rate_asking.hpp. Who waits queues behind those of this process who want the same key,
// and asks when he is the first; then again when the time that the server named is over. A bucket can be asked for a time in the near future, which
// then only has to come.

namespace lockstep {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t most_keys = 1'000;
constexpr milliseconds longest_rest = 1min;  // of the first in line: another program may have reset the key

/// The word for a bucket is short: keys of up to 30 bytes take 16 less.
std::string_view kind_of(rate_limit_options const& how) {
    switch (how.algorithm) {
        case rate_algorithm::sliding_log: return how.together ? "hits_of" : "hits";
        case rate_algorithm::sliding_window: return how.together ? "window_of" : "window";
        case rate_algorithm::token_bucket: return how.together ? "rate_of" : "rate";
    }
    throw invalid_argument_error("algorithm: sliding_log, sliding_window or token_bucket");
}

void check(std::string_view name, rate_limit_options const& how) {
    auto const refuse = [&](std::string const& what) { throw invalid_argument_error(fmt::format("rate limiter '{}': {}", name, what)); };
    if (how.limit < 1 || how.limit > 1'000'000'000) refuse(fmt::format("the limit must be 1 to 10^9, not {}", how.limit));
    if (how.per < 1ms || how.per > 366 * 24h) refuse(fmt::format("per must be 1 ms to 366 days, not {} us", how.per.count()));
    if (how.limit > how.per.count()) refuse("the limit must be at most one for each microsecond");
    if (how.algorithm == rate_algorithm::sliding_log && how.limit > 1'000'000) {
        refuse(fmt::format("a log has room for 10^6 hits, not for {}; use token_bucket", how.limit));
    }
    if (how.burst < 0 || how.burst > 1'000'000'000) refuse(fmt::format("the burst must be 0 to 10^9, not {}", how.burst));
    if (how.burst != 0 && how.algorithm != rate_algorithm::token_bucket) refuse("only a token_bucket has a burst");
    auto const fills_us = static_cast<double>(how.burst) * static_cast<double>(how.per.count()) / static_cast<double>(how.limit);
    if (fills_us > 10.0 * 366 * 86'400 * 1e6) refuse("a bucket must fill within 10 years; the burst is too large");
    if (how.wait_limit.count() < 0) refuse("wait_limit must not be negative");
    if (how.longest_block.count() < 0) refuse("longest_block must not be negative");
    detail::require_command_timeout("rate limiter", name, how.command_timeout);
    if (how.on_unavailable < rate_policy::fail || how.on_unavailable > rate_policy::local) refuse("on_unavailable: fail, admit, refuse or local");
}

}  // namespace

struct detail::limiter_state {
    limiter_state(client& by, std::string_view name, rate_limit_options const& options)
        : object(by, name, kind_of(options)), how(options), rules(options), before(object.owner()->options().prefix + ":{"),
          after(fmt::format("}}:{}:", object.kind())), encoded_name(base::encode_name(name)), blocked(options.block_cache, options.longest_block),
          waiting_lines(std::make_shared<lines>(object.owner())), command_limit(std::make_shared<request_limit>(options.command_timeout)),
          calls(std::make_shared<rate_calls>(object.owner(), rules, command_limit)), alone(rules) {}

    /// `<prefix>:{<key>}:<kind>:<name>`, or with name and key exchanged: what stands in the braces decides the slot.
    std::string key_for(std::string_view key) const {
        auto const encoded = base::encode_name(key);
        auto const& tag = how.together ? encoded_name : encoded;
        auto const& rest = how.together ? encoded : encoded_name;
        std::string made;
        made.reserve(before.size() + tag.size() + after.size() + rest.size());
        return made.append(before).append(tag).append(after).append(rest);
    }
    void note_call() noexcept {
        asked.fetch_add(1, std::memory_order_relaxed);
        object.note_use("limiter", milliseconds{rules.ttl_ms});
    }
    /// For keys of one slot.
    task<reply> ask(std::span<std::string_view const> keys, rate_question const& what) {
        note_call();
        auto& owner = *object.owner();
        return ask_rate(owner, *command_limit, rules, rate_slot(owner, keys.front()), keys, what);
    }
    void check_cost(std::int64_t cost) const {
        if (cost >= 1 && cost <= rules.most()) return;
        throw invalid_argument_error(fmt::format("rate limiter '{}': a cost must be 1 to {}, which is all that can be there, not {}", object.name(), rules.most(), cost));
    }

    keyed object;
    rate_limit_options how;
    rate_rules rules;
    std::string before, after, encoded_name;
    block_cache blocked;
    std::shared_ptr<lines> waiting_lines;
    std::shared_ptr<request_limit> command_limit;
    std::shared_ptr<rate_calls> calls;
    local_limits alone;
    std::atomic<std::uint64_t> asked{0}, allowed{0}, refused{0}, refused_locally{0}, without_server{0};
    std::atomic<std::size_t> waiting{0};
};

namespace {

using state = std::shared_ptr<detail::limiter_state>;

using detail::rate_question;
using way = detail::rate_question::way;

void count(detail::limiter_state& of, rate_decision const& made) noexcept {
    (made.allowed ? of.allowed : of.refused).fetch_add(1, std::memory_order_relaxed);
}

/// Without the server.
rate_decision refused_here(detail::limiter_state& of, rate_decision const& made) noexcept {
    of.refused.fetch_add(1, std::memory_order_relaxed);
    of.refused_locally.fetch_add(1, std::memory_order_relaxed);
    return made;
}

/// No server, or one that does not answer.
bool says_nothing_was_heard(error const& problem) noexcept { return problem.reason() == errc::unavailable || problem.reason() == errc::timeout; }

/// What is to be said of these keys when no server has answered. `is_taken`: false: only looks.
std::vector<rate_decision> decided_here(detail::limiter_state& of, std::span<std::string const> full_keys, std::int64_t cost, bool is_taken) {
    std::vector<rate_decision> made;
    if (of.how.on_unavailable == rate_policy::local) {
        made = of.alone.decide(full_keys, cost, is_taken, clock::now());
    } else {
        bool const is_allowed = of.how.on_unavailable == rate_policy::admit;
        rate_decision const one{.allowed = is_allowed,
                                .limit = of.rules.most(),
                                .retry_after = is_allowed ? 0us : 1s,  // it may be there by then
                                .at = std::chrono::system_clock::now(),
                                .local = true};
        made.assign(full_keys.size(), one);
    }
    if (!is_taken) return made;
    of.without_server.fetch_add(made.size(), std::memory_order_relaxed);
    for (auto const& one : made) count(of, one);
    return made;
}

/// Throws it on, unless it is decided here.
void require_policy(detail::limiter_state const& of, error const& problem) {
    if (of.how.on_unavailable == rate_policy::fail || !says_nothing_was_heard(problem)) throw;
}

task<rate_decision> decision(state of, std::string key, std::int64_t cost) {
    auto const sent = clock::now();
    auto const removals = of->blocked.removals();
    if (auto const known = of->blocked.find(key, cost, sent)) co_return refused_here(*of, *known);
    of->note_call();
    auto full_key = of->key_for(key);
    auto const slot = detail::rate_slot(*of->object.owner(), full_key);
    detail::rate_decider asking{of->calls, std::move(full_key), slot, cost};
    try {
        co_await asking;
    } catch (error const& problem) {
        require_policy(*of, problem);
        std::string const keys[] = {asking.full_key};
        co_return decided_here(*of, keys, cost, true).front();
    }
    count(*of, asking.made);
    if (!asking.made.allowed) of->blocked.add(key, cost, asking.made, sent, removals);
    co_return asking.made;
}

// What these ask is asked here and not by who makes the task: its time begins with the question.

task<rate_decision> look(state of, std::string full_key, std::int64_t cost) {
    rate_question const what{.cost = cost, .how = way::look};
    std::string_view const keys[] = {full_key};
    auto asking = of->ask(keys, what);
    reply said;
    try {
        said = co_await std::move(asking);
    } catch (error const& problem) {
        require_policy(*of, problem);
        co_return decided_here(*of, {&full_key, 1}, cost, false).front();
    }
    of->command_limit->answered();
    co_return detail::rate_answer{of->rules, said, 1, what}.next();
}

task<std::vector<rate_decision>> decisions(state of, std::vector<std::string> full_keys, std::int64_t cost) {
    rate_question const what{.cost = cost, .how = way::all};
    std::vector<std::string_view> const keys(full_keys.begin(), full_keys.end());
    auto asking = of->ask(keys, what);
    reply said;
    try {
        said = co_await std::move(asking);
    } catch (error const& problem) {
        require_policy(*of, problem);
        co_return decided_here(*of, full_keys, cost, true);
    }
    of->command_limit->answered();
    detail::rate_answer reading{of->rules, said, keys.size(), what};
    std::vector<rate_decision> made;
    made.reserve(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        made.push_back(reading.next());
        count(*of, made.back());
    }
    co_return made;
}

struct turn_answer {
    bool must_wait(clock::time_point until) const noexcept { return !made.allowed && comes <= until; }

    rate_decision made{};
    std::int64_t brought_to = 0;  ///< ticks: the bucket, by this
    clock::time_point asked{};    ///< before it was
    clock::time_point comes{};    ///< its turn, if nobody else comes
};

/// A place in a bucket that was taken for later. Given back, if it still can be, unless it is used.
class reservation {
public:
    reservation(state of, std::string key, std::int64_t cost, std::int64_t brought_to)
        : of_(std::move(of)), key_(std::move(key)), cost_(cost), brought_to_(brought_to) {}
    reservation(reservation const&) = delete;
    ~reservation() {
        if (!of_ || !of_->object.owner()->same_process()) return;
        try {
            std::string_view const keys[] = {key_};
            detail::argument const words[] = {brought_to_, of_->rules.interval * cost_};
            auto& owner = *of_->object.owner();
            auto terms = detail::rate_terms(owner, *of_->command_limit, detail::rate_slot(owner, key_));
            terms.repeatable = false;  // sent again it could give back what another has taken meanwhile
            auto request = redis::run_script(owner.way(), scripts::rate_return, keys, words, terms);
            start(std::move(request), [](std::exception_ptr, std::optional<reply>) {});
        } catch (...) {
            // It is lost then, as that of a program that dies.
        }
    }
    void use() noexcept { of_.reset(); }

private:
    state of_;
    std::string key_;
    std::int64_t cost_;
    std::int64_t brought_to_;
};

class waiting_count {
public:
    explicit waiting_count(state of) noexcept : of_(std::move(of)) { of_->waiting.fetch_add(1, std::memory_order_relaxed); }
    waiting_count(waiting_count const&) = delete;
    ~waiting_count() { of_->waiting.fetch_sub(1, std::memory_order_relaxed); }

private:
    state of_;
};

/// One question of somebody who waits.
task<turn_answer> ask_for_turn(state of, std::string full_key, std::int64_t cost, clock::time_point until) {
    turn_answer answer{.asked = clock::now()};
    rate_question what{.cost = cost, .how = way::all};
    if (of->rules.is_bucket()) {
        auto const left = std::chrono::floor<microseconds>(until - std::min(until, answer.asked));
        what.ahead = std::min(std::min(left, detail::rate_rules::furthest_reservation).count() * detail::rate_rules::ticks_per_us, of->rules.furthest);
    }
    std::string_view const keys[] = {full_key};
    auto asking = of->ask(keys, what);
    auto const said = co_await std::move(asking);
    of->command_limit->answered();
    answer.made = detail::rate_answer{of->rules, said, 1, what}.next();
    answer.comes = clock::now() + answer.made.retry_after;
    if (of->rules.is_bucket()) answer.brought_to = detail::bucket_after(said);
    co_return answer;
}

/// It was allowed; goes on when its time has come.
task<rate_decision> take_turn(state of, std::string full_key, std::int64_t cost, turn_answer given) {
    auto made = given.made;
    if (made.retry_after.count() > 0) {
        reservation mine{of, std::move(full_key), cost, given.brought_to};
        engine::pause rest{of->object.owner(), std::chrono::ceil<milliseconds>(made.retry_after)};
        co_await rest;
        mine.use();
        made.retry_after = microseconds{0};
    }
    count(*of, made);
    co_return made;
}

/// Of the first in a line: asks until it has its turn, or knows that it comes too late. `given`: what it was told before it came here.
task<turn_answer> lead_line(state of, detail::place& mine, std::string full_key, std::int64_t cost, clock::time_point until, std::optional<turn_answer> given) {
    // A place in a bucket can be had that much earlier than its time comes.
    auto const early = of->rules.is_bucket() ? microseconds{of->rules.furthest / detail::rate_rules::ticks_per_us} : microseconds{0};
    while (!given || given->must_wait(until)) {
        bool is_due = true;
        if (given) {
            mine.tell(given->made, given->asked);
            // A moment more than needed, so that it is not asked for in vain.
            auto const rests = std::chrono::ceil<milliseconds>(given->comes - early - clock::now());
            if (rests.count() > 0) {
                auto resting = detail::doorbell::wait(of->object.owner(), mine.bell(), std::min(rests, longest_rest));
                co_await std::move(resting);
                is_due = given->comes - early <= clock::now() + 10ms;  // a rest counts from when its turn began
            }
        }
        auto const asked = clock::now();
        try {
            auto asking = ask_for_turn(of, full_key, cost, until);
            given = co_await std::move(asking);
        } catch (error const& problem) {
            bool const is_away = says_nothing_was_heard(problem);
            // Else each behind it would find out for itself, one after the other.
            if (is_away && is_due) mine.fail_those_behind(asked, std::current_exception());
            if (is_due || !(is_away || problem.reason() == errc::server)) throw;  // otherwise it goes on resting: it has only looked whether something changed
        }
    }
    co_return *given;
}

task<rate_decision> wait_for_turn(state of, std::string key, std::int64_t cost, clock::time_point until) {
    waiting_count const counted{of};
    auto const full_key = of->key_for(key);
    engine::pause turn{of->object.owner(), 0ms};
    co_await turn;
    std::optional<turn_answer> given;
    auto const rings = of->waiting_lines->rings();
    // A bucket keeps those who ask in order by itself, however many ask at once, and needs the line only when it has none of its near future left.
    // Who has no time left asks as `try_acquire` does.
    if (until <= clock::now() || (of->rules.is_bucket() && !of->waiting_lines->has(key))) {
        auto asking = ask_for_turn(of, full_key, cost, until);
        given = co_await std::move(asking);
    }
    if (!given || given->must_wait(until)) {
        detail::place mine{of->waiting_lines, key, until};
        co_await mine;
        task<turn_answer> going_on;
        if (mine.is_first()) {
            if (of->waiting_lines->rings() != rings) given.reset();  // nobody could tell it, as it was not here
            going_on = lead_line(of, mine, full_key, cost, until, given);
        } else if (auto const& news = mine.news()) {
            co_return refused_here(*of, detail::repeated(news->said, clock::now() - news->asked));
        } else {
            going_on = ask_for_turn(of, full_key, cost, until);  // its time is over and there is nothing that it could be told
        }
        given = co_await std::move(going_on);
    }
    if (!given->made.allowed) {
        count(*of, given->made);
        co_return given->made;
    }
    auto taking = take_turn(of, full_key, cost, *given);
    co_return co_await std::move(taking);
}

/// The same, and when no server answers it is decided here. `must_wait`: a refusal is of no use.
task<rate_decision> wait_with_policy(state of, std::string key, std::int64_t cost, clock::time_point until, bool must_wait) {
    std::string const full_keys[] = {of->key_for(key)};
    while (true) {
        auto waiting = wait_for_turn(of, key, cost, until);
        try {
            co_return co_await std::move(waiting);
        } catch (error const& problem) {
            require_policy(*of, problem);
            if (must_wait && of->how.on_unavailable == rate_policy::refuse) throw;
        }
        auto const made = decided_here(*of, full_keys, cost, true).front();
        bool const comes = of->how.on_unavailable == rate_policy::local && made.retry_after <= until - clock::now();
        if (made.allowed || !comes) co_return made;
        engine::pause rest{of->object.owner(), std::chrono::ceil<milliseconds>(made.retry_after)};
        co_await rest;
    }
}

task<rate_decision> wait_within_limit(state of, std::string key, std::int64_t cost) {
    auto const limit = of->how.wait_limit;
    auto const until = limit.count() == 0 ? clock::time_point::max() : detail::time_after(limit);
    auto waiting = wait_with_policy(of, key, cost, until, true);
    auto const made = co_await std::move(waiting);
    if (!made.allowed) {
        throw timeout_error(fmt::format("rate limiter '{}': the turn of '{}' does not come within {} ms", of->object.name(), key, limit.count()));
    }
    co_return made;
}

task<void> forget(state of, std::string key, std::string full_key) {
    auto& owner = *of->object.owner();
    // Also if it is not known whether the server has: then it is asked.
    struct forgotten_here {
        detail::limiter_state& of;
        std::string const& key;
        ~forgotten_here() {
            of.blocked.remove(key);
            of.object.owner()->home().in_turn([this] { of.waiting_lines->ring(key); });
        }
    };
    forgotten_here const at_the_end{*of, key};
    detail::argument const words[] = {"UNLINK", full_key};
    auto terms = detail::rate_terms(owner, *of->command_limit, detail::rate_slot(owner, full_key));
    terms.repeatable = false;  // sent again it would forget what was counted since, and admit that much too often
    auto request = redis::run_command(owner.way(), words, terms);
    co_await std::move(request);
}

}  // namespace

rate_limiter::rate_limiter(client& by, std::string_view name, rate_limit_options const& options) {
    check(name, options);
    state_ = std::make_shared<detail::limiter_state>(by, name, options);
}

rate_decision rate_limiter::try_acquire(std::string_view key, std::int64_t cost, std::stop_token token) {
    state_->object.require_blocking();
    return sync_wait(async_try_acquire(key, cost), std::move(token));
}
task<rate_decision> rate_limiter::async_try_acquire(std::string_view key, std::int64_t cost) {
    state_->object.require_usable();
    state_->check_cost(cost);
    base::check_name(key);
    return decision(state_, std::string{key}, cost);
}

std::vector<rate_decision> rate_limiter::try_acquire_all(std::span<std::string_view const> keys, std::int64_t cost, std::stop_token token) {
    state_->object.require_blocking();
    return sync_wait(async_try_acquire_all(keys, cost), std::move(token));
}
task<std::vector<rate_decision>> rate_limiter::async_try_acquire_all(std::span<std::string_view const> keys, std::int64_t cost) {
    state_->object.require_usable();
    state_->check_cost(cost);
    auto const different = std::unordered_set<std::string_view>(keys.begin(), keys.end()).size();
    if (keys.empty() || keys.size() > most_keys || different != keys.size()) {
        throw invalid_argument_error(fmt::format("rate limiter '{}': 1 to {} different keys at once, not {}", state_->object.name(), most_keys,
                                                 different == keys.size() ? fmt::to_string(keys.size()) : "one twice"));
    }
    for (auto const key : keys) base::check_name(key);  // before any is asked for
    if (!state_->how.together) {
        std::vector<task<rate_decision>> each;
        each.reserve(keys.size());
        for (auto const key : keys) each.push_back(decision(state_, std::string{key}, cost));
        return when_all(std::move(each));
    }
    std::vector<std::string> full_keys;
    full_keys.reserve(keys.size());
    for (auto const key : keys) full_keys.push_back(state_->key_for(key));
    return decisions(state_, std::move(full_keys), cost);
}

rate_decision rate_limiter::acquire(std::string_view key, std::int64_t cost, std::stop_token token) {
    state_->object.require_blocking();
    return sync_wait(async_acquire(key, cost), std::move(token));
}
task<rate_decision> rate_limiter::async_acquire(std::string_view key, std::int64_t cost) {
    state_->object.require_usable();
    state_->check_cost(cost);
    base::check_name(key);
    return wait_within_limit(state_, std::string{key}, cost);
}

rate_decision rate_limiter::wait_until_steady(std::string_view key, std::int64_t cost, clock::time_point until, std::stop_token token) {
    state_->object.require_blocking();
    return sync_wait(async_wait_until_steady(key, cost, until), std::move(token));
}
task<rate_decision> rate_limiter::async_wait_until_steady(std::string_view key, std::int64_t cost, clock::time_point until) {
    if (until <= clock::now()) return async_try_acquire(key, cost);
    state_->object.require_usable();
    state_->check_cost(cost);
    base::check_name(key);
    return wait_with_policy(state_, std::string{key}, cost, until, false);
}

rate_decision rate_limiter::peek(std::string_view key, std::int64_t cost, std::stop_token token) const {
    state_->object.require_blocking();
    return sync_wait(async_peek(key, cost), std::move(token));
}
task<rate_decision> rate_limiter::async_peek(std::string_view key, std::int64_t cost) const {
    state_->object.require_usable();
    state_->check_cost(cost);
    return look(state_, state_->key_for(key), cost);
}

void rate_limiter::reset(std::string_view key, std::stop_token token) {
    state_->object.require_blocking();
    sync_wait(async_reset(key), std::move(token));
}
task<void> rate_limiter::async_reset(std::string_view key) {
    state_->object.require_usable();
    return forget(state_, std::string{key}, state_->key_for(key));
}

rate_limiter_statistics rate_limiter::statistics() const {
    auto const& of = *state_;
    return {.asked = of.asked, .allowed = of.allowed, .refused = of.refused, .refused_locally = of.refused_locally, .without_server = of.without_server, .blocked_keys = of.blocked.size(), .waiting = of.waiting};
}

}  // namespace lockstep
