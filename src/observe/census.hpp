#pragma once

// Who the clients are, as they said themselves (lease/registration.hpp), and whether the server has a connection of them.

#include "observe/reader.hpp"

#include <lockstep/monitor.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::observe {

struct said_wait {
    std::string kind, use, name;
    std::int64_t waiters = 1;
    std::int64_t permits = 1;
    std::int64_t since_ms = 0;  ///< by the server's clock
};

struct said_hold {
    std::string kind, use, name;
    std::uint64_t fence = 0;
};

struct citizen {
    client_info is;
    std::int64_t said_ms = 0;  ///< by the server's clock
    std::vector<said_hold> holds;
    std::vector<said_wait> waits;
};

using census = std::map<std::string, citizen, std::less<>>;  ///< by id

/// Of all that are registered; or only of these.
task<census> take_census(reader from);
task<census> take_census(reader from, std::vector<std::string> ids);

/// Asks clients to say what they hold and wait for, and for so long soon after each change: now, or with a pace not more often than that.
/// False: this user may send no messages.
task<bool> nudge(reader from, std::vector<std::string> ids, std::chrono::milliseconds time, std::chrono::milliseconds pace = {});

}  // namespace lockstep::observe
