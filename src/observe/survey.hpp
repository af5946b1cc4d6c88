#pragma once

// What the server itself knows: which objects there are, who holds them, who is queued. Ids only; who that is, the census knows.

#include "observe/reader.hpp"

#include <lockstep/monitor.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::observe {

struct seen_hold {
    std::string id;
    std::int64_t permits = 1;
    std::uint64_t fence = 0;
    std::int64_t ends_ms = 0;
    std::int64_t span_ms = 0;
    bool offered = false;
};

struct seen_place {
    std::string id;
    std::int64_t permits = 1;
    std::int64_t priority = 0;  ///< of a candidate
};

struct seen_object {
    std::string key;
    object_info is;
    std::vector<seen_hold> holds;
    std::size_t next_hold = 0;  ///< where its further holds begin, while it is being read
    std::vector<seen_place> queue;
    std::string leader;  ///< of an election: '<pid> <host> <id>'
    std::vector<std::string> clients;  ///< those that may wait where there is no queue; only where one name was asked for
};

struct survey {
    std::int64_t now_ms = 0;
    std::vector<seen_object> objects;  ///< by name, then kind and type
    std::size_t left_out = 0;
};

/// Of holds: all of them.
inline constexpr std::size_t all_holds = ~std::size_t{0};

/// The part of a snapshot that is asked for.
struct survey_terms {
    std::string name;
    std::string pattern;
    std::size_t limit;
    std::size_t holders;
    std::size_t waiters;
    bool scan;
    bool all_kinds;  ///< also those where nobody holds or waits by name: jobs, sessions, limiters and buses

    explicit survey_terms(snapshot_options const& from, bool all = true)
        : name(from.name), pattern(from.pattern), limit(from.limit), holders(from.holders), waiters(from.waiters), scan(from.scan), all_kinds(all) {}
};

task<survey> take_survey(reader from, survey_terms what);

/// The id of the client in the id of a hold.
std::string_view client_of(std::string_view hold) noexcept;

}  // namespace lockstep::observe
