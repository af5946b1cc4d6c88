// Cron expressions. The first 9 bytes choose the time and the zone, the rest is the expression. Whatever it is:
//   - it is read, or refused with an invalid_argument_error;
//   - due times grow, the next after a moment before one is that one, and what a scheduler does about missed ones ends.

#include "jobs/cron.hpp"
#include "jobs/cron_text.hpp"

#include "support/fuzz.hpp"

#include <array>

namespace {

using namespace lockstep;
using namespace std::chrono_literals;
using fuzz::require;

constexpr std::array zones{"UTC", "Europe/Berlin", "Antarctica/Troll", "Asia/Kathmandu", "Pacific/Apia", "America/Sao_Paulo", "Nowhere/Else"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size < 9) return 0;
    auto input = fuzz::text_of(data, size);
    std::uint64_t seconds = 0;
    for (int i = 0; i < 8; ++i) seconds = seconds << 8 | fuzz::take_choice(input, 256);
    // To the year 2096.
    std::chrono::system_clock::time_point const start{std::chrono::seconds{static_cast<std::int64_t>(seconds % 4'000'000'000ULL)}};
    auto const* const zone = zones[fuzz::take_choice(input, zones.size())];
    try {
        detail::cron_schedule const schedule{input, zone};
        auto due = schedule.next(start);
        require(due > start, "the next due time is later", input);
        for (int i = 0; i < 5; ++i) {
            auto const next = schedule.next(due);
            require(next > due, "due times grow", input);
            require(schedule.next(next - 1s) == next, "nothing is due before the next", input);
            due = next;
        }
        for (auto const missed : {missed_runs::skip, missed_runs::once, missed_runs::all}) {
            auto const turn = detail::reckon(schedule, missed, 1h, start, start + 24h);
            require(turn.next > start, "a turn goes on", input);
        }
    } catch (invalid_argument_error const&) {
    }
    return 0;
}
