// `lockstep worker` when something goes wrong: no command of it goes on without its lease, nor is left behind.

#include "cli/errand.hpp"
#include "cli_support.hpp"

#include <lockstep/job_client.hpp>

#include <csignal>
#include <optional>
#include <stdexcept>

namespace lockstep::test {
namespace {

using testing::HasSubstr;
using text = std::string;

class cli_worker : public cli {
protected:
    std::vector<text> words(std::vector<text> const& more) const {
        auto all = line({"worker", "shop"});
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    child_process worker(std::vector<text> const& more) const { return child_process{words(more)}; }
    // Run by a shell, which does something about its descriptors, or has it as a job.
    child_process worker_in(text const& shell_script, std::vector<text> const& more) const {
        std::vector<text> all{"bash", "-c", shell_script, "bash"};
        for (auto const& word : words(more)) all.push_back(word);
        return child_process{all};
    }
    text script(text const& name, text const& body) const {
        auto const path = home.file(name);
        std::ofstream{path} << body;
        return "bash " + path;  // dash uses vfork: stopped in the midst of that, it is not seen to be
    }
    // Says which it is, then goes on for ever, whatever TERM says.
    text stubborn(text const& more = {}) const {
        return script("stubborn.sh", "trap 'echo > " + home.file("term") + "' TERM\necho $$ > " + home.file("new") + "\nmv " + home.file("new") + " " +
                                         home.file("pid") + "$LOCKSTEP_JOB_DELIVERY\nwhile :; do " + more + " sleep 0.02; done\n");
    }
    pid_t pid_of(text const& file) const {
        auto const path = home.file(file);
        if (!eventually([&] { return std::filesystem::exists(path); })) return 0;
        return static_cast<pid_t>(std::stol(file_content(path)));
    }
    // The second signal, as often as it takes: one that comes right behind the first may be the same wish.
    static std::optional<exit_status> end_by(child_process& working, int signal) {
        std::optional<exit_status> end;
        EXPECT_TRUE(eventually([&] {
            working.kill(signal);
            end = working.wait(50ms);
            return end.has_value();
        }));
        return end;
    }
    static text state(pid_t of) {
        auto const about = file_content("/proc/" + std::to_string(of) + "/stat");
        return about.empty() ? "gone" : about.substr(about.rfind(')') + 2, 1);
    }
    static bool gone(pid_t of) {
        return eventually([of] { return !process_alive(of); });
    }

    client by{server.url()};
    job_client jobs{by, "shop"};
};

// As a job of a shell: a group with nobody above it can't be stopped this way.
TEST_F(cli_worker, stops_and_goes_on_together_with_its_commands) {
    auto const command = stubborn();
    auto shell = worker_in("set -m; \"$@\" & echo $!; read -r", {"--exec", "job=" + command, "--lease", "1m"});
    auto const working = std::stoi(shell.read_line().value_or("0"));
    ASSERT_GT(working, 1);
    jobs.schedule("job", text{});
    auto const pid = pid_of("pid1");
    ASSERT_GT(pid, 1);
    ::kill(working, SIGTSTP);
    EXPECT_TRUE(eventually([&] { return state(pid) == "T" && state(working) == "T"; }));
    ::kill(working, SIGCONT);
    EXPECT_TRUE(eventually([&] { return state(pid) != "T"; }));
    EXPECT_TRUE(process_alive(pid)) << "its lease had not ended";
    ::kill(working, SIGKILL);
    EXPECT_TRUE(gone(pid));
}

TEST_F(cli_worker, that_was_stopped_for_too_long_kills_its_commands) {
    auto const command = stubborn();
    std::vector<text> const how{"--exec", "job=" + command, "--lease", "500ms"};
    auto shell = worker_in("set -m; \"$@\" & echo $!; read -r", how);
    auto const working = std::stoi(shell.read_line().value_or("0"));
    ASSERT_GT(working, 1);
    jobs.schedule("job", text{});
    auto const pid = pid_of("pid1");
    ASSERT_GT(pid, 1);
    ::kill(working, SIGTSTP);
    ASSERT_TRUE(eventually([&] { return state(working) == "T"; }));
    EXPECT_TRUE(eventually([&] { return state(pid) == "T"; })) << "it would run on without its lease";
    auto other = worker(how);
    EXPECT_GT(pid_of("pid2"), 1) << "it is run again";
    EXPECT_EQ(state(pid), "T");
    ::kill(working, SIGCONT);
    EXPECT_TRUE(gone(pid));
    EXPECT_FALSE(std::filesystem::exists(home.file("term"))) << "not continued for a moment";
    ::kill(working, SIGKILL);
}

// A pipe that is full and that nobody reads.
TEST_F(cli_worker, ends_commands_though_nobody_hears_what_they_say) {
    auto const command = stubborn("echo some words of complaint >&2;");
    for (text const how : {"", "--verbose"}) {
        std::vector<text> more{"--exec", "job=" + command, "--grace", "100ms"};
        if (!how.empty()) more.push_back(how);
        auto working = worker_in("exec 2> >(exec sleep 60); dd if=/dev/zero bs=1 count=65536 >&2 status=none; exec \"$@\"", more);
        auto const cancelled = jobs.schedule("job", text{}).id;
        auto const first = pid_of("pid1");
        ASSERT_GT(first, 1);
        EXPECT_TRUE(jobs.cancel(cancelled));
        EXPECT_TRUE(gone(first));
        std::filesystem::remove(home.file("pid1"));
        auto const slow = jobs.schedule("job", text{}, {.attempts = 1, .timeout = 300ms}).id;
        auto const second = pid_of("pid1");
        ASSERT_GT(second, 1);
        EXPECT_TRUE(gone(second)) << "it took too long";
        std::filesystem::remove(home.file("pid1"));
        working.kill(SIGTERM);
        EXPECT_EQ(working.wait()->code, 0);
    }
}

TEST_F(cli_worker, ends_commands_that_tell_of_progress_while_the_server_hangs) {
    auto const command = stubborn("echo progress: more;");
    auto working = worker({"--exec", "job=" + command, "--lease", "1s", "--grace", "50ms", "--server-wait", "2m"});
    auto const id = jobs.schedule("job", text{}).id;
    auto const pid = pid_of("pid1");
    ASSERT_GT(pid, 1);
    ASSERT_TRUE(eventually([&] { return jobs.find(id)->progress == "more"; }));
    server.stop();
    EXPECT_TRUE(gone(pid)) << "its lease has ended";
    server.cont();
}

TEST_F(cli_worker, tells_the_last_of_much_progress) {
    auto const command = script("job.sh", "for i in {1..2000}; do echo progress: $i; done; echo done");
    auto working = worker({"--exec", "job=" + command});
    auto const id = jobs.schedule("job", text{}).id;
    EXPECT_EQ(jobs.wait(id, 20s)->result, "done");
    EXPECT_EQ(jobs.find(id)->progress, "2000");
}

TEST_F(cli_worker, kills_a_command_before_its_lost_job_can_be_run_elsewhere) {
    auto const command = stubborn();
    auto working = worker({"--exec", "job=" + command, "--lease", "2s"});
    jobs.schedule("job", text{});
    auto const pid = pid_of("pid1");
    ASSERT_GT(pid, 1);
    server.stop();
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(home.file("term")); }));
    auto const told = std::chrono::steady_clock::now();
    EXPECT_TRUE(gone(pid));
    EXPECT_LT(std::chrono::steady_clock::now() - told, 4s) << "180 ms, and not the usual 5 s";
    server.cont();
}

