// `lockstep run`: what it passes on, when it says no, what its command sees.

#include "cli_support.hpp"

#include <lockstep/mutex.hpp>
#include <lockstep/shared_mutex.hpp>

#include <unistd.h>

namespace lockstep::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

using cli_run = cli;

TEST_F(cli_run, passes_the_exit_code_of_its_command_on) {
    EXPECT_EQ(run({"run", "x", "--", "true"}).code, 0);
    EXPECT_EQ(run({"run", "x", "--", "sh", "-c", "exit 7"}).code, 7);
    EXPECT_EQ(run({"run", "x", "--", "sh", "-c", "exit 255"}).code, 255);
}

TEST_F(cli_run, says_128_and_the_signal_that_ended_its_command) {
    EXPECT_EQ(run({"run", "x", "--", "sh", "-c", "kill -TERM $$"}).code, 128 + SIGTERM);
    EXPECT_EQ(run({"run", "x", "--", "sh", "-c", "kill -KILL $$"}).code, 128 + SIGKILL);
}

TEST_F(cli_run, says_127_and_126_for_what_cannot_be_run) {
    auto const missing = run({"run", "x", "--", "no-such-command"});
    EXPECT_EQ(missing.code, 127);
    EXPECT_THAT(missing.text, HasSubstr("there is no command no-such-command"));
    EXPECT_EQ(run({"run", "x", "--", "/no/such/file"}).code, 127);
    EXPECT_EQ(run({"run", "x", "--", "/etc/passwd"}).code, 126);
    EXPECT_EQ(run({"run", "x", "--", "/etc"}).code, 126);

    auto const script = home.file("script");
    std::ofstream{script} << "exit 0\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    auto const without_shebang = run({"run", "x", "--", script});
    EXPECT_EQ(without_shebang.code, 126) << "no shell stands in for it";
    EXPECT_THAT(without_shebang.text, HasSubstr("#!/bin/sh"));
}

TEST_F(cli_run, and_a_program_hold_one_lock_under_the_prefix_of_the_environment) {
    child_options const shop{.environment = {{"LOCKSTEP_PREFIX", "shop"}}};
    ::setenv("LOCKSTEP_PREFIX", "shop", 1);
    client here{server.url()};
    ::unsetenv("LOCKSTEP_PREFIX");
    auto const held = mutex{here, "x"}.acquire();
    EXPECT_EQ(run({"run", "-n", "x", "--", "true"}, shop).code, 1);
    EXPECT_EQ(run({"run", "-n", "x", "--", "true"}).code, 0) << "under another prefix it is another lock";
    EXPECT_EQ(run({"--prefix", "lockstep", "run", "-n", "x", "--", "true"}, shop).code, 0) << "an option wins";

    client by_url{server.url() + "?prefix=shop"};
    EXPECT_FALSE(mutex(by_url, "x").try_acquire()) << "so it is with a URL that has the prefix";
}

TEST_F(cli_run, passes_words_on_as_they_are_without_a_shell) {
    auto const seen = run({"run", "x", "--", "printf", "%s|\\n", "a b", "$HOME", "*", "", "--json", "ls", "--"});
    EXPECT_EQ(seen.text, "a b|\n$HOME|\n*|\n|\n--json|\nls|\n--|\n");
}

TEST_F(cli_run, gives_its_command_name_fence_and_owner) {
    auto const seen = run({"run", "a name", "--", "sh", "-c", "echo \"$LOCKSTEP_NAME|$LOCKSTEP_FENCE|$LOCKSTEP_OWNER|$PPID\""});
    EXPECT_THAT(seen.text, MatchesRegex("a name\\|[0-9]{10,20}\\|sh@[^|]*:([0-9]+)\\|[0-9]+\n"));
    auto const owner = seen.text.substr(seen.text.rfind(':') + 1);
    EXPECT_EQ(owner.substr(0, owner.find('|')) + "\n", owner.substr(owner.find('|') + 1));

    auto const url = server.url();
    auto const clean = finish({program_path("lockstep"), "--redis", url, "run", "x", "--", "env"}).text;
    EXPECT_THAT(clean, Not(HasSubstr(url))) << "a URL may have a password in it";
}

TEST_F(cli_run, fences_grow) {
    auto const fence = [this] { return std::stoull(run({"run", "x", "--", "sh", "-c", "echo $LOCKSTEP_FENCE"}).text); };
    auto const first = fence();
    EXPECT_GT(fence(), first);
}

