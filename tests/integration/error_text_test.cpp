// What a user reads when something is refused: which object, what was asked, what is allowed.
#include "lease_support.hpp"
#include "support/failures.hpp"

#include <lockstep/barrier.hpp>
#include <lockstep/broadcast_event.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/event.hpp>
#include <lockstep/latch.hpp>
#include <lockstep/recursive_mutex.hpp>
#include <lockstep/shared_mutex.hpp>

#include <gmock/gmock.h>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class error_text : public testing::Test {
protected:
    redis_server server;
    client a{{.url = server.url()}};
    client b{{.url = server.url()}};
};

TEST_F(error_text, of_one_waiter_too_many_for_a_mutex_has_its_name_and_the_limit) {
    auto const held = mutex(a, "report").acquire();
    begun const first{mutex(a, "report", {.cohort_passes = 0}).async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "report") == 1; }));
    for (unsigned const passes : {0U, 128U}) {
        mutex small{b, "report", {.cohort_passes = passes, .max_waiters = 1}};
        auto const text = failure<server_error>([&] { static_cast<void>(small.acquire()); });
        EXPECT_THAT(text, AllOf(StartsWith("LOCKSTEP_WAITERS "), HasSubstr("lock 'report'"), HasSubstr(": 1 (max_waiters)")));
    }
}

TEST_F(error_text, of_one_waiter_too_many_for_permits_has_their_name_and_the_limit) {
    auto const all = counting_semaphore::create(a, "licences", 1, {.lease = {.max_waiters = 1}});
    auto licences = all;
    auto const held = licences.acquire();
    begun const first{licences.async_acquire()};
    ASSERT_TRUE(eventually([&] { return pool_numbers(server, "lockstep:{licences}:semaphore").waiting == 1; }));
    auto const text = failure<server_error>([&] { static_cast<void>(licences.acquire()); });
    EXPECT_THAT(text, AllOf(StartsWith("LOCKSTEP_WAITERS "), HasSubstr("semaphore 'licences'"), HasSubstr(": 1 (max_waiters)")));
}

TEST_F(error_text, of_what_was_not_obtained_in_time_has_its_kind) {
    auto const held = mutex(a, "report").acquire();
    static_cast<void>(b.command("PING"));  // connected, and a second is longer than any answer takes
    EXPECT_EQ(failure<timeout_error>([&] { static_cast<void>(mutex(b, "report", {.wait_limit = 1s}).acquire()); }), "lock 'report' was not obtained within 1000 ms");
    EXPECT_EQ(failure<timeout_error>([&] { static_cast<void>(mutex(b, "report", {.attempts = 1}).acquire()); }), "lock 'report' was not obtained in 1 attempts");
    EXPECT_EQ(failure<timeout_error>([&] { event(b, "news", {.wait_limit = 1s}).wait(); }), "event 'news' was not set within 1000 ms");
}

TEST_F(error_text, of_more_permits_than_there_are_has_all_three) {
    auto licences = counting_semaphore::create(a, "licences", 3);
    auto const text = failure<invalid_argument_error>([&] { static_cast<void>(licences.acquire(4)); });
    EXPECT_THAT(text, HasSubstr("semaphore 'licences': 4 permits are wanted, and there are only 3"));
}

TEST_F(error_text, of_more_permits_than_max_permits_has_all_three) {
    auto licences = counting_semaphore::create(a, "licences", 3);
    auto const refused = "semaphore 'licences': the number of permits must be 1 to 4096 (max_permits), not 5000";
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(licences.acquire(5000)); }), HasSubstr(refused));
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(licences.resize(5000)); }), HasSubstr(refused));
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(counting_semaphore::create(a, "licences", 5000)); }),
                HasSubstr(refused));
}

TEST_F(error_text, of_options_of_a_semaphore_has_its_name_and_what_is_allowed) {
    auto const create = [&](semaphore_options const& options) {
        return failure<invalid_argument_error>([&] { static_cast<void>(counting_semaphore::create(a, "licences", 1, options)); });
    };
    EXPECT_THAT(create({.max_permits = 0}), HasSubstr("semaphore 'licences': max_permits must be 1 to 1,000,000,000, not 0"));
    EXPECT_THAT(create({.lease_ttl = 1ms}), HasSubstr("semaphore 'licences': lease_ttl must be 1 s to 30 days, not 1 ms"));
}

TEST_F(error_text, of_another_count_of_a_semaphore_has_both) {
    static_cast<void>(counting_semaphore::create(a, "licences", 3));
    for (auto const by : {semaphore_options::creation::script, semaphore_options::creation::optimistic}) {
        EXPECT_THAT(failure<count_mismatch_error>(
                        [&] { static_cast<void>(counting_semaphore::create(b, "licences", 4, {.created_by = by})); }),
                    HasSubstr("'licences' exists with 3 permits, not 4"));
    }
}

TEST_F(error_text, of_another_count_of_a_latch_has_both) {
    latch(a, "loaded", 3).count_down();
    EXPECT_THAT(failure<count_mismatch_error>([&] { latch(b, "loaded", 4).count_down(); }), HasSubstr("latch 'loaded': 3 is its count, not 4"));
}

