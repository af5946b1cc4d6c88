#pragma once

// What happened in the demo, from what its workers said and what was done to them: who has what, who took over from the dead and how soon,
// and whether fences grew. Knows no processes and no screen. Lines bring their times along, and may come in any order.

#include <boost/json/object.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::demo {

class story {
public:
    using clock = std::chrono::steady_clock;

    struct hold {
        std::string worker, use;
        std::uint64_t fence = 0;
        clock::time_point since{};
    };
    struct name_state {
        std::string kind;
        std::map<std::string, hold> holds;  ///< by id
        std::map<std::string, int> waiting; ///< by worker
        std::uint64_t acquisitions = 0, meetings = 0, broken = 0;
        std::uint64_t largest_fence = 0;
        /// By fence, of those who have it alone: from when to when, by the shared clock; no end: it goes on, or nobody lived to tell.
        struct turn {
            clock::time_point begin{}, end{};
        };
        std::map<std::uint64_t, turn> turns;
    };
    struct takeover {
        std::string name, from, by;
        std::uint64_t before = 0, fence = 0;
        std::chrono::milliseconds after{0};
    };
    struct event {
        clock::time_point at{};
        std::string text;
        bool is_bad = false;
    };

    /// A worker said a line. False: it was none of ours.
    bool said(std::string const& worker, std::string_view line);
    /// `object` is the name of what it uses.
    void started(std::string const& worker, std::string const& object, clock::time_point now);
    void killed(std::string const& worker, clock::time_point now);
    /// Gone without having been killed.
    void failed(std::string const& worker, clock::time_point now);

    std::map<std::string, name_state> const& names() const noexcept { return names_; }
    std::vector<takeover> const& takeovers() const noexcept { return takeovers_; }
    std::deque<event> const& events() const noexcept { return events_; }  ///< the last thousand
    std::size_t told() const noexcept { return told_; }                   ///< how many there were
    /// The names that this worker holds.
    std::vector<std::string> held_by(std::string const& worker) const;
    std::uint64_t kills() const noexcept { return kills_; }
    std::uint64_t failures() const noexcept { return failures_; }
    /// Fences that did not grow, or two that had it at once: always none.
    std::uint64_t violations() const noexcept { return violations_; }

    boost::json::object summary(std::chrono::milliseconds length) const;
    std::string text(std::chrono::milliseconds length) const;

private:
    struct bereaved {
        std::string worker;
        std::uint64_t fence = 0;
        clock::time_point at{};
    };
    void tell(clock::time_point at, std::string text, bool is_bad = false);
    void acquired(std::string const& worker, name_state& where, std::string const& name, boost::json::object const& said, clock::time_point now);
    void forget(std::string const& worker);
    /// Whoever has a larger fence came after the one before had let go.
    void check(name_state const& where, std::string const& name, std::map<std::uint64_t, name_state::turn>::const_iterator which);

    std::set<std::string> workers_;  // that were ever started
    std::map<std::string, name_state> names_;
    std::map<std::string, bereaved> bereaved_;  // by name: who died with it
    std::vector<takeover> takeovers_;
    std::deque<event> events_;
    std::size_t told_ = 0;
    std::uint64_t kills_ = 0, failures_ = 0, violations_ = 0;
};

}  // namespace lockstep::demo
