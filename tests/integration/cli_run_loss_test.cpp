// `lockstep run` when something goes wrong: signals, a lost lease, a server that is gone, a SIGKILL.

#include "cli_support.hpp"

#include <lockstep/mutex.hpp>

#include <csignal>

namespace lockstep::test {
namespace {

class cli_run_loss : public cli {
protected:
    // Ends at no signal but KILL, and says which it got.
    static std::vector<std::string> stubborn() {
        return {"--", "bash", "-c",  // dash uses vfork: stopped in the midst of that, it is not seen to be
                "for s in TERM INT HUP QUIT USR1 USR2 WINCH; do trap \"echo got $s\" $s; done; echo runs $$; while :; do sleep 0.02; done"};
    }
    child_process begin_stubborn(std::vector<std::string> words) {
        for (auto const& word : stubborn()) words.push_back(word);
        auto made = begin(words);
        auto const first = made.read_line().value_or("");
        EXPECT_THAT(first, testing::StartsWith("runs "));
        pid = std::stoi(first.substr(5));
        return made;
    }
    // Among what the shell itself says of the sleeps that die.
    static bool says(child_process& program, std::string const& wanted) {
        while (auto const text = program.read_line()) {
            if (*text == wanted) return true;
        }
        return false;
    }
    // Both, in whatever order they come: they are two processes.
    static void expect_loss(child_process& program) {
        bool lost = false;
        bool term = false;
        while (!lost || !term) {
            auto const text = program.read_line();
            ASSERT_TRUE(text) << "lost: " << lost << ", TERM: " << term;
            lost = lost || text->find("lost x") != std::string::npos;
            term = term || *text == "got TERM";
        }
    }
    static std::string state(pid_t of) {
        auto const text = file_content("/proc/" + std::to_string(of) + "/stat");
        return text.empty() ? "gone" : text.substr(text.rfind(')') + 2, 1);
    }
    std::string key(std::string const& kind) { return "lockstep:{x}:" + kind; }

