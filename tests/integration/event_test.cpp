// Signals, each for one waiter, in both forms.
#include <lockstep/event.hpp>

#include "lease_support.hpp"
#include "support/fault_proxy.hpp"

namespace lockstep::test {
namespace {

template <class Form>
class event_contract : public testing::Test {
protected:
    static void set(client& by, event& of) {
        Form::run(
            by,
            [&] {
                of.set();
                return true;
            },
            [&] { return as_true(of.async_set()); });
    }
    static bool wait(client& by, event& of, std::chrono::milliseconds time) {
        return Form::run(
            by, [&] { return of.wait_for(time); }, [&] { return of.async_wait_for(time); });
    }
    static bool is_set(client& by, event& of) {
        return Form::run(
            by, [&] { return of.is_set(); }, [&] { return of.async_is_set(); });
    }
    int waiting() { return static_cast<int>(pool_numbers(server, "lockstep:{name}:event").waiting); }

    redis_server server;
    client a{server.url()};
    client b{server.url()};
    event of_a{a, "name"};
    event of_b{b, "name"};
};
TYPED_TEST_SUITE(event_contract, forms, form_names);

TYPED_TEST(event_contract, keeps_signals_until_somebody_waits_and_gives_each_once) {
    EXPECT_FALSE(this->is_set(this->a, this->of_a));
    EXPECT_FALSE(this->wait(this->b, this->of_b, 0ms));
    this->set(this->a, this->of_a);
    this->set(this->a, this->of_a);
    EXPECT_TRUE(this->is_set(this->b, this->of_b));
    EXPECT_TRUE(this->wait(this->b, this->of_b, 5s));
    EXPECT_TRUE(this->wait(this->a, this->of_a, 0ms));
    EXPECT_FALSE(this->wait(this->b, this->of_b, 20ms));
    EXPECT_FALSE(this->is_set(this->a, this->of_a));
}

TYPED_TEST(event_contract, wakes_one_waiter_for_each_signal) {
    begun first{as_true(this->of_b.async_wait())};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 1; }));
    begun second{as_true(this->of_a.async_wait())};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 2; }));
    this->set(this->a, this->of_a);
    EXPECT_TRUE(first.get());
    EXPECT_FALSE(second.done());
    this->set(this->b, this->of_b);
    EXPECT_TRUE(second.get());
    EXPECT_FALSE(this->is_set(this->a, this->of_a));
}

TYPED_TEST(event_contract, forgets_what_is_cleared) {
    this->set(this->a, this->of_a);
    this->set(this->b, this->of_b);
    EXPECT_EQ(this->of_a.clear(), 2);
    EXPECT_FALSE(this->is_set(this->b, this->of_b));
    EXPECT_FALSE(this->wait(this->b, this->of_b, 0ms));
}

TYPED_TEST(event_contract, passes_a_signal_on_when_its_waiter_gives_up) {
    std::stop_source stop;
    begun first{with_stop_token(as_true(this->of_b.async_wait()), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 1; }));
    begun second{as_true(this->of_a.async_wait())};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 2; }));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { first.get(); }).reason, errc::cancelled);
    this->set(this->a, this->of_a);
    EXPECT_TRUE(second.get());
}

// The signal is taken at the server while nobody here waits for it any more.
TYPED_TEST(event_contract, gives_a_signal_back_that_came_too_late) {
    EXPECT_FALSE(this->wait(this->b, this->of_b, 0ms));
    for (int i = 0; i < 10; ++i) {
        this->set(this->a, this->of_a);
        std::stop_source stop;
        this->server.stop();
        begun late{with_stop_token(as_true(this->of_b.async_wait()), stop.get_token())};
        mutex_in<TypeParam>::run_turn(this->b);
        mutex_in<TypeParam>::run_turn(this->b);
        stop.request_stop();
        EXPECT_EQ(ending_of([&] { late.get(); }).reason, errc::cancelled);
        this->server.cont();
        EXPECT_TRUE(this->wait(this->a, this->of_a, 5s)) << "round " << i;
    }
    EXPECT_FALSE(this->is_set(this->a, this->of_a)) << "given back once";
}

TYPED_TEST(event_contract, counts_a_signal_once_though_its_reply_is_lost) {
    fault_proxy proxy{this->server.address()};
    client far{proxy.url()};
    event there{far, "name"};
    EXPECT_FALSE(there.is_set());
    for (int i = 0; i < 5; ++i) {
        proxy.drop_replies(1);
        this->set(far, there);
    }
    EXPECT_GE(proxy.counters().struck, 5U);
    EXPECT_EQ(this->of_a.clear(), 5);
}

TYPED_TEST(event_contract, loses_no_signal_though_the_waiters_reply_is_lost) {
    fault_proxy proxy{this->server.address()};
    client far{proxy.url()};
    event there{far, "name"};
    EXPECT_FALSE(there.is_set());
    this->set(this->a, this->of_a);
    this->set(this->a, this->of_a);
    proxy.drop_replies(1);
    EXPECT_TRUE(this->wait(far, there, 20s));
    EXPECT_EQ(this->of_a.clear(), 1) << "one was taken, not two";
}

}  // namespace
}  // namespace lockstep::test
