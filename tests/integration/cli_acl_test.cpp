// What `lockstep acl` prints is enough for each use. acl_reach_test.cpp has what it is not enough for.

#include "cli_support.hpp"

#include <lockstep/lockstep.hpp>

#include <boost/json.hpp>

#include <atomic>
#include <thread>

namespace lockstep::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class cli_acl : public cli {
protected:
    // Makes the user with what the command says.
    void make_user(std::vector<std::string> const& options) {
        std::vector<std::string> words{"--json", "acl", "worker"};
        words.insert(words.end(), options.begin(), options.end());
        auto const printed = boost::json::parse(run(words).text);
        std::vector<std::string> setting{"ACL", "SETUSER", "worker"};
        for (auto const& rule : printed.at("rules").as_array()) setting.emplace_back(rule.as_string().c_str());
        setting.insert(setting.end(), {"on", ">secret"});
        server.must(setting);
    }
    client_options login(std::string name = "w") const {
        return {.url = server.url(), .user = "worker", .password = "secret", .name = std::move(name)};
    }
    // The command, as that user.
    outcome run_as_worker(std::vector<std::string> words) {
        if (!std::filesystem::exists(secret)) std::ofstream{secret} << "secret\n";
        words.insert(words.begin(), {"--user", "worker", "--password-file", secret});
        return run(words);
    }
    std::string const secret = home.file("password");
    // What the server refused.
    std::string refusals() {
        std::string all;
        for (auto const& entry : server.must({"ACL", "LOG"}).elements) all += describe(entry) + "\n";
        return all;
    }
};

/// Nothing was refused but these.
testing::Matcher<std::string> only_about(std::vector<std::string> const& objects) {
    return testing::Truly([objects](std::string const& log) {
        std::istringstream lines{log};
        for (std::string line; std::getline(lines, line);) {
            if (std::ranges::none_of(objects, [&](auto const& one) { return line.find("\"object\", \"" + one + '"') != std::string::npos; })) return false;
        }
        return true;
    });
}

// A second client waits while the first holds: queues, wake-ups and claims are used, too.
template <class Hold>
void hand_over(client& one, client& two, Hold const& hold) {
    auto held = hold(one);
    auto const before = two.statistics().requests;
    std::jthread waiting{[&] { auto const mine = hold(two); }};
    EXPECT_TRUE(eventually([&] { return two.statistics().requests > before; }));
    held.release();
}

