// What is offered to a process that sleeps goes on to the next after the claim window, whatever led to the offer.
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/event.hpp>
#include <lockstep/task.hpp>

#include "lease_fault_support.hpp"

namespace lockstep::test {
namespace {

// Others look once per ttl, a minute: who gets it within seconds owes it to the one who looked.
constexpr lease_options slow{.ttl = 60s};
constexpr auto soon = 20s;

class offer_to_a_sleeper : public testing::Test {
protected:
    /// Waits in this place of the queue, and does not wake up when it is offered something.
    void queue(holder_process& who, record& at, int position) {
        who.begin("acquire");
        ASSERT_TRUE(eventually([&] { return at.waiting() == position; }));
        who.process.stop();
    }
    void wait_for(record& at, int waiting) {
        ASSERT_TRUE(eventually([&] { return at.waiting() == waiting; })) << at.text();
    }

    redis_server server;
    client near{server.url()};
    client far{server.url()};
    record signals{server, "lockstep:{name}:event"};
    record permits{server, "lockstep:{name}:semaphore"};
};

TEST_F(offer_to_a_sleeper, goes_on_though_the_one_who_set_the_event_waited_for_a_moment_then) {
    event here{near, "name", slow};
    event there{far, "name", slow};
    holder_process sleeper{"event", server.url(), 60s};
    queue(sleeper, signals, 1);
    begun next{as_true(here.async_wait())};
    wait_for(signals, 2);
    there.set();
    EXPECT_FALSE(there.wait_for(100ms));
    EXPECT_TRUE(next.get(soon));
}

TEST_F(offer_to_a_sleeper, goes_on_though_the_first_who_could_look_got_a_signal_of_its_own) {
    event there{far, "name", slow};
    holder_process sleeper{"event", server.url(), 60s};
    queue(sleeper, signals, 1);
    begun first{as_true(there.async_wait())};
    begun second{as_true(there.async_wait())};
    wait_for(signals, 3);
    there.set();
    there.set();
    EXPECT_TRUE(first.get(soon));
    EXPECT_TRUE(second.get(soon));
}

TEST_F(offer_to_a_sleeper, goes_on_when_it_came_from_one_who_gave_up) {
    auto here = counting_semaphore::create(near, "name", 3, {.lease = slow});
    auto there = counting_semaphore::attach(far, "name", 5s, {.lease = slow});
    auto const held = here.acquire();
    std::stop_source stop;
    begun impatient{with_stop_token(there.async_acquire(3), stop.get_token())};
    wait_for(permits, 1);
    holder_process sleeper{"permits", server.url(), 60s};
    queue(sleeper, permits, 2);
    begun next{here.async_acquire(2)};
    wait_for(permits, 3);
    stop.request_stop();
    EXPECT_TRUE(next.get(soon).valid());
}

TEST_F(offer_to_a_sleeper, goes_on_when_it_came_from_a_resize) {
    auto here = counting_semaphore::create(near, "name", 3, {.lease = slow});
    auto const held = here.acquire(2);
    holder_process sleeper{"permits", server.url(), 60s};
    queue(sleeper, permits, 1);
    begun next{here.async_acquire(2)};
    wait_for(permits, 2);
    counting_semaphore::attach(far, "name", 5s, {.lease = slow}).resize(5);
    EXPECT_TRUE(next.get(soon).valid());
}

}  // namespace
}  // namespace lockstep::test
