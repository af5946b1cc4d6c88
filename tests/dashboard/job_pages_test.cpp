// What the dashboard tells of jobs and does to them, over plain sockets in front of a real Redis and a real worker.
#include "server_fixture.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/error.hpp>
#include <lockstep/job_client.hpp>
#include <lockstep/job_worker.hpp>

#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using text = std::string;

struct dashboard_jobs : dashboard_server {
    /// Names of jobs are listed when their clients have told the server (object_index_test.cpp): here at once.
    dashboard::server& start(dashboard::server_options options = {}) {
        for (auto const* const word : {"types", "crons"}) {
            for (auto const& key : redis.must({"KEYS", text{"lockstep:{*}:jobs:"} + word}).elements)
                redis.must({"ZADD", "lockstep:{objects/0}:index", "9999999999999", key.text.substr(text{"lockstep:"}.size())});
        }
        return dashboard_server::start(std::move(options));
    }
    dashboard::server& start_acting(text by = {}) { return start({.token = token, .allow_actions = true, .by = std::move(by)}); }
    json::value ask(text const& path) {
        auto const answer = get(port(), "/api/jobs" + path, bearer_line);
        EXPECT_EQ(answer.status, 200) << path << ": " << answer.body;
        return answer.status == 200 ? json::parse(answer.body) : json::value{};
    }
    int status(text const& path) { return get(port(), "/api/jobs" + path).status; }
    /// The queue of a type, or null.
    json::value queue(text const& type, text const& name = "shop") {
        auto const all = ask("");
        for (auto const& one : all.at("queues").as_array())
            if (one.at("name").as_string() == name && one.at("type").as_string() == type) return one;
        return nullptr;
    }
    http_answer act(text const& what, text const& id, text const& state) {
        auto const order = json::serialize(json::object{{"name", "shop"}, {"id", id}, {"state", state}, {"reason", "a test"}});
        return post(port(), "/api/jobs/" + what, order, bearer_line);
    }
    http_answer act_on_queue(text const& what, text const& state = "") {
        auto const order = json::serialize(json::object{{"name", "shop"}, {"type", "mail"}, {"state", state}, {"reason", "a test"}});
        return post(port(), "/api/jobs/" + what, order, bearer_line);
    }
    /// Fails what is "bad" as long as `is_bad`.
    std::unique_ptr<job_worker> work(text const& type = "mail") {
        auto made = std::make_unique<job_worker>(worker, "shop", job_worker_options{.name = "the-worker"});
        made->handle<text>(type, [this](job_context&, text const& what) {
            if (what == "bad" && is_bad) throw std::runtime_error{"no such <b>address</b>"};
            return "done " + what;
        });
        made->start();
        return made;
    }

    job_client jobs{worker, "shop"};
    std::atomic<bool> is_bad = true;
};

TEST_F(dashboard_jobs, tells_how_many_are_in_which_state_of_each_name_and_type) {
    jobs.schedule("mail", text{"one"});
    jobs.schedule("mail", text{"two"});
    jobs.schedule("mail", text{"later"}, {.delay = 1h});
    jobs.cancel(jobs.schedule("mail", text{"three"}, {.delay = 1h}).id);
    job_flow flow;
    flow.add("a", "report", text{"a"}).add("b", "report", text{"b"}).after("b", "a");
    jobs.add_flow(flow);
    job_client{worker, "\xff\xfe"}.schedule("odd", text{"x"});
    start();
    auto const all = ask("").at("queues").as_array();
    ASSERT_EQ(all.size(), 3U);
    auto const mail = queue("mail");
    EXPECT_EQ(mail.at("waiting").as_int64(), 2);
    EXPECT_EQ(mail.at("delayed").as_int64(), 1) << "one was cancelled";
    EXPECT_EQ(mail.at("cancelled").as_int64(), 1);
    EXPECT_EQ(mail.at("ever_added").as_int64(), 4);
    auto const report = queue("report");
    EXPECT_EQ(report.at("waiting").as_int64(), 1);
    EXPECT_EQ(report.at("blocked").as_int64(), 1);
    EXPECT_EQ(queue("odd", "\\xff\\xfe").at("raw").as_string(), "%ff%fe") << "what it is asked for by";
    EXPECT_EQ(ask("/list?state=waiting&name=%FF%FE&type=odd").at("total").as_int64(), 1);
}