TEST_F(cli_run, leaves_stdin_and_stdout_to_its_command) {
    auto program = begin({"run", "x", "--", "cat"});
    ASSERT_TRUE(program.write_line("hello"));
    EXPECT_EQ(program.read_line(), "hello");
    program.close_input();
    EXPECT_EQ(program.wait()->code, 0);
}

TEST_F(cli_run, says_no_at_once_with_n_where_the_lock_is_taken) {
    client other{server.url()};
    auto const held = mutex{other, "x"}.acquire();
    auto const seen = run({"run", "-n", "x", "--", "echo", "ran"});
    EXPECT_EQ(seen.code, 1);
    EXPECT_EQ(seen.text, "") << "as flock: the exit code says it";
    EXPECT_EQ(run({"run", "-n", "-E", "42", "x", "--", "true"}).code, 42);
    EXPECT_EQ(run({"run", "-n", "-E", "0", "x", "--", "false"}).code, 0);
}

TEST_F(cli_run, waits_as_long_as_it_may) {
    client other{server.url()};
    auto held = mutex{other, "x"}.acquire();
    auto const began = now_ms();
    EXPECT_EQ(run({"run", "-w", "200ms", "x", "--", "true"}).code, 1);
    EXPECT_GE(now_ms() - began, 200);
    EXPECT_EQ(run({"run", "-w", "0", "x", "--", "true"}).code, 1);

    auto waiting = begin({"run", "-w", "60", "x", "--", "echo", "mine"});
    EXPECT_FALSE(waiting.read_line(100ms));
    held.release();
    EXPECT_EQ(waiting.read_line(), "mine");
    EXPECT_EQ(waiting.wait()->code, 0);
}

TEST_F(cli_run, waits_for_ever_without_w) {
    client other{server.url()};
    auto held = mutex{other, "x"}.acquire();
    auto waiting = begin({"run", "x", "--", "echo", "mine"});
    EXPECT_FALSE(waiting.read_line(300ms));
    held.release();
    EXPECT_EQ(waiting.read_line(), "mine");
}

TEST_F(cli_run, gives_the_lock_back_before_it_ends) {
    client other{server.url()};
    mutex lock{other, "x"};
    shared_mutex both{other, "x"};
    for (int i = 0; i != 20; ++i) {
        ASSERT_EQ(run({"run", "-n", "x", "--", "true"}).code, 0);
        auto const got = lock.try_acquire();
        ASSERT_TRUE(got);
        ASSERT_TRUE(both.try_acquire());
    }
}

// The command's process tells when it runs, and ends with its stdin.
child_process begin_holding(std::vector<std::string> line) {
    for (auto const* const word : {"--", "sh", "-c", "echo runs; exec cat"}) line.emplace_back(word);
    child_process holding{line};
    EXPECT_EQ(holding.read_line(), "runs");
    return holding;
}

TEST_F(cli_run, excludes_readers_writers_and_mutexes_of_its_name) {
    client other{server.url()};
    auto const holding = begin_holding(line({"run", "x"}));
    EXPECT_FALSE((mutex{other, "x"}.try_acquire()));
    EXPECT_FALSE((shared_mutex{other, "x"}.try_acquire()));
    EXPECT_FALSE((shared_mutex{other, "x"}.try_acquire_shared()));
    EXPECT_EQ(run({"run", "-n", "-s", "x", "--", "true"}).code, 1);
    EXPECT_EQ(run({"run", "-n", "-x", "x", "--", "true"}).code, 1);
    EXPECT_EQ(run({"run", "-n", "y", "--", "true"}).code, 0);
}

TEST_F(cli_run, shares_with_others_that_say_s) {
    client other{server.url()};
    auto const holding = begin_holding(line({"run", "-s", "x"}));
    EXPECT_EQ(run({"run", "-n", "-s", "x", "--", "true"}).code, 0);
    EXPECT_TRUE((shared_mutex{other, "x"}.try_acquire_shared()));
    EXPECT_EQ(run({"run", "-n", "x", "--", "true"}).code, 1);
    EXPECT_TRUE((mutex{other, "x"}.try_acquire())) << "a try that failed leaves nothing behind";
}

TEST_F(cli_run, takes_one_of_so_many_permits) {
    auto const first = begin_holding(line({"run", "-c", "2", "x"}));
    auto second = begin_holding(line({"run", "-c", "2", "x"}));
    EXPECT_EQ(run({"run", "-n", "-c", "2", "x", "--", "true"}).code, 1);
    second.close_input();
    EXPECT_EQ(second.wait()->code, 0);
    EXPECT_EQ(run({"run", "-n", "-c", "2", "x", "--", "true"}).code, 0);
    auto const other_count = run({"run", "-n", "-c", "3", "x", "--", "true"});
    EXPECT_EQ(other_count.code, 64);
    EXPECT_THAT(other_count.text, HasSubstr("2"));
}