TEST_F(cli_worker, works_with_all_its_descriptors_closed) {
    auto const command = script("job.sh", "for i in {1..100}; do echo complaint $i >&2; done; exec cat");
    auto const helper = script("helper.sh", "sleep 1000 & echo $! > " + home.file("new") + "; mv " + home.file("new") + " " + home.file("pid") + "; wait");
    for (text const closed : {"<&- 2>&-", "<&- >&- 2>&-", "2>&-", "<&-"}) {
        auto shell = worker_in("\"$@\" " + closed + " & echo $!; wait", {"--exec", "job=" + command, "--exec", "helper=" + helper});
        auto const working = std::stoi(shell.read_line().value_or("0"));
        ASSERT_GT(working, 1);
        for (int i = 0; i != 3; ++i) {
            auto const end = jobs.wait(jobs.schedule("job", text{"hello"}).id, 10s);
            ASSERT_TRUE(end) << closed;
            EXPECT_EQ(end->result, "hello") << closed;
        }
        jobs.schedule("helper", text{});
        auto const pid = pid_of("pid");
        ASSERT_GT(pid, 1);
        ::kill(working, SIGKILL);
        EXPECT_TRUE(gone(pid)) << "the guard was told rightly: " << closed;
        std::filesystem::remove(home.file("pid"));
    }
}