TEST_F(error_text, of_a_latch_counted_down_too_far_has_what_is_left) {
    latch loaded{a, "loaded", 3};
    EXPECT_THAT(failure<invalid_argument_error>([&] { loaded.count_down(4); }),
                HasSubstr("latch 'loaded': it can be counted down by 3 at most, not by 4"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { loaded.count_down(0); }),
                HasSubstr("latch 'loaded': it is counted down by at least 1, not by 0"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { latch(a, "loaded", -1); }), HasSubstr("latch 'loaded': the count must be 0 to 10^12, not -1"));
}

TEST_F(error_text, of_another_number_of_parties_has_both) {
    barrier here{a, "round", 3};
    begun const first{here.async_arrive_and_wait_for(30s)};
    ASSERT_TRUE(eventually([&] { return server.must({"EXISTS", "lockstep:{round}:barrier"}).integer == 1; }));
    EXPECT_THAT(failure<count_mismatch_error>([&] { barrier(b, "round", 4).arrive_and_wait(); }),
                HasSubstr("barrier 'round': 3 parties meet there, not 4"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { barrier(b, "round", 2001); }), HasSubstr("barrier 'round': 1 to 2,000 can meet, not 2001"));
}

TEST_F(error_text, of_options_has_the_name_of_the_object) {
    EXPECT_THAT(failure<invalid_argument_error>([&] { mutex(a, "report", {.ttl = 1ms}); }),
                HasSubstr("'report': ttl must be 10 ms to 30 days, not 1 ms"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { latch(a, "loaded", 1, {.max_waiters = 0}); }),
                HasSubstr("'loaded': max_waiters must be 1 to 10,000,000, not 0"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { mutex(a, "report").acquire().extend(1ms); }),
                HasSubstr("'report' can be extended to 10 ms to 30 days from now, not to 1 ms"));
}

TEST_F(error_text, of_an_owner_has_the_name_of_the_object_and_what_is_allowed) {
    recursive_mutex account{a, "account"};
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(account.as("a b\n")); }),
                AllOf(HasSubstr("'account'"), HasSubstr("1 to 256 bytes without spaces"), HasSubstr("a b%0A")));
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(account.as("")); }), HasSubstr("not 0 bytes"));
}

TEST_F(error_text, of_a_lease_that_is_not_for_it_has_both_names) {
    shared_mutex catalogue{a, "catalogue"};
    EXPECT_THAT(failure<not_held_error>([&] { static_cast<void>(catalogue.downgrade({})); }), HasSubstr("'catalogue'"));
    auto other = mutex(a, "other").acquire();
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(catalogue.downgrade(std::move(other))); }),
                HasSubstr("the lease is of 'other', not of 'catalogue'"));
}

// The server's own words come first, as everywhere; then of what.
TEST_F(error_text, of_a_key_that_is_something_else_has_the_name_of_the_object) {
    for (auto const* const kind : {"lock", "semaphore", "event", "latch", "broadcast", "barrier"}) {
        server.must({"SET", std::string{"lockstep:{x}:"} + kind, "mine"});
    }
    auto const about = [](std::string const& what) { return AllOf(StartsWith("WRONGTYPE "), HasSubstr("(" + what + " 'x')")); };
    EXPECT_THAT(failure<server_error>([&] { static_cast<void>(mutex(a, "x").acquire()); }), about("lock"));
    EXPECT_THAT(failure<server_error>([&] { static_cast<void>(counting_semaphore::create(a, "x", 1)); }), about("semaphore"));
    semaphore_options const optimistic{.created_by = semaphore_options::creation::optimistic};
    EXPECT_THAT(failure<server_error>([&] { static_cast<void>(counting_semaphore::create(a, "x", 1, optimistic)); }), about("semaphore"));
    EXPECT_THAT(failure<server_error>([&] { event(a, "x").set(); }), about("event"));
    EXPECT_THAT(failure<server_error>([&] { latch(a, "x", 1).count_down(); }), about("latch"));
    EXPECT_THAT(failure<server_error>([&] { broadcast_event(a, "x").set(); }), about("broadcast"));
    EXPECT_THAT(failure<server_error>([&] { barrier(a, "x", 2).arrive_and_wait(); }), about("barrier"));
}

TEST_F(error_text, of_a_wait_that_ends_without_a_server_has_the_name_of_the_object) {
    mutex report{a, "report"};
    broadcast_event open{b, "open"};
    report.acquire().release();
    open.clear();
    server.kill9();
    EXPECT_THAT(failure<unavailable_error>([&] { static_cast<void>(report.try_acquire_for(200ms)); }), HasSubstr("'report'"));
    EXPECT_THAT(failure<unavailable_error>([&] { static_cast<void>(open.wait_for(200ms)); }), HasSubstr("'open'"));
}

TEST_F(error_text, of_a_signal_that_may_have_counted_has_the_name_of_the_event) {
    client hasty{{.url = server.url(), .command_timeout = 200ms}};
    event ready{hasty, "ready"};
    ready.set();
    server.stop();
    EXPECT_THAT(failure<indeterminate_error>([&] { ready.set(); }), HasSubstr("'ready'"));
    server.cont();
}

}  // namespace
}  // namespace lockstep::test
