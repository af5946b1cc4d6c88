#include "election/quorum_venue.hpp"

#include "base/names.hpp"
#include "base/stored_time.hpp"
#include "core/core.hpp"
#include "election/observation.hpp"
#include "election/who.hpp"
#include "lease/pause.hpp"
#include "quorum/ballot.hpp"
#include "quorum/fleet.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

// An election over independent nodes: the seat is a redlock with a fence, and beside it each node keeps a record of who has it, which the leader
// writes when it is elected, at every heartbeat and when it resigns. There is no one place that has all changes: observers look at the
// nodes now and then.

namespace lockstep::detail {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

struct record {
    std::uint64_t term = 0;
    std::int64_t since_ms = 0;
    bool resigned = false;
    std::uint64_t resigned_before = 0;  ///< the last term that ended so, before this one
    std::string token, who;
};

std::string write(record const& one) {
    return fmt::format("{} {} {} {} {}", one.term, one.since_ms, one.resigned ? "resigned" : "leads", one.token, one.who);
}

std::optional<record> read_record(std::string_view text) {
    auto const next = [&text] {
        auto const end = std::min(text.find(' '), text.size());
        auto const word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        return word;
    };
    auto const number = [](std::string_view word, auto& into) { std::from_chars(word.data(), word.data() + word.size(), into); };
    record found;
    number(next(), found.term);
    number(next(), found.since_ms);
    auto const state = next();
    found.resigned = state.starts_with("resigned");
    if (auto const mark = state.find('/'); mark != state.npos) number(state.substr(mark + 1), found.resigned_before);
    found.token = next();
    found.who = text;
    if (found.term == 0 || found.who.empty()) return std::nullopt;
    return found;
}

/// What a node says; nothing: it is silent.
struct node_view {
    std::string token;
    milliseconds left{0};
    std::optional<record> latest;
};

/// What the nodes say together.
struct view {
    std::size_t nodes = 0;
    std::vector<node_view> answers;
    std::optional<record> latest;  ///< by whatever node has it

    std::size_t quorum() const noexcept { return quorum::ballot::quorum_of(nodes); }
    std::size_t with(std::string_view token) const noexcept {
        return static_cast<std::size_t>(std::count_if(answers.begin(), answers.end(), [&](auto const& one) { return one.token == token; }));
    }
    bool most_have(std::string_view token) const noexcept { return with(token) >= quorum(); }
    /// Those that are silent may have it too.
    bool most_may_have(std::string_view token) const noexcept { return with(token) + nodes - answers.size() >= quorum(); }
    /// Of the seat that has this token, as far as is known.
    milliseconds remaining(std::string_view token) const {
        std::vector<milliseconds> left;
        for (auto const& one : answers) {
            if (one.token == token) left.push_back(one.left);
        }
        std::sort(left.begin(), left.end(), std::greater<>{});
        return left.empty() ? 0ms : std::max(left[std::min(left.size(), quorum()) - 1], 0ms);
    }
};

}  // namespace

class quorum_venue;

/// Ends `early` before the nodes can give the seat to others, which is when a leader has not renewed for `renew_deadline`.
class redlock_tenure final : public tenure {
public:
    redlock_tenure(std::shared_ptr<quorum_venue> where, redlock_lease held, milliseconds early, record elected)
        : where_(std::move(where)), lease_(std::move(held)), early_(early), what_(std::move(elected)) {}
    ~redlock_tenure() override { tell(); }

private:
    std::uint64_t term() const noexcept override { return what_.term; }
    milliseconds remaining() const noexcept override { return std::max(lease_.remaining() - early_, 0ms); }
    std::stop_token stop_token() const override { return lease_.stop_token(); }
    announcement announce() const override;
    task<void> release() override {
        tell();
        return lease_.async_release();
    }
    /// That it resigns, before it does: on the same connections.
    void tell() noexcept;

    std::shared_ptr<quorum_venue> where_;
    redlock_lease lease_;
    milliseconds early_;
    record what_;
};

