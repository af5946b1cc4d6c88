// `lockstep jobs` and `lockstep worker`.

#include "cli_support.hpp"

#include <lockstep/job_client.hpp>

#include <boost/json.hpp>

#include <csignal>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using text = std::string;

class cli_jobs : public cli {
protected:
    child_process worker(std::vector<text> const& more) {
        std::vector<text> words{"worker", "shop"};
        words.insert(words.end(), more.begin(), more.end());
        return begin(words);
    }
    text enqueue(text const& type, text const& payload, job_options const& how = {}) { return jobs.schedule(type, payload, how).id; }
    text script(text const& name, text const& body) {
        auto const path = home.file(name);
        std::ofstream{path} << body;
        return "sh " + path;
    }

    client by{server.url()};
    job_client jobs{by, "shop"};
};

TEST_F(cli_jobs, are_enqueued_shown_moved_cancelled_and_run_again) {
    auto const first = run({"jobs", "enqueue", "shop", "mail", "hello", "--priority", "2", "--attempts", "5", "--timeout", "1m"});
    EXPECT_EQ(first.code, 0) << first.text;
    EXPECT_THAT(first.text, StartsWith("mail/"));
    auto const id = first.text.substr(0, first.text.size() - 1);
    EXPECT_EQ(jobs.find(id)->payload, "hello");
    EXPECT_EQ(jobs.find(id)->attempts, 5);
    EXPECT_THAT(run({"jobs", "ls", "shop"}).text, AllOf(HasSubstr(id), HasSubstr("waiting"), HasSubstr("hello")));
    EXPECT_THAT(run({"jobs", "show", "shop", id}).text, AllOf(HasSubstr("waiting since"), HasSubstr("0 of 5 failed")));
    auto const shown = boost::json::parse(run({"--json", "jobs", "show", "shop", id}).text);
    EXPECT_EQ(shown.at("state"), "waiting");
    EXPECT_EQ(run({"jobs", "move", "shop", id, "--delay", "1h"}).code, 0);
    EXPECT_EQ(jobs.counts("mail").delayed, 1);
    EXPECT_EQ(run({"jobs", "cancel", "shop", id}).code, 0);
    auto const again = run({"jobs", "cancel", "shop", id});
    EXPECT_EQ(again.code, 1);
    EXPECT_THAT(again.text, HasSubstr("is cancelled"));
    EXPECT_THAT(run({"jobs", "ls", "shop", "--state", "cancelled", "--type", "mail", "--from", "0", "--count", "5"}).text, HasSubstr(id));
    EXPECT_THAT(run({"jobs", "ls", "shop"}).text, Not(HasSubstr(id))) << "those that were cancelled are shown if somebody asks for them";
    EXPECT_EQ(run({"jobs", "retry", "shop", id}).code, 0);
    EXPECT_EQ(jobs.find(id)->state, job_state::waiting);
    auto const stats = boost::json::parse(run({"--json", "jobs", "stats", "shop"}).text);
    EXPECT_EQ(stats.at("type"), "mail");
    EXPECT_EQ(stats.at("ever_added"), 1);
    EXPECT_EQ(stats.at("ever_cancelled"), 1);
    EXPECT_THAT(run({"jobs", "stats", "shop"}).text, HasSubstr("EVER ADDED"));
}

TEST_F(cli_jobs, of_a_type_are_paused_and_resumed) {
    enqueue("mail", "one");
    auto const paused = run({"jobs", "pause", "shop", "--type", "mail"});
    EXPECT_EQ(paused.code, 0) << paused.text;
    EXPECT_THAT(paused.text, HasSubstr("mail is paused: 1 waiting"));
    EXPECT_TRUE(jobs.counts("mail").paused);
    EXPECT_THAT(run({"jobs", "pause", "shop", "--type", "mail"}).text, HasSubstr("paused already"));
    EXPECT_EQ(boost::json::parse(run({"--json", "jobs", "stats", "shop"}).text).at("paused"), true);
    EXPECT_THAT(run({"ls", "shop"}).text, HasSubstr("mail: 1 waiting, 0 running, paused"));
    EXPECT_EQ(run({"jobs", "resume", "shop", "--type", "mail"}).code, 0);
    auto const again = run({"jobs", "resume", "shop", "--type", "mail"});
    EXPECT_EQ(again.code, 1);
    EXPECT_THAT(again.text, HasSubstr("not paused"));
    EXPECT_THAT(run({"jobs", "pause", "shop", "--type", "mial"}).text, HasSubstr("never been a job"));
    EXPECT_EQ(run({"jobs", "pause", "shop"}).code, 64) << "what?";
    EXPECT_EQ(run({"jobs", "pause", "shop", "nightly", "--type", "mail"}).code, 64);
    EXPECT_THAT(run({"jobs", "pause", "shop", "mail"}).text, HasSubstr("--type")) << "there is no such schedule";
}

