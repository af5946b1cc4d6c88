#include "lease/registration.hpp"

#include "base/host.hpp"
#include "base/names.hpp"
#include "base/random.hpp"
#include "lease/gate.hpp"
#include "lease/hub.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"
#include "scripts/all.hpp"

#include <lockstep/version.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <utility>

namespace lockstep::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds first_after{1'000};
constexpr milliseconds early{2'000};  // it may be said so much earlier than is due
constexpr milliseconds at_most_every{100};
constexpr milliseconds longest_watch{600'000};
constexpr milliseconds keep_statistics{24 * 3'600'000};
constexpr std::size_t most_names = 10'000;     // of statistics at the server
constexpr std::size_t names_of_a_request = 25;  // about a millisecond of the server's time
constexpr std::size_t requests_at_once = 20;

/// Without an answer to wait for: what is lost is said again next time. Only one that closes waits for it, and not for long.
void say(hub& from, scripts::script const& script, std::vector<std::string> const& keys, std::vector<std::string> const& words,
         bool repeatable = true) {
    auto& to = from.owner();
    std::vector<std::string_view> const key_views{keys.begin(), keys.end()};
    std::vector<detail::argument> const arguments{words.begin(), words.end()};
    redis::command_terms const terms{.deadline = to.deadline({}),
                                     .slot = static_cast<std::int16_t>(redis::key_slot(keys.front())),
                                     .repeatable = repeatable,
                                     .errors_are_replies = true};
    from.see_to(redis::run_script(to.way(), script, key_views, arguments, terms));
}

/// The lines of one list, each of one name and one use of it.
class summary {
public:
    struct line {
        std::string_view kind, use, name;
        std::int64_t number = 0, permits = 0;
        std::uint64_t fence = 0;
        milliseconds waited{0};
    };

    /// `where` tells names apart. Beyond the limit names are not looked at, only counted.
    void add(void const* where, line const& more) {
        total_ += more.number;
        auto const key = std::pair{where, more.use};
        auto const found = places_.find(key);
        if (found == places_.end()) {
            if (lines_.size() == registration::most_lines) return;
            places_.emplace(key, lines_.size());
            lines_.push_back(more);
            return;
        }
        auto& sum = lines_[found->second];
        sum.number += more.number;
        sum.permits += more.permits;
        sum.fence = std::max(sum.fence, more.fence);
        sum.waited = std::max(sum.waited, more.waited);
    }

    std::int64_t total() const noexcept { return total_; }

    struct written {
        std::string text;
        std::int64_t left_out;
    };
    written write(bool with_fences) const {
        written all{{}, total_};
        for (auto const& one : lines_) {
            auto text = fmt::format("{} {} {} {} ", one.kind, one.use, one.number, one.permits);
            text += with_fences ? fmt::format("{} ", one.fence) : fmt::format("{} ", one.waited.count());
            text += base::encode_name(one.name) + '\n';
            if (all.text.size() + text.size() > registration::most_bytes) continue;
            all.text += text;
            all.left_out -= one.number;
        }
        return all;
    }

private:
    std::vector<line> lines_;
    std::map<std::pair<void const*, std::string_view>, std::size_t> places_;
    std::int64_t total_ = 0;
};

summary::line line_of(room const& where, std::int64_t amount, std::int64_t number = 1) {
    auto const& kind = where.kind();
    return {.kind = kind.word,
            .use = use_of(kind, amount),
            .name = where.name(),
            .number = number,
            .permits = kind.word == "semaphore" ? number * amount : number};
}

/// Of the client of `lockstep run` whose command this process is or belongs to. Read once: other threads of the program may change the environment later.
std::string parent_id() {
    auto const* const text = std::getenv("LOCKSTEP_PARENT");
    std::string_view const id = text != nullptr ? text : "";
    auto const is_id_char = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
    return id.size() <= 64 && std::all_of(id.begin(), id.end(), is_id_char) ? std::string{id} : std::string{};
}

}  // namespace

registration::registration(hub& home) : hub_(home), parent_(parent_id()), pace_(at_most_every) {}

void registration::begin_now() noexcept {
    if (!begun_.exchange(true) && hub_.is_monitored()) hub_.reactor().hand_in(*this);
}

void registration::arrive() noexcept {
    if (!hub_.is_closing()) hub_.reactor().arm(*this, hub_.reactor().now() + first_after);
}

void registration::end() noexcept {
    begun_ = true;  // it does not begin any more
    hub_.reactor().take_back(*this);
    hub_.reactor().disarm(*this);
    send_statistics();
    hub_.counting().give_up_names();
    send_statistics();
    if (!std::exchange(said_, false)) return;
    say(hub_, scripts::client_leave, keys(), {hub_.client_id()});
}

void registration::go_along() noexcept {
    if (!said_ || !linked() || due() - hub_.reactor().now() > early) return;
    hub_.reactor().disarm(*this);
    fire();
}

void registration::watched(std::string_view terms) noexcept {
    std::int64_t time = 0;
    std::int64_t pace = 0;
    auto const* const end = terms.data() + terms.size();
    auto const* const after = std::from_chars(terms.data(), end, time).ptr;
    if (after != end) std::from_chars(after + 1, end, pace);
    if (time <= 0 || !said_) return;
    auto const now = hub_.reactor().now();
    is_watched_ = true;
    watched_until_ = std::max(watched_until_, now + std::min(milliseconds{time}, longest_watch));
    if (pace <= 0) return arm_by(std::max(now, said_at_ + at_most_every));  // somebody wants to know what this one does
    pace_ = std::clamp(milliseconds{pace}, at_most_every, interval);
    hub_.owner().objects().hurry(pace_, watched_until_);
    say_at(now + milliseconds{base::random_below(static_cast<std::uint64_t>(pace_.count()))});
}

void registration::arm_by(redis::reactor::clock::time_point when) noexcept {
    if (!hub_.is_closing() && (!linked() || due() > when)) hub_.reactor().arm(*this, when);
}

void registration::say_soon() noexcept { say_at(hub_.reactor().now()); }
void registration::say_at(redis::reactor::clock::time_point when) noexcept { arm_by(std::max(when, said_at_ + pace_)); }

void registration::fire() noexcept {
    if (hub_.is_closing()) return;
    said_at_ = hub_.reactor().now();
    is_watched_ = is_watched_ && said_at_ < watched_until_;
    if (!is_watched_) pace_ = at_most_every;
    if (!std::exchange(said_, true)) hub_.listen();
    say(hub_, scripts::client_register, keys(), describe());
    if (said_at_ - counted_at_ >= interval / 2) {  // not each time that somebody watches
        counted_at_ = said_at_;
        send_statistics();
    }
    hub_.reactor().arm(*this, said_at_ + interval);
}

void registration::send_statistics() noexcept {
    hub_.counting().merge();
    for (std::size_t i = 0; i < requests_at_once && !hub_.counting().empty(); ++i) {
        auto const counted = hub_.counting().take(names_of_a_request);
        std::vector<std::string> words{fmt::format("{}", keep_statistics.count()), fmt::format("{}", most_names)};
        words.insert(words.end(), counted.begin(), counted.end());
        say(hub_, scripts::statistics_add, {base::key_name(hub_.owner().options().prefix, "statistics", "names")}, words, false);
    }
}

std::vector<std::string> registration::keys() const {
    auto const& prefix = hub_.owner().options().prefix;
    return {base::key_name(prefix, "clients", hub_.client_id()), base::key_name(prefix, "clients", "index")};
}

std::vector<std::string> registration::describe() const {
    summary holds;
    summary waits;
    // Names are views into rooms and gates, so nothing of these may go before all is written.
    auto const gates = hub_.gates();
    auto const age = [now = hub_.reactor().now()](redis::reactor::clock::time_point since) {
        return std::chrono::duration_cast<milliseconds>(now - since);
    };
    hub_.for_each_hold([&](hold const& one) {
        auto const& where = *one.what()->where;
        if (one.now() == hold::state::held) {
            auto line = line_of(where, one.permits);
            line.fence = one.fence;
            holds.add(&where, line);
        } else if (one.wanted_by != nullptr) {
            auto line = line_of(where, one.permits);
            line.waited = age(one.wanted_by->since());
            waits.add(&where, line);
        }
        // Those who share a hold wait in the room, and it is one of theirs: the one that asks for them or the one that one of them has.
        if (auto const sharing = where.sharing(one); sharing != 0) {
            auto line = line_of(where, 1, sharing);
            line.waited = age(where.waits_since());
            waits.add(&where, line);
        }
    });
    for (auto const& gate : gates) {
        gate->for_each_visitor([&](visitor const& one) {
            waits.add(gate.get(), {.kind = gate->word(),
                                   .use = gate->purpose(one),
                                   .name = gate->name(),
                                   .number = 1,
                                   .permits = 1,
                                   .waited = age(one.since())});
        });
    }
    auto const since = std::chrono::duration_cast<milliseconds>(hub_.owner().since().time_since_epoch()).count();
    auto const held = holds.write(true);
    auto const waiting = waits.write(false);
    return {hub_.client_id(),
            fmt::format("{}", kept.count()),
            is_watched_ ? hub_.owner().options().prefix + ":news" : "",
            "name", hub_.owner().client_name(),
            "host", base::host_name(),
            "pid", fmt::format("{}", ::getpid()),
            "since", fmt::format("{}", since),
            "version", LOCKSTEP_VERSION_STRING,
            "held", fmt::format("{}", holds.total()),
            "waiting", fmt::format("{}", waits.total()),
            "holds", held.text,
            "waits", waiting.text,
            "parent", parent_,
            "holds_left_out", fmt::format("{}", held.left_out),
            "waits_left_out", fmt::format("{}", waiting.left_out)};
}

}  // namespace lockstep::engine
