// Signals, each for one waiter, in both forms on every topology.
#include <lockstep/event.hpp>

#include "lease_support.hpp"
#include "support/contract.hpp"

namespace lockstep::test {
namespace {

class event_contract : public contract {
protected:
    void set(client& by, event& of) {
        run(
            by, [&] { of.set(); }, [&] { return of.async_set(); });
    }
    bool wait(client& by, event& of, std::chrono::milliseconds time) {
        return run(
            by, [&] { return of.wait_for(time); }, [&] { return of.async_wait_for(time); });
    }
    bool is_set(client& by, event& of) {
        return run(
            by, [&] { return of.is_set(); }, [&] { return of.async_is_set(); });
    }
    int waiting() { return static_cast<int>(pool_numbers(server, "lockstep:{name}:event").waiting); }

    event of_a{a, "name"};
    event of_b{b, "name"};
};
LOCKSTEP_CONTRACT(event_contract);

TEST_P(event_contract, keeps_signals_until_somebody_waits_and_gives_each_once) {
    EXPECT_FALSE(is_set(a, of_a));
    EXPECT_FALSE(wait(b, of_b, 0ms));
    set(a, of_a);
    set(a, of_a);
    EXPECT_TRUE(is_set(b, of_b));
    EXPECT_TRUE(wait(b, of_b, 5s));
    EXPECT_TRUE(wait(a, of_a, 0ms));
    EXPECT_FALSE(wait(b, of_b, 20ms));
    EXPECT_FALSE(is_set(a, of_a));
}

TEST_P(event_contract, wakes_one_waiter_for_each_signal) {
    begun first{as_true(of_b.async_wait())};
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    begun second{as_true(of_a.async_wait())};
    ASSERT_TRUE(eventually([&] { return waiting() == 2; }));
    set(a, of_a);
    EXPECT_TRUE(first.get());
    EXPECT_FALSE(second.done());
    set(b, of_b);
    EXPECT_TRUE(second.get());
    EXPECT_FALSE(is_set(a, of_a));
}

TEST_P(event_contract, forgets_what_is_cleared) {
    set(a, of_a);
    set(b, of_b);
    EXPECT_EQ(of_a.clear(), 2);
    EXPECT_FALSE(is_set(b, of_b));
    EXPECT_FALSE(wait(b, of_b, 0ms));
}

TEST_P(event_contract, passes_a_signal_on_when_its_waiter_gives_up) {
    std::stop_source stop;
    begun first{with_stop_token(as_true(of_b.async_wait()), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    begun second{as_true(of_a.async_wait())};
    ASSERT_TRUE(eventually([&] { return waiting() == 2; }));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { first.get(); }).reason, errc::cancelled);
    set(a, of_a);
    EXPECT_TRUE(second.get());
}

// The signal is taken at the server while nobody here waits for it any more.
TEST_P(event_contract, gives_a_signal_back_that_came_too_late) {
    EXPECT_FALSE(wait(b, of_b, 0ms));
    for (int i = 0; i < 10; ++i) {
        set(a, of_a);
        std::stop_source stop;
        server.stop();
        begun late{with_stop_token(as_true(of_b.async_wait()), stop.get_token())};
        run_turn(b);
        run_turn(b);
        stop.request_stop();
        EXPECT_EQ(ending_of([&] { late.get(); }).reason, errc::cancelled);
        server.cont();
        EXPECT_TRUE(wait(a, of_a, 5s)) << "round " << i;
    }
    EXPECT_FALSE(is_set(a, of_a)) << "given back once";
}

}  // namespace
}  // namespace lockstep::test
