// What must be true of queues, streams and rate limits. As in checkers.hpp.
#pragma once

#include "checkers.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::chaos {

/// One value and all that became of it. Times are 0 or `never` as long as it is not known.
struct item_record {
    static constexpr auto never = std::numeric_limits<std::int64_t>::max();
    struct delivery {
        std::string who;
        std::int64_t number = 0;  ///< which one it is, from 1 on
        std::int64_t asked = 0;   ///< when somebody asked for whatever there is
        std::int64_t given = 0;
    };

    std::string name, value;
    std::int64_t asked = never, answered = never;
    bool left_out = false;  ///< it was told that it is not there
    std::vector<delivery> deliveries{};
    std::int64_t done = 0;  ///< so many times somebody may have said that it is done
    std::int64_t first_done = never, surely_done = never;  ///< the first time that somebody was about to say so; had said so

    [[nodiscard]] bool is_there() const { return answered != never && !left_out; }
    [[nodiscard]] std::string key() const { return value.find('@') == std::string::npos ? "" : value.substr(value.find('@') + 1); }
};
/// By name and value.
std::map<std::pair<std::string, std::string>, item_record> items_of(history const& all, std::string_view kind);

/// queue, stream: whatever was acknowledged was done in the end, nothing came that nobody put there, and nothing is there twice.
complaints check_delivered(history const& all, promises const& given, std::string_view kind);
/// queue: what is done does not come again to somebody who asks after that.
complaints check_done(history const& all, promises const& given, std::string_view kind = "queue");
/// queue: no two were sure to have the same item at the same time.
complaints check_possession(history const& all, promises const& given, std::string_view kind = "queue");
/// queue: who asks after B came is not the first to get A, which was there before B.
///
/// An item that comes for somebody who does not wait any more, or so late that its lease is over, goes back unseen, and its delivery is not
/// counted: while that may have happened, any order is right. So this is for a queue that nobody leaves. One that is sent in a message which
/// is read late goes back, too: A is excused if B followed it closely, and somebody slept or lagged behind, or a clock was set.
complaints check_order(history const& all, promises const& given, std::string_view kind);
/// queue: no two items with the same key are there at a time, and none is left out without the other. Not the latter for keys of a window.
complaints check_keys(history const& all, promises const& given, std::string_view kind = "queue");
/// stream: what is added later has a larger id, and each consumer gets what is new in the order of ids.
complaints check_entries(history const& all, promises const& given, std::string_view kind = "stream");
/// rate_limiter: no stretch of time has more than its algorithm lets in (rate_of), of those that were asked and allowed within it.
complaints check_rate(history const& all, promises const& given, std::string_view kind = "limit");

}  // namespace lockstep::chaos
