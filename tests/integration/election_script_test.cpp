// The scripts of elections, where they differ from those of a lock: each rule by itself.
#include "script_support.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::test {
namespace {

class election_scripts : public testing::Test {
protected:
    reply run(scripts::script const& script, std::vector<std::string> const& keys, std::vector<std::string> const& arguments) {
        return run_script(server, script, keys, arguments);
    }
    std::string acquire(std::string const& hold, int priority = 0) {
        return run(scripts::election_acquire, {"e", "c"}, {hold, "60000", "99999999999999", "1", "100", rules, "1 host " + hold, std::to_string(priority)})
            .elements.at(0)
            .text;
    }
    std::string release(std::string const& hold) { return run(scripts::election_release, {"e", "c"}, {hold, rules, "", "resigned"}).elements.at(0).text; }
    std::int64_t highest() { return run(scripts::election_read, {"e"}, {"1", "wake:"}).elements.at(2).integer; }
    bool has(std::string const& field) { return server.must({"HEXISTS", "e", field}).integer == 1; }

    std::string const rules = "500 3600000 wake:";
    redis_server server;
};

TEST_F(election_scripts, forget_that_there_were_priorities_when_the_line_is_empty) {
    EXPECT_EQ(acquire("a.1"), "granted");
    EXPECT_EQ(acquire("b.1", 7), "queued");
    EXPECT_TRUE(has("y"));
    EXPECT_EQ(release("a.1"), "released");
    EXPECT_FALSE(has("y"));
    EXPECT_EQ(acquire("b.1", 7), "granted");
    EXPECT_EQ(release("b.1"), "released");
    EXPECT_FALSE(has("y"));
}

TEST_F(election_scripts, read_no_priority_of_who_is_not_there) {
    auto ear = server.connect();
    EXPECT_EQ(acquire("a.1"), "granted");
    EXPECT_EQ(acquire("dead.1", 9), "queued");
    EXPECT_EQ(acquire("alive.1", 4), "queued");
    EXPECT_EQ(highest(), 0);
    ear.command({"SUBSCRIBE", "wake:alive"});
    EXPECT_EQ(highest(), 4);
    server.must({"HSET", "e", "m", " alive "});
    EXPECT_EQ(highest(), 0) << "it let an offer lapse";
}

// A candidate that let an offer lapse because it had died would otherwise stand in line for as long as others stand for election.
TEST_F(election_scripts, take_suspects_out_of_the_line) {
    auto ear = server.connect();
    ear.command({"SUBSCRIBE", "wake:alive"});
    ear.command({"SUBSCRIBE", "wake:asleep"});
    EXPECT_EQ(acquire("a.1"), "granted");
    for (auto const* const hold : {"dead.1", "asleep.1", "alive.1"}) EXPECT_EQ(acquire(hold), "queued");
    server.must({"HSET", "e", "m", " dead asleep "});
    EXPECT_EQ(release("a.1"), "released");
    EXPECT_EQ(server.must({"HGET", "e", "p"}).text, "alive.1");
    EXPECT_FALSE(has("wdead.1"));
    EXPECT_FALSE(has("wasleep.1")) << "if it wakes up it asks again";
}

TEST_F(election_scripts, end_a_leadership_only_as_it_was_seen) {
    EXPECT_EQ(acquire("a.1"), "granted");
    auto const ends = server.must({"HGET", "e", "e"}).text;
    auto const evict = [&](std::string const& seen) { return run(scripts::election_evict, {"e", "c"}, {"a.1", rules, seen}).elements.at(0).text; };
    EXPECT_EQ(evict("1"), "renewed");
    EXPECT_EQ(evict(ends), "released");
    EXPECT_EQ(evict(""), "gone");
    EXPECT_EQ(server.must({"XREVRANGE", "c", "+", "-", "COUNT", "1"}).elements.at(0).elements.at(1).elements.at(1).text, "removed");
}

TEST_F(election_scripts, keep_the_last_term_that_was_resigned_on_a_node) {
    auto const announce = [&](std::string const& term, std::string const& state) {
        return run(scripts::quorum_announce, {"r"}, {term, term + " 1000 " + state + " token 1 host id", "60000"}).integer;
    };
    auto const value = [&] { return server.must({"GET", "r"}).text; };
    EXPECT_EQ(announce("5", "leads"), 1);
    EXPECT_EQ(value(), "5 1000 leads token 1 host id");
    EXPECT_EQ(announce("5", "resigned"), 1);
    EXPECT_EQ(announce("6", "leads"), 1);
    EXPECT_EQ(value(), "6 1000 leads/5 token 1 host id");
    EXPECT_EQ(announce("6", "leads"), 1);
    EXPECT_EQ(value(), "6 1000 leads/5 token 1 host id") << "at every heartbeat";
    EXPECT_EQ(announce("5", "resigned"), 0) << "a later one is there";
    EXPECT_EQ(announce("8", "leads"), 1);
    EXPECT_EQ(value(), "8 1000 leads/5 token 1 host id") << "6 did not resign";
    EXPECT_GT(server.must({"PTTL", "r"}).integer, 0);
}

}  // namespace
}  // namespace lockstep::test
