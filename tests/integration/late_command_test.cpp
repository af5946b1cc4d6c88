// What a connection that broke carried, and the network delivers after its repetition and after later commands: it changes nothing.
#include "lease_fault_support.hpp"
#include "support/fault_proxy.hpp"

#include <lockstep/event.hpp>

#include <thread>

namespace lockstep::test {
namespace {

class late_command : public testing::Test {
protected:
    /// Runs it while its first copy is kept back and its connection breaks: it is sent again and answered.
    template <class Call>
    void send_twice(Call call) {
        proxy.hold(direction::to_server);
        std::jthread const cutter{[this] {
            EXPECT_TRUE(eventually([this] { return proxy.held_back() > 0; }));
            proxy.strand();
            proxy.heal();
        }};
        call();
    }

    redis_server server;
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    client near{server.url()};
};

TEST_F(late_command, does_not_make_a_reader_of_a_writer) {
    shared_mutex of{far, "name"};
    shared_mutex other{near, "name"};
    auto held = of.acquire();
    send_twice([&] { held = of.downgrade(std::move(held)); });
    auto upgraded = of.try_upgrade(std::move(held));
    ASSERT_TRUE(upgraded.done);
    proxy.deliver_stranded();
    EXPECT_FALSE(other.try_acquire_shared());
    EXPECT_TRUE(upgraded.held.valid());
    upgraded.held.release();
    EXPECT_TRUE(other.try_acquire_shared());
}

TEST_F(late_command, does_not_shorten_what_was_extended_since) {
    mutex of{far, "name", {.ttl = 2s, .renew = false}};
    mutex other{near, "name"};
    auto held = of.acquire();
    send_twice([&] { held.extend(1s); });
    held.extend(10min);
    proxy.deliver_stranded();
    EXPECT_FALSE(other.try_acquire_for(1'500ms));
    EXPECT_TRUE(held.valid());
}

TEST_F(late_command, does_not_swallow_a_signal_that_was_set_since) {
    event of{far, "name"};
    of.set();
    send_twice([&] { EXPECT_EQ(of.clear(), 1); });
    of.set();
    proxy.deliver_stranded();
    EXPECT_TRUE(of.is_set());
    EXPECT_TRUE((event{near, "name"}.wait_for(5s)));
}

TEST_F(late_command, does_not_undo_a_later_resize) {
    auto of = counting_semaphore::create(far, "name", 5);
    send_twice([&] { EXPECT_EQ(of.resize(1), 5); });
    EXPECT_EQ(of.resize(10), 1);
    proxy.deliver_stranded();
    EXPECT_EQ(of.count(), 10);
}

TEST_F(late_command, of_a_renewal_does_not_shorten_what_was_extended_since) {
    mutex of{far, "name", {.ttl = 1s}};
    mutex other{near, "name"};
    auto held = of.acquire();
    proxy.hold(direction::to_server);
    ASSERT_TRUE(eventually([this] { return proxy.held_back() > 0; })) << "it is renewed by itself";
    proxy.strand();
    proxy.heal();
    held.extend(10min);
    proxy.deliver_stranded();
    EXPECT_FALSE(other.try_acquire_for(1'500ms));
    EXPECT_TRUE(held.valid());
    EXPECT_GT(held.remaining(), 8min) << "and renewals keep the length that it was extended to";
}

// While it is not known whether the server made it shorter it is taken to be so.
TEST_F(late_command, counts_here_from_when_it_is_sent) {
    mutex of{far, "name", {.ttl = 30s, .renew = false}};
    auto held = of.acquire();
    proxy.hold(direction::to_server);
    std::jthread const shortening{[&] {
        try {
            held.extend(2s);
        } catch (error const&) {  // it ends before the answer comes
        }
    }};
    EXPECT_TRUE(eventually([&] { return held.remaining() <= 2s; }));
    EXPECT_TRUE(eventually([&] { return !held.valid(); }));
    proxy.heal();
}

}  // namespace
}  // namespace lockstep::test