TEST_F(cli_jobs, are_all_cancelled_and_run_again_as_far_as_they_fit) {
    std::vector<text> const payloads(20, "x");
    jobs.schedule_many<text>("mail", payloads, {.tags = "red"});
    enqueue("mail", "one");
    enqueue("report", "two");
    EXPECT_EQ(run({"jobs", "cancel", "shop"}).code, 64);
    EXPECT_EQ(run({"jobs", "cancel", "shop", "mail/1-1", "--all"}).code, 64);
    EXPECT_EQ(run({"jobs", "cancel", "shop", "mail/1-1", "--tag", "red"}).code, 64) << "for --all only";
    EXPECT_EQ(run({"jobs", "cancel", "shop", "--all", "--older-than", "1h"}).code, 1) << "there are none";
    EXPECT_EQ(run({"jobs", "cancel", "shop", "--all", "--tag", "red", "--yes"}).text, "20 cancelled\n");
    EXPECT_EQ(run({"--json", "jobs", "cancel", "shop", "--all", "--type", "mail", "--state", "waiting"}).text, "{\"cancelled\":1}\n");
    EXPECT_EQ(run({"jobs", "retry", "shop", "--all"}).code, 1) << "none has failed";
    EXPECT_EQ(run({"jobs", "retry", "shop", "--all", "--state", "cancelled", "--tag", "red"}).text, "20 retried\n");
    EXPECT_EQ(run({"jobs", "retry", "shop", "--all", "--state", "running"}).code, 64);
    EXPECT_EQ(jobs.counts("report").waiting, 1);
}

TEST_F(cli_jobs, that_are_delayed_tell_when_they_run) {
    auto const id = enqueue("mail", "later", {.delay = 1h});
    auto const soon = enqueue("mail", "soon");
    EXPECT_THAT(run({"jobs", "ls", "shop"}).text, AllOf(HasSubstr("RUNS IN"), HasSubstr("delayed"), HasSubstr("59m")));
    EXPECT_THAT(run({"jobs", "ls", "shop", "--state", "delayed"}).text, AllOf(HasSubstr(id), Not(HasSubstr(soon))));
    EXPECT_THAT(run({"jobs", "ls", "shop", "--state", "waiting"}).text, AllOf(HasSubstr(id), HasSubstr(soon)));
    EXPECT_THAT(run({"jobs", "show", "shop", id}).text, HasSubstr("runs in 59m"));
    auto const shown = boost::json::parse(run({"--json", "jobs", "show", "shop", id}).text);
    EXPECT_GT(shown.at("delayed_until_ms").as_int64(), shown.at("created_ms").as_int64() + 3'500'000);
    EXPECT_FALSE(boost::json::parse(run({"--json", "jobs", "show", "shop", soon}).text).as_object().contains("delayed_until_ms"));
}

TEST_F(cli_jobs, take_a_payload_from_standard_input_and_leave_out_what_has_the_same_key) {
    auto adding = begin({"jobs", "enqueue", "shop", "mail", "--key", "k"});
    adding.write_line("one");
    adding.write_line("two");
    adding.close_input();
    auto const id = adding.read_line();
    ASSERT_TRUE(id);
    EXPECT_EQ(adding.wait()->code, 0);
    EXPECT_EQ(jobs.find(*id)->payload, "one\ntwo\n");
    EXPECT_THAT(run({"jobs", "enqueue", "shop", "mail", "x", "--key", "k"}).text, AllOf(HasSubstr("same key"), HasSubstr(*id)));
}

