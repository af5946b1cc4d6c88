#include "election/observation.hpp"

#include "base/stored_time.hpp"
#include "core/subscription.hpp"
#include "election/who.hpp"
#include "lease/pause.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"
#include "resp/cursor.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

// Changes are read from the stream, in order and each once. That there are new ones is told by a push, which is only a hint: after a
// reconnect, and every few seconds, it looks without one.
//
// Another server may have taken over that had not heard of the latest changes, and whose clock is behind: then those are gone, and newer ones
// have smaller positions. So what was read last is looked for after a reconnect. Where it is not there any more, all is read again: whatever
// comes behind the last change that is known, by its term and what it was, is new.

namespace lockstep {
namespace detail {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds looks_every = 3s;
constexpr std::size_t at_once = 100;
constexpr std::size_t most_known = 200;

}  // namespace

leader_change read_change(std::string_view id, reply_view fields) {
    leader_change made;
    made.position = id;
    for (resp::cursor rest{fields}; rest.left() >= 2;) {
        auto const field = rest.next().text();
        auto const value = rest.next().text();
        if (field == "what") {
            using enum leader_change::kind;
            for (auto const one : {elected, resigned, lost, removed}) {
                if (to_string(one) == value) made.what = one;
            }
        }
        if (field == "term") std::from_chars(value.data(), value.data() + value.size(), made.term);
        if (field == "who") read_who(value, made.pid, made.host, made.id);
        if (field == "ms") {
            std::int64_t ms = 0;
            std::from_chars(value.data(), value.data() + value.size(), ms);
            made.at = base::time_of_ms(ms);
        }
    }
    return made;
}

void observation_state::stop() noexcept {
    stopped_ = true;
    end();
    if (runs_on_ == std::this_thread::get_id()) return;
    std::lock_guard const guard{running_};  // until the handler has returned
}

void observation_state::tell(leader_change const& what) noexcept {
    std::lock_guard const guard{running_};
    if (stopped_) return;
    runs_on_ = std::this_thread::get_id();
    try {
        handler_(what);
    } catch (std::exception const& problem) {
        log(log_level::error, fmt::format("the handler of an observation threw: {}", problem.what()));
    } catch (...) {
        log(log_level::error, "the handler of an observation threw");
    }
    runs_on_ = std::thread::id{};
}

namespace {

class stream_observation final : public observation_state, public std::enable_shared_from_this<stream_observation> {
public:
    stream_observation(std::shared_ptr<core> owner, std::string key, handler told, std::string after)
        : observation_state(std::move(told)), owner_(std::move(owner)), key_(std::move(key)), after_(std::move(after)) {}

    static task<void> begin(std::shared_ptr<stream_observation> self) {
        auto listening = self->listen();
        self->ear_ = co_await std::move(listening);
        auto looking = self->until(self->after_.empty() ? "+" : self->after_);
        auto const latest = co_await std::move(looking);
        std::vector<leader_change> changes;
        for (auto const entry : latest) changes.push_back(read_change(entry[0].text(), entry[1]));
        for (auto one = changes.rbegin(); one != changes.rend(); ++one) self->remember(std::move(*one));
        if (self->after_.empty()) self->after_ = self->known_.empty() ? "0-0" : self->known_.back().position;
        self->look();
        start(look_now_and_then(self->owner_, self), [](std::exception_ptr) {});
    }

private:
    void end() noexcept override { ear_.unsubscribe(); }

    task<subscription> listen() {
        auto const weak = weak_from_this();
        subscription_options how;
        how.channel = key_;
        how.kind = owner_->is_cluster() ? subscription_kind::shard : subscription_kind::channel;
        how.handler = [weak](message const&) {
            if (auto const self = weak.lock()) self->look();
        };
        how.on_gap = [weak] {
            auto const self = weak.lock();
            if (!self) return;
            self->gap_ = true;
            self->look();
        };
        return open_subscription(owner_, std::move(how));
    }

    // In turns.
    void look() noexcept {
        again_ = true;
        if (is_stopped() || std::exchange(looking_, true)) return;
        start(read(shared_from_this()), [self = shared_from_this()](std::exception_ptr const& problem) {
            self->looking_ = false;
            self->gap_ = self->gap_ || problem;
        });
    }

    static task<void> look_now_and_then(std::shared_ptr<core> owner, std::weak_ptr<stream_observation> which) {
        while (true) {
            engine::pause rest{owner, looks_every};
            co_await rest;
            auto const self = which.lock();
            if (!self || self->is_stopped()) co_return;
            self->look();
        }
    }