TEST_F(dashboard_jobs, finds_names_that_come_later_and_does_not_look_for_each_request) {
    start();
    EXPECT_TRUE(ask("").at("queues").as_array().empty());
    jobs.schedule("mail", text{"one"});
    EXPECT_TRUE(eventually([&] { return !queue("mail").is_null(); }, 14s));
    auto const looks = [&] {
        text const said = redis.must({"INFO", "commandstats"}).text;
        EXPECT_EQ(said.find("cmdstat_scan:"), text::npos) << "not even once";
        auto const at = said.find("cmdstat_zscan:calls=");
        return at == text::npos ? 0 : std::stoi(said.substr(at + 20)) / 16;  // each part of the index
    };
    auto const before = looks();
    auto const begun = std::chrono::steady_clock::now();
    for (int i = 0; i < 50; ++i) ask("");
    auto const took = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begun).count();
    EXPECT_LE(looks() - before, took / 2 + 1);
}

TEST_F(dashboard_jobs, shows_what_is_there_beside_a_key_that_is_not_ours) {
    redis.must({"SET", "lockstep:{foreign}:jobs:types", "x"});
    jobs.schedule("mail", text{"one"});
    redis.must({"ZADD", "lockstep:{shop}:jobs:types", "0", "not a type"});
    start();
    EXPECT_FALSE(queue("mail").is_null());
    EXPECT_EQ(ask("").at("left_out").as_int64(), 2);
}

TEST_F(dashboard_jobs, shows_schedules_beside_a_key_that_is_not_ours) {
    redis.must({"SET", "lockstep:{foreign}:jobs:crons", "x"});
    redis.must({"SET", "lockstep:{" + text(600, 'x') + "}:jobs:crons", "x"});
    jobs.cron("hourly", "report", text{"some"}, {.expression = "@hourly"});
    start();
    auto const all = ask("/crons");
    EXPECT_EQ(all.at("total").as_int64(), 1);
    EXPECT_EQ(all.at("left_out").as_int64(), 1);
    EXPECT_EQ(ask("/crons?name=foreign").at("left_out").as_int64(), 1);
}

