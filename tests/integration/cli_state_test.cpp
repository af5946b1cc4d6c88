// The sub-commands of `lockstep` for shared state: map, counter, board, session, and what limit and value do besides the usual.

#include "cli_support.hpp"

#include <lockstep/atomic_counter.hpp>
#include <lockstep/leaderboard.hpp>
#include <lockstep/rate_limiter.hpp>
#include <lockstep/session_store.hpp>
#include <lockstep/shared_map.hpp>
#include <lockstep/shared_value.hpp>

#include <boost/json.hpp>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class cli_state : public cli {
protected:
    boost::json::value json(std::vector<std::string> words) const {
        words.insert(words.begin(), "--json");
        return boost::json::parse(run(words).text);
    }
    /// Refused as wrong usage, with a text that has these.
    void expect_refused(std::vector<std::string> const& words, std::string const& wrong, std::string const& allowed) const {
        auto const seen = run(words);
        EXPECT_EQ(seen.code, 64);
        EXPECT_THAT(seen.text, AllOf(HasSubstr(wrong), HasSubstr(allowed)));
    }

    client by{server.url()};
};

TEST_F(cli_state, counts) {
    EXPECT_EQ(run({"counter", "get", "orders"}).text, "0\n");
    EXPECT_EQ(run({"counter", "add", "orders"}).text, "1\n");
    EXPECT_EQ(run({"counter", "add", "orders", "41"}).text, "42\n");
    EXPECT_EQ(run({"counter", "add", "orders", "-50"}).text, "-8\n");
    EXPECT_EQ(atomic_counter(by, "orders").get(), -8);
    EXPECT_EQ(run({"counter", "set", "--expected", "-9", "orders", "1"}).code, 1);
    EXPECT_EQ(run({"counter", "set", "--expected", "-8", "orders", "7"}).code, 0);
    auto const told = json({"counter", "set", "orders", "9223372036854775807"});
    EXPECT_EQ(told.at("set"), true);
    EXPECT_EQ(told.at("before"), "7") << "64 bits are text, however small the number is";
    EXPECT_EQ(run({"counter", "get", "orders"}).text, "9223372036854775807\n");
    EXPECT_EQ(json({"counter", "get", "orders"}).at("number"), "9223372036854775807");
    expect_refused({"counter", "add", "orders"}, "9223372036854775807 plus 1", "64 bits");
    expect_refused({"counter", "set", "orders", "9223372036854775808"}, "'9223372036854775808'", "to 9223372036854775807");
    expect_refused({"counter", "add", "orders", "1x"}, "'1x'", "a whole number from -9223372036854775808");
    EXPECT_EQ(run({"counter", "set", "orders"}).code, 64) << "to what?";
}

TEST_F(cli_state, takes_words_that_look_like_options_behind_two_dashes) {
    EXPECT_EQ(run({"counter", "add", "orders", "--", "-5"}).text, "-5\n");
    EXPECT_EQ(run({"map", "set", "stock", "--", "-apples", "-x"}).code, 0);
    EXPECT_EQ(run({"map", "get", "--", "stock", "-apples"}).text, "-x\n");
    EXPECT_EQ(run({"board", "add", "race", "--", "ada", "-.5"}).code, 0);
    EXPECT_EQ(run({"session", "count", "--", "web", "-eve"}).code, 1) << "none, and no mistake";
    EXPECT_EQ(run({"value", "set", "--", "-name", "--json"}).code, 0);
    EXPECT_EQ(run({"value", "get", "--", "-name"}).text, "--json\n");
}

// 1 would say that there is none.
TEST_F(cli_state, a_server_that_does_not_answer_is_no_answer) {
    session_store{by, "web", {.command_timeout = std::chrono::seconds{10}}}.create("ada", {});
    server.stop();
    for (auto const& words : std::vector<std::vector<std::string>>{{"session", "count", "web", "ada"}, {"counter", "get", "orders"}, {"map", "get", "stock", "apples"}}) {
        auto all = words;
        all.insert(all.begin(), {"--server-wait", "300ms"});
        EXPECT_EQ(run(all).code, 69) << words.front();
    }
    server.cont();
}

TEST_F(cli_state, a_counter_ends_if_it_is_told_to) {
    EXPECT_EQ(run({"counter", "add", "--ttl", "1h", "orders", "5"}).text, "5\n");
    EXPECT_GT(server.must({"PTTL", "lockstep:{orders}:counter"}).integer, 3'000'000);
    EXPECT_EQ(run({"counter", "set", "--ttl", "1ms", "orders", "6"}).code, 0);
    EXPECT_TRUE(eventually([&] { return run({"counter", "get", "orders"}).text == "0\n"; }));
}

