// What `lockstep acl` prints is enough for everything, and for nothing else.

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
        std::vector<std::string> setting{"ACL", "SETUSER", "worker", "on", ">secret"};
        for (auto const& rule : printed.at("rules").as_array()) setting.emplace_back(rule.as_string().c_str());
        server.must(setting);
    }
    client_options login(std::string name = "w") const {
        return {.url = server.url(), .user = "worker", .password = "secret", .name = std::move(name)};
    }
    // What the server refused.
    std::string refusals() {
        std::string all;
        for (auto const& entry : server.must({"ACL", "LOG"}).elements) all += describe(entry) + "\n";
        return all;
    }
};

// A second client waits while the first holds: queues, wake-ups and claims are used, too.
template <class Hold>
void hand_over(client& one, client& two, Hold const& hold) {
    auto held = hold(one);
    auto const before = two.statistics().requests;
    std::jthread waiting{[&] { auto const mine = hold(two); }};
    EXPECT_TRUE(eventually([&] { return two.statistics().requests > before; }));
    held.release();
}

TEST_F(cli_acl, is_enough_for_every_primitive) {
    make_user({});
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
    // Registration and statistics, which nobody waits for.
    EXPECT_TRUE(eventually([&] { return server.must({"EXISTS", "lockstep:{clients}:index"}).integer == 1; }));
    one.close();
    two.close();
    EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(cli_acl, is_enough_for_messages_and_state) {
    make_user({});
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
        shared_value<std::string> value{one, "v"};
        auto const watching = value.watch([](auto const&) {});
        value.set("x", {.ttl = 10s, .fence = 1});
        near_cache<std::string> cache{one};
        EXPECT_EQ(cache.get("v")->value, "x");
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

TEST_F(cli_acl, is_enough_for_the_command) {
    make_user({});
    auto const secret = home.file("password");
    std::ofstream{secret} << "secret\n";
    for (auto const& words : std::vector<std::vector<std::string>>{{"run", "x", "--", "true"}, {"run", "-s", "x", "--", "true"}, {"run", "-c", "2", "x", "--", "true"},
                                                                  {"event", "set", "e"}, {"event", "wait", "e"}, {"sem", "show", "x"}, {"barrier", "b", "-p", "1"}}) {
        auto line = words;
        line.insert(line.begin(), {"--user", "worker", "--password-file", secret});
        auto const seen = run(line);
        EXPECT_EQ(seen.code, 0) << words.front() << ": " << seen.text;
    }
    EXPECT_THAT(refusals(), IsEmpty());
    auto const looking = run({"--user", "worker", "--password-file", secret, "ls"});
    EXPECT_EQ(looking.code, 77);
    EXPECT_THAT(looking.text, HasSubstr("lockstep acl"));
}

TEST_F(cli_acl, is_enough_for_monitors_if_told_so) {
    make_user({"--monitor"});
    client worker{login("holder")};
    client looker{login("looker")};
    monitor from{looker};
    auto held = mutex{worker, "x"}.acquire();
    std::atomic<int> seen{0};
    auto const watching = from.watch([&](snapshot const&) { ++seen; });
    EXPECT_EQ(from.active("x").size(), 1U);
    EXPECT_TRUE(eventually([&] { return seen > 0; }));
    EXPECT_FALSE(from.why("x").holds.empty());
    from.waiters();
    from.stale();
    from.clients();
    from.statistics();
    from.contention();
    from.history();
    EXPECT_TRUE(from.ask(from.active("x").front()));
    EXPECT_TRUE(from.release(from.active("x").front(), {.force = true}));
    EXPECT_FALSE(from.audit().empty());
    EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(cli_acl, allows_nothing_else) {
    make_user({"--monitor"});
    server.must({"SET", "foreign", "1"});
    server.must({"HSET", "lockstepping:{x}:lock", "a", "1"});
    auto user = server.connect();
    user.must({"AUTH", "worker", "secret"});
    for (auto const& words : std::vector<std::vector<std::string>>{
             {"GET", "foreign"}, {"SET", "foreign", "2"}, {"APPEND", "lockstep:{x}:lock", "2"}, {"DEL", "foreign"}, {"HGETALL", "lockstepping:{x}:lock"}, {"FLUSHALL"}, {"FLUSHDB"},
             {"CONFIG", "GET", "*"}, {"CONFIG", "SET", "maxmemory", "1"}, {"ACL", "LIST"}, {"ACL", "WHOAMI"}, {"KEYS", "*"}, {"CLIENT", "KILL", "TYPE", "normal"}, {"CLIENT", "LIST"},
             {"SHUTDOWN"}, {"DEBUG", "SLEEP", "0"}, {"SCRIPT", "FLUSH"}, {"FUNCTION", "LIST"}, {"REPLICAOF", "NO", "ONE"}, {"MONITOR"}, {"SAVE"}, {"SUBSCRIBE", "foreign"},
             {"PUBLISH", "foreign", "x"}, {"PSUBSCRIBE", "*"}, {"EVAL", "return redis.call('GET', KEYS[1])", "1", "foreign"},
             {"EVAL", "return redis.call('FLUSHALL')", "0"}, {"EVAL", "return redis.call('GET', 'foreign')", "0"}}) {
        auto const said = user.command(words);
        EXPECT_TRUE(said.is_error()) << words[0] << ' ' << (words.size() > 1 ? words[1] : "") << ": " << describe(said);
        EXPECT_THAT(said.text, testing::AnyOf(HasSubstr("NOPERM"), HasSubstr("permissions"), HasSubstr("The user executing the script can't"))) << words[0];
    }
    EXPECT_EQ(server.must({"GET", "foreign"}).text, "1");
}

TEST_F(cli_acl, prints_what_redis_cli_and_an_acl_file_take) {
    auto const file = run({"acl", "--file", "billing"});
    EXPECT_THAT(file.text, HasSubstr("\nuser billing on >PASSWORD resetkeys resetchannels -@all ~lockstep:{*}:* "));
    EXPECT_THAT(run({"--prefix", "shop", "acl"}).text, HasSubstr("ACL SETUSER lockstep on >PASSWORD resetkeys resetchannels -@all ~shop:{*}:* "));
    EXPECT_THAT(finish({program_path("lockstep"), "acl", "--offline", "--cluster"}).text, HasSubstr("+cluster|slots"));
    EXPECT_EQ(run({"acl", "two words"}).code, 64);
}

}  // namespace
}  // namespace lockstep::test