    scratch_dir folder;
    pid_t pid = 0;
};

TEST_F(cli_run_loss, passes_signals_on) {
    auto program = begin_stubborn({"run", "x"});
    for (auto const& [number, name] : {std::pair{SIGTERM, "TERM"}, {SIGINT, "INT"}, {SIGHUP, "HUP"}, {SIGQUIT, "QUIT"}, {SIGUSR1, "USR1"},
                                       {SIGUSR2, "USR2"}, {SIGWINCH, "WINCH"}}) {
        program.kill(number);
        EXPECT_TRUE(says(program, std::string{"got "} + name));
    }
    EXPECT_TRUE(program.running());
}

TEST_F(cli_run_loss, ends_with_its_command_that_a_signal_ended) {
    auto program = begin({"run", "x", "--", "sh", "-c", "echo runs; exec sleep 60"});
    ASSERT_EQ(program.read_line(), "runs");
    program.kill(SIGTERM);
    EXPECT_EQ(program.wait()->code, 128 + SIGTERM);
    EXPECT_EQ(run({"run", "-n", "x", "--", "true"}).code, 0);
}

TEST_F(cli_run_loss, leaves_the_queue_when_a_signal_ends_its_waiting) {
    client other{server.url()};
    auto held = mutex{other, "x"}.acquire();
    auto waiting = begin({"run", "x", "--", "true"});
    auto const queued = [&] { return server.command({"HEXISTS", key("lock"), "l"}).integer; };
    ASSERT_TRUE(eventually([&] { return queued() == 1; }));
    waiting.kill(SIGTERM);
    EXPECT_EQ(waiting.wait()->code, 128 + SIGTERM);
    EXPECT_TRUE(eventually([&] { return queued() == 0; }));
    held.release();
    EXPECT_TRUE((mutex{other, "x"}.try_acquire()));
}

TEST_F(cli_run_loss, stops_its_command_when_the_lease_is_gone) {
    auto program = begin_stubborn({"run", "--ttl", "600ms", "--kill-after", "300ms", "x"});
    server.must({"DEL", key("lock")});
    expect_loss(program);
    EXPECT_EQ(program.wait()->code, 75);
    EXPECT_FALSE(process_alive(pid));
}

TEST_F(cli_run_loss, stops_its_command_though_nobody_hears_what_it_says) {
    auto const file = folder.path() / "pids";
    for (std::string const where : {"/dev/full", "blocked"}) {
        // Blocked: a pipe that is full and that nobody reads.
        auto const script = where == "blocked" ? std::string{"exec 2> >(exec sleep 60); dd if=/dev/zero bs=1 count=65536 >&2 status=none; exec \"$@\""}
                                               : "exec \"$@\" 2>" + where;
        child_process program{{"bash", "-c", script, "bash", program_path("lockstep"), "--redis", server.url(),
                               "run", "--ttl", "600ms", "--kill-after", "200ms", "x", "--", "sh", "-c",
                               "sh -c 'trap \"\" TERM; while :; do sleep 0.02; done' & echo $! $$ > " + file.string() + "; wait"}};
        ASSERT_TRUE(eventually([&] { return file_content(file).find('\n') != std::string::npos; }));
        std::istringstream pids{file_content(file)};
        pid_t one = 0, two = 0;
        pids >> one >> two;
        ASSERT_GT(one, 1);
        server.must({"DEL", key("lock")});
        EXPECT_TRUE(eventually([&] { return !process_alive(one) && !process_alive(two); })) << where;
        EXPECT_EQ(program.wait()->code, 75);
        std::filesystem::remove(file);
    }
}

TEST_F(cli_run_loss, stops_all_of_the_group_when_the_command_is_stopped) {
    auto const file = folder.path() / "beat";
    auto program = begin({"run", "--ttl", "2s", "x", "--", "sh", "-c",
                          "(while :; do echo . >> " + file.string() + "; sleep 0.02; done) & echo $$; wait"});
    auto const leader = std::stoi(program.read_line().value_or("0"));
    ASSERT_GT(leader, 1);
    ASSERT_TRUE(eventually([&] { return !file_content(file).empty(); }));
    ::kill(leader, SIGSTOP);
    // Where a shell could continue it, it is stopped too; elsewhere it lets the command go on at once.
    ASSERT_TRUE(eventually([&] { return state(program.pid()) == "T" || state(leader) != "T"; }));
    auto const before = file_content(file).size();
    if (state(program.pid()) == "T") {
        // It is stopped too, and does not renew: others may have the lock soon.
        EXPECT_TRUE(eventually([&] { return run({"run", "-n", "x", "--", "true"}).code == 0; }, 20s));
        EXPECT_LE(file_content(file).size(), before + 4) << "nothing of it goes on";
    }
}

TEST_F(cli_run_loss, stops_its_command_before_the_lock_can_be_somebody_elses_where_the_server_does_not_answer) {
    auto program = begin_stubborn({"run", "--ttl", "2s", "x"});
    auto const stopped_at = now_ms();
    server.stop();
    expect_loss(program);
    ASSERT_TRUE(eventually([&] { return !process_alive(pid); }));
    EXPECT_LE(now_ms() - stopped_at, 3'000) << "the server keeps it for 2 s, and this test may be late";
    server.cont();
    EXPECT_EQ(program.wait(20s)->code, 75);
}

TEST_F(cli_run_loss, ends_with_its_own_code_though_the_command_obeys) {
    auto program = begin({"run", "--ttl", "600ms", "x", "--", "sh", "-c", "trap 'exit 0' TERM; echo runs; while :; do sleep 0.02; done"});
    ASSERT_EQ(program.read_line(), "runs");
    server.must({"DEL", key("lock")});
    EXPECT_EQ(program.wait()->code, 75);
}

TEST_F(cli_run_loss, stops_what_the_command_started_too) {
    auto program = begin({"run", "--ttl", "600ms", "--kill-after", "200ms", "x", "--", "sh", "-c",
                          "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.02; done' & trap 'exit 0' TERM; while :; do sleep 0.02; done"});
    auto const straggler = std::stoi(program.read_line().value_or("0"));
    ASSERT_GT(straggler, 1);
    server.must({"DEL", key("lock")});
    EXPECT_EQ(program.wait()->code, 75);
    EXPECT_TRUE(eventually([&] { return !process_alive(straggler); }));
}

TEST_F(cli_run_loss, gives_the_lock_back_after_the_longest_hold) {
    auto program = begin_stubborn({"run", "--max-hold", "2s", "--kill-after", "100ms", "x"});
    EXPECT_EQ(program.wait()->code, 75);
    EXPECT_EQ(run({"run", "-w", "10", "x", "--", "true"}).code, 0);
}

TEST_F(cli_run_loss, takes_its_command_along_when_it_is_killed) {
    auto program = begin({"run", "x", "--", "sh", "-c", "sh -c 'echo $$; while :; do sleep 0.02; done' & echo $$; while :; do sleep 0.02; done"});
    auto const one = std::stoi(program.read_line().value_or("0"));
    auto const two = std::stoi(program.read_line().value_or("0"));
    ASSERT_TRUE(one > 1 && two > 1);
    program.kill(SIGKILL);
    EXPECT_TRUE(eventually([&] { return !process_alive(one) && !process_alive(two); }));
}

TEST_F(cli_run_loss, kills_the_innermost_when_the_outermost_is_killed) {
    auto program = begin({"run", "x", "--", program_path("lockstep"), "--redis", server.url(), "run", "y", "--", "sh", "-c",
                          "echo $$; while :; do sleep 0.02; done"});
    auto const inner = std::stoi(program.read_line().value_or("0"));
    ASSERT_GT(inner, 1);
    program.kill(SIGKILL);
    EXPECT_TRUE(eventually([&] { return !process_alive(inner); }));
}

// As a job of a shell: a group with nobody above it, as in a job of cron's, can't be stopped this way.
TEST_F(cli_run_loss, stops_and_goes_on_together_with_its_command) {
    std::vector<std::string> words{"bash", "-c", "set -m; \"$@\" & echo $!; read -r", "bash", program_path("lockstep"), "--redis", server.url(), "run", "x"};
    for (auto const& word : stubborn()) words.push_back(word);
    child_process shell{words};
    auto const lockstep = std::stoi(shell.read_line().value_or("0"));
    ASSERT_GT(lockstep, 1);
    auto const first = shell.read_line().value_or("");
    ASSERT_THAT(first, testing::StartsWith("runs "));
    pid = std::stoi(first.substr(5));
    ::kill(lockstep, SIGTSTP);
    EXPECT_TRUE(eventually([&] { return state(pid) == "T" && state(lockstep) == "T"; }));
    ::kill(lockstep, SIGCONT);
    EXPECT_TRUE(eventually([&] { return state(pid) != "T"; }));
    ::kill(lockstep, SIGUSR1);
    EXPECT_TRUE(says(shell, "got USR1"));
    ::kill(lockstep, SIGKILL);
    EXPECT_TRUE(eventually([&] { return !process_alive(pid); }));
}

TEST_F(cli_run_loss, obeys_nohup) {
    auto program = child_process{{"sh", "-c", "trap '' HUP; exec \"$@\"", "sh", program_path("lockstep"), "--redis", server.url(), "run", "x", "--", "sh", "-c",
                                  "trap 'echo got USR1' USR1; echo runs; while :; do sleep 0.02; done"}};
    ASSERT_EQ(program.read_line(), "runs");
    program.kill(SIGHUP);
    program.kill(SIGUSR1);
    EXPECT_EQ(program.read_line(), "got USR1");
    EXPECT_TRUE(program.running());
}

// On a terminal of their own, which script(1) makes.
class cli_run_terminal : public cli {
protected:
    child_process on_terminal(std::string const& shell_line) {
        auto const script = home.file("line.sh");
        std::ofstream{script} << "lockstep() { " << program_path("lockstep") << " --redis " << server.url() << " \"$@\"; }\n" << shell_line << "\n";
        return child_process{{"script", "-qefc", "sh " + script, "/dev/null"}};
    }
    static bool says(child_process& program, std::string const& wanted) {
        while (auto const text = program.read_line()) {
            if (text->find(wanted) != std::string::npos) return true;
        }
        return false;
    }
};

TEST_F(cli_run_terminal, gives_the_terminal_to_its_command) {
    auto program = on_terminal("lockstep run x -- sh -c 'read a b c d group f g foreground rest < /proc/$$/stat; [ $group = $foreground ] && echo in front; read line; echo \"read $line\"'; echo after $?");
    EXPECT_TRUE(says(program, "in front"));
    program.write_line("hello");
    EXPECT_TRUE(says(program, "read hello"));
    EXPECT_TRUE(says(program, "after 0"));
}

TEST_F(cli_run_terminal, ctrl_c_ends_the_script_around_it_too) {
    auto program = on_terminal("lockstep run x -- sh -c 'echo runs; exec sleep 60'; echo went on");
    ASSERT_TRUE(says(program, "runs"));
    program.write_line("\x03");
    EXPECT_FALSE(says(program, "went on"));
    EXPECT_EQ(program.wait()->code, 130);
    EXPECT_EQ(run({"run", "-n", "x", "--", "true"}).code, 0);
}

TEST_F(cli_run_terminal, top_shows_what_is_held_until_q_is_pressed) {
    client other{server.url()};
    auto held = mutex{other, "shown"}.acquire();
    auto program = on_terminal("lockstep top");
    ASSERT_TRUE(says(program, "shown"));
    auto const later = mutex{other, "added later"}.acquire();
    EXPECT_TRUE(says(program, "added later")) << "without a key";
    program.write_line("q");
    EXPECT_EQ(program.wait()->code, 0);
}

TEST_F(cli_run_terminal, shares_the_terminal_with_its_pipeline) {
    auto program = on_terminal("lockstep run x -- echo data | sh -c 'cat; read line < /dev/tty; echo \"read $line\"'");
    ASSERT_TRUE(says(program, "data"));
    program.write_line("hello");
    EXPECT_TRUE(says(program, "read hello"));
}

}  // namespace
}  // namespace lockstep::test
