#pragma once

// What a client counts of the names it uses, and how that gets to the server: for people and monitors. Nothing depends on it.
//
// Counting is a few additions with the time of the turn, in a tally that belongs to the name's room. Every few seconds, together with the
// client's registration, what was counted since is added up at the server in one request, in one hash for all names:
//
//     <prefix>:{statistics}:names   '<kind> <name>' (name percent-encoded), or '<kind>' for all names of a kind together, each
//         '<acquisitions> <waits> <timeouts> <losses>;<held>;<waited>;<when, ms>', where held and waited are '<sum us> <max us>[ <bucket>:<count>]...'
//
// with the buckets of base/histogram.hpp. A name is forgotten a day after its last use, and of 10,000 names no new one is kept; nor does a
// client keep more than 10,000 names that it has not sent: then it counts only their sum. What is lost on the way is not counted, and what
// is sent twice counts twice.

#include "base/histogram.hpp"
#include "lease/kind.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::engine {

struct counts {
    std::uint64_t acquisitions = 0;
    std::uint64_t waits = 0;
    std::uint64_t timeouts = 0;
    std::uint64_t losses = 0;
    base::histogram held;
    base::histogram waited;

    void add(counts const& more);
    void clear() noexcept;
    /// As above, without the time.
    std::string text() const;
    /// Nothing: that is no such text.
    static std::optional<counts> from(std::string_view text);
};

/// Of one name in this client. Lives on until it was sent, when its room is gone.
struct tally : counts {
    tally(kind const& kind, std::string_view of) : what(kind), name(of) {}
    kind const& what;
    std::string name;
    bool is_new = false;  ///< something was counted since it was sent
};

/// All tallies that have something to send, and what was counted in all. In turns.
class ledger {
public:
    static constexpr std::size_t most_open = 10'000;

    /// Of a room, which keeps it: to be counted in now.
    counts& open(std::shared_ptr<tally>& mine, kind const& what, std::string_view name) {
        if (mine && mine->is_new) return *mine;
        return enter(mine, what, name);
    }

    /// Fields and what to add to them, for the server; of at most `most` names, the others stay for next time.
    std::vector<std::string> take(std::size_t most);
    bool empty() const noexcept { return open_.empty() && rest_.empty(); }
    /// What is still here is counted only in the sum.
    void give_up_names();
    /// One tally for each name. Before `take`.
    void merge();

    struct total {
        kind const* what;
        counts all;
    };
    /// Since the client was made.
    std::vector<total> totals() const;

private:
    counts& enter(std::shared_ptr<tally>& mine, kind const& what, std::string_view name);

    std::vector<std::shared_ptr<tally>> open_;
    std::size_t merge_at_ = 1'024;
    std::vector<total> rest_;  // of names that were too many
    std::vector<total> sent_;
};

}  // namespace lockstep::engine
