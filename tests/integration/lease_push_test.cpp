// What the server tells a client of its holds, at times at which that is not expected.
#include <lockstep/trace.hpp>

#include "lease_support.hpp"
#include "support/eventually.hpp"

#include <atomic>
#include <string>

namespace lockstep::test {
namespace {

class lease_pushes : public testing::Test {
protected:
    long listeners(std::string const& channel) { return server.must({"PUBSUB", "NUMSUB", channel}).elements.at(1).integer; }
    static std::string client_of(std::string const& hold) { return hold.substr(0, hold.find('.')); }

    redis_server server;
};

// In a Cluster they come by different connections. Here both are held back until they are in that order.
TEST_F(lease_pushes, that_it_was_ended_by_force_may_come_before_the_grant) {
    client by{server.url()};
    mutex of{by, "name"};
    auto first = of.acquire();
    auto const hold = held_at(server, "name");
    auto const channel = "lockstep:wake:" + client_of(hold);
    ASSERT_TRUE(eventually([&] { return listeners(channel) == 1; }));
    first.release();
    auto const number = std::stoull(hold.substr(hold.find('.') + 1));
    auto const next = client_of(hold) + '.' + std::to_string(number + (1U << 24U));  // hub.cpp: the same place in its table

    auto other = server.connect();
    server.must({"CLIENT", "PAUSE", "60000", "WRITE"});
    other.send({"PUBLISH", channel, "!" + next});
    ASSERT_TRUE(eventually([&] { return server.info("blocked_clients") == "1"; }));
    begun again{of.async_acquire()};
    ASSERT_TRUE(eventually([&] { return server.info("blocked_clients") == "2"; }));
    server.must({"CLIENT", "UNPAUSE"});
    auto const got = again.get();
    EXPECT_TRUE(got.valid());
    EXPECT_NE(held_at(server, "name"), next) << "that one was ended";
    EXPECT_THAT(held_at(server, "name"), testing::StartsWith(client_of(hold)));
}

TEST_F(lease_pushes, come_once_though_they_were_forbidden_for_a_while) {
    server.must({"ACL", "SETUSER", "app", "on", ">secret", "~*", "resetchannels", "+@all"});
    std::atomic<int> asked{0};
    {
        client by{{.url = server.url("app", "secret"), .trace = [&](trace_record const& one) { asked += one.what == trace_what::asked ? 1 : 0; }}};
        mutex of{by, "name"};
        for (int i = 0; i < 3; ++i) of.acquire().release();  // each of them would listen
        ASSERT_TRUE(eventually([&] { return errors_of(server, "NOPERM") > 0; }));
        for (int i = 0; i < 3; ++i) of.acquire().release();
        server.must({"ACL", "SETUSER", "app", "allchannels"});
        server.must({"CLIENT", "KILL", "USER", "app"});
        auto const held = of.acquire();
        auto const hold = held_at(server, "name");
        auto const channel = "lockstep:wake:" + client_of(hold);
        ASSERT_TRUE(eventually([&] { return listeners(channel) == 1; })) << "asked for with each connection";
        server.must({"PUBLISH", channel, "~" + hold});
        EXPECT_TRUE(eventually([&] { return asked > 0; }));
        EXPECT_TRUE(held.valid());
    }
    EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace lockstep::test
