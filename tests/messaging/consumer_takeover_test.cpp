// What consumers had who are dead is taken over by others: all of it is done, and what kills its processes is given up alone.
#include "consumer_support.hpp"
#include "scripts/all.hpp"
#include "support/child_process.hpp"
#include "support/program_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <thread>

namespace lockstep::test {
namespace {

/// Reads what it says until it has stopped. False: an entry has killed it.
bool stops(child_process& worker, std::function<void(std::string const&)> const& heard) {
    while (auto const line = worker.read_line()) {
        heard(*line);
        if (*line == "stopped") return true;
    }
    auto const end = worker.wait();
    EXPECT_TRUE(end && end->signal == SIGKILL);
    return false;
}

class consumer_crash : public consumer_faults, public testing::WithParamInterface<char const*> {};
INSTANTIATE_TEST_SUITE_P(at, consumer_crash, testing::Values("begin", "end"), [](auto const& of) { return std::string{of.param}; });

TEST_P(consumer_crash, of_a_killed_process_everything_is_done_by_another) {
    for (int i = 0; i < 5; ++i) here.add_value(std::to_string(i));
    child_process dying{{program_path("stream_worker"), server.url(), "name", "g", "500", GetParam()}};
    for (std::optional<std::string> line; line != "halted";) {
        line = dying.read_line();
        ASSERT_TRUE(line);
    }
    dying.kill();
    ASSERT_TRUE(dying.wait());
    EXPECT_GE(pending_at(server), 1);
    consumer one{near, "name", noting(), {.group = "g", .idle_limit = 500ms}};
    EXPECT_TRUE(eventually([&] { return done.different() == 5; }, 20s));
    EXPECT_TRUE(all_is_acknowledged());
}

TEST_F(consumer_faults, an_entry_that_kills_each_process_of_a_name_is_given_up_and_what_was_read_behind_it_is_done) {
    here.create_group("g");
    here.add_value(std::string{"poison"});
    here.add_value(std::string{"harmless"});
    ASSERT_EQ(here.read_group("g", "fixed").size(), 2U) << "the first process of that name, which died";
    int deaths = 0;
    for (; deaths < 5; ++deaths) {
        child_process worker{{program_path("stream_worker"), server.url(), "name", "g", "3600000", "poison", "fixed", "3"}};
        auto const heard = [&](std::string const& line) {
            if (line == "did harmless") worker.close_input();
        };
        if (stops(worker, heard)) break;
    }
    EXPECT_EQ(deaths, 2) << "three with the first one";
    auto const dead = here.dead_letters().range();
    ASSERT_EQ(dead.size(), 1U);
    EXPECT_EQ(dead.at(0).as<std::string>(), "poison");
    EXPECT_THAT(*dead.at(0).find("dead.reason"), testing::HasSubstr("delivered 3 times"));
    EXPECT_EQ(pending_at(server), 0);
}

TEST_F(consumer_faults, a_delivery_after_a_restart_counts_once_however_often_it_is_asked_for) {
    here.create_group("g");
    auto const id = here.add_value(std::string{"x"});
    ASSERT_EQ(here.read_group("g", "fixed").size(), 1U);
    for (int i = 0; i < 2; ++i) {
        auto const said = server.must({"EVAL", std::string{scripts::stream_take.text}, "2", stream_key, stream_key + ":taken:g", "g", "fixed", "1000", "1000", id, "2"});
        EXPECT_EQ(said.elements.at(2).integer, 2);
        EXPECT_EQ(here.pending_entries("g").at(0).deliveries, 2);
    }
    consumer one{near, "name", noting(), {.group = "g", .name = "fixed", .idle_limit = 1h}};
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(deliveries, 3);
}

// The answer was lost, or who took them over is dead and this is the next process of its name: what only stood in line there counts when it begins.
TEST_F(consumer_faults, what_was_taken_over_and_not_heard_of_counts_when_it_begins) {
    here.create_group("g");
    for (auto const* const value : {"first", "second", "third"}) here.add_value(std::string{value});
    ASSERT_EQ(here.read_group("g", "dead").size(), 3U);
    auto const taken = stream_key + ":taken:g";
    server.must({"EVAL", std::string{scripts::stream_recover.text}, "3", stream_key, taken, stream_key + ":returned:g", "g", "fixed", "0", "0-0", "100", "1000", "1000", "0"});
    EXPECT_EQ(here.pending_entries("g").at(2).deliveries, 1);
    hold = true;
    consumer one{near, "name", noting(), {.group = "g", .name = "fixed", .idle_limit = 1h}};
    ASSERT_TRUE(eventually([&] { return one.statistics().running == 1 && one.statistics().waiting == 2; }));
    auto const now = here.pending_entries("g");
    EXPECT_EQ(now.at(0).deliveries, 2) << "it runs";
    EXPECT_EQ(now.at(2).deliveries, 1) << "it only waits here";
    hold = false;
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(deliveries, 2) << "the second one of each";
    EXPECT_EQ(server.must({"EXISTS", taken}).integer, 0);
}

TEST_F(consumer_faults, what_was_taken_over_and_is_gone_leaves_nothing) {
    here.create_group("g");
    auto const id = here.add_value(std::string{"x"});
    ASSERT_EQ(here.read_group("g", "dead").size(), 1U);
    auto const taken = stream_key + ":taken:g";
    auto const recover = [&] {
        server.must({"EVAL", std::string{scripts::stream_recover.text}, "3", stream_key, taken, stream_key + ":returned:g", "g", "another", "0", "0-0", "100", "1000", "1000", "0"});
    };
    recover();
    EXPECT_GT(server.must({"PTTL", taken}).integer, 0);
    here.acknowledge("g", {id});
    recover();
    EXPECT_EQ(server.must({"EXISTS", taken}).integer, 0);
}

class consumer_takeover : public consumer_faults, public testing::WithParamInterface<form> {
protected:
    /// As `noting`, in this form.
    delivery_handler handler() {
        if (GetParam() == form::blocking) return noting();
        return [this](delivery const& what) -> task<void> {
            while (hold) {
                auto asking = near.async_command("PING");
                co_await std::move(asking);
            }
            deliveries = what.deliveries;
            done.note(what.as<std::string>());
        };
    }
};
INSTANTIATE_TEST_SUITE_P(as, consumer_takeover, testing::Values(form::blocking, form::coroutine),
                         [](auto const& of) { return std::string{of.param == form::blocking ? "function" : "coroutine"}; });

TEST_P(consumer_takeover, what_is_taken_over_counts_as_delivered_when_it_begins_and_not_while_it_stands_in_line) {
    here.create_group("g");
    for (auto const* const value : {"first", "second", "third"}) here.add_value(std::string{value});
    ASSERT_EQ(here.read_group("g", "dead").size(), 3U);
    hold = true;
    consumer one{near, "name", handler(), {.group = "g", .idle_limit = 300ms}};
    EXPECT_TRUE(eventually([&] { return one.statistics().running == 1 && one.statistics().waiting == 1; }));
    // Renewed since it came: whatever is counted late was counted.
    EXPECT_TRUE(eventually([&] { return calls_of(server, "xclaim") > 10; }));
    auto const now = here.pending_entries("g");
    ASSERT_EQ(now.size(), 3U);
    EXPECT_EQ(now.at(0).deliveries, 2) << "it runs";
    EXPECT_EQ(now.at(1).consumer, one.name());
    EXPECT_EQ(now.at(1).deliveries, 1) << "it only waits here";
    hold = false;
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(deliveries, 2) << "the second one of each";
    EXPECT_EQ(done.different(), 3U);
    EXPECT_EQ(one.statistics().recovered, 3U);
    EXPECT_EQ(one.statistics().retried, 0U);
}

TEST_P(consumer_takeover, what_was_taken_over_and_then_taken_away_is_not_begun) {
    here.create_group("g");
    for (auto const* const value : {"first", "second"}) here.add_value(std::string{value});
    auto const had = here.read_group("g", "dead");
    ASSERT_EQ(had.size(), 2U);
    hold = true;
    consumer one{near, "name", handler(), {.group = "g", .idle_limit = 2s}};
    ASSERT_TRUE(eventually([&] { return one.statistics().running == 1 && one.statistics().waiting == 1; }));
    ASSERT_EQ(here.claim("g", "another", 0ms, {had.at(1).id}).size(), 1U);
    hold = false;
    one.stop();
    EXPECT_EQ(done.order(), std::vector<std::string>{"first"});
    EXPECT_EQ(here.pending_entries("g", 100, "another").size(), 1U);
}

TEST_F(consumer_faults, of_what_the_dead_had_that_which_is_deleted_is_forgotten_and_the_rest_is_done) {
    here.create_group("g");
    for (auto const* const value : {"first", "second", "third"}) here.add_value(std::string{value});
    auto const had = here.read_group("g", "dead");
    ASSERT_EQ(had.size(), 3U);
    here.remove({had.at(1).id});
    consumer one{near, "name", noting(), {.group = "g", .concurrency = 5, .idle_limit = 200ms}};
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(done.different(), 2U);
    EXPECT_EQ(one.statistics().recovered, 2U);
}

TEST_F(consumer_faults, what_was_taken_over_while_the_server_goes_away_begins_later) {
    here.create_group("g");
    for (auto const* const value : {"first", "second"}) here.add_value(std::string{value});
    ASSERT_EQ(here.read_group("g", "dead").size(), 2U);
    hold = true;
    consumer one{far, "name", noting(), {.group = "g", .idle_limit = 2s}};
    ASSERT_TRUE(eventually([&] { return one.statistics().running == 1 && one.statistics().waiting == 1; }));
    proxy.refuse();
    proxy.cut();
    hold = false;
    ASSERT_TRUE(eventually([&] { return done.times("first") == 1 && one.statistics().waiting == 0; }));
    EXPECT_EQ(done.times("second"), 0) << "nobody has counted it";
    proxy.heal();
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_GE(done.times("second"), 1);
    EXPECT_GE(deliveries, 2);
    EXPECT_EQ(here.dead_letters().length(), 0);
}

// It had asked for as many before it took over others.
TEST_F(consumer_faults, what_is_read_beyond_max_pending_is_given_back_uncounted) {
    here.create_group("g");
    for (int i = 0; i < 5; ++i) here.add_value(std::to_string(i));
    ASSERT_EQ(here.read_group("g", "dead").size(), 5U);
    hold = true;
    consumer one{near, "name", noting(), {.group = "g", .concurrency = 5, .batch = 5, .max_pending = 5, .idle_limit = 1s}};
    ASSERT_TRUE(eventually([&] { return one.statistics().running == 5 && blocked_at(server) == 1; }));
    here.add_all({{{"data", "5"}}, {{"data", "6"}}, {{"data", "7"}}});
    ASSERT_TRUE(eventually([&] { return one.statistics().received == 8; }));
    EXPECT_EQ(one.statistics().waiting + one.statistics().running, 5U);
    std::atomic<int> done_by_other{0};
    consumer const other{near, "name", [&](delivery const& what) {
        EXPECT_EQ(what.deliveries, 1);
        ++done_by_other;
    }, {.group = "g", .idle_limit = 1h}};
    EXPECT_TRUE(eventually([&] { return done_by_other == 3; }));
    hold = false;
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(done.different(), 5U);
}

TEST_F(consumer_faults, what_others_took_over_makes_room_at_once) {
    // Warmed up by quick ones, it reads ahead: of the next ones the first halts, and the line is as full as it may be.
    consumer one{near, "name", noting(), {.group = "g", .batch = 10, .idle_limit = 1'500ms}};
    for (int i = 0; i < 20; ++i) here.add_value(std::to_string(i));
    ASSERT_TRUE(eventually([&] { return one.statistics().acknowledged == 20; }));
    hold = true;
    for (int i = 20; i < 120; ++i) here.add_value(std::to_string(i));
    ASSERT_TRUE(eventually([&] { return one.statistics().waiting > 20 && blocked_at(server) == 0; }));
    auto const given = pending_at(server);
    std::vector<std::string> waiting;
    for (auto const& each : here.pending_entries("g", 200)) waiting.push_back(each.id);
    waiting.erase(waiting.begin());  // it runs
    here.claim("g", "another", 0ms, waiting);
    EXPECT_TRUE(eventually([&] { return pending_at(server) > given; })) << "it reads again, and does not wait for its handler";
    hold = false;
}

/// While it lives, the first `count` pending entries belong to "first" and stay young: no consumer takes them over.
class renewal_by_first {
public:
    renewal_by_first(redis_server& server, int count)
        : thread_{[&server, count](std::stop_token const& stop) {
              std::string const script =
                  "for _, entry in ipairs(redis.call('XPENDING', KEYS[1], 'g', '-', '+', ARGV[1])) do "
                  "redis.call('XCLAIM', KEYS[1], 'g', 'first', 0, entry[1], 'JUSTID') end";
              while (!stop.stop_requested()) server.must({"EVAL", script, "1", stream_key, std::to_string(count)});
          }} {}

private:
    std::jthread thread_;
};

TEST(slow_consumer, an_entry_that_kills_processes_of_any_name_is_given_up_alone) {
    redis_server server;
    client near{server.url()};
    stream entries{near, "name"};
    entries.create_group("g");
    entries.add_value(std::string{"poison"});
    constexpr int harmless = 50;
    for (int i = 0; i < harmless; ++i) entries.add_value("harmless" + std::to_string(i));
    ASSERT_EQ(entries.read_group("g", "first", 100).size(), harmless + 1U) << "the first process, which died of it";
    int deaths = 0;
    std::set<std::string> done;
    for (; deaths < 6; ++deaths) {
        // The next process handles a quick entry before the others are old enough for it: with that behind it, it takes over many at once.
        auto renewal = std::make_unique<renewal_by_first>(server, harmless + 1);
        child_process worker{{program_path("stream_worker"), server.url(), "name", "g", "400", "poison", "name" + std::to_string(deaths), "5"}};
        entries.add_value(std::string{"quick"});
        auto const heard = [&](std::string const& line) {
            if (line == "did quick") renewal.reset();
            if (line.starts_with("did harmless")) done.insert(line);
            if (done.size() == harmless) worker.close_input();
        };
        if (stops(worker, heard)) break;
        auto const left = entries.pending_entries("g", 100);
        ASSERT_GE(left.size(), harmless + 1U);
        EXPECT_EQ(left.at(0).deliveries, deaths + 2);
        EXPECT_NE(left.at(1).consumer, "first") << "it took over more than the one that killed it";
        EXPECT_EQ(left.at(harmless).deliveries, 1) << "it stood in line at most";
    }
    EXPECT_EQ(deaths, 4) << "five with the first one";
    EXPECT_EQ(done.size(), static_cast<std::size_t>(harmless));
    auto const dead = entries.dead_letters().range();
    ASSERT_EQ(dead.size(), 1U);
    EXPECT_EQ(dead.at(0).as<std::string>(), "poison");
    EXPECT_THAT(*dead.at(0).find("dead.reason"), testing::HasSubstr("delivered 5 times"));
    EXPECT_TRUE(eventually([&] { return pending_at(server) == 0; }));
}

}  // namespace
}  // namespace lockstep::test