TEST_F(cli_worker, kills_its_commands_and_ends_at_a_second_signal) {
    auto const command = stubborn();
    auto working = worker({"--exec", "job=" + command, "--exec", "other=true"});
    auto const id = jobs.schedule("job", text{}).id;
    auto const pid = pid_of("pid1");
    ASSERT_GT(pid, 1);
    working.kill(SIGHUP);  // the first one
    auto const end = end_by(working, SIGTERM);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 128 + SIGTERM);
    EXPECT_TRUE(gone(pid));
    auto const said = working.read_line().value_or("");
    EXPECT_THAT(said, HasSubstr("1 commands were killed"));
    EXPECT_THAT(said, testing::Not(HasSubstr("not told")));
    EXPECT_EQ(jobs.find(id)->state, job_state::waiting) << "it was given back";
    EXPECT_TRUE(jobs.find(id)->failures.empty());
}

TEST_F(cli_worker, that_is_deployed_often_never_fails_a_long_job) {
    auto const command = stubborn();
    auto const id = jobs.schedule("job", text{}, {.attempts = 100}).id;
    for (int deploy = 1; deploy <= 6; ++deploy) {
        auto working = worker({"--exec", "job=" + command, "--stop-after", "1200ms", "--grace", "1s"});
        auto const pid = pid_of("pid1");
        ASSERT_GT(pid, 1) << "deploy " << deploy << ": given back, it is run at once, and as if for the first time";
        working.kill(SIGTERM);
        auto const end = working.wait();
        ASSERT_TRUE(end);
        EXPECT_EQ(end->code, 0);
        EXPECT_TRUE(gone(pid));
        EXPECT_TRUE(std::filesystem::exists(home.file("term"))) << "it was told to end before it was killed";
        std::filesystem::remove(home.file("term"));
        std::filesystem::remove(home.file("pid1"));
        auto const is = jobs.find(id);
        EXPECT_EQ(is->state, job_state::waiting);
        EXPECT_TRUE(is->failures.empty());
    }
}

TEST_F(cli_worker, lets_commands_finish_before_it_ends) {
    auto const command = script("job.sh", "trap 'echo told; exit 1' TERM; echo > " + home.file("pid") + "\nwhile [ ! -e " + home.file("go") +
                                              " ]; do sleep 0.02; done\necho done\n");
    auto working = worker({"--exec", "job=" + command, "--stop-after", "1m"});
    auto const id = jobs.schedule("job", text{}).id;
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(home.file("pid")); }));
    working.kill(SIGTERM);
    EXPECT_FALSE(working.wait(100ms));
    std::ofstream{home.file("go")} << "go";
    auto const end = working.wait();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 0);
    EXPECT_EQ(jobs.find(id)->result, "done");
}

TEST_F(cli_worker, ends_at_a_second_signal_while_the_server_hangs) {
    auto const command = script("job.sh", "echo $$ > " + home.file("new") + "; mv " + home.file("new") + " " + home.file("pid") + "\nwhile [ ! -e " +
                                              home.file("go") + " ]; do sleep 0.02; done\necho done\n");
    auto working = worker({"--verbose", "--server-wait", "2m", "--exec", "job=" + command, "--lease", "2m"});
    auto const id = jobs.schedule("job", text{}).id;
    auto const pid = pid_of("pid");
    ASSERT_GT(pid, 1);
    server.stop();
    std::ofstream{home.file("go")} << "go";
    ASSERT_TRUE(gone(pid));
    working.kill(SIGTERM);
    EXPECT_FALSE(working.wait(100ms)) << "it wants to tell what became of the job";
    auto const end = end_by(working, SIGINT);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 128 + SIGINT);
    text said;
    while (auto const next = working.read_line()) said += *next + "\n";
    EXPECT_THAT(said, HasSubstr("the server was not told what became of " + id));
    EXPECT_THAT(said, testing::Not(HasSubstr("succeeded")));
    server.cont();
}

// What throws here could be anything: there is no memory for a line, say.
TEST_F(cli_worker, leaves_no_command_behind_when_something_throws) {
    lockstep::cli::guard watched;
    lockstep::cli::command_groups running{watched};
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    pid_t helper = 0;
    pid_t shell = 0;
    lockstep::cli::errand what;
    what.what = {.path = "/bin/sh", .words = {"sh", "-c", "sleep 1000 & echo progress: $! $$; wait"}};
    what.mask = mask;
    what.among = &running;
    what.on_progress = [&](text const& said) {
        std::istringstream{said} >> helper >> shell;
        throw std::runtime_error("no memory, say");
    };
    EXPECT_THROW(run_errand(what), std::runtime_error);
    ASSERT_GT(helper, 1);
    EXPECT_TRUE(gone(helper));
    EXPECT_EQ(state(shell), "gone") << "it was waited for";
}

}  // namespace
}  // namespace lockstep::test
