#pragma once

// What one redlock object locks, and how: its keys, and its options with every value checked.

#include <lockstep/redlock.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::quorum {

class fleet;
class room;

struct plan {
    std::vector<std::string> keys{};    ///< as the user names them
    std::vector<std::string> fences{};  ///< the key of each one's fence; empty: without
    std::int16_t slot = 0;              ///< of all of them, for a node that is a cluster
    redlock_options how{};              ///< nothing is 0 that is not meant to be

    bool is_single() const noexcept { return keys.size() == 1; }
    bool is_fenced() const noexcept { return !fences.empty(); }
    /// For people: 'a', or 'a' and 2 more.
    std::string name() const;
};

/// Throws invalid_argument_error that says what is allowed.
plan make_plan(fleet const& nodes, std::vector<std::string> keys, redlock_options const& options);

/// Shared by all that users have of some nodes. The last of them waits a little for releases that are under way.
struct anchor {
    explicit anchor(std::shared_ptr<fleet> nodes) noexcept : of(std::move(nodes)) {}
    ~anchor();
    anchor(anchor const&) = delete;

    std::shared_ptr<fleet> of;
};

struct target {
    std::shared_ptr<anchor> nodes;
    std::shared_ptr<plan const> what;
    std::shared_ptr<room> where;
};

}  // namespace lockstep::quorum
