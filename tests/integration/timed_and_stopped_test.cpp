// Waiting until a point in time, of any clock, and waiting until one is told to stop, for everything that can be waited for: in both forms on
// every topology.
#include <lockstep/event.hpp>
#include <lockstep/multi_lock.hpp>

#include "gate_support.hpp"
#include "support/holdable.hpp"

#include <gtest/gtest.h>

#include <shared_mutex>
#include <thread>

namespace lockstep::test {
namespace {

using std::chrono::steady_clock;
using std::chrono::system_clock;

class timed_contract : public contract {
protected:
    /// All that `of` has with `_until`: refused while it is held by `a`, had when it is free, also when the time is over by then.
    template <class F>
    void expect_in_time(std::function<void()> const& free, F try_until) {
        auto const begin = steady_clock::now();
        EXPECT_FALSE(try_until(begin + 30ms));
        EXPECT_GE(steady_clock::now() - begin, 30ms);
        EXPECT_FALSE(try_until(steady_clock::time_point{})) << "a time long ago: one try";
        free();
        EXPECT_TRUE(try_until(steady_clock::time_point{})) << "which it gets when it is free";
        EXPECT_TRUE(try_until(steady_clock::now() + 1h));
        EXPECT_TRUE(try_until(steady_clock::time_point::max()));
    }
    template <class T, class Time, class... What>
    bool try_until(T&& of, Time time, What... what) {
        return run(
                   b, [&] { return of.try_acquire_until(time, what...); },
                   [&] { return of.async_try_acquire_until(time, what...); })
            .has_value();
    }
    lease hold(kind what) { return holdable{what, a, "name"}.acquire(); }
};
LOCKSTEP_CONTRACT(timed_contract);

TEST_P(timed_contract, tries_for_a_mutex_until_a_time) {
    mutex of_b{b, "name"};
    auto held = hold(kind::mutex);
    EXPECT_FALSE(try_until(of_b, system_clock::now() + 30ms));
    expect_in_time([&] { held.release(); }, [&](auto time) { return try_until(of_b, time); });
    EXPECT_TRUE(try_until(of_b, system_clock::now() + 5s)) << "of any clock";
}

TEST_P(timed_contract, tries_for_a_recursive_mutex_until_a_time) {
    recursive_mutex of_b{b, "name"};
    auto held = hold(kind::recursive_mutex);
    EXPECT_FALSE(of_b.try_acquire_until(system_clock::now() + 30ms)) << "for this thread";
    expect_in_time([&] { held.release(); }, [&](auto time) { return try_until(of_b.as("x"), time); });
    EXPECT_TRUE(of_b.try_acquire_until(system_clock::now() + 5s));
}

TEST_P(timed_contract, tries_for_a_shared_mutex_until_a_time) {
    shared_mutex of_b{b, "name"};
    auto held = hold(kind::reader);
    EXPECT_FALSE(try_until(of_b, system_clock::now() + 30ms));
    expect_in_time([&] { held.release(); }, [&](auto time) { return try_until(of_b, time); });
    held = hold(kind::writer);
    expect_in_time([&] { held.release(); },
                   [&](auto time) {
                       return run(
                                  b, [&] { return of_b.try_acquire_shared_until(time); },
                                  [&] { return of_b.async_try_acquire_shared_until(time); })
                           .has_value();
                   });
}

TEST_P(timed_contract, tries_for_permits_until_a_time) {
    auto of_b = counting_semaphore::create(b, "name", 3);
    auto held = hold(kind::permits);
    EXPECT_TRUE(try_until(of_b, system_clock::now() + 5s)) << "one is left";
    expect_in_time([&] { held.release(); }, [&](auto time) { return try_until(of_b, time, std::int64_t{2}); });
}

TEST_P(timed_contract, tries_for_several_names_until_a_time) {
    multi_lock of_b{b, {"before", "name", "z"}};
    auto held = hold(kind::mutex);
    EXPECT_FALSE(try_until(of_b, system_clock::now() + 30ms));
    expect_in_time([&] { held.release(); }, [&](auto time) { return try_until(of_b, time); });
}

TEST_P(timed_contract, waits_for_a_signal_until_a_time) {
    event of_b{b, "name"};
    auto const wait_until = [&](auto time) {
        return run(
            b, [&] { return of_b.wait_until(time); }, [&] { return of_b.async_wait_until(time); });
    };
    EXPECT_FALSE(wait_until(system_clock::now() + 30ms));
    expect_in_time(
        [&] {
            for (int i = 0; i < 3; ++i) event{a, "name"}.set();
        },
        wait_until);
    EXPECT_FALSE(of_b.is_set()) << "each took one";
}

TEST_P(timed_contract, gets_what_is_released_before_the_time) {
    auto held = hold(kind::mutex);
    begun next{mutex{b, "name"}.async_try_acquire_until(system_clock::now() + 1h)};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    held.release();
    EXPECT_TRUE(next.get());
}

// For threads; the guards of the standard library take them.
TEST(timed_lockable, tries_to_lock_for_and_until_a_time) {
    redis_server server;
    client a{server.url()};
    client b{server.url()};
    mutex of_b{b, "name"};
    recursive_mutex recursive_of_b{b, "name"};
    shared_mutex shared_of_b{b, "name"};
    auto held = mutex{a, "name"}.acquire();
    auto held_too = recursive_mutex{a, "name"}.acquire();
    auto writing = shared_mutex{a, "name"}.acquire();
    EXPECT_FALSE(of_b.try_lock_until(steady_clock::now() + 20ms));
    EXPECT_FALSE(recursive_of_b.try_lock_until(steady_clock::now() + 20ms));
    EXPECT_FALSE(shared_of_b.try_lock_until(system_clock::now() + 20ms));
    EXPECT_FALSE(shared_of_b.try_lock_shared_until(steady_clock::now() + 20ms));
    EXPECT_FALSE(shared_of_b.try_lock_shared_for(20ms));
    EXPECT_FALSE(std::shared_lock(shared_of_b, 20ms).owns_lock());
    held.release();
    held_too.release();
    writing.release();
    EXPECT_TRUE(of_b.try_lock_until(steady_clock::now() + 5s));
    EXPECT_TRUE(recursive_of_b.try_lock_until(system_clock::now() + 5s));
    EXPECT_TRUE(recursive_of_b.try_lock_until(system_clock::now())) << "again";
    EXPECT_TRUE(shared_of_b.try_lock_shared_for(5s));
    EXPECT_FALSE(shared_mutex(a, "name").try_acquire());
    EXPECT_TRUE(shared_mutex(a, "name").try_acquire_shared());
    EXPECT_GT(shared_of_b.fence_shared(), 0U);
    EXPECT_FALSE(shared_of_b.stop_token_shared().stop_requested());
    shared_of_b.unlock_shared();
    EXPECT_TRUE(shared_of_b.try_lock_shared_until(system_clock::now() + 5s));
    shared_of_b.unlock_shared();
    EXPECT_TRUE(shared_of_b.try_lock_until(steady_clock::now() + 5s));
    shared_of_b.unlock();
    of_b.unlock();
    recursive_of_b.unlock();
    EXPECT_FALSE(recursive_mutex(a, "name").try_acquire());
    recursive_of_b.unlock();
    EXPECT_TRUE(recursive_mutex(a, "name").try_acquire());
    EXPECT_TRUE(mutex(a, "name").try_acquire());
}

// Threads that block in a call with a stop token.
class stopped_thread : public testing::Test {
protected:
    /// `call` is told to stop when the server has somebody waiting, and at once when it begins too late.
    template <class F>
    void expect_stopped(std::string const& key, F call) {
        std::stop_source stop;
        std::optional<errc> end;
        std::thread blocked{[&] { end = ending_of([&] { call(stop.get_token()); }).reason; }};
        EXPECT_TRUE(eventually([&] { return pool_waiting(key) == 1; })) << "it waits";
        stop.request_stop();
        blocked.join();
        EXPECT_EQ(end, errc::cancelled);
        EXPECT_TRUE(eventually([&] { return pool_waiting(key) == 0; })) << "it leaves nothing";
        EXPECT_EQ(ending_of([&] { call(stop.get_token()); }).reason, errc::cancelled) << "stopped before it began";
    }
    int pool_waiting(std::string const& key) {
        int count = 0;
        for (auto const& one : server.must({"HKEYS", key}).elements) count += one.text[0] == 'q' ? 1 : 0;
        return count;
    }