TEST_F(cli_acl, for_locks_is_enough_for_every_primitive) {
    make_user({"--for", "locks"});
    auto options = login("one");
    options.record = true;
    client one{options};
    client two{login("two")};
    hand_over(one, two, [](client& by) { return mutex{by, "m"}.acquire(); });
    hand_over(one, two, [](client& by) { return shared_mutex{by, "sm"}.acquire(); });
    hand_over(one, two, [](client& by) { return shared_mutex{by, "sm"}.acquire_shared(); });
    hand_over(one, two, [](client& by) { return counting_semaphore::create(by, "sem", 1).acquire(); });
    { auto const both = multi_lock{one, {"a", "b"}}.acquire(); }
    {
        recursive_mutex again{one, "r"};
        std::scoped_lock const outer{again};
        std::scoped_lock const inner{again};
    }
    counting_semaphore::create(one, "optimistic", 2, {.created_by = semaphore_options::creation::optimistic}).resize(3);
    {
        auto lease = mutex{one, "d"}.acquire();
        lease.extend(20s);
        auto const adopted = lease::adopt(two, lease.detach());
    }
    event{one, "e"}.set();
    event{two, "e"}.wait();
    EXPECT_FALSE((event{two, "e"}.wait_for(20ms)));
    EXPECT_EQ((event{one, "e"}.clear()), 0);
    {
        std::jthread waiting{[&] { broadcast_event{two, "b"}.wait(); }};
        broadcast_event{one, "b"}.set();
    }
    broadcast_event{one, "b"}.clear();
    {
        std::jthread waiting{[&] { latch{two, "l", 1}.wait(); }};
        latch{one, "l", 1}.count_down();
    }
    {
        std::jthread waiting{[&] { barrier{two, "br", 2}.arrive_and_wait(); }};
        barrier{one, "br", 2}.arrive_and_wait();
    }
    EXPECT_FALSE((barrier{one, "br", 2}.arrive_and_wait_for(20ms)));
    {
        std::atomic<int> changes{0};
        election candidate{two, "el", {.id = "node"}};
        auto const observing = election{one, "el"}.observe([&](leader_change const&) { ++changes; });
        {
            auto const leading = candidate.campaign();
            EXPECT_TRUE((election{one, "el"}.leader()));
        }
        EXPECT_TRUE(eventually([&] { return changes >= 2; }));
    }
    // Registration and statistics, which nobody waits for.
    EXPECT_TRUE(eventually([&] { return server.must({"EXISTS", "lockstep:{clients}:index"}).integer == 1; }));
    one.close();
    two.close();
    EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(cli_acl, for_messaging_is_enough_for_queues_streams_and_buses) {
    make_user({"--for", "messaging"});
    client one{login("one")};
    {
        queue<std::string> items{one, "q", {.max_deliveries = 1, .max_length = 10}};
        items.enqueue("a", {.priority = 1, .key = "k", .key_window = 10s});
        items.enqueue("b", {.delay = 1ms});
        items.dequeue().ack();
        items.dequeue().nack();
        EXPECT_EQ(items.requeue_dead(), 1);
        items.counts();
        items.purge();
        work_stealing_queue<std::string> lane{one, "w", "a"};
        work_stealing_queue<std::string> other{one, "w", "b"};
        lane.push("c");
        other.dequeue().ack();
    }
    {
        stream entries{one, "s"};
        entries.add({{"a", "b"}});
        std::atomic<int> handled{0};
        consumer worker{one, "s", [&](delivery const&) { ++handled; }, {.group = "g"}};
        EXPECT_TRUE(eventually([&] { return handled == 1; }));
        worker.stop();
        entries.trim_to_length(0);
        entries.info();
    }
    {
        std::atomic<int> heard{0};
        event_bus bus{one, "b"};
        auto const listening = bus.subscribe<std::string>("c", [&](std::string const&) { ++heard; });
        bus.publish("c", std::string{"x"});
        EXPECT_TRUE(eventually([&] { return heard == 1; }));
    }
    {
        idempotency once{one, "payments"};
        EXPECT_TRUE(once.run("a", [] {}));
        EXPECT_FALSE(once.run("a", [] {}));
    }
    one.close();
    EXPECT_THAT(refusals(), only_about({"client|id"}));
}

TEST_F(cli_acl, for_messaging_lets_a_consumer_stop_without_ending_the_waiting_of_others) {
    make_user({"--for", "messaging"});
    client one{login("one")};
    stream entries{one, "s"};
    std::atomic<int> handled{0};
    consumer worker{one, "s", [&](delivery const&) { ++handled; }, {.group = "g"}};
    entries.add({{"a", "b"}});
    EXPECT_TRUE(eventually([&] { return handled == 1; }));
    EXPECT_TRUE(eventually([&] { return server.info("blocked_clients") == "1"; }));
    auto const begin = std::chrono::steady_clock::now();
    worker.stop();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << "the read that waited is over after a second, not after 15";
}

TEST_F(cli_acl, for_state_is_enough_for_what_is_shared) {
    make_user({"--for", "state"});
    client one{login("one")};
    {
        shared_value<std::string> value{one, "v"};
        auto const watching = value.watch([](auto const&) {});
        value.set("x", {.ttl = 10s, .fence = 1});
        EXPECT_EQ(value.get()->value, "x");
        value.erase();
        shared_map<std::string> map{one, "m"};
        map.set("f", "x");
        map.all();
        map.erase("f");
        atomic_counter{one, "c"}.add(1);
        leaderboard board{one, "l", {.ties = leaderboard_ties::earlier_first}};
        board.add("me", 1);
        board.around("me", 1);
        board.range({.lowest = 0});
        board.remove("me");
        session_store sessions{one, "web", {.command_timeout = std::chrono::seconds{10}}};
        auto const id = sessions.create("ada", {{"a", "b"}});
        EXPECT_TRUE(sessions.rotate(id));
        EXPECT_EQ(sessions.list("ada").size(), 1U);
    }
    for (auto const algorithm : {rate_algorithm::sliding_log, rate_algorithm::sliding_window, rate_algorithm::token_bucket}) {
        rate_limiter limit{one, "limit", {.limit = 5, .algorithm = algorithm, .command_timeout = std::chrono::seconds{10}}};
        auto const key = std::to_string(static_cast<int>(algorithm));
        EXPECT_TRUE(limit.acquire(key).allowed);
        limit.peek(key);
        limit.reset(key);
    }
    {
        circuit_breaker breaker{one, "breaker", {.failure_threshold = 1, .recovery_timeout = 1ms}};
        EXPECT_THROW(breaker.execute([] { throw std::runtime_error{"no"}; }), std::runtime_error);
        breaker.flush();
        EXPECT_TRUE(eventually([&] {
            try {
                breaker.execute([] {});
                return true;
            } catch (circuit_open_error const&) {
                return false;
            }
        }));
        breaker.close();
    }
    one.close();
    EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(cli_acl, for_jobs_is_enough_for_workers_and_those_who_schedule) {
    make_user({"--for", "jobs"});
    client one{login("one")};
    job_client jobs{one, "shop"};
    job_worker worker{one, "shop", {.concurrency = 2}};
    std::atomic<bool> fails{true};
    worker.handle<std::string>("mail", [&](job_context& job, std::string const& payload) {
        job.progress("half");
        if (payload == "bad" && fails) throw std::runtime_error("no");
        return payload;
    });
    worker.start();
    auto const done = jobs.schedule("mail", std::string{"good"}, {.priority = 1, .key = "k", .tags = "t"});
    EXPECT_EQ(jobs.wait(done.id, 20s).value().state, job_state::completed);
    auto const bad = jobs.schedule("mail", std::string{"bad"}, {.attempts = 1});
    EXPECT_EQ(jobs.wait(bad.id, 20s).value().state, job_state::failed);
    fails = false;
    EXPECT_TRUE(jobs.requeue(bad.id));
    EXPECT_EQ(jobs.wait(bad.id, 20s).value().state, job_state::completed);
    auto const later = jobs.schedule("mail", std::string{"x"}, {.delay = 1h});
    EXPECT_TRUE(jobs.cancel(later.id));
    job_flow flow;
    flow.add("a", "mail", std::string{"a"}).add("b", "mail", std::string{"b"}).after("b", {"a"});
    auto const ids = jobs.add_flow(flow);
    EXPECT_EQ(jobs.wait(ids.at("b"), 20s).value().state, job_state::completed);
    EXPECT_EQ(jobs.flow_of(ids.at("b")).jobs.size(), 2U);
    jobs.cron("nightly", "mail", std::string{"all"}, {.expression = "* * * * * *"});
    EXPECT_TRUE(eventually([&] { return jobs.counts("mail").completed > 4; })) << "a schedule is fired";
    EXPECT_EQ(jobs.crons().size(), 1U);
    EXPECT_TRUE(jobs.drop_cron("nightly"));
    EXPECT_TRUE(jobs.pause("mail"));
    jobs.schedule("mail", std::string{"x"});
    jobs.list("mail", job_state::waiting);
    EXPECT_EQ(jobs.cancel_all({.type = "mail", .state = job_state::waiting}), 1);
    EXPECT_TRUE(jobs.resume("mail"));
    worker.stop();
    one.close();
    EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(cli_acl, for_near_cache_is_enough_to_read_what_others_write) {
    make_user({"--for", "near-cache"});
    client writer{{.url = server.url()}};
    shared_value<std::string> value{writer, "v"};
    value.set("x");
    shared_map<std::string> fields{writer, "m"};
    fields.set("f", "x");
    client reader{login("reader")};
    near_cache<std::string> cache{reader};
    near_map<std::string> map{reader, "m"};
    EXPECT_EQ(cache.get("v")->value, "x");
    EXPECT_EQ(map.get("f")->value, "x");
    value.set("y");
    fields.set("f", "y");
    EXPECT_TRUE(eventually([&] { return cache.get("v")->value == "y" && map.get("f")->value == "y"; })) << "it is told of changes";
    reader.close();
    EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(cli_acl, of_programs_alone_hints_at_near_cache) {
    make_user({});
    client reader{login("reader")};
    near_cache<std::string> cache{reader};
    try {
        cache.get("v");
        ADD_FAILURE();
    } catch (error const& problem) {
        EXPECT_THAT(problem.what(), HasSubstr("lockstep acl --for near-cache"));
    }
}

TEST_F(cli_acl, of_programs_is_enough_for_the_command) {
    make_user({});
    for (auto const& words : std::vector<std::vector<std::string>>{{"run", "x", "--", "true"}, {"run", "-s", "x", "--", "true"}, {"run", "-c", "2", "x", "--", "true"},
                                                                  {"event", "set", "e"}, {"event", "wait", "e"}, {"sem", "show", "x"}, {"barrier", "b", "-p", "1"}}) {
        auto const seen = run_as_worker(words);
        EXPECT_EQ(seen.code, 0) << words.front() << ": " << seen.text;
    }
    EXPECT_THAT(refusals(), IsEmpty());
    auto const looking = run_as_worker({"ls"});
    EXPECT_EQ(looking.code, 77);
    EXPECT_THAT(looking.text, HasSubstr("lockstep acl"));
}

TEST_F(cli_acl, for_look_is_enough_to_see_everything_and_to_change_nothing) {
    make_user({"--for", "look"});
    client worker{{.url = server.url(), .name = "holder", .record = true}};
    auto held = mutex{worker, "x"}.acquire();
    client second{{.url = server.url(), .name = "waiter"}};
    std::jthread waiting{[&] { mutex{second, "x"}.try_acquire_for(1min); }};
    job_client jobs{worker, "shop"};
    jobs.schedule("mail", std::string{"a"});
    jobs.cron("nightly", "mail", std::string{"all"}, {.expression = "30 2 * * *"});
    queue<std::string>{worker, "q"}.enqueue("a");
    client looker{login("looker")};
    monitor from{looker};
    std::atomic<int> seen{0};
    auto watching = from.watch([&](snapshot const& now) { seen += now.trouble.empty() ? 1 : -1'000; });
    EXPECT_EQ(from.active("x").size(), 1U);
    EXPECT_TRUE(eventually([&] { return seen > 0; }));
    EXPECT_TRUE(eventually([&] { return !from.clients().empty(); }, 20s));
    EXPECT_TRUE(eventually([&] { return from.why("x").holds.size() == 1 && from.waiters("x").size() == 1; }));
    from.stale();
    from.statistics();
    from.contention();
    EXPECT_TRUE(eventually([&] { return !from.history().empty(); }, 20s));
    EXPECT_TRUE(from.audit().empty());
    EXPECT_TRUE(eventually([&] { return from.snapshot().objects.size() >= 3; }, 20s)) << "the server was told of them";
    EXPECT_THAT(refusals(), only_about({"publish", "pubsub|channels"})) << "clients are not asked to say what they do, and buses are not listed";
    for (auto const& words : std::vector<std::vector<std::string>>{
             {"ls"}, {"who", "x"}, {"why", "x"}, {"stats"}, {"history", "x"}, {"verify"}, {"jobs", "stats", "shop"}, {"jobs", "crons", "shop"}, {"jobs", "ls", "shop"}, {"queue", "count", "q"}}) {
        auto const shown = run_as_worker(words);
        EXPECT_EQ(shown.code, 0) << words[0] << ": " << shown.text;
    }
    EXPECT_EQ(run_as_worker({"top", "--once"}).code, 0);
    EXPECT_THROW(from.release(from.active("x").front(), {.force = true}), server_error);
    EXPECT_EQ(from.active("x").size(), 1U);
    watching.stop();
    held.release();
}

TEST_F(cli_acl, for_act_is_enough_to_release_and_to_ask_and_is_audited) {
    make_user({"--for", "act"});
    client worker{{.url = server.url(), .name = "holder"}};
    client actor{login("actor")};
    monitor from{actor};
    auto held = mutex{worker, "x"}.acquire();
    auto const permit = counting_semaphore::create(worker, "sem", 1).acquire();
    EXPECT_TRUE(from.ask(from.active("x").front()));
    EXPECT_TRUE(from.release(from.active("x").front(), {.force = true}));
    EXPECT_TRUE(from.release(from.active("sem").front(), {.force = true}));
    ASSERT_EQ(from.audit().size(), 3U);
    EXPECT_EQ(from.audit().front().outcome, "done");
    job_client{worker, "shop"}.schedule("mail", std::string{"a"}, {.delay = 1h});
    job_client jobs{actor, "shop"};
    EXPECT_TRUE(jobs.pause("mail"));
    EXPECT_TRUE(jobs.resume("mail"));
    EXPECT_EQ(jobs.cancel_all({.type = "mail"}), 1);
    EXPECT_EQ(run_as_worker({"jobs", "pause", "shop", "--type", "mail"}).code, 0);
    actor.close();
    EXPECT_THAT(refusals(), only_about({"pubsub|channels"}));
}

TEST_F(cli_acl, with_scan_is_enough_for_ls_scan) {
    make_user({"--for", "look", "--scan"});
    client worker{{.url = server.url()}};
    auto const held = mutex{worker, "x"}.acquire();
    EXPECT_EQ(run_as_worker({"ls", "--scan"}).code, 0);
    EXPECT_THAT(refusals(), IsEmpty());
    make_user({"--for", "look"});
    EXPECT_EQ(run_as_worker({"ls", "--scan"}).code, 77);
}

TEST_F(cli_acl, warns_of_what_reaches_beyond_the_prefix) {
    EXPECT_THAT(run({"acl"}).text, testing::Not(HasSubstr("learns")));
    EXPECT_THAT(run({"acl", "--for", "near-cache"}).text, HasSubstr("# near-cache: the user learns the names of all keys"));
    EXPECT_THAT(run({"acl", "--for", "look", "--scan"}).text, HasSubstr("# scan: the user learns the names of all keys"));
    EXPECT_THAT(run({"acl", "--for", "act"}).text, HasSubstr("# act: the user can write false entries"));
}

TEST_F(cli_acl, refuses_uses_and_prefixes_that_are_none) {
    auto const use = run({"acl", "--for", "everything"});
    EXPECT_EQ(use.code, 64);
    EXPECT_THAT(use.text, HasSubstr("near-cache"));
    EXPECT_EQ(run({"acl", "--scan"}).code, 64);
    EXPECT_EQ(run({"acl", "--for", "locks", "--scan"}).code, 64);
    for (std::string const prefix : {"a ~* +@all x", "a' b", "a\"b", "a\nuser b on nopass +@all"}) {
        auto const seen = run({"--prefix", prefix, "acl", "--file"});
        EXPECT_EQ(seen.code, 64) << seen.text;
        EXPECT_THAT(seen.text, HasSubstr("prefix"));
        EXPECT_THAT(seen.text, testing::Not(HasSubstr("user lockstep"))) << prefix;
    }
}

TEST_F(cli_acl, prints_what_redis_cli_and_an_acl_file_take) {
    auto const file = run({"acl", "--file", "billing"});
    EXPECT_THAT(file.text, HasSubstr("\nuser billing reset resetchannels ~lockstep:{*}:* "));
    EXPECT_THAT(file.text, HasSubstr(" on >PASSWORD\n"));
    EXPECT_THAT(run({"--prefix", "shop", "acl"}).text, HasSubstr("ACL SETUSER lockstep reset resetchannels ~shop:{*}:* "));
    EXPECT_THAT(run({"acl", "--for", "act"}).text, HasSubstr(" '(+rpush %W~lockstep-audit:log)' on >PASSWORD"));
    EXPECT_THAT(finish({program_path("lockstep"), "acl", "--offline", "--cluster"}).text, HasSubstr("+cluster|slots"));
    EXPECT_EQ(run({"acl", "two words"}).code, 64);
    auto const both = run({"acl", "--for", "locks,look", "--for", "near-cache", "billing"});
    EXPECT_THAT(both.text, HasSubstr("ACL SETUSER billing "));
    EXPECT_THAT(both.text, HasSubstr("+client|tracking"));
}

TEST_F(cli_acl, prints_a_line_that_a_server_reads_from_its_acl_file) {
    auto const printed = finish({program_path("lockstep"), "acl", "billing", "--for", "act,messaging", "--file", "--offline", "--prefix", "a*b"}).text;
    auto line = printed.substr(printed.find("user billing"));
    line.erase(line.find(" on >PASSWORD"));
    redis_server other{{.users = {line.substr(5) + " on >secret"}}};
    auto user = other.connect();
    user.must({"AUTH", "billing", "secret"});
    user.must({"RPUSH", "a*b-audit:log", "x"});
    user.must({"HSET", "a*b:{x}:lock", "f", "1"});
    EXPECT_TRUE(user.command({"HSET", "axb:{x}:lock", "f", "1"}).is_error());
}

}  // namespace
}  // namespace lockstep::test