TEST_F(cli_run, works_within_itself) {
    auto const nested = run({"run", "outer", "--", program_path("lockstep"), "--redis", server.url(), "run", "inner", "--", "sh", "-c", "echo $LOCKSTEP_NAME; exit 3"});
    EXPECT_EQ(nested.code, 3);
    EXPECT_EQ(nested.text, "inner\n");
}

TEST_F(cli_run, holds_at_least_as_long_as_it_is_told) {
    auto const began = now_ms();
    auto holding = begin({"run", "--at-least", "700ms", "x", "--", "sh", "-c", "echo ran; exit 5"});
    ASSERT_EQ(holding.read_line(), "ran");
    client other{server.url()};
    auto const held = mutex{other, "x"}.acquire();
    EXPECT_GE(now_ms() - began, 700);
    EXPECT_EQ(holding.wait()->code, 5);
}

TEST_F(cli_run, refuses_what_it_does_not_understand) {
    auto const refused = [this](std::vector<std::string> const& words) {
        auto const seen = run(words);
        EXPECT_EQ(seen.code, 64) << seen.text;
        return seen.text;
    };
    EXPECT_THAT(refused({"run", "x", "true"}), HasSubstr("put -- before the command"));
    EXPECT_THAT(refused({"run", "x"}), HasSubstr("there is no command to run"));
    EXPECT_THAT(refused({"run", "x", "--"}), HasSubstr("there is no command to run"));
    EXPECT_THAT(refused({"run", "-w", "soon", "x", "--", "true"}), HasSubstr("invalid duration 'soon'"));
    EXPECT_THAT(refused({"run", "-n", "-w", "1", "x", "--", "true"}), HasSubstr("--wait"));
    EXPECT_THAT(refused({"run", "--ttl", "1ms", "x", "--", "true"}), HasSubstr("ttl must be 10 ms"));
    EXPECT_THAT(refused({"run", "", "--", "true"}), HasSubstr("a name has 1 to 512 bytes"));
    EXPECT_THAT(refused({"walk", "x"}), HasSubstr("--help"));
    refused({});
}

TEST_F(cli_run, says_what_to_do_where_there_is_no_server) {
    auto const nowhere = finish({program_path("lockstep"), "--redis", "unix://" + home.file("none"), "--server-wait", "300ms", "run", "x", "--", "true"});
    EXPECT_EQ(nowhere.code, 69);
    EXPECT_THAT(nowhere.text, HasSubstr("is that server running"));
    EXPECT_EQ(finish({program_path("lockstep"), "--redis", "http://x", "run", "x", "--", "true"}).code, 64);
}

TEST_F(cli_run, shows_no_password) {
    auto const seen = finish({program_path("lockstep"), "--redis", "redis://me:geheim@127.0.0.1:1/", "-v", "--server-wait", "300ms", "run", "x", "--", "true"});
    EXPECT_EQ(seen.code, 69);
    EXPECT_THAT(seen.text, Not(HasSubstr("geheim")));
}

TEST_F(cli_run, tells_machines_in_json_what_it_does) {
    auto const seen = run({"--json", "run", "x", "--", "true"});
    EXPECT_THAT(seen.text, MatchesRegex("\\{\"event\":\"acquired\",\"name\":\"x\",\"fence\":\"[0-9]+\",\"waited_ms\":[0-9]+\\}\n"));
    EXPECT_THAT(run({"run", "--json", "x"}).text, HasSubstr("{\"error\":\"usage\",\"message\":"));
}

TEST_F(cli_run, loses_no_count_where_many_count) {
    auto const counter = home.file("counter");
    std::ofstream{counter} << "0";
    auto const script = home.file("count.sh");
    std::ofstream{script} << "for i in 1 2 3 4 5 6 7 8 9 10; do\n"
                          << program_path("lockstep") << " --redis " << server.url() << " run counter -- sh -c 'n=$(cat " << counter
                          << "); echo $((n + 1)) > " << counter << "' || exit 1\ndone\n";
    std::vector<child_process> all;
    for (int i = 0; i != 8; ++i) all.emplace_back(std::vector<std::string>{"sh", script});
    for (auto& one : all) EXPECT_EQ(one.wait(40s)->code, 0);
    EXPECT_EQ(file_content(counter), "80\n");
}

}  // namespace
}  // namespace lockstep::test
