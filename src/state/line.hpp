#pragma once

// Those of one process who want a turn of the same key, one after the other:
//
//     place mine{lines, key, until};
//     co_await mine;                        // until it is the first
//     if (!mine.is_first()) ...             // its time is over, or will be before the turn of the first comes: mine.news(), if there are any
//     mine.tell(said, asked);               // what the first was told, for those behind it
//                                           // mine.bell() rings when that no longer holds
//                                           // the next one is the first when `mine` goes

#include "core/core.hpp"
#include "lease/awaiter.hpp"
#include "messaging/doorbell.hpp"

#include <lockstep/rate_limiter.hpp>

#include <boost/intrusive/list.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace lockstep::detail {

class place;

/// What the first in a line was told last.
struct line_news {
    rate_decision said{};
    redis::reactor::clock::time_point asked{};  ///< before it was
    redis::reactor::clock::time_point comes{};  ///< the turn of the first, so nobody's before that
};

/// In turns.
class lines {
public:
    using clock = redis::reactor::clock;

    explicit lines(std::shared_ptr<core> owner) noexcept : owner_(std::move(owner)) {}

    std::shared_ptr<core> const& owner() const noexcept { return owner_; }
    bool has(std::string const& key) const { return lines_.contains(key); }
    void enter(std::string const& key, place& who);
    /// The first has gone.
    void next(std::string const& key) noexcept;
    std::optional<line_news> news(std::string const& key) const noexcept;
    void tell(std::string const& key, line_news const& what) noexcept;
    /// What the first failed with concerns those too who have waited since before it asked.
    void fail(std::string const& key, clock::time_point asked, std::exception_ptr const& why) noexcept;
    /// What was told no longer holds: the first in this line hears it.
    void ring(std::string const& key) noexcept;
    std::uint64_t rings() const noexcept { return rings_; }  ///< so far, in any line

private:
    struct line {
        place* first = nullptr;
        boost::intrusive::list<place, boost::intrusive::base_hook<redis::list_hook>, boost::intrusive::constant_time_size<false>> behind{};
        std::optional<line_news> news{};
    };

    /// `what` may take it out of the line.
    template <class F>
    void for_each_behind(std::string const& key, F what) {
        auto const here = lines_.find(key);
        if (here == lines_.end()) return;
        auto& behind = here->second.behind;
        for (auto at = behind.begin(); at != behind.end();) what(*at++);
    }

    std::shared_ptr<core> owner_;
    std::unordered_map<std::string, line> lines_;
    std::uint64_t rings_ = 0;
};

class place final : public engine::awaiter {
public:
    place(std::shared_ptr<lines> where, std::string key, clock::time_point until) noexcept
        : where_(std::move(where)), key_(std::move(key)), until_(until) {}
    ~place() {
        withdraw();
        if (!is_first_ || !owner()->same_process()) return;
        owner()->home().in_turn([this] { where_->next(key_); });
    }

    bool is_first() const noexcept { return is_first_; }
    /// Of one that did not become the first.
    std::optional<line_news> const& news() const noexcept { return news_; }

    // Of the first, in turns:
    doorbell& bell() noexcept { return bell_; }
    void tell(rate_decision const& said, clock::time_point asked) noexcept {
        where_->tell(key_, {.said = said, .asked = asked, .comes = asked + said.retry_after});
    }
    void fail_those_behind(clock::time_point asked, std::exception_ptr const& why) noexcept { where_->fail(key_, asked, why); }

    // By the lines:
    clock::time_point until() const noexcept { return until_; }
    void let_in() noexcept {
        is_first_ = true;
        resume_soon();
    }
    void turn_away(std::optional<line_news> const& why) noexcept {
        news_ = why;
        resume_soon();
    }

private:
    std::shared_ptr<core> const& owner() const noexcept override { return where_->owner(); }
    clock::time_point deadline() const noexcept override { return until_; }
    void enter() override {
        if (owner()->closed()) return awaiter::fail(errc::cancelled, "the client is closed");
        where_->enter(key_, *this);
    }
    void leave() noexcept override { unlink(); }
    void time_is_over() noexcept override { turn_away(where_->news(key_)); }

    std::shared_ptr<lines> where_;
    std::string key_;
    clock::time_point until_;
    std::optional<line_news> news_;
    doorbell bell_;
    bool is_first_ = false;
};

inline void lines::enter(std::string const& key, place& who) {
    auto const [at, is_new] = lines_.try_emplace(key);
    auto& here = at->second;
    if (is_new) {
        here.first = &who;
        return who.let_in();
    }
    if (here.news && who.until() < here.news->comes) return who.turn_away(here.news);
    here.behind.push_back(who);
}

inline void lines::next(std::string const& key) noexcept {
    auto const at = lines_.find(key);
    if (at == lines_.end()) return;
    auto& [first, behind, news] = at->second;
    // Nobody would resume them one by one.
    while (owner_->closed() && !behind.empty()) behind.front().fail(errc::cancelled, "the client was closed");
    if (behind.empty()) {
        lines_.erase(at);
        return;
    }
    if (news) news->comes = {};  // that was the turn of the one who has gone
    first = &behind.front();
    first->let_in();
}

inline std::optional<line_news> lines::news(std::string const& key) const noexcept {
    auto const at = lines_.find(key);
    return at == lines_.end() ? std::nullopt : at->second.news;
}

inline void lines::tell(std::string const& key, line_news const& what) noexcept {
    auto const at = lines_.find(key);
    if (at == lines_.end()) return;
    at->second.news = what;
    // Whose time is over so soon hears it then: so a long line is not walked along for each of many turns that come fast.
    if (what.said.retry_after < std::chrono::milliseconds{20}) return;
    for_each_behind(key, [&](place& who) {
        if (who.until() < what.comes) who.turn_away(what);
    });
}

inline void lines::fail(std::string const& key, clock::time_point asked, std::exception_ptr const& why) noexcept {
    for_each_behind(key, [&](place& who) {
        if (who.since() <= asked) who.fail(why);
    });
}

inline void lines::ring(std::string const& key) noexcept {
    ++rings_;
    auto const at = lines_.find(key);
    if (at == lines_.end()) return;
    at->second.news.reset();
    at->second.first->bell().ring();
}

}  // namespace lockstep::detail
