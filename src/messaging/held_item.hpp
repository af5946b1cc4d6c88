#pragma once

// An item that this process holds, and when its lease ends here. The depot prolongs it; the alarm's thread sees it end.

#include "base/clock.hpp"
#include "lease/alarm_clock.hpp"

#include <boost/intrusive/list.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace lockstep::detail {

class depot;
struct queue_tally;
class settling;

using held_hook = boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::safe_link>>;

struct held_item final : engine::alarm_clock::sleeper,
                         held_hook,
                         std::enable_shared_from_this<held_item> {
    /// Judged: what became of it is on its way to the server.
    enum class state : std::uint8_t { held, judged, over };

    held_item(std::shared_ptr<depot> where, std::string_view token, std::string_view entry);
    ~held_item();

    static constexpr char const* was_dropped = "it was dropped without being acknowledged";

    // From any thread:
    bool is_valid() const noexcept;
    std::stop_token token_for_stop();
    /// Tokens trip, but it stays ours.
    void ask_to_stop() noexcept;

    // In turns:
    /// Its lease ends this long after the request was sent, less a margin.
    void set_end(base::boot_clock::time_point sent, std::chrono::milliseconds length) noexcept;
    /// It does not belong to us any more: tokens trip.
    void lose() noexcept;

    std::shared_ptr<depot> const at;
    std::string const token;  ///< by which the server knows that we hold it
    std::string const entry;
    std::string_view id;
    std::string_view payload;
    std::int32_t deliveries = 0;
    bool is_unseen = false;  ///< nobody has begun with it: it may go back as if it had not been taken
    std::atomic<state> now{state::held};
    std::atomic<bool> lost{false};
    std::atomic<bool> asked_to_stop{false};
    std::atomic<bool> dropped{false};  ///< nobody has it any more who could say what became of it
    settling* heard_by = nullptr;                        ///< who waits for the answer to what was said of it last
    std::uint64_t serial = 0;                            ///< and how many have: an answer is for one of them only
    std::function<void(std::exception_ptr)> failed;      ///< or hears of a failure only
    std::shared_ptr<queue_tally> tally;                  ///< since somebody has it
    std::shared_ptr<held_item> kept;                     ///< itself, while the depot prolongs it

private:
    engine::alarm_clock::time_point ring(engine::alarm_clock::time_point time, std::vector<std::stop_source>& stops) noexcept override;

    std::atomic<std::int64_t> ends_at_{0};  // ns of the boot clock
    std::atomic<bool> watched_{false};      // the alarm may know of it
    std::optional<std::stop_source> stop_;  // under the alarm's lock
};

}  // namespace lockstep::detail