TEST_F(cli_jobs, of_which_there_is_none_are_told_so) {
    EXPECT_EQ(run({"jobs", "show", "shop", "mail/1-1"}).code, 1);
    EXPECT_THAT(run({"jobs", "cancel", "shop", "mail/1-1"}).text, HasSubstr("there is no job"));
    EXPECT_EQ(run({"jobs", "show", "shop", "nonsense"}).code, 64);
    EXPECT_EQ(run({"jobs", "enqueue", "shop", "a:b", "x"}).code, 64);
    EXPECT_EQ(run({"jobs", "ls", "shop", "--state", "odd"}).code, 64);
    EXPECT_EQ(run({"jobs"}).code, 64);
    EXPECT_EQ(run({"jobs", "enqueue", "shop", "mail", "x", "--wait", "20ms"}).code, 1) << "nobody runs it";
    EXPECT_EQ(run({"worker", "shop", "--exec", "mail"}).code, 64);
    EXPECT_EQ(run({"worker", "shop"}).code, 64);
    EXPECT_EQ(run({"worker", "shop", "--exec", "a b=cat"}).code, 64);
}

TEST_F(cli_jobs, by_the_clock_are_scheduled_listed_paused_and_dropped) {
    auto const made = run({"jobs", "schedule", "shop", "nightly", "30 2 * * *", "report", "all", "--zone", "Europe/Berlin", "--missed", "once", "--attempts", "9"});
    EXPECT_EQ(made.code, 0) << made.text;
    EXPECT_THAT(made.text, HasSubstr(":30:00"));
    auto const found = jobs.crons();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].zone, "Europe/Berlin");
    EXPECT_EQ(found[0].missed, missed_runs::once);
    EXPECT_THAT(run({"jobs", "crons", "shop"}).text, AllOf(HasSubstr("nightly"), HasSubstr("30 2 * * *"), HasSubstr("report")));
    EXPECT_EQ(run({"jobs", "pause", "shop", "nightly"}).code, 0);
    EXPECT_EQ(boost::json::parse(run({"--json", "jobs", "crons", "shop"}).text).at("paused"), true);
    EXPECT_EQ(run({"jobs", "resume", "shop", "nightly"}).code, 0);
    EXPECT_EQ(run({"jobs", "resume", "shop", "nightly"}).code, 1);
    EXPECT_EQ(run({"jobs", "unschedule", "shop", "nightly"}).code, 0);
    EXPECT_THAT(run({"jobs", "unschedule", "shop", "nightly"}).text, HasSubstr("there is no schedule"));
    EXPECT_EQ(run({"jobs", "schedule", "shop", "bad", "61 * * * *", "report", "x"}).code, 64);
    EXPECT_EQ(run({"jobs", "schedule", "shop", "bad", "@daily", "report", "x", "--zone", "Mars/Base"}).code, 64);
    EXPECT_TRUE(jobs.crons().empty());
}

TEST_F(cli_jobs, are_handled_by_programs) {
    auto working = worker({"--exec", "upper=tr a-z A-Z", "--exec", "tell=echo \"$LOCKSTEP_NAME $LOCKSTEP_JOB_TYPE $LOCKSTEP_JOB_ATTEMPT $LOCKSTEP_JOB_ID\""});
    EXPECT_EQ(run({"jobs", "enqueue", "shop", "upper", "hello\nworld", "--wait", "20s"}).text, "HELLO\nWORLD\n");
    auto const id = enqueue("tell", "");
    auto const end = jobs.wait(id, 20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->result, "shop tell 1 " + id);
    text const large(3'000'000, 'x');
    EXPECT_EQ(jobs.wait(enqueue("upper", large), 20s)->result, text(3'000'000, 'X')) << "more than fits into a pipe";
    working.kill(SIGTERM);
    EXPECT_EQ(working.wait()->code, 0);
}