class quorum_venue final : public venue, public std::enable_shared_from_this<quorum_venue> {
public:
    quorum_venue(redlock_nodes const& nodes, std::shared_ptr<quorum::anchor> same, std::string const& name, std::string const& id, election_options const& how)
        : nodes_(std::move(same)), seat_key_(base::key_name(nodes_->of->prefix(), name, "seat")),
          record_key_(base::key_name(nodes_->of->prefix(), name, "leader")), who_(describe_candidate(id)), how_(how),
          lock_(nodes, seat_key_,
                {.ttl = *how.ttl,
                 .renew_every = std::min(*how.retry_period, *how.ttl / 2),
                 .retry_delay = std::clamp(*how.retry_period / 4, 20ms, 500ms),
                 .retry_jitter = std::clamp(*how.retry_period / 8, 10ms, 250ms),
                 .fence = true}) {
        how_.id = {};
        how_.healthy = {};
    }

    std::shared_ptr<core> const& owner() const noexcept override { return nodes_->of->home(); }
    void require_blocking() const override { nodes_->of->require_blocking(); }

    task<std::unique_ptr<tenure>> stand(clock::time_point until) override { return stand_for(shared_from_this(), until); }
    task<std::optional<leader_info>> leader() override { return read_leader(shared_from_this()); }
    task<int> highest_in_line() override { return nobody(); }
    task<observation> observe(std::function<void(leader_change const&)> handler, std::string after) override;

    static task<view> look(std::shared_ptr<quorum_venue> self);
    milliseconds heartbeat() const noexcept { return how_.heartbeat_interval; }

private:
    using self = std::shared_ptr<quorum_venue>;

    static task<int> nobody() { co_return 0; }

    static task<std::unique_ptr<tenure>> stand_for(self of, clock::time_point until) {
        redlock_lease held;
        if (until == clock::time_point::max()) {
            auto waiting = of->lock_.async_acquire();
            held = co_await std::move(waiting);
        } else {
            auto trying = of->lock_.async_try_acquire_until(until);
            auto got = co_await std::move(trying);
            if (!got) co_return nullptr;
            held = std::move(*got);
        }
        auto const now = std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
        record elected{.term = held.fence(), .since_ms = now.count(), .resigned = false, .resigned_before = 0, .token = held.token(), .who = of->who_};
        redlock_options const usual;
        auto const lasts = std::chrono::floor<milliseconds>(*of->how_.ttl - quorum::drift_of(*of->how_.ttl, usual.drift_factor)) - quorum::margin_of(*of->how_.ttl);
        co_return std::make_unique<redlock_tenure>(of, std::move(held), std::max(lasts - *of->how_.renew_deadline, 0ms), std::move(elected));
    }

    redis::command_terms terms_of(core& node, std::string const& key) const {
        auto const slot = static_cast<std::int16_t>(redis::key_slot(key));
        auto const patience = std::clamp(*how_.ttl / 10, 50ms, 1000ms);
        return {.deadline = clock::now() + patience, .slot = node.is_cluster() ? slot : std::int16_t{-1}, .repeatable = true};
    }

public:
    void announce(std::shared_ptr<seat> const& leads, record const& what) {
        start(keep_record(owner(), weak_from_this(), leads, what), [](std::exception_ptr) {});
    }
    /// Nobody waits for that.
    void tell_all(record const& what) {
        auto const text = write(what);
        auto const kept = 2 * *how_.ttl + 3 * how_.heartbeat_interval;  // longer than the seat: that it is lost can be told then
        for (std::size_t i = 0; i != nodes_->of->size(); ++i) {
            auto& node = nodes_->of->node(i);
            std::string_view const keys[] = {record_key_};
            argument const words[] = {argument{what.term}, argument{text}, argument{kept.count()}};
            start(redis::run_script(node.way(), scripts::quorum_announce, keys, words, terms_of(node, record_key_)),
                  [](std::exception_ptr, std::optional<reply>) {});
        }
    }

private:
    /// For as long as it leads; and steps down when it could not renew for so long, before the lease itself says so.
    static task<void> keep_record(std::shared_ptr<core> owner, std::weak_ptr<quorum_venue> where, std::weak_ptr<seat> which, record what) {
        auto next = clock::now();
        auto often = 100ms;
        while (true) {
            {
                auto const of = where.lock();
                auto const leads = which.lock();
                if (!of || !leads || leads->is_gone()) co_return;
                often = std::clamp(*of->how_.renew_deadline / 50, 5ms, 100ms);
                if (leads->is_lost()) {
                    leads->step_down("most nodes could not be asked to renew it for as long as renew_deadline");
                    co_return;
                }
                if (clock::now() >= next && leads->remaining() > 0ms) {
                    next = clock::now() + of->how_.heartbeat_interval;
                    of->tell_all(what);
                }
            }
            engine::pause rest{owner, often};
            co_await rest;
        }
    }

