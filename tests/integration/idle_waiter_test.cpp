// Nobody polls: who waits behind a long lease, or for a signal, costs the server nothing. Latches, barriers and broadcast events: their own tests.
#include <lockstep/event.hpp>

#include "gate_support.hpp"
#include "lease_fault_support.hpp"

#include <gtest/gtest.h>

#include <list>
#include <optional>
#include <vector>

namespace lockstep::test {
namespace {

class idle_waiter_contract : public contract {
protected:
    idle_waiter_contract() { server.must({"SCRIPT", "LOAD", std::string{scripts::client_register.text}}); }

    static constexpr int each = 30;  // more than those who look when the lease before them would run out

    /// One of `a` holds it, and many of `b` wait, each with a place of its own in the server's queue.
    void wait_for(kind held, kind wanted) {
        lease_options const options{.ttl = 10min, .cohort_passes = 0};
        kept.push_back(holdable{held, a, "name", options}.acquire());
        record written{server, key_of(wanted, "name")};
        for (int i = 0; i < each; ++i) {
            objects.emplace_back(wanted, b, "name", options);
            waiting.emplace_back(objects.back().async_acquire());
        }
        ASSERT_TRUE(eventually([&] { return written.waiting() == each; })) << name_of(wanted);
    }
    /// Scripts that ran in a second and a half, when what was under way had ended.
    long scripts_meanwhile() {
        EXPECT_TRUE(falls_silent(server));
        auto const before = scripts_run(server);
        auto const end = now_ms() + 1'500;
        EXPECT_TRUE(eventually([&] { return now_ms() > end; }));
        return scripts_run(server) - before;
    }

    std::list<holdable> objects{};
    std::vector<lease> kept{};
    std::vector<begun<lease>> waiting{};
};
LOCKSTEP_CONTRACT(idle_waiter_contract);

constexpr long registrations = 2;  // of the two clients, which say now and then who they are

TEST_P(idle_waiter_contract, behind_a_long_lease_sends_nothing) {
    auto const before = scripts_run(server);
    ASSERT_NO_FATAL_FAILURE(wait_for(kind::mutex, kind::mutex));
    ASSERT_NO_FATAL_FAILURE(wait_for(kind::recursive_mutex, kind::recursive_mutex));
    ASSERT_NO_FATAL_FAILURE(wait_for(kind::writer, kind::reader));
    ASSERT_NO_FATAL_FAILURE(wait_for(kind::permits, kind::permits));
    EXPECT_LE(scripts_meanwhile(), registrations);
    // To create the semaphore, to ask, and to ask again when it is told that it will be told; scripts that had to be sent; what it costs to look.
    EXPECT_LE(scripts_run(server) - before, 4 * 3 * each + 100);
    for (auto const& one : waiting) EXPECT_FALSE(one.done());
    for (auto& one : kept) release(a, one);
    for (auto& one : waiting) {
        auto held = one.get();
        release(b, held);
    }
}

TEST_P(idle_waiter_contract, in_a_cohort_sends_nothing) {
    auto held = acquire(a, mutex{a, "name", {.ttl = 10min}});
    for (int i = 0; i < each; ++i) {
        waiting.emplace_back(mutex{a, "name", {.ttl = 10min}}.async_acquire());
        waiting.emplace_back(mutex{b, "name", {.ttl = 10min}}.async_acquire());
    }
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; })) << "those of `b` have one place";
    EXPECT_LE(scripts_meanwhile(), registrations);
    for (auto const& one : waiting) EXPECT_FALSE(one.done());
}

TEST_P(idle_waiter_contract, for_a_signal_sends_nothing) {
    event signal{b, "name"};
    std::vector<begun<bool>> signalled;
    for (int i = 0; i < each; ++i) signalled.emplace_back(as_true(signal.async_wait()));
    ASSERT_TRUE(eventually([&] { return pool_numbers(server, "lockstep:{name}:event").waiting == each; }));
    EXPECT_LE(scripts_meanwhile(), registrations);
    for (int i = 0; i < each; ++i)
        run(
            a,
            [&] {
                event{a, "name"}.set();
            },
            [&] {
                return event{a, "name"}.async_set();
            });
    for (auto const& one : signalled) EXPECT_TRUE(one.get());
}

}  // namespace
}  // namespace lockstep::test