TEST_F(cli_state, shares_maps) {
    EXPECT_EQ(run({"map", "get", "stock", "apples"}).code, 1);
    EXPECT_EQ(json({"map", "get", "stock", "apples"}).at("error"), "not_found");
    EXPECT_EQ(run({"map", "list", "stock"}).code, 1);
    EXPECT_EQ(run({"map", "set", "stock", "apples", "red ones"}).code, 0);
    shared_map<std::string>{by, "stock"}.set("pears", "two\nlines");
    EXPECT_EQ(run({"map", "get", "stock", "apples"}).text, "red ones\n");
    EXPECT_THAT(run({"map", "list", "stock"}).text, testing::ContainsRegex("apples +red ones\npears +two"));
    EXPECT_THAT(run({"--json", "map", "list", "stock"}).text, HasSubstr("\"field\":\"pears\",\"value\":\"two\\nlines\""));
    auto const version = std::string{json({"map", "get", "stock", "apples"}).at("version").as_string()};
    EXPECT_EQ(run({"map", "set", "--version", "0", "stock", "apples", "green"}).code, 1) << "there is one";
    EXPECT_EQ(run({"map", "set", "--version", version, "stock", "apples", "green"}).code, 0);
    EXPECT_EQ(run({"map", "set", "--fence", "10", "stock", "apples", "by ten"}).code, 0);
    EXPECT_EQ(run({"map", "set", "--fence", "9", "stock", "pears", "by nine"}).code, 75);
    EXPECT_EQ(run({"map", "erase", "--fence", "9", "stock", "apples"}).code, 75);
    EXPECT_EQ(run({"map", "get", "stock", "apples"}).text, "by ten\n");
    EXPECT_EQ(run({"map", "erase", "--fence", "10", "stock", "apples"}).code, 0);
    EXPECT_EQ(run({"map", "erase", "stock", "apples"}).code, 1);
    EXPECT_EQ(server.must({"PTTL", "lockstep:{stock}:map"}).integer, -1);
    EXPECT_EQ(run({"map", "set", "--ttl", "1h", "stock", "plums", "7"}).code, 0);
    EXPECT_GT(server.must({"PTTL", "lockstep:{stock}:map"}).integer, 3'000'000);
    EXPECT_EQ(run({"map", "set", "stock", "plums"}).code, 64) << "to what?";
}

TEST_F(cli_state, ranks) {
    EXPECT_EQ(run({"board", "top", "race"}).code, 1);
    EXPECT_EQ(run({"board", "rank", "race", "ada"}).code, 1);
    EXPECT_EQ(run({"board", "add", "race", "ada", "10"}).text, "10\n");
    EXPECT_EQ(run({"board", "add", "--increment", "race", "ada", "2.5"}).text, "12.5\n");
    EXPECT_EQ(run({"board", "add", "--best", "race", "ada", "4"}).text, "12.5\n");
    EXPECT_EQ(run({"board", "add", "race", "bob", "-3"}).text, "-3\n");
    leaderboard{by, "race"}.add("cyd", 20);
    EXPECT_EQ(run({"board", "top", "race"}).text, "RANK  SCORE  MEMBER\n   1     20  cyd\n   2   12.5  ada\n   3     -3  bob\n");
    EXPECT_THAT(run({"board", "top", "--count", "1", "--skip", "1", "race"}).text, AllOf(HasSubstr("ada"), Not(HasSubstr("bob")), Not(HasSubstr("cyd"))));
    EXPECT_EQ(run({"board", "rank", "race", "bob"}).text, "3\n");
    auto const told = json({"board", "rank", "race", "ada"});
    EXPECT_EQ(told.at("rank"), 2);
    EXPECT_EQ(told.at("score"), 12.5);
    EXPECT_THAT(run({"--json", "board", "rank", "race", "bob"}).text, HasSubstr("\"score\":-3,")) << "and not -3E0";
    EXPECT_EQ(run({"board", "remove", "race", "cyd"}).code, 0);
    EXPECT_EQ(run({"board", "remove", "race", "cyd"}).code, 1);
    EXPECT_EQ(json({"board", "rank", "race", "cyd"}).at("error"), "not_found");
    expect_refused({"board", "add", "race", "ada", "many"}, "'many'", "a number such as");
    expect_refused({"board", "add", "race", "ada", "inf"}, "inf", "a score is a number");
    expect_refused({"board", "add", "--increment", "--best", "race", "ada", "1"}, "--increment", "--best");
}