    redis_server server;
    client a{server.url()};
    client b{server.url()};
    std::string const lock_key = key_of(kind::mutex, "name");
    std::string const recursive_key = key_of(kind::recursive_mutex, "name");
    std::string const shared_key = key_of(kind::reader, "name");
    std::string const permits_key = key_of(kind::permits, "name");
};

TEST_F(stopped_thread, stops_waiting_for_a_lock) {
    auto const held = mutex{a, "name"}.acquire();
    mutex of_b{b, "name"};
    expect_stopped(lock_key, [&](auto token) { static_cast<void>(of_b.acquire(token)); });
    expect_stopped(lock_key, [&](auto token) { static_cast<void>(of_b.try_acquire_for(1h, token)); });
    expect_stopped(lock_key,
                   [&](auto token) { static_cast<void>(of_b.try_acquire_until(system_clock::now() + 1h, token)); });
    multi_lock several{b, {"a", "name"}};
    expect_stopped(lock_key, [&](auto token) { static_cast<void>(several.acquire(token)); });
    expect_stopped(lock_key, [&](auto token) { static_cast<void>(several.try_acquire_for(1h, token)); });
    expect_stopped(lock_key,
                   [&](auto token) { static_cast<void>(several.try_acquire_until(system_clock::now() + 1h, token)); });
    EXPECT_TRUE(eventually([&] { return held_at(server, "a").empty(); })) << "what it had already is given back";
    EXPECT_TRUE(held.valid());
}

TEST_F(stopped_thread, stops_waiting_for_a_recursive_mutex) {
    auto const held = recursive_mutex{a, "name"}.acquire();
    recursive_mutex of_b{b, "name"};
    expect_stopped(recursive_key, [&](auto token) { static_cast<void>(of_b.acquire(token)); });
    expect_stopped(recursive_key, [&](auto token) { static_cast<void>(of_b.try_acquire_for(1h, token)); });
    expect_stopped(recursive_key,
                   [&](auto token) { static_cast<void>(of_b.try_acquire_until(steady_clock::now() + 1h, token)); });
}

TEST_F(stopped_thread, stops_waiting_for_a_shared_mutex) {
    auto const held = shared_mutex{a, "name"}.acquire();
    shared_mutex of_b{b, "name"};
    expect_stopped(shared_key, [&](auto token) { static_cast<void>(of_b.acquire(token)); });
    expect_stopped(shared_key, [&](auto token) { static_cast<void>(of_b.try_acquire_for(1h, token)); });
    expect_stopped(shared_key, [&](auto token) { static_cast<void>(of_b.acquire_shared(token)); });
    expect_stopped(shared_key, [&](auto token) { static_cast<void>(of_b.try_acquire_shared_for(1h, token)); });
    expect_stopped(shared_key, [&](auto token) {
        static_cast<void>(of_b.try_acquire_shared_until(steady_clock::now() + 1h, token));
    });
}

TEST_F(stopped_thread, stops_waiting_for_permits_and_for_the_semaphore_itself) {
    auto of_a = counting_semaphore::create(a, "name", 2);
    auto const held = of_a.acquire(2);
    auto of_b = counting_semaphore::attach(b, "name", 5s);
    expect_stopped(permits_key, [&](auto token) { static_cast<void>(of_b.acquire(2, token)); });
    expect_stopped(permits_key, [&](auto token) { static_cast<void>(of_b.try_acquire_for(1h, 1, token)); });
    expect_stopped(permits_key,
                   [&](auto token) { static_cast<void>(of_b.try_acquire_until(steady_clock::now() + 1h, 1, token)); });
    expect_stopped(key_of(kind::permits, "nobody made"),
                   [&](auto token) { static_cast<void>(counting_semaphore::attach(b, "nobody made", 1h, {}, token)); });
}

TEST_F(stopped_thread, stops_waiting_for_a_signal) {
    event of_b{b, "name"};
    std::string const key = "lockstep:{name}:event";
    expect_stopped(key, [&](auto token) { of_b.wait(token); });
    expect_stopped(key, [&](auto token) { of_b.wait_for(1h, token); });
    expect_stopped(key, [&](auto token) { of_b.wait_until(system_clock::now() + 1h, token); });
    event{a, "name"}.set();
    EXPECT_TRUE(of_b.wait_for(5s)) << "no signal was lost";
}

// A try does not wait, but the server may hang.
TEST_F(stopped_thread, stops_trying_when_the_server_hangs) {
    mutex of_b{b, "name"};
    of_b.acquire().release();
    server.stop();
    std::stop_source stop;
    std::optional<errc> end;
    std::thread blocked{
        [&] { end = ending_of([&] { static_cast<void>(of_b.try_acquire(stop.get_token())); }).reason; }};
    ASSERT_TRUE(eventually([&] { return b.statistics().pending != 0; }));
    stop.request_stop();
    blocked.join();
    EXPECT_EQ(end, errc::cancelled);
    server.cont();
    EXPECT_TRUE(mutex(a, "name").try_acquire_for(10s)) << "what it got for nobody is given back";
}

// Between two attempts.
TEST_F(stopped_thread, stops_resting) {
    auto const held = mutex{a, "name"}.acquire();
    mutex of_b{b, "name", {.attempts = 2, .retry_delay = 1h, .retry_jitter = 0ms}};
    auto const before = calls_of(server, "evalsha");
    std::stop_source stop;
    std::optional<errc> end;
    std::thread blocked{[&] { end = ending_of([&] { static_cast<void>(of_b.acquire(stop.get_token())); }).reason; }};
    ASSERT_TRUE(eventually([&] { return calls_of(server, "evalsha") > before; }));
    stop.request_stop();
    blocked.join();
    EXPECT_EQ(end, errc::cancelled);
}

}  // namespace
}  // namespace lockstep::test
