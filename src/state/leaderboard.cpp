#include <lockstep/leaderboard.hpp>

#include "lease/pause.hpp"
#include "scripts/all.hpp"
#include "state/calendar.hpp"
#include "state/state_object.hpp"

#include <lockstep/codec.hpp>
#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

class detail::leaderboard_state final : public detail::state_object {
public:
    leaderboard_state(client& by, std::string_view name, leaderboard_options const& options) : state_object(by, name, "board"), how(options) {
        require_time(*this, "retention", how.retention, 1ms);
    }

    int sign() const noexcept { return how.order == leaderboard_order::highest_first ? -1 : 1; }
    bool by_time() const noexcept { return how.ties == leaderboard_ties::earlier_first; }
    std::string_view ties() const noexcept { return by_time() ? "earlier" : "member"; }
    std::string format() const { return fmt::format("board 1 {} {}", ties(), sign()); }
    std::string key_in(time_span const& span) const { return span.label.empty() ? key() : key_of(span.label); }
    bool is_current() const noexcept { return back == 0 && !time_ms; }

    leaderboard_options how;
    unsigned back = 0;                      ///< periods ago
    std::optional<std::int64_t> time_ms{};  ///< or the one of this time
};

namespace {

using state = std::shared_ptr<detail::leaderboard_state const>;
using detail::span_of;
using detail::time_span;

constexpr std::uint64_t most = 1'000'000'000;

double number(reply_view text) { return codec<double>::decode(text.text()); }

// ---- changes

task<reply> run_change(state at, std::string what, std::string member, double score) {
    engine::pause turn{at->owner(), 0ms};
    co_await turn;
    while (true) {
        auto const span = span_of(at->how.period, at->clock().now());
        auto const key = at->key_in(span);
        detail::change request{.script = &scripts::board_change,
                               .keys = {key, key + ":about"},
                               .words = {at->rules(at->how.retention), std::to_string(span.from_ms), std::to_string(span.until_ms), std::string{at->ties()},
                                         std::to_string(at->sign()), what, member, codec<double>::encode(score)}};
        auto changing = detail::change_once(at, std::move(request));
        auto said = co_await std::move(changing);
        if (said[0].text() == "period") continue;  // it did not count, and now the server's time is known
        if (said.size() != 5) detail::throw_unexpected_answer(*at);
        co_return said;
    }
}

task<score_change> run_score(state at, std::string what, std::string member, double score) {
    auto changing = run_change(std::move(at), std::move(what), std::move(member), score);
    auto const said = co_await std::move(changing);
    co_return score_change{number(said[3]), static_cast<std::uint64_t>(said[1].integer() + 1), said[4].integer() == 1};
}

task<bool> run_remove(state at, std::string member) {
    auto changing = run_change(std::move(at), "remove", std::move(member), 0);
    auto const said = co_await std::move(changing);
    co_return said[4].integer() == 1;
}

void check_change(detail::leaderboard_state const& at, std::string_view member, double score) {
    at.require_usable();
    if (!at.is_current()) throw invalid_argument_error(fmt::format("board '{}': only the board of the current period can be changed", at.name()));
    if (member.empty()) throw invalid_argument_error(fmt::format("board '{}': a member has a name", at.name()));
    if (!std::isfinite(score)) throw invalid_argument_error(fmt::format("board '{}': a score is a number, not {}", at.name(), score));
}

task<score_change> begin(state const& at, std::string what, std::string_view member, double score) {
    check_change(*at, member, score);
    return run_score(at, std::move(what), std::string{member}, score);
}

// ---- reading

struct question {
    std::string what;
    std::string first;
    std::string last;
    std::uint64_t skip = 0;
    std::uint64_t count = 0;
};

/// Goes on with board_read's answer.
task<reply> run_ask(state at, question asked) {
    engine::pause turn{at->owner(), 0ms};
    co_await turn;
    while (true) {
        auto const now = span_of(at->how.period, at->clock().now());
        auto which = at->time_ms ? span_of(at->how.period, *at->time_ms) : now;
        for (unsigned i = 0; i < at->back && which.until_ms != 0; ++i) which = span_of(at->how.period, which.from_ms - 1);
        auto const key = at->key_in(which);
        auto const about = key + ":about";
        auto const format = at->format();
        std::string_view const keys[] = {key, about};
        detail::argument const words[] = {format,      asked.what,   asked.first, asked.last, asked.skip, asked.count,
                                          now.from_ms, at->time_ms ? std::int64_t{0} : now.until_ms};
        auto asking = at->run(scripts::board_read, keys, words, {});
        auto said = co_await std::move(asking);
        if (said.size() < 2) detail::throw_unexpected_answer(*at);
        if (said[0].integer() != -1) co_return said;
        at->clock().learn(said[1].integer());
    }
}

task<std::vector<standing>> run_list(state at, question asked) {
    auto asking = run_ask(at, std::move(asked));
    auto const said = co_await std::move(asking);
    std::vector<standing> found;
    auto rank = static_cast<std::uint64_t>(said[1].integer());
    auto next = said.begin();
    ++next, ++next;
    for (auto left = said.size() - 2; left > 1; left -= 2) {
        auto member = (*next++).text();
        if (at->by_time()) member.remove_prefix(std::min<std::size_t>(16, member.size()));
        found.push_back({std::string{member}, at->sign() * number(*next++) + 0.0, ++rank});
    }
    co_return found;
}

task<std::vector<standing>> reversed(task<std::vector<standing>> listing) {
    auto found = co_await std::move(listing);
    std::reverse(found.begin(), found.end());
    co_return found;
}

task<std::optional<standing>> only(task<std::vector<standing>> listing) {
    auto found = co_await std::move(listing);
    if (found.empty()) co_return std::nullopt;
    co_return std::move(found.front());
}

task<std::uint64_t> run_size(state at) {
    question asked{.what = "count", .first = "-inf", .last = "+inf"};
    auto asking = run_ask(std::move(at), std::move(asked));
    auto const said = co_await std::move(asking);
    co_return static_cast<std::uint64_t>(said[0].integer());
}

task<std::vector<standing>> nobody() { co_return std::vector<standing>{}; }

}  // namespace