TEST_F(cli_jobs, tell_their_progress_and_why_they_failed) {
    auto const command = script("job.sh", "read word\n"
                                          "echo progress: half\n"
                                          "echo result\n"
                                          "echo first complaint >&2; echo it is broken >&2\n"
                                          "[ \"$word\" = good ] && exit 0\n"
                                          "[ \"$word\" = never ] && exit 100\n"
                                          "[ \"$word\" = killed ] && exec 2>/dev/null && kill -9 $$\n"
                                          "exit 3\n");
    auto working = worker({"--exec", "job=" + command, "--exec", "mute=exit 4", "--exec", "missing=/no/such/program", "--concurrency", "3"});
    auto const good = enqueue("job", "good\n");
    EXPECT_EQ(jobs.wait(good, 20s)->result, "result");
    EXPECT_EQ(jobs.find(good)->progress, "half");
    auto const bad = enqueue("job", "bad\n", {.attempts = 2, .backoff = 1ms});
    EXPECT_EQ(jobs.wait(bad, 20s)->reason, "it is broken");
    EXPECT_EQ(jobs.find(bad)->failures.size(), 2U);
    auto const never = enqueue("job", "never\n", {.attempts = 5});
    EXPECT_EQ(jobs.wait(never, 20s)->state, job_state::failed);
    EXPECT_EQ(jobs.find(never)->failures.size(), 1U) << "100 is for good";
    EXPECT_EQ(jobs.wait(enqueue("mute", "", {.attempts = 1}), 20s)->reason, "it returned 4");
    EXPECT_THAT(jobs.wait(enqueue("missing", "", {.attempts = 1}), 20s)->reason, HasSubstr("not found"));
    auto const seen = run({"jobs", "enqueue", "shop", "job", "bad", "--attempts", "1", "--wait", "20s"});
    EXPECT_EQ(seen.code, 1);
    EXPECT_THAT(seen.text, HasSubstr("failed: it is broken"));
}

TEST_F(cli_jobs, that_are_cancelled_or_take_too_long_have_their_programs_ended) {
    auto const pid_file = home.file("pid");
    auto const command = script("job.sh", "trap 'echo stopped > " + home.file("stopped") + "; exit 1' TERM\nsleep 1000 & echo $! > " + pid_file + "\nwait\n");
    auto const stubborn = script("stubborn.sh", "trap '' TERM\necho $$ > " + home.file("stubborn") + "\nwhile :; do sleep 1; done\n");
    auto working = worker({"--exec", "job=" + command, "--exec", "stubborn=" + stubborn, "--grace", "100ms"});
    auto const id = enqueue("job", "");
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(pid_file) && !file_content(pid_file).empty(); }));
    auto const helper = static_cast<pid_t>(std::stol(file_content(pid_file)));
    EXPECT_TRUE(jobs.cancel(id));
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(home.file("stopped")); }));
    EXPECT_TRUE(eventually([&] { return !process_alive(helper); })) << "what it started, too";
    auto const slow = enqueue("stubborn", "", {.attempts = 1, .timeout = 200ms});
    EXPECT_EQ(jobs.wait(slow, 20s)->reason, "it took longer than 200 ms");
    EXPECT_TRUE(eventually([&] {
        auto const path = home.file("stubborn");
        return !std::filesystem::exists(path) || file_content(path).empty() || !process_alive(static_cast<pid_t>(std::stol(file_content(path))));
    }));
}

TEST_F(cli_jobs, that_run_are_finished_when_the_worker_is_told_to_end) {
    auto const command = script("job.sh", "echo $$ > " + home.file("begun") + "\nwhile [ ! -e " + home.file("go") + " ]; do sleep 0.02; done\necho done\n");
    auto working = worker({"--exec", "job=" + command});
    auto const first = enqueue("job", "");
    auto const second = enqueue("job", "");
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(home.file("begun")); }));
    working.kill(SIGTERM);
    EXPECT_FALSE(working.wait(100ms)) << "it finishes what runs";
    std::ofstream{home.file("go")} << "go";
    EXPECT_EQ(jobs.wait(first, 20s)->result, "done");
    EXPECT_EQ(working.wait()->code, 0);
    EXPECT_EQ(jobs.find(second)->state, job_state::waiting) << "and takes no more";
}

TEST_F(cli_jobs, of_a_worker_that_is_killed_have_their_programs_killed_and_are_run_elsewhere) {
    auto const command = script("job.sh", "sleep 1000 & echo $! > " + home.file("pid$LOCKSTEP_JOB_DELIVERY") + "\n[ $LOCKSTEP_JOB_DELIVERY = 1 ] && wait\necho again\n");
    auto dying = worker({"--exec", "job=" + command, "--lease", "500ms"});
    auto const id = enqueue("job", "");
    auto const pid_file = home.file("pid1");
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(pid_file) && !file_content(pid_file).empty(); }));
    auto const helper = static_cast<pid_t>(std::stol(file_content(pid_file)));
    dying.kill();
    EXPECT_TRUE(eventually([&] { return !process_alive(helper); }));
    auto other = worker({"--exec", "job=" + command, "--lease", "500ms"});
    auto const end = jobs.wait(id, 20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->result, "again");
}

}  // namespace
}  // namespace lockstep::test
