#pragma once

/// `leaderboard`: members by their scores, best first.
///
///     lockstep::leaderboard board{client, "space-race", {.period = lockstep::leaderboard_period::weekly}};
///     auto now = board.increment("ada", 10);                      // {score, rank}
///     board.best_of("bob", 4200);                                 // kept if it is better than what bob has
///     for (auto const& one : board.top(10)) std::cout << one.rank << ". " << one.member << ' ' << one.score << '\n';
///     for (auto const& one : board.around("ada", 2)) ...          // two before, ada, two behind
///     board.previous().top(3);                                    // last week's
///
/// Scores are doubles: whole numbers are exact up to 2^53. Ranks count from 1, and each is given once: who has the same score stands in the order of
/// the members' bytes or, with `earlier_first`, in the order in which they came to that score (by the server, exactly, whatever the scores are).
///
/// Periods begin by the server's clock, in UTC: a week on Monday. Each has a board of its own, which stays for `retention` after its end.
/// Who changes a board at midnight changes the one or the other, never both.
///
/// Each change counts once, also when its reply was lost. All programs must use the same options. Failure: `invalid_argument_error`,
/// `unavailable_error`, `cancelled_error` and `indeterminate_error` (it may have counted, once, at most 5 s later), `server_error`. Threads: everything
/// may be called from any thread. The object may be destroyed while its tasks go on.

#include <lockstep/client.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

namespace detail {
class leaderboard_state;
}

enum class leaderboard_order { highest_first, lowest_first };
enum class leaderboard_ties { by_member, earlier_first };
enum class leaderboard_period { all_time, hourly, daily, weekly, monthly };

struct leaderboard_options {
    leaderboard_order order = leaderboard_order::highest_first;
    leaderboard_ties ties = leaderboard_ties::by_member;
    leaderboard_period period = leaderboard_period::all_time;
    std::chrono::milliseconds retention{30LL * 86'400'000};  ///< how long the board of a period stays after its end, 2 min at least
};

struct standing {
    std::string member;
    double score = 0;
    std::uint64_t rank = 0;  ///< 1: the best
};

/// Where a member stands after a change.
struct score_change {
    double score = 0;
    std::uint64_t rank = 0;
    bool changed = false;  ///< false: it is as it was
};

/// What `range` is asked for. Best first, whichever of the two is the better one.
struct score_range {
    double lowest = -std::numeric_limits<double>::infinity();
    double highest = std::numeric_limits<double>::infinity();
    std::uint64_t skip = 0;
    std::uint64_t count = 1'000;
};

class leaderboard {
public:
    /// Does not ask the server.
    leaderboard(client& by, std::string_view name, leaderboard_options const& options = {});

    /// The member's score is this.
    score_change add(std::string_view member, double score, std::stop_token token = {});
    task<score_change> async_add(std::string_view member, double score);
    /// From 0 if it has none.
    score_change increment(std::string_view member, double by = 1, std::stop_token token = {});
    task<score_change> async_increment(std::string_view member, double by = 1);
    /// If it is better than the member's.
    score_change best_of(std::string_view member, double score, std::stop_token token = {});
    task<score_change> async_best_of(std::string_view member, double score);
    /// False: it was not there.
    bool remove(std::string_view member, std::stop_token token = {});
    task<bool> async_remove(std::string_view member);

    std::vector<standing> top(std::uint64_t count, std::uint64_t skip = 0, std::stop_token token = {}) const;
    task<std::vector<standing>> async_top(std::uint64_t count, std::uint64_t skip = 0) const;
    /// The last one first.
    std::vector<standing> bottom(std::uint64_t count, std::stop_token token = {}) const;
    task<std::vector<standing>> async_bottom(std::uint64_t count) const;
    /// Its score and rank. Nothing: it is not on the board.
    std::optional<standing> find(std::string_view member, std::stop_token token = {}) const;
    task<std::optional<standing>> async_find(std::string_view member) const;
    /// With so many before and behind it, as far as there are; nobody if it is not on the board.
    std::vector<standing> around(std::string_view member, std::uint64_t count, std::stop_token token = {}) const;
    task<std::vector<standing>> async_around(std::string_view member, std::uint64_t count) const;
    std::vector<standing> range(score_range which, std::stop_token token = {}) const;
    task<std::vector<standing>> async_range(score_range which) const;
    std::uint64_t size(std::stop_token token = {}) const;
    task<std::uint64_t> async_size() const;

    /// The board so many periods ago (at most 10,000), and the one of a time; to be read only.
    leaderboard previous(unsigned periods = 1) const;
    leaderboard at(std::chrono::system_clock::time_point time) const;

private:
    explicit leaderboard(std::shared_ptr<detail::leaderboard_state const> state) noexcept;

    std::shared_ptr<detail::leaderboard_state const> state_;
};

}  // namespace lockstep