    static task<std::optional<node_view>> look_at(self of, std::size_t index) {
        try {
            auto& node = of->nodes_->of->node(index);
            std::string_view const keys[] = {of->seat_key_, of->record_key_};
            auto asking = redis::run_script(node.way(), scripts::quorum_look, keys, {}, of->terms_of(node, of->seat_key_));
            auto const said = co_await std::move(asking);
            node_view seen{std::string{said[0].text()}, milliseconds{said[1].integer()}, read_record(said[2].text())};
            co_return std::optional<node_view>{std::move(seen)};
        } catch (error const&) {
        }
        co_return std::nullopt;
    }

    static task<std::optional<leader_info>> read_leader(self of) {
        auto looking = look(of);
        auto const seen = co_await std::move(looking);
        if (!seen.latest || seen.latest->resigned || !seen.most_may_have(seen.latest->token)) co_return std::nullopt;
        leader_info found;
        found.term = seen.latest->term;
        found.since = base::time_of_ms(seen.latest->since_ms);
        found.remaining = seen.remaining(seen.latest->token);
        read_who(seen.latest->who, found.pid, found.host, found.id);
        co_return std::optional<leader_info>{std::move(found)};
    }

    std::shared_ptr<quorum::anchor> nodes_;
    std::string seat_key_, record_key_, who_;
    election_options how_;
    redlock lock_;
};

tenure::announcement redlock_tenure::announce() const {
    return [where = where_, what = what_](std::shared_ptr<seat> const& leads) { where->announce(leads, what); };
}

void redlock_tenure::tell() noexcept {
    if (what_.resigned || !where_->owner()->same_process() || remaining() == 0ms) return;
    what_.resigned = true;
    try {
        where_->tell_all(what_);
    } catch (std::exception const&) {  // then it looks as if it were lost
    }
}

task<view> quorum_venue::look(self of) {
    std::vector<task<std::optional<node_view>>> questions;
    for (std::size_t i = 0; i != of->nodes_->of->size(); ++i) questions.push_back(look_at(of, i));
    auto asking = when_all(std::move(questions));
    auto const answers = co_await std::move(asking);
    view seen;
    seen.nodes = answers.size();
    for (auto const& one : answers) {
        if (!one) continue;
        seen.answers.push_back(*one);
        if (one->latest && (!seen.latest || one->latest->term > seen.latest->term || (one->latest->term == seen.latest->term && one->latest->resigned))) {
            seen.latest = one->latest;
        }
    }
    if (seen.answers.size() < seen.quorum()) {
        throw unavailable_error(fmt::format("who leads can't be said: {} of {} nodes answered, and {} are needed", seen.answers.size(), seen.nodes,
                                            seen.quorum()));
    }
    co_return seen;
}

// ---- observing

namespace {

class quorum_observation final : public observation_state {
public:
    quorum_observation(std::shared_ptr<quorum_venue> where, handler told) : observation_state(std::move(told)), where_(std::move(where)) {}

