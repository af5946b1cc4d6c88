// What is held and what can be held, in a child made by fork(): there nothing works, nothing hangs, and the parent keeps what it has.
#include <lockstep/broadcast_event.hpp>
#include <lockstep/event.hpp>
#include <lockstep/multi_lock.hpp>

#include "lease_fault_support.hpp"
#include "support/failures.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::test {
namespace {

class lease_after_fork : public testing::Test {
protected:
    /// Runs these in a child, each of which must be true there and must not hang. The child tells by its exit code.
    struct check {
        std::string name;
        std::function<bool()> holds;
    };
    static void expect_in_child(std::vector<check> const& checks) {
        auto const child = ::fork();
        if (child == 0) {
            int number = 0;
            for (auto const& one : checks) {
                ++number;
                ::alarm(10);  // where one hangs, the test fails instead
                if (!one.holds()) ::_exit(number);
            }
            ::_exit(0);
        }
        int status = -1;
        ASSERT_TRUE(eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 50s));
        ASSERT_TRUE(WIFEXITED(status)) << "it hung, or crashed: signal " << WTERMSIG(status);
        auto const wrong = static_cast<std::size_t>(WEXITSTATUS(status));
        EXPECT_EQ(wrong, 0U) << (wrong > 0 && wrong <= checks.size() ? checks[wrong - 1].name : "");
    }
    template <class F>
    static std::function<bool()> refused(F call) {
        return [call] { return outcome(call) == errc::invalid_argument; };
    }

    redis_server server;
    client by{server.url()};
    client other{server.url()};
};

