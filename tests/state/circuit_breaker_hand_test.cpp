// Circuit breakers that are opened and closed by hand, and those that hear what is none of theirs.
#include <lockstep/circuit_breaker.hpp>

#include "state_support.hpp"
#include "support/forms.hpp"
#include "support/log_lines.hpp"

#include <stdexcept>

namespace lockstep::test {
namespace {

std::string const key = "lockstep:{name}:breaker";

void fail(circuit_breaker& which) {
    EXPECT_THROW(which.execute([] { throw std::logic_error("it does not work"); }), std::logic_error);
}

class circuit_breaker_by_hand : public testing::Test {
protected:
    static circuit_breaker_options plan() {
        return {.failure_threshold = 5, .sampling = 10min, .recovery_timeout = 10min, .report_interval = 1min, .server_timeout = 40s};
    }
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    circuit_breaker here{near, "name", plan()};
    circuit_breaker there{far, "name", plan()};
};

TEST_F(circuit_breaker_by_hand, opened_once_though_the_reply_is_lost_is_not_opened_again_after_another_closed_it) {
    there.close();  // the server knows the script
    proxy.hold(direction::to_client);
    begun opening{as_true(there.async_open())};
    ASSERT_TRUE(eventually([&] { return here.look().held; }));
    here.close();
    proxy.cut();
    proxy.heal();
    EXPECT_TRUE(opening.get());
    EXPECT_EQ(here.look().state, circuit::closed);
    EXPECT_EQ(there.state().state, circuit::closed) << "as it is, not as it was";
    // The same with the parts exchanged.
    here.open();
    proxy.hold(direction::to_client);
    begun closing{as_true(there.async_close())};
    ASSERT_TRUE(eventually([&] { return here.look().state == circuit::closed; }));
    here.open();
    proxy.cut();
    proxy.heal();
    EXPECT_TRUE(closing.get());
    EXPECT_TRUE(here.look().held);
}

TEST_F(circuit_breaker_by_hand, given_up_says_so_and_does_not_come_late) {
    client brief{{.url = proxy.url(), .command_timeout = 300ms}};
    circuit_breaker hurried{brief, "name", plan()};
    hurried.close();
    auto const version = here.look().version;
    proxy.hold(direction::to_server);
    EXPECT_EQ(ending_of([&] { hurried.open(); }).reason, errc::indeterminate);
    auto const until = now_ms() + 50;
    EXPECT_TRUE(eventually([&] { return now_ms() > until; }));
    proxy.heal();
    EXPECT_EQ(hurried.look().state, circuit::closed);
    EXPECT_EQ(here.look().version, version);
}

TEST_F(circuit_breaker_by_hand, held_open_it_stays_so_without_a_server) {
    client brief{{.url = proxy.url(), .command_timeout = 300ms}};
    auto how = plan();
    how.server_timeout = 50ms;
    how.recovery_timeout = 1ms;
    circuit_breaker alone{brief, "name", how};
    here.open();
    ASSERT_TRUE(eventually([&] { return alone.look().held; }));
    proxy.refuse();
    proxy.cut();
    ASSERT_TRUE(eventually([&] { return alone.look().local; }));
    auto const until = now_ms() + 20;
    ASSERT_TRUE(eventually([&] { return now_ms() > until; })) << "its recovery is over";
    EXPECT_TRUE(alone.state().held);
    EXPECT_FALSE(alone.try_allow());
    EXPECT_FALSE(sync_wait(alone.async_try_allow()));
    EXPECT_EQ(ending_of([&] { alone.close(); }).reason, errc::unavailable);
    EXPECT_TRUE(alone.state().held) << "what can't be said to all changes nothing here";
    here.close();
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return alone.try_allow().has_value() && !alone.state().local; }));
}

TEST_F(circuit_breaker_by_hand, closed_before_it_ever_changed_forgets_what_was_not_reported) {
    for (int i = 0; i < 4; ++i) fail(here);
    ASSERT_EQ(here.state().version, 0U);
    ASSERT_FALSE(here.state().local);
    here.close();
    fail(here);
    here.flush();
    EXPECT_EQ(here.look().state, circuit::closed) << "one failure since, not five";
    for (int i = 0; i < 4; ++i) fail(here);
    here.flush();
    EXPECT_EQ(here.look().state, circuit::open);
}

TEST_F(circuit_breaker_by_hand, passes_over_messages_that_are_none_of_its_own) {
    told<circuit> heard;
    auto how = plan();
    how.report_interval = 20ms;
    how.server_timeout = 200ms;
    how.on_change = [&](circuit_change const& change) { heard.add(change.to); };
    circuit_breaker listening{near, "name", how};
    here.open();
    ASSERT_TRUE(eventually([&] { return listening.look().held && server.must({"PUBSUB", "NUMSUB", key}).elements.at(1).integer > 0; }));
    auto const later = [&](int by) { return std::to_string(here.look().version + static_cast<unsigned>(by)); };
    for (auto const& one : std::vector<std::string>{"", "closed", "ajar " + later(1) + " 0 0 0", "closed -1 0 0 0", "closed x 0 0 0",
                                                    "closed " + later(2) + " 0 9223372036854775807 0"}) {
        server.must({"PUBLISH", key, one});
    }
    server.must({"PUBLISH", key, "half_open " + later(3) + " 0 0 0"});
    ASSERT_TRUE(eventually([&] { return heard.last() == circuit::half_open; }));
    EXPECT_THAT(heard.all(), testing::ElementsAre(circuit::open, circuit::half_open));
    // What is not open is held by nobody: else it would be, without a server, once it opened by its own counts.
    server.must({"PUBLISH", key, "closed " + later(4) + " 0 -1 0"});
    ASSERT_TRUE(eventually([&] { return heard.last() == circuit::closed; }));
    server.kill9();
    ASSERT_TRUE(eventually([&] {
        if (listening.state().state != circuit::open) fail(listening);
        return listening.state().local && listening.state().state == circuit::open;
    }));
    EXPECT_FALSE(listening.state().held);
}

TEST(circuit_breaker_refused, for_good_says_so_once) {
    log_lines lines;
    redis_server server;
    client by{server.url()};
    server.must({"SET", key, "mine"});
    circuit_breaker breaker{by, "name", {.failure_threshold = 5, .report_interval = 10ms}};
    fail(breaker);
    EXPECT_TRUE(breaker.state().local);
    ASSERT_TRUE(eventually([&] { return lines.count(log_level::error, "WRONGTYPE") > 0; }));
    auto const before = errors_of(server, "WRONGTYPE");
    ASSERT_TRUE(eventually([&] { return errors_of(server, "WRONGTYPE") >= before + 5; })) << "it goes on asking";
    EXPECT_EQ(lines.count("WRONGTYPE"), 1U);
    EXPECT_EQ(lines.count(log_level::error, "'name'"), 1U) << "whose it is";
}

}  // namespace
}  // namespace lockstep::test
