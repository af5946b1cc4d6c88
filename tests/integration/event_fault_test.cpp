// Signals whose waiters die or sleep, whose replies are lost, and on servers that restart, forget their scripts or whose clock jumps.
#include <lockstep/event.hpp>

#include "event_load.hpp"
#include "lease_fault_support.hpp"
#include "support/clock_file.hpp"
#include "support/fault_proxy.hpp"

namespace lockstep::test {
namespace {

class event_faults : public testing::Test {
protected:
    /// The process waits in this place of the queue.
    void queue(holder_process& who, int position) {
        who.begin("acquire");
        ASSERT_TRUE(eventually([&] { return written.waiting() == position; }));
    }
    /// How many sessions the server remembers.
    int sessions() {
        int count = 0;
        for (auto const& field : server.must({"HKEYS", "lockstep:{name}:event"}).elements) count += field.text[0] == 'a' ? 1 : 0;
        return count;
    }
    std::chrono::milliseconds since(std::int64_t begin) { return std::chrono::milliseconds{now_ms() - begin}; }

    clock_file clock;
    redis_server server{{.config = {"appendfsync always"}, .append_only = true, .clock = &clock}};
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    event here{near, "name"};
    event there{far, "name"};
    record written{server, "lockstep:{name}:event"};
};

TEST_F(event_faults, a_signal_goes_to_the_next_at_once_when_its_waiter_was_killed) {
    event patient{near, "name", {.claim_window = 20s}};
    holder_process dead{"event", server.url(), 30s, 20s};
    queue(dead, 1);
    begun next{as_true(patient.async_wait())};
    ASSERT_TRUE(eventually([&] { return written.waiting() == 2; }));
    dead.process.kill();
    ASSERT_TRUE(dead.process.wait());
    ASSERT_TRUE(eventually([&] { return connections_named(server, "holder") == 0; }));
    auto const begin = now_ms();
    patient.set();
    EXPECT_TRUE(next.get());
    EXPECT_LE(since(begin), 50ms + load_slack) << "and not after the claim window";
    EXPECT_FALSE(here.is_set());
    EXPECT_EQ(written.waiting(), 0);
}

TEST_F(event_faults, a_signal_goes_on_after_the_claim_window_when_its_waiter_does_not_take_it) {
    for (bool const killed : {true, false}) {
        SCOPED_TRACE(killed ? "killed" : "stopped");
        holder_process chosen{"event", server.url()};
        queue(chosen, 1);
        begun next{as_true(here.async_wait())};
        ASSERT_TRUE(eventually([&] { return written.waiting() == 2; }));
        chosen.process.stop();
        auto const begin = now_ms();
        there.set();
        ASSERT_TRUE(written.offered());
        if (killed) chosen.process.kill();
        EXPECT_TRUE(next.get());
        EXPECT_GE(since(begin), 499ms) << "it had its chance";
        EXPECT_LE(since(begin), 500ms + 50ms + load_slack);
        EXPECT_FALSE(here.is_set()) << "taken once";
        if (killed) continue;
        chosen.process.cont();
        ASSERT_TRUE(eventually([&] { return written.waiting() == 1; })) << "it stands in line again";
        here.set();
        EXPECT_EQ(chosen.answer(), "held 0");
    }
    EXPECT_EQ(here.clear(), 0);
}

// The end of the offer is an hour away by the new time when the one who set it looks. Who waits looks once per ttl.
TEST_F(event_faults, a_signal_goes_on_though_the_clock_is_set_back_when_its_waiter_is_dead) {
    event brief{near, "name", {.ttl = 1s}};
    holder_process chosen{"event", server.url()};
    queue(chosen, 1);
    begun next{as_true(brief.async_wait())};
    ASSERT_TRUE(eventually([&] { return written.waiting() == 2; }));
    chosen.process.stop();
    there.set();
    ASSERT_TRUE(written.offered());
    chosen.process.kill();
    clock.step(-1h);
    auto const begin = now_ms();
    EXPECT_TRUE(next.get());
    EXPECT_LE(since(begin), 1s + 500ms + 200ms + load_slack);
    EXPECT_FALSE(here.is_set());
}

// Who set it can't look whether it was taken: it is gone. It tells the second in line.
TEST_F(event_faults, a_signal_goes_on_after_the_claim_window_though_the_client_that_set_it_closed) {
    holder_process chosen{"event", server.url()};
    queue(chosen, 1);
    begun next{as_true(here.async_wait())};
    ASSERT_TRUE(eventually([&] { return written.waiting() == 2; }));
    chosen.process.stop();
    auto const begin = now_ms();
    there.set();
    far.close();
    chosen.process.kill();
    EXPECT_TRUE(next.get());
    EXPECT_LE(since(begin), 500ms + 50ms + load_slack);
    EXPECT_FALSE(here.is_set());
}

TEST_F(event_faults, a_signal_counts_once_though_its_reply_is_lost) {
    EXPECT_FALSE(there.is_set());
    for (int i = 0; i < 5; ++i) {
        proxy.drop_replies(1);
        there.set();
    }
    EXPECT_GE(proxy.counters().struck, 5U);
    EXPECT_EQ(here.clear(), 5);
}

TEST_F(event_faults, each_of_thousands_of_signals_counts_once_though_all_replies_are_lost) {
    there.set();  // the server knows the script
    EXPECT_EQ(here.clear(), 1);
    proxy.hold(direction::to_client);
    std::vector<begun<bool>> setting;
    for (int i = 0; i < 3000; ++i) setting.emplace_back(as_true(there.async_set()));
    ASSERT_TRUE(eventually([&] { return pool_numbers(server, "lockstep:{name}:event").count == 3000; }));
    auto const before = calls_of(server, "evalsha") + calls_of(server, "eval");
    proxy.cut();
    proxy.heal();
    for (auto const& one : setting) EXPECT_TRUE(one.get());
    EXPECT_GE(calls_of(server, "evalsha") + calls_of(server, "eval"), before + 3000) << "all were sent again";
    EXPECT_EQ(here.clear(), 3000);
}

TEST_F(event_faults, signals_one_after_the_other_are_one_session) {
    for (int i = 0; i < 20; ++i) here.set();
    EXPECT_EQ(sessions(), 1);
    for (int times = 0; times < 3; ++times) {
        std::vector<begun<bool>> setting;
        for (int i = 0; i < 10; ++i) setting.emplace_back(as_true(here.async_set()));
        for (auto const& one : setting) EXPECT_TRUE(one.get());
    }
    EXPECT_LE(sessions(), 10);
    EXPECT_EQ(here.clear(), 50);
}

TEST_F(event_faults, a_signal_that_got_no_answer_takes_its_session_along) {
    client brief{{.url = proxy.url(), .command_timeout = 300ms}};
    event through{brief, "name"};
    through.set();  // the server knows the script
    EXPECT_EQ(sessions(), 1);
    proxy.hold(direction::to_client);
    EXPECT_THROW(through.set(), indeterminate_error);
    proxy.heal();
    EXPECT_EQ(sessions(), 1) << "which it had used before";
    through.set();
    EXPECT_EQ(sessions(), 2) << "its next one has another";
    EXPECT_EQ(here.clear(), 3);
}

TEST_F(event_faults, a_signal_is_taken_once_though_the_waiters_reply_is_lost) {
    EXPECT_FALSE(there.is_set());
    here.set();
    here.set();
    proxy.drop_replies(1);
    EXPECT_TRUE(there.wait_for(20s));
    EXPECT_EQ(here.clear(), 1) << "one was taken, not two";
}

TEST_F(event_faults, a_waiter_is_woken_by_what_was_set_while_it_was_cut_off) {
    EXPECT_FALSE(here.is_set());
    begun waiting{as_true(there.async_wait())};
    ASSERT_TRUE(eventually([&] { return written.waiting() == 1; }));
    proxy.refuse();
    proxy.cut();
    ASSERT_TRUE(eventually([&] { return server.connections() == 1; }));
    here.set();
    EXPECT_FALSE(waiting.done());
    proxy.heal();
    EXPECT_TRUE(waiting.get());
    EXPECT_EQ(here.clear(), 0);
}

class event_under_load : public event_faults {};

TEST_F(event_under_load, counts_every_signal_while_connections_break) {
    std::vector<std::unique_ptr<fault_proxy>> ways;
    std::vector<std::string> urls;
    for (int i = 0; i < 4; ++i) {
        ways.push_back(std::make_unique<fault_proxy>(server.address()));
        urls.push_back(ways.back()->url());
    }
    event_load load{urls, {}};
    ASSERT_TRUE(load.wait_for_more());
    for (std::size_t i = 0; i < 60; ++i) {
        auto& way = *ways.at(i % 4);
        if (i / 4 % 2 == 0) {
            way.cut();
        } else {
            way.drop_replies(1);
        }
        ASSERT_TRUE(load.wait_for_more(5));
    }
    EXPECT_THAT(load.finish(near), testing::IsEmpty());
}

TEST_F(event_under_load, counts_every_signal_though_the_server_forgets_its_scripts_and_restarts) {
    event_load load{server.url()};
    for (int i = 0; i < 50; ++i) {
        server.must({"SCRIPT", "FLUSH"});
        ASSERT_TRUE(load.wait_for_more(3));
    }
    EXPECT_GT(errors_of(server, "NOSCRIPT"), 10);
    for (int i = 0; i < 3; ++i) {
        server.restart();
        ASSERT_TRUE(load.wait_for_more());
    }
    EXPECT_THAT(load.finish(near), testing::IsEmpty());
}

TEST_F(event_under_load, counts_every_signal_though_the_clock_jumps) {
    event_load load{server.url(), {.lease = {.ttl = 1s}}};
    ASSERT_TRUE(load.wait_for_more());
    for (auto const step : {5s, -20s, 3s, -1s, 30s, -40s, 1s, -1s}) {
        clock.step(step);
        ASSERT_TRUE(load.wait_for_more());
    }
    EXPECT_THAT(load.finish(near), testing::IsEmpty());
}

}  // namespace
}  // namespace lockstep::test
