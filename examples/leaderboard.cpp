// A game of this week: who is best, who came first to the same score, who stands around whom.
#include <lockstep/leaderboard.hpp>
#include <lockstep/lockstep.hpp>

#include <iostream>

int main() try {
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};
    lockstep::leaderboard board{
        client, "space-race", {.ties = lockstep::leaderboard_ties::earlier_first, .period = lockstep::leaderboard_period::weekly}};

    board.add("dee", 30);
    board.add("ada", 30);
    board.best_of("bob", 45);
    board.best_of("bob", 12);  // not better
    auto const now = board.increment("cyd", 5);
    std::cout << "cyd is number " << now.rank << " with " << now.score << '\n';
    for (auto const& one : board.top(10)) std::cout << one.rank << ". " << one.member << ' ' << one.score << '\n';
    std::cout << "last week there were " << board.previous().size() << '\n';
    auto const dee = board.find("dee");
    return dee && dee->rank == 2 ? 0 : 1;  // she was there before ada
} catch (lockstep::error const& problem) {
    std::cerr << "leaderboard: " << problem.what() << '\n';
    return 1;
}
