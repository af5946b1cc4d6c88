#pragma once

// Those of one process who want the same, one after the other:
//
//     place mine{lines, key, until};
//     co_await mine;                        // until it is the first
//     if (!mine.is_first()) ...             // its time was over
//                                           // the next one's turn comes when `mine` goes

#include "core/core.hpp"
#include "lease/awaiter.hpp"

#include <boost/intrusive/list.hpp>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

namespace lockstep::detail {

class place;

/// In turns.
class lines {
public:
    explicit lines(std::shared_ptr<core> owner) noexcept : owner_(std::move(owner)) {}

    std::shared_ptr<core> const& owner() const noexcept { return owner_; }
    bool has(std::string const& key) const { return lines_.contains(key); }
    /// True: it is the first, at once.
    bool enter(std::string const& key, place& who);
    /// The first has gone.
    void next(std::string const& key) noexcept;

private:
    using line = boost::intrusive::list<place, boost::intrusive::base_hook<redis::list_hook>, boost::intrusive::constant_time_size<false>>;

    std::shared_ptr<core> owner_;
    std::unordered_map<std::string, line> lines_;  // those behind the first
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
    void let_in() noexcept {
        is_first_ = true;
        resume_soon();
    }

private:
    std::shared_ptr<core> const& owner() const noexcept override { return where_->owner(); }
    clock::time_point deadline() const noexcept override { return until_; }
    void enter() override {
        if (owner()->closed()) return fail(errc::cancelled, "the client is closed");
        if (where_->enter(key_, *this)) let_in();
    }
    void leave() noexcept override { unlink(); }
    void time_is_over() noexcept override { resume_soon(); }

    std::shared_ptr<lines> where_;
    std::string key_;
    clock::time_point until_;
    bool is_first_ = false;
};

inline bool lines::enter(std::string const& key, place& who) {
    auto const [at, is_new] = lines_.try_emplace(key);
    if (!is_new) at->second.push_back(who);
    return is_new;
}

inline void lines::next(std::string const& key) noexcept {
    auto const at = lines_.find(key);
    if (at == lines_.end()) return;
    auto& behind = at->second;
    // Nobody would resume them one by one.
    while (owner_->closed() && !behind.empty()) behind.front().fail(errc::cancelled, "the client was closed");
    if (behind.empty()) {
        lines_.erase(at);
        return;
    }
    behind.front().let_in();
}

}  // namespace lockstep::detail
