// For people: who a client is, what it holds and what it waits for.
#include "lease_support.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep::test {
namespace {

TEST(lease_registration, says_who_a_client_is_and_what_it_holds_and_waits_for) {
    redis_server server;
    auto const field = [&](std::string const& id, std::string const& name) {
        return server.must({"HGET", "lockstep:{clients}:" + id, name}).text;
    };
    auto const clients = [&] { return server.must({"ZRANGE", "lockstep:{clients}:index", "0", "-1"}).elements; };
    {
        client a{{.url = server.url(), .name = "billing"}};
        auto const held = mutex(a, "a name%").acquire();
        ASSERT_TRUE(eventually([&] { return clients().size() == 1; }));
        auto const id = clients().front().text;
        EXPECT_EQ(field(id, "name"), "billing");
        EXPECT_EQ(field(id, "pid"), std::to_string(::getpid()));
        EXPECT_NE(field(id, "host"), "");
        EXPECT_NE(field(id, "version"), "");
        EXPECT_EQ(field(id, "holds"), "lock " + std::to_string(held.fence()) + " a name%25\n");
        EXPECT_EQ(field(id, "waits"), "");
        EXPECT_GT(server.must({"PTTL", "lockstep:{clients}:" + id}).integer, 0);

        client b{{.url = server.url(), .name = "waits"}};
        begun next{mutex(b, "a name%").async_acquire()};
        ASSERT_TRUE(eventually([&] { return clients().size() == 2; }));
        auto const all = clients();
        auto const other = all[0].text == id ? all[1].text : all[0].text;
        EXPECT_EQ(field(other, "waits"), "lock a name%25\n");
        EXPECT_EQ(field(other, "waiting"), "1");
        b.close();
        EXPECT_EQ(clients().size(), 1U) << "it has taken its leave";
    }
    EXPECT_EQ(clients().size(), 0U);
}

}  // namespace
}  // namespace lockstep::test