    static task<void> begin(std::shared_ptr<quorum_observation> self) {
        auto looking = quorum_venue::look(self->where_);
        auto const seen = co_await std::move(looking);
        self->last_ = seen.latest.value_or(record{});
        self->leads_ = self->last_.term != 0 && !self->last_.resigned && seen.most_may_have(self->last_.token);
        auto const where = self->where_;
        start(run(where->owner(), where->heartbeat(), std::move(self)), [](std::exception_ptr) {});
    }

private:
    static task<void> run(std::shared_ptr<core> owner, milliseconds every, std::weak_ptr<quorum_observation> which) {
        while (true) {
            engine::pause rest{owner, every};
            co_await rest;
            auto const self = which.lock();
            if (!self || self->is_stopped()) co_return;
            auto looking = quorum_venue::look(self->where_);
            try {
                auto const seen = co_await std::move(looking);
                self->compare(seen);
            } catch (unavailable_error const&) {  // what happened meanwhile is seen later
            }
        }
    }

    void compare(view const& now) {
        using enum leader_change::kind;
        if (now.latest && now.latest->term > last_.term) {
            if (leads_) say(now.latest->resigned_before == last_.term ? resigned : lost, last_);
            last_ = *now.latest;
            say(elected, last_);
            leads_ = !last_.resigned;  // it may not be everywhere yet, or gone already: the next look tells
            if (last_.resigned) say(resigned, last_);
            return;
        }
        bool const has_resigned = now.latest && now.latest->term == last_.term && now.latest->resigned;
        if (leads_) {
            // While those that are silent may make a majority with the others, the last word stands. It can't for long: one that is
            // dead has no node any more when its ttl is over.
            if (!has_resigned && now.most_may_have(last_.token)) return;
            leads_ = false;
            last_.resigned = has_resigned;
            return say(has_resigned ? resigned : lost, last_);
        }
        // It was said to be lost, and leads.
        if (last_.term == 0 || last_.resigned || has_resigned || !now.most_have(last_.token)) return;
        leads_ = true;
        say(elected, last_);
    }
    void say(leader_change::kind what, record const& one) {
        leader_change made{.what = what, .id = {}, .host = {}, .pid = 0, .term = one.term, .at = std::chrono::system_clock::now(), .position = {}};
        read_who(one.who, made.pid, made.host, made.id);
        tell(made);
    }

    std::shared_ptr<quorum_venue> where_;
    record last_;
    bool leads_ = false;
};

task<observation> begin_looking(std::shared_ptr<quorum_observation> state) {
    observation made{state};
    auto beginning = quorum_observation::begin(std::move(state));
    co_await std::move(beginning);
    co_return made;
}

}  // namespace

task<observation> quorum_venue::observe(std::function<void(leader_change const&)> handler, std::string after) {
    if (!handler) throw invalid_argument_error("the observation has no handler");
    if (!after.empty()) throw invalid_argument_error("an election over nodes keeps no changes: it can be observed from now on only");
    return begin_looking(std::make_shared<quorum_observation>(shared_from_this(), std::move(handler)));
}

std::shared_ptr<venue> make_quorum_venue(redlock_nodes const& nodes, std::shared_ptr<quorum::anchor> same, std::string const& name, std::string const& id,
                                         election_options const& how) {
    auto const refuse = [&name](std::string const& why) { throw invalid_argument_error(fmt::format("election '{}': {}", name, why)); };
    if (nodes.size() < how.minimum_nodes) {
        refuse(fmt::format("it has {} nodes and needs {} (minimum_nodes): with fewer, one that fails may stop it, or two may lead", nodes.size(), how.minimum_nodes));
    }
    if (how.priority != 0 || how.give_way) refuse("candidates over several nodes have no priorities: leave priority and give_way out");
    if (how.min_replicas != 0) refuse("min_replicas is for one replicated server; over several nodes most of them have heard of a leader");
    return std::make_shared<quorum_venue>(nodes, std::move(same), name, id, how);
}

}  // namespace lockstep::detail
