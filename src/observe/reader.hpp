#pragma once

// Reads of the server for people: commands and scripts, to every primary of a Cluster where that is needed. May be sent twice, except what
// is `once`.

#include "core/core.hpp"
#include "observe/notes.hpp"
#include "redis/command.hpp"
#include "scripts/script.hpp"

#include <lockstep/error.hpp>
#include <lockstep/task.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::observe {

class reader {
public:
    /// A look takes so long at most; 0: as long as a command may take.
    explicit reader(std::shared_ptr<detail::core> owner, std::shared_ptr<observe::notes> to = std::make_shared<observe::notes>(), std::chrono::milliseconds within = {})
        : owner_(std::move(owner)), notes_(std::move(to)), until_(owner_->deadline(within)) {}

    std::shared_ptr<detail::core> const& owner() const noexcept { return owner_; }
    bool is_time_over() const noexcept { return redis::reactor::clock::now() >= until_; }
    /// Before each further step. True: the time is over, and that is noted.
    bool is_late() const;

    void note(std::string_view key, std::string_view problem) const { notes_->add(key, problem); }
    /// Of a key that somebody else wrote; a problem that is not the key's is thrown again.
    void note_or_throw(std::string_view key, server_error const& problem) const;
    std::vector<std::string> notes() const { return notes_->list(); }

    std::string const& prefix() const noexcept { return owner_->options().prefix; }
    std::string key(std::string_view name, std::string_view word) const;

    /// To the node of that slot; -1: any.
    task<reply> command(std::int16_t slot, std::vector<std::string> words) const;
    /// To the node of the key, which is one of the words.
    task<reply> at(std::string_view key, std::vector<std::string> words) const;
    /// All keys in one slot.
    task<reply> script(scripts::script const& which, std::vector<std::string> const& keys, std::vector<std::string> const& words) const;

    /// One that changes something: throws `indeterminate_error` when its answer is lost.
    task<reply> once(scripts::script const& which, std::vector<std::string> const& keys, std::vector<std::string> const& words) const;

    /// One slot of each primary; one that is -1 outside of a Cluster.
    task<std::vector<std::int16_t>> nodes() const;

    /// Of a command that is sent now.
    redis::command_terms terms(std::int16_t slot) const;

private:
    std::shared_ptr<detail::core> owner_;
    std::shared_ptr<observe::notes> notes_;
    redis::reactor::clock::time_point until_;
};

/// Ends a walk with a cursor through something that others make as long as they like.
class walk_limit {
public:
    /// `target` is walked through, a page after the other; so many elements are looked at, at most.
    walk_limit(reader const& from, std::string target, std::size_t page, std::size_t most) : from_(from), target_(std::move(target)), page_(page), most_(most) {}

    /// After each page but the last. False: here it ends, and that is noted.
    bool goes_on();

private:
    reader from_;
    std::string target_;
    std::size_t page_, most_;
    std::size_t seen_ = 0;
};

/// As scan_page.lua has it; that elements of more than `limit` bytes were not sent is noted.
task<reply> scan_page(reader from, std::string command, std::string key, std::string cursor, std::size_t count, std::size_t limit);

/// Runs them all, so many at a time, in order.
template <class T>
task<std::vector<T>> in_groups(std::vector<task<T>> works, std::size_t at_once) {
    std::vector<T> all;
    all.reserve(works.size());
    for (std::size_t from = 0; from < works.size(); from += at_once) {
        std::vector<task<T>> group;
        for (std::size_t i = from; i < std::min(works.size(), from + at_once); ++i) group.push_back(std::move(works[i]));
        auto running = when_all(std::move(group));
        auto done = co_await std::move(running);
        for (auto& one : done) all.push_back(std::move(one));
    }
    co_return all;
}

}  // namespace lockstep::observe
