// The sub-commands of `lockstep` other than run: what they do, print and return.

#include "cli_support.hpp"

#include <lockstep/counting_semaphore.hpp>
#include <lockstep/embedded_server.hpp>
#include <lockstep/event.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>

#include <boost/json.hpp>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class cli_tools : public cli {
protected:
    boost::json::value json(std::vector<std::string> words) {
        words.insert(words.begin(), "--json");
        auto const seen = run(words);
        boost::system::error_code problem;
        auto value = boost::json::parse(seen.text, problem);
        EXPECT_FALSE(problem) << seen.text;
        return value;
    }
    // A command that says when it runs and ends with its stdin.
    child_process holding(std::vector<std::string> words) {
        for (auto const* const word : {"--", "sh", "-c", "echo runs; exec cat"}) words.emplace_back(word);
        auto made = begin(words);
        EXPECT_EQ(made.read_line(), "runs");
        return made;
    }
};

TEST_F(cli_tools, shows_its_version_and_help) {
    EXPECT_THAT(finish({program_path("lockstep"), "--version"}).text, MatchesRegex("lockstep [0-9]+\\.[0-9]+\\.[0-9]+\n"));
    auto const help = finish({program_path("lockstep"), "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.text, AllOf(HasSubstr("run"), HasSubstr("--redis"), HasSubstr("Exit codes")));
    EXPECT_EQ(run({"event", "--help"}).code, 0);
    EXPECT_EQ(run({"event"}).code, 64);
    EXPECT_EQ(run({"doctor", "--", "true"}).code, 64) << "it takes no command";
}

TEST_F(cli_tools, makes_changes_and_shows_semaphores) {
    EXPECT_EQ(run({"sem", "create", "s", "3"}).text, "3 of 3 permits of s are free\n");
    auto const held = holding({"run", "-c", "3", "s"});
    EXPECT_EQ(run({"sem", "show", "s"}).text, "2 of 3 permits of s are free\n");
    EXPECT_EQ(json({"sem", "resize", "s", "5"}), (boost::json::value{{"name", "s"}, {"count", 5}, {"available", 4}}));
    EXPECT_EQ(run({"sem", "create", "s", "3"}).code, 64);
    auto const missing = run({"sem", "show", "t"});
    EXPECT_EQ(missing.code, 1);
    EXPECT_THAT(missing.text, HasSubstr("sem create"));
    EXPECT_EQ(run({"sem", "create", "s", "0"}).code, 64);
}

TEST_F(cli_tools, sets_and_waits_for_events) {
    EXPECT_EQ(run({"event", "is-set", "e"}).code, 1);
    EXPECT_EQ(run({"event", "wait", "-n", "e"}).code, 1);
    EXPECT_EQ(run({"event", "set", "e"}).code, 0);
    EXPECT_EQ(run({"event", "is-set", "e"}).code, 0);
    EXPECT_EQ(run({"event", "wait", "e"}).code, 0);
    EXPECT_EQ(run({"event", "wait", "-w", "50ms", "e"}).code, 1) << "one signal, one wait";
    EXPECT_EQ(run({"event", "set", "e"}).code, 0);
    EXPECT_EQ(run({"event", "clear", "e"}).text, "1 forgotten\n");

    auto waiting = begin({"event", "wait", "e"});
    client other{server.url()};
    ASSERT_TRUE(eventually([&] { return !monitor{other}.waiters("e").empty(); }));
    event{other, "e"}.set();
    EXPECT_EQ(waiting.wait()->code, 0);
}

TEST_F(cli_tools, wakes_all_with_broadcast) {
    auto one = begin({"event", "wait", "-b", "e"});
    auto two = begin({"event", "wait", "--broadcast", "e"});
    EXPECT_EQ(run({"event", "set", "-b", "e"}).code, 0);
    EXPECT_EQ(one.wait()->code, 0);
    EXPECT_EQ(two.wait()->code, 0);
    EXPECT_EQ(run({"event", "is-set", "-b", "e"}).text, "set\n");
    EXPECT_EQ(run({"event", "clear", "-b", "e"}).code, 0);
    EXPECT_EQ(run({"event", "wait", "-b", "-n", "e"}).code, 1);
}

TEST_F(cli_tools, a_signal_ends_a_wait_and_leaves_nothing_behind) {
    auto waiting = begin({"event", "wait", "e"});
    client other{server.url()};
    ASSERT_TRUE(eventually([&] { return !monitor{other}.waiters("e").empty(); }));
    waiting.kill(SIGINT);
    EXPECT_EQ(waiting.wait()->code, 128 + SIGINT);
    EXPECT_TRUE(monitor{other}.waiters("e").empty());
}

TEST_F(cli_tools, counts_latches_down) {
    EXPECT_EQ(run({"latch", "create", "l", "2"}).code, 0);
    auto waiting = begin({"latch", "wait", "l"});
    EXPECT_EQ(run({"latch", "wait", "-n", "l"}).code, 1);
    EXPECT_EQ(json({"latch", "count-down", "l"}).at("open"), false);
    EXPECT_EQ(json({"latch", "count-down", "l"}).at("open"), true);
    EXPECT_EQ(waiting.wait()->code, 0);
    EXPECT_EQ(run({"latch", "count-down", "l"}).code, 64) << "there is nothing left to count";
    EXPECT_EQ(run({"latch", "wait", "no-such"}).code, 1);
    EXPECT_EQ(run({"latch", "count-down", "made", "--count", "1"}).code, 0);
}

TEST_F(cli_tools, meets_at_a_barrier) {
    auto one = begin({"barrier", "b", "-p", "2"});
    EXPECT_EQ(run({"barrier", "b", "wait", "--parties", "2"}).code, 0);
    EXPECT_EQ(one.wait()->code, 0);
    EXPECT_EQ(run({"barrier", "b", "-p", "2", "-w", "50ms"}).code, 1);
    EXPECT_EQ(run({"barrier", "b", "-p", "3"}).code, 64) << "it is for 2";

    auto gives_up = begin({"barrier", "c", "-p", "3"});
    auto deserted = begin({"barrier", "c", "-p", "3"});
    client other{server.url()};
    auto const arrived = [&] {
        auto const now = monitor{other}.snapshot();
        for (auto const& object : now.objects) {
            if (object.name == "c") return object.taken;
        }
        return std::int64_t{0};
    };
    ASSERT_TRUE(eventually([&] { return arrived() == 2; }));
    gives_up.kill(SIGTERM);
    EXPECT_EQ(gives_up.wait()->code, 128 + SIGTERM);
    EXPECT_EQ(deserted.wait()->code, 75);
}

TEST_F(cli_tools, starts_shows_and_stops_the_embedded_server) {
    child_options const own{.environment = {{"LOCKSTEP_EMBEDDED_DIR", home.file("run")}, {"LOCKSTEP_EMBEDDED_IDLE", "60"}, {"LOCKSTEP_URL", ""}, {"REDIS_URL", ""}}};
    auto const program = program_path("lockstep");
    EXPECT_EQ(finish({program, "server", "status"}, own).code, 1);
    auto const started = finish({program, "server", "start"}, own);
    EXPECT_EQ(started.text, "unix://" + home.file("run/redis.sock") + "\n");
    EXPECT_THAT(finish({program, "server", "status"}, own).text, HasSubstr("running"));
    EXPECT_EQ(finish({program, "run", "x", "--", "true"}, own).text, "") << "without a URL and without a word";
    EXPECT_EQ(finish({program, "server", "stop"}, own).text, "stopped\n");
    EXPECT_EQ(finish({program, "run", "x", "--", "true"}, own).code, 0) << "it starts again by itself";
    EXPECT_EQ(finish({program, "--json", "server", "stop"}, own).text, "{\"stopped\":true}\n");
    EXPECT_EQ(finish({program, "server", "stop"}, own).text, "it was not running\n");
}

TEST_F(cli_tools, lists_what_is_held_and_by_whom) {
    auto const held = holding({"--name", "backup", "run", "x"});
    auto const waiting = begin({"--name", "second", "run", "x", "--", "true"});
    client other{server.url()};
    monitor from{other};
    ASSERT_TRUE(eventually([&] { return from.waiters("x").size() == 1 && from.waiters("x").front().who.name == "second"; }));
    ASSERT_TRUE(eventually([&] { return from.active("x").size() == 1 && from.active("x").front().owner.name == "backup"; }));
    ASSERT_TRUE(eventually([&] { return from.active().size() == 1; }, 12s)) << "the server was told of it";
    EXPECT_THAT(run({"ls"}).text, HasSubstr("backup@"));
    EXPECT_EQ(run({"ls", "--names"}).text, "x\n");
    EXPECT_THAT(run({"ls", "y*"}).text, Not(HasSubstr("backup")));
    EXPECT_THAT(run({"who", "x"}).text, AllOf(HasSubstr("backup@"), HasSubstr("second@"), HasSubstr("owner")));
    EXPECT_EQ(run({"who", "y"}).code, 1);
    EXPECT_THAT(run({"why", "x"}).text, HasSubstr("backup"));
    EXPECT_THAT(run({"top"}).text, HasSubstr("backup@"));
    EXPECT_EQ(json({"ls"}).at("holds").as_array().size(), 1U);
    EXPECT_EQ(json({"who", "x"}).at("waits").as_array().size(), 1U);
    EXPECT_EQ(json({"why", "x"}).at("name"), "x");
    EXPECT_EQ(json({"top"}).at("clients").as_array().empty(), false);
}

// Each `run` waits for its command, which runs another one.
TEST_F(cli_tools, finds_the_deadlock_of_nested_runs) {
    auto const nested = [&](std::string const& outer, std::string const& inner) {
        auto const wait = "touch '" + home.file(outer) + "'; until [ -e '" + home.file(inner) + "' ]; do sleep 0.01; done; exec ";
        return begin({"--name", "holds-" + outer, "run", outer, "--", "sh", "-c", wait + program_path("lockstep") + " --redis " + server.url() + " run " + inner + " -- true"});
    };
    auto first = nested("a", "b");
    auto second = nested("b", "a");
    EXPECT_TRUE(eventually([&] { return run({"why", "a"}).text.find("Deadlock") != std::string::npos; }, 20s));
    EXPECT_THAT(run({"why", "b"}).text, AllOf(HasSubstr("holds-a (pid"), HasSubstr("waits for its command, which waits for 'b', held by holds-b"),
                                              HasSubstr("waits for its command, which waits for 'a', held by holds-a")));
    for (auto* const each : {&first, &second}) each->kill(SIGTERM);
    for (auto* const each : {&first, &second}) EXPECT_TRUE(each->wait(20s));
}

// So does one that waits for what its own `run` holds.
TEST_F(cli_tools, finds_a_run_that_waits_for_itself) {
    auto outer = begin({"--name", "outer", "run", "a", "--", program_path("lockstep"), "--redis", server.url(), "run", "a", "--", "true"});
    EXPECT_TRUE(eventually([&] { return run({"why", "a"}).text.find("waits for its command, which waits for 'a', held by outer") != std::string::npos; }, 20s));
    outer.kill(SIGTERM);
    EXPECT_TRUE(outer.wait(20s));
}

TEST_F(cli_tools, shows_hostile_names_as_text) {
    client other{server.url()};
    auto const held = mutex{other, "\033[2J<script>\n"}.acquire();
    EXPECT_THAT(run({"ls", "--scan"}).text, AllOf(HasSubstr("\\x1B[2J<script>\\x0A"), Not(HasSubstr("\033"))));
    EXPECT_EQ(json({"ls", "--scan"}).at("objects").at(0).at("name"), "\033[2J<script>\n");
}

TEST_F(cli_tools, counts_what_happened) {
    EXPECT_EQ(run({"run", "x", "--", "true"}).code, 0);
    ASSERT_TRUE(eventually([&] { return run({"stats", "x"}).code == 0; }));
    auto const counted = json({"stats", "x"});
    EXPECT_EQ(counted.at("kind"), "lock") << "and nothing else: it is one object";
    EXPECT_EQ(counted.at("acquisitions"), 1);
    EXPECT_THAT(run({"stats"}).text, AllOf(HasSubstr("TAKEN"), HasSubstr("x")));
}

// It holds a `lock` and a `shared`, so that it excludes programs that use either: to people that is one thing.
TEST_F(cli_tools, lists_a_run_once_wherever_it_is_seen) {
    auto const times = [](std::string const& text, std::string_view word) {
        std::size_t found = 0;
        for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
        return found;
    };
    auto held = holding({"--name", "backup", "run", "--record", "x"});
    auto const reading = begin({"--name", "reads", "run", "-s", "x", "--", "true"});
    client other{server.url()};
    monitor from{other};
    ASSERT_TRUE(eventually([&] { return from.waiters("x").size() == 1; }));
    ASSERT_TRUE(eventually([&] { return times(run({"ls", "--scan"}).text, "backup@") == 1; }));
    EXPECT_EQ(times(run({"who", "x"}).text, "backup@"), 1U);
    EXPECT_EQ(times(run({"why", "x"}).text, "is held by backup"), 1U);
    EXPECT_TRUE(eventually([&] { return times(run({"top"}).text, "backup@") == 1; }, 20s)) << "a new name is listed after 12 s at most";
    EXPECT_EQ(json({"who", "x"}).at("waits").as_array().size(), 1U);
    auto const listed = json({"ls", "--scan"});
    ASSERT_EQ(listed.at("objects").as_array().size(), 1U) << listed;
    EXPECT_EQ(listed.at("objects").at(0).at("queue"), 1) << "who waits in the other one";
    auto const forced = run({"release", "x", "--force", "-y"});
    EXPECT_EQ(forced.code, 0);
    EXPECT_EQ(times(forced.text, "backup@"), 1U) << forced.text;
    EXPECT_THAT(forced.text, AllOf(HasSubstr("was released"), Not(HasSubstr("over already"))));
    EXPECT_EQ(held.wait()->code, 75);
    ASSERT_TRUE(eventually([&] { return run({"history", "x"}).code == 0 && times(run({"history", "x"}).text, "lost") >= 1; }));
    EXPECT_EQ(times(run({"--json", "history", "x"}).text, "\"what\":\"acquired\""), 1U);
}

// As a dead one would not: `shared` must not be left to its ttl.
TEST_F(cli_tools, releases_both_of_what_a_dead_run_holds) {
    auto held = holding({"run", "--ttl", "1h", "x"});
    held.kill(SIGKILL);
    held.wait();
    EXPECT_EQ(run({"release", "x", "--force", "-y"}).code, 0);
    EXPECT_EQ(run({"run", "-n", "-s", "x", "--", "true"}).code, 0);
    EXPECT_EQ(run({"run", "-n", "x", "--", "true"}).code, 0);
}

TEST_F(cli_tools, of_what_is_not_there_say_so_and_return_1) {
    std::vector<std::vector<std::string>> const all{
        {"ls", "x*"}, {"ls"}, {"who", "x"}, {"why", "x"}, {"stats", "x"}, {"history", "x"}, {"verify", "x"}, {"release", "x"}, {"leader", "x"}, {"value", "get", "x"},
        {"map", "get", "x", "y"}, {"map", "list", "x"}, {"board", "top", "x"}, {"board", "rank", "x", "y"}, {"queue", "pop", "-n", "x"}, {"queue", "dead", "x"},
        {"jobs", "ls", "x"}, {"jobs", "stats", "x"}, {"jobs", "crons", "x"}, {"jobs", "show", "x", "t/1-1"}, {"sem", "show", "x"}, {"value", "erase", "x"}};
    for (auto const& words : all) {
        auto const name = testing::PrintToString(words);
        auto const seen = run(words);
        EXPECT_EQ(seen.code, 1) << name << seen.text;
        EXPECT_NE(seen.text, "") << name;
        auto const told = json(words);
        EXPECT_EQ(run(words).code, 1) << name;
        EXPECT_TRUE(told.is_object()) << name;
        auto const* const error = told.as_object().if_contains("error");
        EXPECT_TRUE(error == nullptr || *error == "not_found") << name << told;
    }
}

TEST_F(cli_tools, name_the_numbers_that_are_allowed) {
    for (auto const& words : std::vector<std::vector<std::string>>{{"queue", "pop", "q", "--most", "-1"}, {"history", "x", "--most", "0"}, {"observe", "x", "--most", "-1"},
                                                                   {"subscribe", "b", "c", "--most", "0"}, {"latch", "create", "x", "-1"}, {"jobs", "ls", "x", "--from", "-1"}}) {
        auto const seen = run(words);
        EXPECT_EQ(seen.code, 64);
        EXPECT_THAT(seen.text, testing::ContainsRegex("must be [01] to 1[0]+, not '"));
        EXPECT_LT(seen.text.size(), 200U) << seen.text;
    }
}

TEST_F(cli_tools, ask_whether_a_scheme_was_forgotten) {
    auto const seen = finish({program_path("lockstep"), "--redis", "127.0.0.1:7399", "ls"});
    EXPECT_EQ(seen.code, 64);
    EXPECT_THAT(seen.text, HasSubstr("127.0.0.1:7399 has no scheme; did you mean redis://127.0.0.1:7399?"));
}

TEST_F(cli_tools, of_an_unknown_word_name_what_there_is) {
    EXPECT_THAT(run({"foo"}).text, HasSubstr("there is no sub-command foo"));
    EXPECT_THAT(run({"publish", "b", "c", "hi", "echo", "ho"}).text, HasSubstr("echo ho"));
}

TEST_F(cli_tools, draws_and_checks_what_was_recorded) {
    EXPECT_EQ(run({"history", "x"}).code, 1);
    EXPECT_EQ(run({"run", "--record", "x", "--", "true"}).code, 0);
    EXPECT_EQ(run({"run", "--record", "x", "--", "true"}).code, 0);
    auto const drawn = run({"history", "x"});
    EXPECT_EQ(drawn.code, 0);
    EXPECT_THAT(drawn.text, AllOf(HasSubstr("acquired"), HasSubstr("released"), HasSubstr("# held")));
    auto const checked = json({"verify"});
    EXPECT_EQ(checked.at("records").to_number<int>(), 4);
    EXPECT_TRUE(checked.at("violations").as_array().empty());
    EXPECT_EQ(run({"verify", "x"}).code, 0);
}

TEST_F(cli_tools, verify_says_no_where_two_held_it) {
    auto const record = [this](char const* what, char const* hold, char const* fence, char const* at) {
        server.must({"XADD", "lockstep:{record}:log", "*", "what", what, "kind", "lock", "use", "owner", "name", "x", "hold", hold, "fence", fence, "at", at, "owner", hold});
    };
    record("acquired", "one.1", "11", "1700000000000");
    record("acquired", "two.1", "12", "1700000001000");
    record("released", "two.1", "12", "1700000002000");
    record("released", "one.1", "11", "1700000003000");
    auto const checked = run({"verify", "x"});
    EXPECT_EQ(checked.code, 1) << checked.text;
    EXPECT_THAT(checked.text, HasSubstr("overlap"));
}

TEST_F(cli_tools, releases_what_nobody_will_release) {
    EXPECT_EQ(run({"release", "x"}).code, 1);
    auto held = holding({"run", "x"});
    client other{server.url()};
    auto const refused = run({"release", "x"});
    EXPECT_EQ(refused.code, 1) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr("force"));
    EXPECT_TRUE(held.running());
    auto const forced = run({"release", "x", "--force", "--reason", "a test"});
    EXPECT_EQ(forced.code, 0);
    EXPECT_THAT(forced.text, HasSubstr("was released"));
    EXPECT_EQ(held.wait()->code, 75);
    EXPECT_TRUE((mutex{other, "x"}.try_acquire()));
    auto const audit = monitor{other}.audit();
    ASSERT_FALSE(audit.empty());
    EXPECT_EQ(audit.back().reason, "a test");
}

TEST_F(cli_tools, says_whether_it_is_well) {
    auto const well = run({"health"});
    EXPECT_EQ(well.code, 0) << well.text;
    EXPECT_THAT(well.text, HasSubstr("probe_lock"));
    EXPECT_FALSE(json({"doctor"}).at("findings").as_array().empty());
    auto const nobody = finish({program_path("lockstep"), "--redis", "unix://" + home.file("none"), "health", "--within", "300ms"});
    EXPECT_EQ(nobody.code, 1);
    EXPECT_THAT(nobody.text, HasSubstr("unhealthy"));
}

TEST_F(cli_tools, run_yields_when_it_is_asked_to_and_told_so) {
    auto const words = [](char const* option) { return std::vector<std::string>{"run", option, "x", "--", "sh", "-c", "trap 'echo yields; exit 9' TERM; echo runs; while :; do sleep 0.02; done"}; };
    auto yielding = begin(words("--yield"));
    ASSERT_EQ(yielding.read_line(), "runs");
    EXPECT_THAT(run({"release", "--ask", "x"}).text, HasSubstr("was asked"));
    EXPECT_EQ(yielding.wait()->code, 9);

    auto stubborn = begin(words("-x"));
    ASSERT_EQ(stubborn.read_line(), "runs");
    EXPECT_EQ(run({"release", "--ask", "x"}).code, 0);
    EXPECT_THAT(stubborn.read_line().value_or(""), HasSubstr("somebody asks for x"));
    EXPECT_TRUE(stubborn.running());
}

}  // namespace
}  // namespace lockstep::test
