// Each fault of the proxy, seen from both sides: a proxy that cuts nothing would make any client look robust.
#include "support/fault_proxy.hpp"

#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

// Over TCP and over a unix socket.
class support_fault_proxy : public testing::TestWithParam<bool> {
protected:
    redis_server server{{.tcp = GetParam()}};
    fault_proxy proxy{server.address()};
    raw_client client{proxy.address()};

    void SetUp() override { client.must({"PING"}); }

    bool cut(raw_client& of) {
        try {
            of.command({"PING"});
            return false;
        } catch (std::exception const&) {
            return true;
        }
    }
};

TEST_P(support_fault_proxy, passes_everything_on_when_nothing_is_wrong) {
    std::string const large(10'000'000, 'x');
    EXPECT_EQ(client.command({"SET", "key", large}).text, "OK");
    EXPECT_TRUE(client.command({"GET", "key"}).text == large);
    auto const seen = proxy.counters();
    EXPECT_EQ(seen.accepted, 1U);
    EXPECT_EQ(seen.open, 1U);
    EXPECT_GT(seen.bytes_to_server, large.size());
    EXPECT_GT(seen.bytes_to_client, large.size());
    EXPECT_EQ(proxy.url().substr(0, 5), GetParam() ? "redis" : "unix:");
}

TEST_P(support_fault_proxy, tells_each_side_when_the_other_is_gone) {
    {
        raw_client other{proxy.address()};
        other.command({"PING"});
        EXPECT_EQ(server.connections(), 2);
    }
    EXPECT_TRUE(eventually([&] { return server.connections() == 1 && proxy.counters().open == 1; }));
    server.kill9();
    EXPECT_TRUE(cut(client));
    raw_client late{proxy.address()};
    EXPECT_TRUE(cut(late)) << "nobody behind the proxy";
    server.restart();
    EXPECT_EQ(raw_client{proxy.address()}.command({"PING"}).text, "PONG");
}

TEST_P(support_fault_proxy, delays_one_direction_or_both) {
    auto const time = [&] {
        auto const start = now_ms();
        client.command({"PING"});
        return now_ms() - start;
    };
    proxy.delay(60ms);
    EXPECT_GE(time(), 119);
    proxy.delay(0ms, direction::to_server);
    EXPECT_GE(time(), 59);
    proxy.delay(5s);
    client.send({"PING"});
    auto const start = now_ms();
    proxy.heal();
    EXPECT_EQ(client.read().text, "PONG");
    EXPECT_LT(now_ms() - start, 4000) << "what was on its way arrives when the fault ends";
}

TEST_P(support_fault_proxy, cuts_all_connections_and_takes_new_ones) {
    raw_client other{proxy.address()};
    other.command({"PING"});
    proxy.cut();
    EXPECT_TRUE(cut(client));
    EXPECT_TRUE(cut(other));
    EXPECT_EQ(raw_client{proxy.address()}.command({"PING"}).text, "PONG");
}

TEST_P(support_fault_proxy, cuts_in_the_middle_of_a_reply_or_a_request) {
    server.must({"SET", "key", "0123456789"});
    proxy.cut_after(9);
    EXPECT_THROW(client.command({"GET", "key"}), std::exception);
    EXPECT_EQ(proxy.counters().bytes_to_client, 7U + 9U);  // +PONG before
    raw_client again{proxy.address()};
    EXPECT_EQ(again.command({"GET", "key"}).text, "0123456789") << "once only";
    proxy.cut_after(10, direction::to_server);
    EXPECT_THROW(again.command({"SET", "key", "changed"}), std::exception);
    EXPECT_EQ(server.must({"GET", "key"}).text, "0123456789");
    EXPECT_EQ(proxy.counters().struck, 2U);
}

TEST_P(support_fault_proxy, refuses_new_connections_and_keeps_the_old) {
    proxy.refuse();
    EXPECT_THROW(raw_client{proxy.address()}, std::system_error);
    EXPECT_EQ(client.command({"PING"}).text, "PONG");
    proxy.heal();
    EXPECT_EQ(raw_client{proxy.address()}.command({"PING"}).text, "PONG");
}

TEST_P(support_fault_proxy, swallows_everything_and_cuts_the_torn_connections_afterwards) {
    raw_client idle{proxy.address()};
    idle.command({"PING"});
    raw_client patient{proxy.address(), 60ms};
    patient.command({"PING"});
    proxy.half_open();
    EXPECT_THROW(patient.command({"INCR", "counter"}), std::exception) << "a timeout";
    EXPECT_FALSE(patient.closed_by_server());
    server.must({"CLIENT", "KILL", "TYPE", "normal"});
    EXPECT_FALSE(idle.closed_by_server()) << "the end of a connection is swallowed too";
    raw_client fresh{proxy.address(), 60ms};
    EXPECT_THROW(fresh.command({"PING"}), std::exception);
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return patient.closed_by_server() && fresh.closed_by_server(); }));
    EXPECT_TRUE(server.must({"GET", "counter"}).is_nil()) << "the request never arrived";
    EXPECT_EQ(raw_client{proxy.address()}.command({"PING"}).text, "PONG");
}

TEST_P(support_fault_proxy, swallows_replies_only_when_told_so) {
    raw_client patient{proxy.address(), 60ms};
    proxy.half_open(direction::to_client);
    EXPECT_THROW(patient.command({"INCR", "counter"}), std::exception);
    EXPECT_EQ(server.must({"GET", "counter"}).text, "1");
}

TEST_P(support_fault_proxy, loses_the_reply_of_a_request_that_was_carried_out) {
    proxy.drop_replies(2);
    EXPECT_THROW(client.command({"INCR", "counter"}), std::exception);
    EXPECT_EQ(server.must({"GET", "counter"}).text, "1");
    raw_client second{proxy.address()};
    EXPECT_THROW(second.command({"INCR", "counter"}), std::exception);
    EXPECT_EQ(raw_client{proxy.address()}.command({"INCR", "counter"}).integer, 3);
    EXPECT_EQ(proxy.counters().struck, 2U);
}

TEST_P(support_fault_proxy, corrupts_the_next_bytes_once) {
    proxy.corrupt();
    EXPECT_THROW(client.command({"PING"}), std::exception);
    EXPECT_EQ(raw_client{proxy.address()}.command({"PING"}).text, "PONG");
    proxy.corrupt(direction::to_server);
    raw_client second{proxy.address()};
    EXPECT_THROW(second.must({"PING"}), std::exception);
    EXPECT_EQ(proxy.counters().struck, 2U);
}

TEST_P(support_fault_proxy, throttles) {
    server.must({"SET", "key", std::string(2000, 'x')});
    proxy.throttle(10'000, direction::to_client);
    auto const start = now_ms();
    EXPECT_EQ(client.command({"GET", "key"}).text.size(), 2000U);
    EXPECT_GE(now_ms() - start, 170);
}

TEST_P(support_fault_proxy, holds_bytes_back_until_it_heals) {
    raw_client patient{proxy.address(), 60ms};
    proxy.hold(direction::to_server);
    EXPECT_THROW(patient.command({"INCR", "counter"}), std::exception);
    EXPECT_TRUE(server.must({"GET", "counter"}).is_nil());
    proxy.heal();
    EXPECT_EQ(patient.read().integer, 1);
}

INSTANTIATE_TEST_SUITE_P(over, support_fault_proxy, testing::Values(true, false),
                         [](auto const& about) { return about.param ? "tcp" : "unix_socket"; });

}  // namespace
}  // namespace lockstep::test
