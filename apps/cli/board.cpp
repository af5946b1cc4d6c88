// lockstep board top|rank|add|remove: members by their scores, best first.

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/table.hpp"

#include <lockstep/leaderboard.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

struct board_words {
    std::string name, member;
    double score = 0;
    bool increment = false, best = false;
    std::uint64_t count = 10, skip = 0;
    unsigned previous = 0;
    leaderboard_options rules{};
    std::optional<std::chrono::milliseconds> retention{};

    leaderboard at(client& by) const {
        auto how = rules;
        if (retention) how.retention = *retention;
        leaderboard const now{by, name, how};
        return previous == 0 ? now : now.previous(previous);
    }
};

boost::json::object as_json(standing const& one) { return {{"member", one.member}, {"score", one.score}, {"rank", one.rank}}; }

exit_code top(context const& all, board_words const& what) {
    auto by = all.connect();
    table shown{{{"RANK", align::right}, {"SCORE", align::right}, {"MEMBER", align::left, true}}};
    auto const best = what.at(by).top(what.count, what.skip);
    if (best.empty()) throw not_found{fmt::format("nothing is on the board {}{}", printable(what.name), what.skip == 0 ? "" : " behind those that were skipped")};
    for (auto const& one : best) {
        if (all.json) {
            all.print_json(as_json(one));
        } else {
            shown.add({std::to_string(one.rank), fmt::to_string(one.score), one.member});
        }
    }
    if (!shown.empty()) all.print(shown.text(all.coloured(), all.width()));
    return exit_code::ok;
}

exit_code rank(context const& all, board_words const& what) {
    auto by = all.connect();
    auto const found = what.at(by).find(what.member);
    if (!found) throw not_found{fmt::format("{} is not on the board {}", printable(what.member), printable(what.name))};
    if (all.json) {
        all.print_json(as_json(*found));
    } else {
        all.print(fmt::format("{}\n", found->rank));
    }
    return exit_code::ok;
}

exit_code add_score(context const& all, board_words const& what) {
    auto by = all.connect();
    auto it = what.at(by);
    score_change made;
    if (what.increment) {
        made = it.increment(what.member, what.score);
    } else if (what.best) {
        made = it.best_of(what.member, what.score);
    } else {
        made = it.add(what.member, what.score);
    }
    if (all.json) {
        all.print_json(as_json({what.member, made.score, made.rank}));
    } else {
        all.print(fmt::format("{}\n", made.score));
    }
    return exit_code::ok;
}

/// All who use a board must say the same of these.
void add_rules(CLI::App& to, board_words& what) {
    add_word(to, "--order", what.rules.order, {{"highest", leaderboard_order::highest_first}, {"lowest", leaderboard_order::lowest_first}},
             "which score is best: highest or lowest [highest]");
    add_word(to, "--ties", what.rules.ties, {{"member", leaderboard_ties::by_member}, {"earlier", leaderboard_ties::earlier_first}},
             "of equal scores: by member, or who was earlier [member]");
    add_word(to, "--period", what.rules.period,
             {{"hour", leaderboard_period::hourly}, {"day", leaderboard_period::daily}, {"week", leaderboard_period::weekly}, {"month", leaderboard_period::monthly}},
             "a board for each hour, day, week or month [one for all time]");
}

}  // namespace

void add_board(CLI::App& command, context& all) {
    command.description("Leaderboards: members by their scores, best first. All who use one must say the same --order, --ties and --period.");
    command.require_subcommand(1);
    auto const what = std::make_shared<board_words>();
    auto const add = [&](char const* name, char const* about, std::function<exit_code()> const& act) {
        auto* const made = add_action(command, name, about, what->name, all, act);
        add_rules(*made, *what);
        return made;
    };
    auto const add_member = [what](CLI::App& to) { to.add_option("MEMBER", what->member, "who")->required()->type_name(""); };
    auto const add_previous = [what](CLI::App& to) {
        to.add_option("--previous", what->previous, "that of so many periods ago [0]")->type_name("N")->check(number_within(0, 10'000));
    };
    auto const add_retention = [what](CLI::App& to) { add_duration(to, "--retention", what->retention, "the board of a period stays so long after its end [30d]"); };
    auto* const showing = add("top", "the best of it", [what, &all] { return top(all, *what); });
    showing->add_option("--count", what->count, "so many [10]")->type_name("N")->check(number_within(1, 1'000'000'000));
    showing->add_option("--skip", what->skip, "but for so many before them [0]")->type_name("N")->check(number_within(0, 1'000'000'000));
    add_previous(*showing);
    auto* const ranking = add("rank", "print the rank of a member, 1: the best; returns 1 if it is not on the board", [what, &all] { return rank(all, *what); });
    add_member(*ranking);
    add_previous(*ranking);
    auto* const adding = add("add", "give a member this score, and print what it has then", [what, &all] { return add_score(all, *what); });
    add_member(*adding);
    add_number(*adding, "SCORE", what->score, "its score")->required();
    auto* const increment = adding->add_flag("--increment", what->increment, "add it to what the member has");
    adding->add_flag("--best", what->best, "only if it is better than what the member has")->excludes(increment);
    add_retention(*adding);
    auto* const removing = add("remove", "take a member off the board; returns 1 if it was not on it", [what, &all] {
        auto by = all.connect();
        bool const was = what->at(by).remove(what->member);
        if (!was) throw not_found{fmt::format("{} is not on the board {}", printable(what->member), printable(what->name))};
        if (all.json) all.print_json(boost::json::object{{"member", what->member}, {"removed", true}});
        return exit_code::ok;
    });
    add_member(*removing);
    add_retention(*removing);
}

}  // namespace lockstep::cli