TEST_F(lease_after_fork, does_nothing_and_stays_with_the_parent) {
    auto held = mutex(by, "name", {.ttl = 3s, .renew_every = 200ms}).acquire();
    auto dropped = mutex(by, "dropped").acquire();
    auto const hold = held_at(server, "name");
    expect_in_child({
        {"valid", [&] { return !held.valid(); }},
        {"remaining", [&] { return held.remaining() == 0ms; }},
        {"release", refused([&] { held.release(); })},
        {"async_release", refused([&] { sync_wait(held.async_release()); })},
        {"extend", refused([&] { held.extend(10s); })},
        {"detach", refused([&] { static_cast<void>(held.detach()); })},
        {"adopt", refused([&] { static_cast<void>(lease::adopt(by, "x")); })},
        {"destruction", [&] { return lease{std::move(dropped)}.valid() == false; }},
        {"assignment", [&] { return !(held = lease{}).valid(); }},
    });
    EXPECT_TRUE(held.valid());
    EXPECT_EQ(held_at(server, "name"), hold);
    EXPECT_NE(held_at(server, "dropped"), "");
    auto const begin = now_ms();
    ASSERT_TRUE(eventually([&] { return now_ms() > begin + 3'100; }));
    EXPECT_TRUE(held.valid()) << "it is renewed as before";
    held.release();
    dropped.release();
}

TEST_F(lease_after_fork, is_known_as_lost_by_its_tokens) {
    auto const held = mutex(by, "name").acquire();
    auto const tripped = [](auto ask) {
        try {
            return ask().stop_requested();
        } catch (invalid_argument_error const&) {
            return true;
        }
    };
    expect_in_child({
        {"stop_token", [&] { return tripped([&] { return held.stop_token(); }); }},
        {"at_risk_token", [&] { return tripped([&] { return held.at_risk_token(); }); }},
    });
    EXPECT_FALSE(held.stop_token().stop_requested());
    EXPECT_FALSE(held.at_risk_token().stop_requested());
}

// At the moment of the fork another thread may have any of the parent's mutexes, and in the child nobody is left to give it back.
TEST_F(lease_after_fork, can_be_destroyed_whatever_other_threads_of_the_parent_were_doing) {
    std::atomic<bool> end{false};
    std::thread busy{[&] {
        for (int i = 0; !end; ++i) mutex const passing{by, "passing" + std::to_string(i % 10)};
    }};
    std::optional<mutex> unused{std::in_place, by, "unused"};
    std::optional<broadcast_event> gate{std::in_place, by, "gate"};
    std::optional<lease> held{mutex(by, "held").acquire()};
    for (int i = 0; i < 100 && !HasFailure(); ++i) {
        expect_in_child({
            {"an unused mutex", [&] { return unused.reset(), true; }},
            {"an event", [&] { return gate.reset(), true; }},
            {"a lease", [&] { return held.reset(), true; }},
        });
    }
    end = true;
    busy.join();
    EXPECT_TRUE(held->valid());
}

TEST_F(lease_after_fork, can_be_obtained_by_the_parent_only) {
    mutex lock{by, "name"};
    recursive_mutex recursive{by, "name"};
    shared_mutex shared{by, "name"};
    auto semaphore = counting_semaphore::create(by, "name", 3);
    event signal{by, "name"};
    multi_lock several{by, {"one", "two"}};
    signal.set();
    std::vector<check> checks;
    auto const add_all = [&](std::string const& name, auto& of) {
        checks.push_back({name + " acquire", refused([&of] { static_cast<void>(of.acquire()); })});
        checks.push_back({name + " try_acquire", refused([&of] { static_cast<void>(of.try_acquire()); })});
        checks.push_back({name + " try_acquire_for", refused([&of] { static_cast<void>(of.try_acquire_for(1s)); })});
    };
    auto const add_lockable = [&](std::string const& name, auto& of) {
        checks.push_back({name + " lock", refused([&of] { of.lock(); })});
        checks.push_back({name + " try_lock", refused([&of] { of.try_lock(); })});
        checks.push_back({name + " try_lock_for", refused([&of] { of.try_lock_for(1s); })});
        checks.push_back({name + " unlock", [&of] {
                              of.unlock();
                              return true;
                          }});
    };
    add_all("mutex", lock);
    add_lockable("mutex", lock);
    add_all("recursive_mutex", recursive);
    add_lockable("recursive_mutex", recursive);
    add_all("shared_mutex", shared);
    add_lockable("shared_mutex", shared);
    add_all("semaphore", semaphore);
    add_all("multi_lock", several);
    checks.push_back({"async_acquire", refused([&] {
                          sync_wait(as_true([](task<lease> work) -> task<void> {
                              static_cast<void>(co_await std::move(work));
                          }(lock.async_acquire())));
                      })});
    checks.push_back({"acquire_shared", refused([&] { static_cast<void>(shared.acquire_shared()); })});
    checks.push_back({"lock_shared", refused([&] { shared.lock_shared(); })});
    checks.push_back({"count", refused([&] { static_cast<void>(semaphore.count()); })});
    checks.push_back({"resize", refused([&] { semaphore.resize(1); })});
    checks.push_back({"create", refused([&] { static_cast<void>(counting_semaphore::create(by, "name", 3)); })});
    checks.push_back({"attach", refused([&] { static_cast<void>(counting_semaphore::attach(by, "name", 1s)); })});
    checks.push_back({"wait", refused([&] { signal.wait(); })});
    checks.push_back({"wait_for", refused([&] { signal.wait_for(1s); })});
    checks.push_back({"set", refused([&] { signal.set(); })});
    checks.push_back({"clear", refused([&] { signal.clear(); })});
    checks.push_back({"is_set", refused([&] { static_cast<void>(signal.is_set()); })});
    checks.push_back({"try_acquire_all", refused([&] { static_cast<void>(try_acquire_all(by, {"one"})); })});
    checks.push_back({"a new mutex", refused([&] { static_cast<void>(mutex{by, "new"}); })});
    expect_in_child(checks);
    EXPECT_EQ(semaphore.count(), 3);
    EXPECT_TRUE(signal.wait_for(0s)) << "nobody has taken or dropped it";
    EXPECT_TRUE(several.try_acquire());
    EXPECT_TRUE(lock.try_acquire());
}

TEST_F(lease_after_fork, of_a_guard_is_not_unlocked_by_the_child) {
    mutex lock{by, "lock"};
    recursive_mutex recursive{by, "recursive"};
    shared_mutex shared{by, "shared"};
    std::scoped_lock const guards{lock, recursive, shared};
    expect_in_child({
        {"mutex",
         [&] {
             lock.unlock();
             return true;
         }},
        {"recursive_mutex",
         [&] {
             recursive.unlock();
             return true;
         }},
        {"shared_mutex",
         [&] {
             shared.unlock();
             return true;
         }},
    });
    EXPECT_FALSE(mutex(other, "lock").try_acquire());
    EXPECT_FALSE(recursive_mutex(other, "recursive").try_acquire());
    EXPECT_FALSE(shared_mutex(other, "shared").try_acquire_shared());
    EXPECT_GT(lock.fence(), 0U);
}

TEST_F(lease_after_fork, of_several_names_stays_with_the_parent) {
    auto held = multi_lock(by, {"one", "two"}).acquire();
    auto some = try_acquire_all(by, {"three", "four"});
    expect_in_child({
        {"valid", [&] { return !held.valid(); }},
        {"release_all", refused([&] { release_all(std::move(some)); })},
        {"release", refused([&] { held.release(); })},
        {"destruction", [&] { return !leases{std::move(held)}.valid(); }},
    });
    EXPECT_TRUE(held.valid());
    for (std::string const name : {"one", "two", "three", "four"}) EXPECT_NE(held_at(server, name), "") << name;
    held.release();
    release_all(std::move(some));
    for (std::string const name : {"one", "two", "three", "four"}) EXPECT_EQ(held_at(server, name), "") << name;
}

TEST_F(lease_after_fork, can_be_obtained_with_a_client_of_the_childs_own) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer can't have threads in a child of fork()";
#endif
    auto held = mutex(by, "name").acquire();
    expect_in_child({
        {"a new client",
         [&] {
             client own{server.url()};
             if (mutex(own, "name").try_acquire()) return false;
             auto mine = mutex(own, "mine", {.ttl = 300ms, .renew = false}).acquire();
             auto const stop = mine.stop_token();  // by an alarm of the child's own
             return eventually([&] { return stop.stop_requested(); });
         }},
    });
    EXPECT_TRUE(held.valid());
    held.release();
}

}  // namespace
}  // namespace lockstep::test
