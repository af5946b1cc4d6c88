// Processes that die among others that live on: readers beside readers, permits beside permits. What holds for everything that can be held:
// lease_crash_test.cpp.
#include "lease_fault_support.hpp"

namespace lockstep::test {
namespace {

class beside_the_dead : public testing::Test {
protected:
    /// Its lease ends that long after this, and nothing of it is on its way any more.
    std::chrono::milliseconds kill(holder_process& who, record& written) {
        who.process.stop();
        auto const left = written.left();
        who.process.kill();
        EXPECT_TRUE(who.process.wait());
        return left;
    }
    std::chrono::milliseconds since(std::int64_t begin) { return std::chrono::milliseconds{now_ms() - begin}; }
    void queue(holder_process& who, record& written, int position) {
        who.begin("acquire");
        ASSERT_TRUE(eventually([&] { return written.waiting() == position; }));
    }

    redis_server server;
    client by{server.url()};
    client other{server.url()};
    record readers_and_writers{server, key_of(kind::reader, "name")};
    record permits{server, key_of(kind::permits, "name")};
};

TEST_F(beside_the_dead, a_reader_does_not_keep_the_dead_alive) {
    holder_process dead{kind::reader, server.url(), 4s};
    auto const fence = dead.acquire();
    holdable reader{kind::reader, by, "name", {.ttl = 2s}};  // is renewed all the time
    holdable writer{kind::writer, other, "name"};
    auto alive = reader.acquire();
    EXPECT_GT(alive.fence(), fence);
    begun waiting{writer.async_acquire()};
    ASSERT_TRUE(eventually([&] { return readers_and_writers.waiting() == 1; }));
    auto const begin = now_ms();
    auto const left = kill(dead, readers_and_writers);
    EXPECT_TRUE(eventually([&] { return pool_numbers(server, key_of(kind::reader, "name")).holders == 1; }));
    EXPECT_GE(since(begin), left - 2ms);
    EXPECT_FALSE(waiting.done());
    EXPECT_TRUE(alive.valid());
    auto const released = now_ms();
    alive.release();
    EXPECT_GT(waiting.get().fence(), alive.fence());
    EXPECT_LE(since(released), 50ms + load_slack);
}

TEST_F(beside_the_dead, a_writer_waits_for_the_lease_of_a_dead_reader_to_run_out) {
    holder_process dead{kind::reader, server.url(), 1'200ms};
    dead.acquire();
    holdable reader{kind::reader, by, "name"};
    holdable writer{kind::writer, other, "name"};
    auto alive = reader.acquire();
    begun waiting{writer.async_acquire()};
    ASSERT_TRUE(eventually([&] { return readers_and_writers.waiting() == 1; }));
    auto const begin = now_ms();
    auto const left = kill(dead, readers_and_writers);
    alive.release();
    EXPECT_TRUE(waiting.get().valid());
    EXPECT_GE(since(begin), left - 2ms);
    EXPECT_LE(since(begin), left + 200ms + load_slack);
}

// A writer that waits keeps readers out; a dead one only until somebody looks.
TEST_F(beside_the_dead, readers_pass_a_dead_writer_at_once) {
    holdable reader{kind::reader, by, "name", {.claim_window = 20s}};
    holdable behind{kind::reader, other, "name", {.claim_window = 20s}};
    auto held = reader.acquire();
    holder_process dead{kind::writer, server.url(), 30s, 20s};
    queue(dead, readers_and_writers, 1);
    begun next{behind.async_acquire()};
    ASSERT_TRUE(eventually([&] { return readers_and_writers.waiting() == 2; }));
    dead.process.kill();
    ASSERT_TRUE(eventually([&] { return connections_named(server, "holder") == 0; }));
    auto const begin = now_ms();
    held.release();
    EXPECT_TRUE(next.get().valid());
    EXPECT_LE(since(begin), 50ms + load_slack);
    EXPECT_EQ(readers_and_writers.waiting(), 0);
}

TEST_F(beside_the_dead, readers_enter_together_though_one_of_them_does_not_take_its_place) {
    holdable writer{kind::writer, by, "name"};
    holdable reader{kind::reader, other, "name"};
    auto held = writer.acquire();
    holder_process chosen{kind::reader, server.url()};
    queue(chosen, readers_and_writers, 1);
    begun beside{reader.async_acquire()};
    ASSERT_TRUE(eventually([&] { return readers_and_writers.waiting() == 2; }));
    begun last{writer.async_acquire()};
    ASSERT_TRUE(eventually([&] { return readers_and_writers.waiting() == 3; }));
    chosen.process.stop();
    auto const begin = now_ms();
    held.release();
    auto reading = beside.get();
    ASSERT_TRUE(readers_and_writers.offered());
    chosen.process.kill();
    reading.release();
    EXPECT_GT(last.get().fence(), reading.fence());
    EXPECT_GE(since(begin), 499ms) << "an offer counts as a hold";
    EXPECT_LE(since(begin), 500ms + 50ms + load_slack);
}

TEST_F(beside_the_dead, permits_come_back_and_no_more_than_those) {
    holder_process dead{kind::permits, server.url(), 1'200ms};
    auto const fence = dead.acquire();
    holdable one{kind::one_permit, by, "name"};
    holdable two{kind::permits, other, "name"};
    auto alive = one.acquire();
    EXPECT_GT(alive.fence(), fence);
    begun waiting{two.async_acquire()};
    ASSERT_TRUE(eventually([&] { return permits.waiting() == 1; }));
    auto const begin = now_ms();
    auto const left = kill(dead, permits);
    auto got = waiting.get();
    EXPECT_GE(since(begin), left - 2ms);
    EXPECT_LE(since(begin), left + 200ms + load_slack);
    EXPECT_GT(got.fence(), alive.fence());
    EXPECT_TRUE(alive.valid());
    EXPECT_EQ(pool_numbers(server, key_of(kind::permits, "name")).available, 0);
    EXPECT_FALSE(one.try_acquire());
    alive.release();
    got.release();
    EXPECT_EQ(pool_numbers(server, key_of(kind::permits, "name")).available, 3);
}

TEST_F(beside_the_dead, permits_of_all_come_back_when_all_are_killed) {
    std::vector<std::unique_ptr<holder_process>> dead;
    for (int i = 0; i < 3; ++i) {
        dead.push_back(std::make_unique<holder_process>(kind::one_permit, server.url(), 800ms));
        dead.back()->acquire();
    }
    auto of_all = counting_semaphore::attach(by, "name", 5s);
    begun waiting{of_all.async_acquire(3)};
    ASSERT_TRUE(eventually([&] { return permits.waiting() == 1; }));
    for (auto& one : dead) one->process.kill();
    auto const begin = now_ms();
    EXPECT_TRUE(waiting.get().valid());
    EXPECT_LE(since(begin), 800ms + 200ms + load_slack);
    EXPECT_TRUE(eventually([&] { return of_all.available() == 3; }));
}

// The waiter before them wants more than is free. When it is dead, those who want less need not wait for it.
TEST_F(beside_the_dead, who_wants_little_passes_a_dead_one_that_wanted_more) {
    holdable one{kind::one_permit, by, "name", {.claim_window = 20s}};
    holdable little{kind::one_permit, other, "name", {.claim_window = 20s}};
    auto first = one.acquire();
    auto second = one.acquire();
    holder_process dead{kind::permits, server.url(), 30s, 20s};
    queue(dead, permits, 1);
    begun next{little.async_acquire()};
    ASSERT_TRUE(eventually([&] { return permits.waiting() == 2; }));
    dead.process.kill();
    ASSERT_TRUE(eventually([&] { return connections_named(server, "holder") == 0; }));
    auto const begin = now_ms();
    first.release();
    EXPECT_TRUE(next.get().valid());
    EXPECT_LE(since(begin), 50ms + load_slack);
    EXPECT_EQ(permits.waiting(), 0);
}

}  // namespace
}  // namespace lockstep::test