leaderboard::leaderboard(client& by, std::string_view name, leaderboard_options const& options)
    : state_(std::make_shared<detail::leaderboard_state const>(by, name, options)) {}
leaderboard::leaderboard(std::shared_ptr<detail::leaderboard_state const> state) noexcept : state_(std::move(state)) {}

score_change leaderboard::add(std::string_view member, double score, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_add(member, score), std::move(token));
}
task<score_change> leaderboard::async_add(std::string_view member, double score) { return begin(state_, "set", member, score); }

score_change leaderboard::increment(std::string_view member, double by, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_increment(member, by), std::move(token));
}
task<score_change> leaderboard::async_increment(std::string_view member, double by) { return begin(state_, "add", member, by); }

score_change leaderboard::best_of(std::string_view member, double score, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_best_of(member, score), std::move(token));
}
task<score_change> leaderboard::async_best_of(std::string_view member, double score) { return begin(state_, "best", member, score); }

bool leaderboard::remove(std::string_view member, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_remove(member), std::move(token));
}
task<bool> leaderboard::async_remove(std::string_view member) {
    check_change(*state_, member, 0);
    return run_remove(state_, std::string{member});
}

std::vector<standing> leaderboard::top(std::uint64_t count, std::uint64_t skip, std::stop_token token) const {
    state_->require_blocking();
    return sync_wait(async_top(count, skip), std::move(token));
}
task<std::vector<standing>> leaderboard::async_top(std::uint64_t count, std::uint64_t skip) const {
    state_->require_usable();
    if (count == 0) return nobody();
    auto const first = std::min(skip, most);
    return run_list(state_, {.what = "places", .first = std::to_string(first), .last = std::to_string(first + std::min(count, most) - 1)});
}

std::vector<standing> leaderboard::bottom(std::uint64_t count, std::stop_token token) const {
    state_->require_blocking();
    return sync_wait(async_bottom(count), std::move(token));
}
task<std::vector<standing>> leaderboard::async_bottom(std::uint64_t count) const {
    state_->require_usable();
    if (count == 0) return nobody();
    return reversed(run_list(state_, {.what = "places", .first = "-" + std::to_string(std::min(count, most)), .last = "-1"}));
}

std::optional<standing> leaderboard::find(std::string_view member, std::stop_token token) const {
    state_->require_blocking();
    return sync_wait(async_find(member), std::move(token));
}
task<std::optional<standing>> leaderboard::async_find(std::string_view member) const { return only(async_around(member, 0)); }

std::vector<standing> leaderboard::around(std::string_view member, std::uint64_t count, std::stop_token token) const {
    state_->require_blocking();
    return sync_wait(async_around(member, count), std::move(token));
}
task<std::vector<standing>> leaderboard::async_around(std::string_view member, std::uint64_t count) const {
    state_->require_usable();
    return run_list(state_, {.what = "around", .first = std::string{member}, .last = std::to_string(std::min(count, most))});
}

std::vector<standing> leaderboard::range(score_range which, std::stop_token token) const {
    state_->require_blocking();
    return sync_wait(async_range(which), std::move(token));
}
task<std::vector<standing>> leaderboard::async_range(score_range which) const {
    state_->require_usable();
    if (std::isnan(which.lowest) || std::isnan(which.highest)) {
        throw invalid_argument_error(fmt::format("board '{}': lowest and highest must be numbers", state_->name()));
    }
    if (which.count == 0) return nobody();
    bool const upwards = state_->sign() == 1;
    return run_list(state_, {.what = "scores",
                             .first = codec<double>::encode(upwards ? which.lowest : -which.highest),
                             .last = codec<double>::encode(upwards ? which.highest : -which.lowest),
                             .skip = std::min(which.skip, most),
                             .count = std::min(which.count, most)});
}

std::uint64_t leaderboard::size(std::stop_token token) const {
    state_->require_blocking();
    return sync_wait(async_size(), std::move(token));
}
task<std::uint64_t> leaderboard::async_size() const {
    state_->require_usable();
    return run_size(state_);
}

leaderboard leaderboard::previous(unsigned periods) const {
    if (state_->how.period == leaderboard_period::all_time) {
        throw invalid_argument_error(fmt::format("board '{}' has no periods, and so no previous one", state_->name()));
    }
    auto earlier = std::make_shared<detail::leaderboard_state>(*state_);
    earlier->back += periods;
    return leaderboard{std::move(earlier)};
}

leaderboard leaderboard::at(std::chrono::system_clock::time_point time) const {
    auto other = std::make_shared<detail::leaderboard_state>(*state_);
    other->back = 0;
    other->time_ms = std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count();
    return leaderboard{std::move(other)};
}

}  // namespace lockstep