TEST_F(dashboard_jobs, lists_a_state_in_pages_over_all_queues) {
    for (int i = 0; i < 7; ++i) jobs.schedule("mail", std::to_string(i));
    for (int i = 7; i < 10; ++i) jobs.schedule("report", std::to_string(i));
    start();
    std::vector<text> seen;
    for (int from = 0; from < 10; from += 4) {
        auto const part = ask("/list?state=waiting&from=" + std::to_string(from) + "&count=4");
        EXPECT_EQ(part.at("total").as_int64(), 10);
        EXPECT_EQ(part.at("jobs").as_array().size(), from == 8 ? 2U : 4U);
        for (auto const& one : part.at("jobs").as_array()) seen.emplace_back(one.at("payload").as_string());
    }
    EXPECT_THAT(seen, ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"));
    EXPECT_EQ(ask("/list?state=waiting&name=shop&type=report").at("total").as_int64(), 3);
    EXPECT_EQ(ask("/list?state=waiting&name=shop").at("total").as_int64(), 10);
    EXPECT_EQ(ask("/list?state=failed").at("total").as_int64(), 0);
    EXPECT_EQ(ask("/list?state=waiting&from=100").at("jobs").as_array().size(), 0U);
}

TEST_F(dashboard_jobs, tells_why_one_failed_and_each_attempt) {
    auto const id = jobs.schedule("mail", text{"bad"}, {.attempts = 2, .backoff = 1ms}).id;
    auto const done = jobs.schedule("mail", text{"good"}).id;
    auto const crew = work();
    ASSERT_TRUE(jobs.wait(id, 20s));
    ASSERT_TRUE(jobs.wait(done, 20s));
    start();
    auto const listed = ask("/list?state=failed&name=shop&type=mail").at("jobs").at(0);
    EXPECT_EQ(listed.at("id").as_string(), id);
    EXPECT_EQ(listed.at("tries").as_int64(), 2);
    EXPECT_THAT(text{listed.at("reason").as_string()}, HasSubstr("no such <b>address</b>"));
    EXPECT_EQ(listed.at("worker").as_string(), "the-worker");
    EXPECT_FALSE(listed.at("linked").as_bool());
    auto const whole = ask("/job?name=shop&id=" + id);
    EXPECT_EQ(whole.at("state").as_string(), "failed");
    EXPECT_EQ(whole.at("attempts").as_int64(), 2);
    ASSERT_EQ(whole.at("failures").as_array().size(), 2U);
    EXPECT_THAT(text{whole.at("failures").at(0).at("reason").as_string()}, HasSubstr("no such <b>address</b>"));
    EXPECT_THAT(text{whole.at("failures").at(0).at("worker").as_string()}, HasSubstr("the-worker"));
    EXPECT_FALSE(whole.at("linked").as_bool());
    EXPECT_EQ(ask("/job?name=shop&id=" + done).at("result").as_string(), "done good");
    EXPECT_EQ(get(port(), "/api/jobs/job?name=shop&id=" + id).header("Content-Type"), "application/json");
}

TEST_F(dashboard_jobs, shows_long_payloads_cut_and_whatever_they_hold_as_text) {
    text const wide = "<script>alert(1)</script>" + text(100'000, 'x');
    text umlauts;
    for (int i = 0; i < 200; ++i) umlauts += "\xc3\xa4";
    auto const id = jobs.schedule("mail", wide).id;
    auto const odd = jobs.schedule("mail", text{"\xff\x00\x01", 3}).id;
    jobs.schedule("mail", 'a' + umlauts);
    start();
    auto const all = ask("/list?state=waiting").at("jobs").as_array();
    ASSERT_EQ(all.size(), 3U);
    EXPECT_LT(all[0].at("payload").as_string().size(), 300U);
    EXPECT_TRUE(all[0].at("cut").as_bool()) << "a list reads no more of it";
    EXPECT_THAT(text{all[2].at("payload").as_string()}, Not(HasSubstr("\\x"))) << "no half of a character";
    auto const whole = ask("/job?name=shop&id=" + id);
    EXPECT_THAT(text{whole.at("payload").as_string()}, HasSubstr("<script>alert(1)</script>xxx"));
    EXPECT_LE(whole.at("payload").as_string().size(), 8'192U);
    EXPECT_EQ(whole.at("payload_bytes").as_int64(), static_cast<std::int64_t>(wide.size()));
    EXPECT_THAT(text{ask("/job?name=shop&id=" + odd).at("payload").as_string()}, HasSubstr("\\xff"));
}

TEST_F(dashboard_jobs, tells_the_flow_of_a_job_with_its_states) {
    job_flow flow;
    flow.add("a", "mail", text{"a"}).add("b", "mail", text{"bad"}, {.attempts = 1}).add("c", "mail", text{"c"}).add("d", "mail", text{"d"});
    flow.after("b", "a").after("c", "a").after("d", {"b", "c"});
    auto const ids = jobs.add_flow(flow);
    auto const crew = work();
    ASSERT_TRUE(jobs.wait(ids.at("d"), 20s));
    ASSERT_TRUE(jobs.wait(ids.at("c"), 20s));
    start();
    auto const told = ask("/flow?name=shop&id=" + ids.at("b"));
    EXPECT_TRUE(told.at("whole").as_bool());
    std::map<text, text> states;
    std::map<text, std::set<text>> parents;
    for (auto const& one : told.at("jobs").as_array()) {
        text const id{one.at("id").as_string()};
        states[id] = one.at("state").as_string();
        for (auto const& parent : one.at("parents").as_array()) parents[id].emplace(parent.as_string());
    }
    EXPECT_EQ(states, (std::map<text, text>{{ids.at("a"), "completed"}, {ids.at("b"), "failed"}, {ids.at("c"), "completed"}, {ids.at("d"), "failed"}}));
    EXPECT_EQ(parents[ids.at("d")], (std::set<text>{ids.at("b"), ids.at("c")}));
    EXPECT_TRUE(ask("/job?name=shop&id=" + ids.at("a")).at("linked").as_bool()) << "it has children only";
    EXPECT_TRUE(ask("/job?name=shop&id=" + ids.at("d")).at("linked").as_bool());
}

TEST_F(dashboard_jobs, lists_schedules_with_their_next_run) {
    jobs.cron("nightly", "report", text{"all"}, {.expression = "30 2 * * *", .zone = "Europe/Berlin"});
    jobs.cron("hourly", "report", text{"some"}, {.expression = "@hourly"});
    jobs.cron("off", "report", text{}, {.expression = "@daily"});
    jobs.pause_cron("off");
    start();
    auto const all = ask("/crons").at("crons").as_array();
    ASSERT_EQ(all.size(), 3U) << "also of jobs of which there was none yet";
    EXPECT_EQ(all[2].at("id").as_string(), "off");
    EXPECT_TRUE(all[2].at("paused").as_bool());
    EXPECT_FALSE(all[0].at("paused").as_bool());
    EXPECT_LE(all[0].at("next_ms").as_int64(), all[1].at("next_ms").as_int64());
    EXPECT_EQ(all[0].at("name").as_string(), "shop");
    EXPECT_EQ(ask("/crons?name=shop").at("total").as_int64(), 3);
    EXPECT_EQ(ask("/crons?name=other").at("total").as_int64(), 0);
}

TEST_F(dashboard_jobs, keeps_how_fast_jobs_were_done_while_somebody_looks) {
    start();
    follower somebody{port()};
    ASSERT_FALSE(somebody.next().is_null());
    auto const crew = work();
    auto const is_counted = [&](text const& query) {
        auto const all = ask("/samples" + query).as_array();
        return std::any_of(all.begin(), all.end(), [](json::value const& one) { return one.at("completed_per_s").is_double() && one.at("completed_per_s").as_double() > 0; });
    };
    auto const some = [&] {
        for (int i = 0; i < 20; ++i) jobs.schedule("mail", std::to_string(i));
    };
    EXPECT_TRUE(eventually([&] { some(); return is_counted(""); }, 30s));
    EXPECT_TRUE(eventually([&] { some(); return is_counted("?name=shop&type=mail"); }, 30s));
    EXPECT_TRUE(ask("/samples?name=shop&type=other").as_array().empty());
}

TEST_F(dashboard_jobs, says_so_when_redis_is_away_and_goes_on_when_it_is_back) {
    jobs.schedule("mail", text{"one"});
    start();
    EXPECT_FALSE(queue("mail").is_null());
    redis.kill9();
    EXPECT_TRUE(eventually([&] { return status("") == 503; }, 30s));
    EXPECT_EQ(status("/job?name=shop&id=mail/1-1"), 503);
    redis.restart();
    EXPECT_TRUE(eventually([&] { return status("") == 200; }, 30s));
}

TEST_F(dashboard_jobs, says_so_when_redis_is_away_also_where_there_are_no_jobs) {
    start();
    EXPECT_TRUE(ask("").at("queues").as_array().empty());
    redis.kill9();
    EXPECT_TRUE(eventually([&] { return status("") == 503; }, 30s));
    EXPECT_EQ(status("/crons"), 503);
    redis.restart();
    EXPECT_TRUE(eventually([&] { return status("") == 200; }, 30s));
}

TEST_F(dashboard_jobs, lets_all_who_ask_while_redis_is_away_wait_for_one_answer) {
    jobs.schedule("mail", text{"one"});
    start();
    EXPECT_FALSE(queue("mail").is_null());
    redis.stop();
    EXPECT_TRUE(eventually([&] { return status("") == 503; }, 30s)) << "what was seen is good for a second";
    auto const begun = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<http_client>> all;
    for (int i = 0; i < 12; ++i) {
        all.push_back(std::make_unique<http_client>(port()));
        all.back()->send("GET /api/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    for (auto const& one : all) EXPECT_EQ(one->read(60s).status, 503);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 12s) << "one after the other each would wait for two seconds";
    redis.cont();
}

TEST_F(dashboard_jobs, tells_samples_while_redis_does_not_answer) {
    dashboard::job_desk desk{observer};
    redis.stop();
    std::atomic<bool> is_over = false;
    std::thread looks{[&] {
        EXPECT_THROW(desk.look(), error);
        is_over = true;
    }};
    int meanwhile = 0;
    while (!is_over) {
        desk.samples({});
        if (!is_over) ++meanwhile;
        std::this_thread::sleep_for(10ms);
    }
    looks.join();
    redis.cont();
    EXPECT_GE(meanwhile, 10);
}

TEST_F(dashboard_jobs, does_not_take_what_a_queue_did_before_it_was_seen_for_done_just_now) {
    auto const crew = work();
    std::vector<text> ids;
    for (int i = 0; i < 50; ++i) ids.push_back(jobs.schedule("mail", std::to_string(i)).id);
    for (auto const& id : ids) ASSERT_TRUE(jobs.wait(id, 30s));
    job_client{worker, "other"}.schedule("mail", text{"one"});
    redis.must({"RENAME", "lockstep:{shop}:jobs:types", "hidden"});
    dashboard::job_desk desk{observer};
    auto const sees = [&](std::size_t queues) {
        return [&desk, queues] { return desk.look()->queues.size() == queues; };
    };
    auto const rates = [&] {
        std::vector<double> all;
        for (auto const& one : desk.samples({}))
            if (one.completed_per_s) all.push_back(*one.completed_per_s);
        return all;
    };
    ASSERT_TRUE(eventually(sees(1), 30s));
    ASSERT_TRUE(eventually([&] { desk.look(); return !rates().empty(); }, 30s));
    redis.must({"RENAME", "hidden", "lockstep:{shop}:jobs:types"});
    ASSERT_TRUE(eventually(sees(2), 30s));
    auto const before = rates().size();
    ASSERT_TRUE(eventually([&] { desk.look(); return rates().size() > before + 1; }, 30s));
    EXPECT_THAT(rates(), testing::Each(0.0));
}

TEST(dashboard_job_desk, finds_the_jobs_of_every_node_of_a_cluster) {
    cluster servers;
    client by{{.url = servers.url()}};
    {
        client brief{{.url = servers.url()}};  // one that is closed has told the server what it used
        for (int i = 0; i < 20; ++i) {
            job_client of{brief, "name " + std::to_string(i)};
            of.schedule("mail", text{"one"});
            of.cron("nightly", "mail", text{}, {.expression = "@daily"});
        }
    }
    dashboard::job_desk desk{by};
    auto const seen = desk.look();
    EXPECT_EQ(seen->queues.size(), 20U);
    EXPECT_EQ(seen->left_out, 0U);
    EXPECT_EQ(desk.crons("").crons.size(), 20U);
    auto const all = desk.list({}, job_state::waiting, 5, 10);
    EXPECT_EQ(all.total, 20);
    ASSERT_EQ(all.jobs.size(), 10U);
    auto const& one = all.jobs.front();
    EXPECT_TRUE(desk.act(dashboard::job_deed::cancel, one.name, one.is, "tester", "a test"));
    EXPECT_EQ(desk.find(one.name, one.is.id)->state, job_state::cancelled);
    EXPECT_EQ(monitor{by}.audit().at(0).outcome, "done");
}

// ---- what makes no sense ----

TEST_F(dashboard_jobs, refuses_questions_that_make_no_sense_and_says_why) {
    start();
    EXPECT_THAT(get(port(), "/api/jobs/list").body, HasSubstr("state is waiting"));
    for (auto const* const path : {"/list", "/list?state=odd", "/list?state=unknown", "/list?state=waiting&count=0", "/list?state=waiting&count=1000",
                                   "/list?state=waiting&from=-1", "/list?state=waiting&from=x", "/list?state=waiting&name=%zz",
                                   "/list?state=waiting&name=shop&type=a%20b", "/job", "/job?name=shop", "/job?name=shop&id=nonsense", "/job?id=mail/1-1",
                                   "/flow?name=shop&id=mail", "/samples?name=shop", "/crons?name=%"})
        EXPECT_EQ(status(path), 400) << path;
    EXPECT_EQ(status("/job?name=" + text(600, 'x') + "&id=mail/1-1"), 400);
    EXPECT_EQ(status("/job?name=shop&id=mail/1-1"), 404);
    EXPECT_EQ(status("/flow?name=shop&id=mail/1-1"), 404);
    EXPECT_EQ(status("/nothing"), 404);
    EXPECT_EQ(status("/retry"), 404) << "not by a link";
}

TEST_F(dashboard_jobs, shows_nothing_to_whoever_has_no_token) {
    start({.token = token});
    for (auto const* const path : {"", "/samples", "/list?state=failed", "/job?name=shop&id=mail/1-1", "/flow?name=shop&id=mail/1-1", "/crons"})
        EXPECT_EQ(status(path), 401) << path;
    EXPECT_EQ(get(port(), "/api/jobs", bearer_line).status, 200);
    EXPECT_EQ(get(port(), "/api/jobs", bearer_line + "Sec-Fetch-Site: cross-site\r\n").status, 403);
}

// ---- what is done to them ----

TEST_F(dashboard_jobs, does_nothing_to_them_unless_it_may) {
    auto const id = jobs.schedule("mail", text{"one"}).id;
    start();
    auto const refused = act("cancel", id, "waiting");
    EXPECT_EQ(refused.status, 403);
    EXPECT_THAT(refused.body, HasSubstr("--allow-actions"));
    EXPECT_EQ(jobs.find(id)->state, job_state::waiting);
    page.reset();
    start_acting();
    auto const order = json::serialize(json::object{{"name", "shop"}, {"id", id}, {"state", "waiting"}});
    EXPECT_EQ(post(port(), "/api/jobs/cancel", order).status, 401);
    EXPECT_EQ(post(port(), "/api/jobs/cancel", order, bearer_line + "Origin: http://evil.example\r\n").status, 403);
    EXPECT_EQ(jobs.find(id)->state, job_state::waiting);
    EXPECT_TRUE(eye.audit().empty());
}

TEST_F(dashboard_jobs, cancels_one_that_waits_and_writes_down_who_did) {
    auto const id = jobs.schedule("mail", text{"one"}).id;
    start_acting("tester");
    EXPECT_EQ(queue("mail").at("waiting").as_int64(), 1);
    auto const done = act("cancel", id, "waiting");
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_EQ(jobs.find(id)->state, job_state::cancelled);
    EXPECT_EQ(queue("mail").at("cancelled").as_int64(), 1) << "seen at once by who did it";
    auto const all = eye.audit();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].action, "cancel-job");
    EXPECT_EQ(all[0].name, "shop");
    EXPECT_EQ(all[0].kind, "job");
    EXPECT_EQ(all[0].hold, id);
    EXPECT_EQ(all[0].outcome, "done");
    EXPECT_EQ(all[0].reason, "a test");
    EXPECT_THAT(all[0].by, AllOf(HasSubstr("tester"), HasSubstr("dashboard"), HasSubstr("127.0.0.1")));
}

TEST_F(dashboard_jobs, runs_one_that_failed_again) {
    auto const id = jobs.schedule("mail", text{"bad"}, {.attempts = 1}).id;
    auto const crew = work();
    ASSERT_EQ(jobs.wait(id, 20s)->state, job_state::failed);
    start_acting();
    is_bad = false;
    auto const done = act("retry", id, "failed");
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_TRUE(eventually([&] { return jobs.find(id)->state == job_state::completed; }));
    EXPECT_EQ(eye.audit().at(0).action, "retry-job");
    auto const again = act("retry", id, "failed");
    EXPECT_EQ(again.status, 409) << "who saw it fail does not run it again when it has completed";
    EXPECT_THAT(again.body, HasSubstr("completed now"));
    EXPECT_EQ(eye.audit().size(), 1U);
}

TEST_F(dashboard_jobs, pauses_a_type_and_resumes_it_and_writes_down_who_did) {
    jobs.schedule("mail", text{"one"});
    start();
    EXPECT_EQ(act_on_queue("pause").status, 403);
    page.reset();
    start_acting("tester");
    EXPECT_EQ(queue("mail").at("paused"), false);
    EXPECT_THAT(act_on_queue("pause").body, HasSubstr("\"done\":true"));
    EXPECT_TRUE(jobs.counts("mail").paused);
    EXPECT_EQ(queue("mail").at("paused"), true) << "seen at once by who did it";
    EXPECT_THAT(act_on_queue("pause").body, HasSubstr("\"done\":false"));
    EXPECT_THAT(act_on_queue("resume").body, HasSubstr("\"done\":true"));
    EXPECT_FALSE(jobs.counts("mail").paused);
    auto const all = eye.audit();
    ASSERT_EQ(all.size(), 3U);
    std::map<text, text> outcomes;
    for (auto const& one : all) outcomes[one.action] += one.outcome + ' ';
    EXPECT_EQ(outcomes.at("pause-jobs"), "gone done ") << "the youngest first";
    EXPECT_EQ(outcomes.at("resume-jobs"), "done ");
    EXPECT_EQ(all[0].name, "shop");
    EXPECT_EQ(all[0].hold, "mail");
    EXPECT_EQ(all[0].reason, "a test");
}

TEST_F(dashboard_jobs, runs_all_that_failed_again_and_cancels_all_that_wait) {
    std::vector<text> payloads;  // a worker of which all fail would slow down
    for (int i = 0; i < 30; ++i) payloads.insert(payloads.end(), {"bad", "good"});
    jobs.schedule_many<text>("mail", payloads, {.attempts = 1});
    auto crew = work();
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").failed == 30; }));
    crew.reset();
    start_acting();
    EXPECT_EQ(json::parse(act_on_queue("retry-all", "failed").body).at("count").to_number<int>(), 30);
    EXPECT_EQ(queue("mail").at("waiting").to_number<int>(), 30);
    EXPECT_EQ(json::parse(act_on_queue("cancel-all", "running").body).at("count").to_number<int>(), 0);
    EXPECT_EQ(json::parse(act_on_queue("cancel-all", "waiting").body).at("count").to_number<int>(), 30);
    EXPECT_EQ(queue("mail").at("cancelled").to_number<int>(), 30);
    EXPECT_EQ(eye.audit().size(), 3U);
    EXPECT_EQ(act_on_queue("cancel-all", "failed").status, 400);
    EXPECT_EQ(act_on_queue("retry-all", "waiting").status, 400);
    EXPECT_EQ(act_on_queue("retry-all").status, 400) << "which of them?";
    EXPECT_EQ(post(port(), "/api/jobs/pause", R"({"name": "shop"})", bearer_line).status, 400);
    EXPECT_EQ(eye.audit().size(), 3U);
}

TEST_F(dashboard_jobs, tells_until_when_one_is_delayed) {
    auto const id = jobs.schedule("mail", text{"one"}, {.delay = 1h}).id;
    start();
    auto const one = ask("/list?state=waiting&name=shop&type=mail").at("jobs").at(0);
    EXPECT_GT(one.at("delayed_until_ms").as_int64(), one.at("created_ms").as_int64() + 3'500'000);
    EXPECT_EQ(ask("/job?name=shop&id=" + id).at("delayed_until_ms"), one.at("delayed_until_ms"));
}

TEST_F(dashboard_jobs, leaves_alone_what_is_not_as_it_was_seen) {
    auto const id = jobs.schedule("mail", text{"one"}).id;
    start_acting();
    EXPECT_EQ(act("cancel", id, "running").status, 409);
    EXPECT_EQ(act("cancel", id, "blocked").status, 409);
    EXPECT_EQ(act("retry", id, "failed").status, 409);
    EXPECT_EQ(act("cancel", id, "failed").status, 400);
    EXPECT_EQ(act("retry", id, "waiting").status, 400);
    EXPECT_EQ(act("retry", id, "odd").status, 400);
    EXPECT_EQ(act("cancel", "mail/1-1", "waiting").status, 404);
    EXPECT_EQ(act("cancel", "nonsense", "waiting").status, 400);
    EXPECT_EQ(post(port(), "/api/jobs/cancel", "nonsense", bearer_line).status, 400);
    EXPECT_EQ(post(port(), "/api/jobs/cancel", R"({"name": "shop"})", bearer_line).status, 400);
    EXPECT_EQ(post(port(), "/api/jobs/drop", "{}", bearer_line).status, 404);
    EXPECT_EQ(jobs.find(id)->state, job_state::waiting);
    EXPECT_TRUE(eye.audit().empty());
}

}  // namespace
}  // namespace lockstep::test