    task<reply> ask(std::vector<std::string> const& words) const {
        std::vector<argument> const arguments(words.begin(), words.end());
        auto const slot = static_cast<std::int16_t>(redis::key_slot(key_));
        return redis::run_command(owner_->way(), arguments,
                                  {.deadline = owner_->deadline({}), .slot = owner_->is_cluster() ? slot : std::int16_t{-1}, .repeatable = true});
    }

    /// The latest changes up to a position, the last one first.
    task<reply> until(std::string const& position) const {
        std::vector<std::string> const words{"XREVRANGE", key_, position, "-", "COUNT", std::to_string(at_once)};
        return ask(words);
    }
    /// Those from one position to another.
    task<reply> range(std::string const& from, std::string const& to) const {
        std::vector<std::string> const words{"XRANGE", key_, from, to, "COUNT", std::to_string(at_once)};
        return ask(words);
    }

    void remember(leader_change one) {
        if (known_.size() == most_known) known_.erase(known_.begin(), known_.begin() + most_known / 2);
        known_.push_back(std::move(one));
    }
    bool is_known(leader_change const& one) const noexcept {
        return std::any_of(known_.begin(), known_.end(), [&](auto const& other) { return other.term == one.term && other.what == one.what; });
    }

    static task<void> read(std::shared_ptr<stream_observation> self) {
        while (std::exchange(self->again_, false) && !self->is_stopped()) {
            if (std::exchange(self->gap_, false)) {
                auto looking = self->range(self->after_, self->after_);
                auto const there = co_await std::move(looking);
                if (there.size() == 0) {
                    auto reading = read_again(self);
                    co_await std::move(reading);
                }
            }
            auto asking = self->range("(" + self->after_, "+");
            auto const said = co_await std::move(asking);
            for (auto const entry : said) self->tell_of(read_change(entry[0].text(), entry[1]));
            if (said.size() == at_once) self->again_ = true;
        }
    }

    static task<void> read_again(std::shared_ptr<stream_observation> self) {
        std::vector<leader_change> all;
        std::size_t known = 0;  // of them, up to the last one that is
        for (bool more = true; more;) {
            auto const from = all.empty() ? std::string{"-"} : "(" + all.back().position;
            auto reading = self->range(from, "+");
            auto const said = co_await std::move(reading);
            for (auto const entry : said) {
                all.push_back(read_change(entry[0].text(), entry[1]));
                if (self->is_known(all.back())) known = all.size();
            }
            more = said.size() == at_once;
        }
        self->after_ = known == 0 ? "0-0" : all[known - 1].position;
        for (auto i = known; i != all.size(); ++i) self->tell_of(std::move(all[i]));
    }

    void tell_of(leader_change one) {
        after_ = one.position;
        tell(one);
        remember(std::move(one));
    }

    std::shared_ptr<core> owner_;
    std::string key_;
    std::string after_;
    std::vector<leader_change> known_;  // the latest
    subscription ear_;
    bool looking_ = false;
    bool again_ = false;
    bool gap_ = true;  // also before the first look: the position may be of a server that is gone
};

task<observation> run_begin(std::shared_ptr<stream_observation> state) {
    observation made{state};  // ended if this does not come to its end
    auto beginning = stream_observation::begin(std::move(state));
    co_await std::move(beginning);
    co_return made;
}

/// Empty, <number> or <number>-<number>.
bool is_position(std::string_view text) noexcept {
    auto const is_number = [](std::string_view part) {
        return !part.empty() && part.size() <= 20 && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    if (text.empty()) return true;
    auto const middle = text.find('-');
    return is_number(text.substr(0, middle)) && (middle == std::string_view::npos || is_number(text.substr(middle + 1)));
}

}  // namespace

task<observation> begin_observation(std::shared_ptr<core> owner, std::string key, std::function<void(leader_change const&)> handler, std::string after) {
    if (!handler) throw invalid_argument_error("the observation has no handler");
    if (!is_position(after)) throw invalid_argument_error(fmt::format("'{}' is no position of a change; take `leader_change::position`, \"0\" for all, or nothing for new ones", after));
    return run_begin(std::make_shared<stream_observation>(std::move(owner), std::move(key), std::move(handler), std::move(after)));
}

}  // namespace detail

observation::observation(std::shared_ptr<detail::observation_state> state) noexcept : state_(std::move(state)) {}
observation& observation::operator=(observation&& other) noexcept {
    if (this == &other) return *this;
    stop();
    state_ = std::exchange(other.state_, nullptr);
    return *this;
}
observation::~observation() { stop(); }

void observation::stop() noexcept {
    if (auto const state = std::exchange(state_, nullptr)) state->stop();
}

}  // namespace lockstep