TEST_F(cli_state, a_board_has_the_rules_that_are_asked_for) {
    leaderboard weekly{by, "race", {.order = leaderboard_order::lowest_first, .ties = leaderboard_ties::earlier_first, .period = leaderboard_period::weekly}};
    auto const with_rules = [&](std::vector<std::string> words) {
        words.insert(words.end(), {"--order", "lowest", "--ties", "earlier", "--period", "week"});
        return run(words);
    };
    with_rules({"board", "add", "race", "zoe", "5"});
    with_rules({"board", "add", "race", "ada", "5"});
    with_rules({"board", "add", "race", "bob", "4"});
    EXPECT_EQ(weekly.top(1).at(0).member, "bob");
    EXPECT_EQ(with_rules({"board", "rank", "race", "zoe"}).text, "2\n");
    EXPECT_EQ(with_rules({"board", "top", "--previous", "1", "race"}).code, 1) << "there was none a week ago";
    EXPECT_EQ(run({"board", "top", "race"}).code, 1) << "that of all time is another";
    expect_refused({"board", "top", "--previous", "1", "race"}, "race", "no periods");
    expect_refused({"board", "top", "--period", "year", "race"}, "'year'", "hour, day, week, month");
    expect_refused({"board", "top", "--order", "best", "race"}, "'best'", "highest, lowest");
    expect_refused({"board", "top", "--count", "0", "race"}, "--count: must be 1 to 1000000000", "not '0'");
    auto const unlike = run({"board", "top", "--period", "week", "race"});
    EXPECT_EQ(unlike.code, 76);
    EXPECT_THAT(unlike.text, HasSubstr("must say the same options"));
    with_rules({"board", "add", "--retention", "90d", "race", "bob", "3"});
    EXPECT_GT(server.must({"PTTL", server.must({"KEYS", "lockstep:{race}:board:week:*-??"}).elements.at(0).text}).integer, 89LL * 86'400'000);
}

TEST_F(cli_state, counts_and_ends_the_sessions_of_a_user_and_shows_no_id) {
    session_store web{by, "web", {.command_timeout = std::chrono::seconds{10}}};
    auto const id = web.create("ada");
    web.create("ada");
    web.create("bob");
    auto const seen = run({"session", "count", "web", "ada"});
    EXPECT_EQ(seen.code, 0);
    EXPECT_EQ(seen.text, "2\n");
    EXPECT_EQ(json({"session", "count", "web", "ada"}).at("sessions"), 2);
    auto const told = run({"--json", "session", "destroy", "web", "ada"});
    EXPECT_EQ(told.code, 0);
    EXPECT_EQ(boost::json::parse(told.text).at("destroyed"), 2);
    EXPECT_THAT(told.text, Not(HasSubstr(id)));
    EXPECT_FALSE(web.touch(id));
    EXPECT_EQ(web.list("bob").size(), 1U);
    EXPECT_EQ(run({"session", "count", "web", "ada"}).code, 1);
    EXPECT_EQ(run({"session", "destroy", "web", "ada"}).code, 1);
    expect_refused({"session", "count", "web", ""}, "not 0", "1 to 512 bytes");
    EXPECT_EQ(run({"session", "destroy", "web"}).code, 64) << "whose?";
}

TEST_F(cli_state, looks_at_a_limit_and_resets_it) {
    for (auto const* const algorithm : {"log", "window", "bucket"}) {
        for (bool const together : {false, true}) {
            std::vector<std::string> words{"limit", "--limit", "2", "--per", "1h", "--algorithm", algorithm, "api", "me"};
            if (together) words.emplace_back("--together");
            auto const with = [&](char const* more) {
                auto all = words;
                all.emplace_back(more);
                return run(all);
            };
            EXPECT_EQ(with("--peek").text, "2 of 2 left\n");
            EXPECT_EQ(run(words).code, 0);
            EXPECT_EQ(with("--peek").text, "1 of 2 left\n") << "and again: a look does not count";
            EXPECT_EQ(with("--peek").text, "1 of 2 left\n");
            EXPECT_EQ(run(words).code, 0);
            auto const full = with("--peek");
            EXPECT_EQ(full.code, 1);
            EXPECT_THAT(full.text, AllOf(HasSubstr("0 of 2 left"), HasSubstr("over the limit")));
            EXPECT_EQ(with("--reset").code, 0);
            EXPECT_EQ(with("--peek").text, "2 of 2 left\n");
        }
    }
    rate_limiter together{by, "shop", {.limit = 1, .per = 1h, .together = true, .command_timeout = std::chrono::seconds{10}}};
    together.try_acquire("me");
    EXPECT_EQ(json({"limit", "--limit", "1", "--per", "1h", "--together", "--reset", "shop", "me"}).at("reset"), true);
    EXPECT_EQ(together.peek("me").remaining, 1);
    expect_refused({"limit", "--limit", "1", "--peek", "--reset", "api", "me"}, "--peek", "--reset");
    expect_refused({"limit", "--limit", "1", "--reset", "-w", "1s", "api", "me"}, "--wait", "--reset");
    expect_refused({"limit", "--limit", "1", "--algorithm", "guess", "api", "me"}, "'guess'", "log, window, bucket");
}

TEST_F(cli_state, erases_a_value_only_with_a_fence_that_fits) {
    shared_value<std::string> value{by, "v"};
    value.set("by ten", {.fence = 10});
    EXPECT_EQ(run({"value", "erase", "--fence", "9", "v"}).code, 75);
    EXPECT_EQ(value.get()->value, "by ten");
    EXPECT_EQ(run({"value", "erase", "--fence", "11", "v"}).code, 0);
    EXPECT_FALSE(value.get());
    EXPECT_EQ(run({"value", "set", "--fence", "10", "v", "late"}).code, 75) << "it is remembered";
    expect_refused({"value", "erase", "--fence", "x", "v"}, "--fence: must be 0 to 9000000000000000", "not 'x'");
}

}  // namespace
}  // namespace lockstep::test
