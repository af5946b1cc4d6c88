// What a client sets for all of its objects, and what one of them sets otherwise: each option is seen to take effect.
#include <lockstep/event.hpp>

#include "gate_support.hpp"
#include "lease_fault_support.hpp"
#include "support/failures.hpp"
#include "support/monitor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep::test {
namespace {

class lease_defaults : public testing::Test {
protected:
    /// The client whose defaults are tested.
    client& with(lease_options const& defaults) {
        made_.push_back(std::make_unique<client>(client_options{.url = server.url(), .defaults = defaults}));
        return *made_.back();
    }
    std::string timeout_of(client& by, lease_options const& options = {}) {
        return failure<timeout_error>([&] { static_cast<void>(mutex(by, "name", options).acquire()); });
    }

    redis_server server;
    client other{server.url()};

private:
    std::vector<std::unique_ptr<client>> made_;
};

TEST_F(lease_defaults, are_the_ttl_of_everything_that_can_be_held) {
    auto& by = with({.ttl = 200s});
    for (auto const what : {kind::mutex, kind::recursive_mutex, kind::writer, kind::reader, kind::permits}) {
        SCOPED_TRACE(name_of(what));
        auto const usual = holdable(what, by, name_of(what)).acquire();
        EXPECT_GT(usual.remaining(), 100s);
        EXPECT_LE(usual.remaining(), 180s);
        auto const left = record(server, key_of(what, name_of(what))).left();
        EXPECT_GT(left, 100s);
        EXPECT_LE(left, 200s);
        auto const own = holdable(what, by, name_of(what) + " own", {.ttl = 60s}).acquire();
        EXPECT_LE(own.remaining(), 54s);
        EXPECT_LE(record(server, key_of(what, name_of(what) + " own")).left(), 60s);
    }
}

TEST_F(lease_defaults, say_whether_leases_are_renewed) {
    auto& by = with({.ttl = 2s, .renew = false});
    auto const fixed = mutex(by, "fixed").acquire();
    auto const renewed = mutex(by, "renewed", {.renew = true, .renew_every = 200ms}).acquire();
    EXPECT_TRUE(eventually([&] { return !fixed.valid(); }));
    EXPECT_TRUE(renewed.valid());
    EXPECT_EQ(held_at(server, "renewed").empty(), false);
}

TEST_F(lease_defaults, say_how_often_leases_are_renewed) {
    auto& by = with({.ttl = 60s, .renew_every = 50ms});
    server.must({"SCRIPT", "LOAD", std::string{scripts::lock_renew.text}});
    monitor watch{server};
    auto const often = mutex(by, "often").acquire();
    auto const seldom = mutex(by, "seldom", {.renew_every = 20s}).acquire();
    auto const renewals = [&](std::string const& name) {
        return watch.times_of(scripts::lock_renew.sha1, "lockstep:{" + name + "}:lock").size();
    };
    EXPECT_TRUE(eventually([&] { return renewals("often") >= 10; })) << "not after a third of its ttl only";
    EXPECT_EQ(renewals("seldom"), 0U);
}

TEST_F(lease_defaults, limit_how_long_something_is_held) {
    auto& by = with({.max_hold = 300ms});
    auto const usual = mutex(by, "usual").acquire();
    auto const longer = mutex(by, "longer", {.max_hold = 10min}).acquire();
    auto const unlimited = mutex(by, "unlimited", {.max_hold = 0ms}).acquire();
    EXPECT_TRUE(eventually([&] { return !usual.valid(); }));
    EXPECT_TRUE(longer.valid());
    EXPECT_TRUE(unlimited.valid());
}

TEST_F(lease_defaults, limit_how_long_one_waits) {
    auto& by = with({.wait_limit = 40ms});
    auto held = mutex(other, "name").acquire();
    EXPECT_THAT(timeout_of(by), testing::HasSubstr("40 ms"));
    EXPECT_THAT(timeout_of(by, {.wait_limit = 60ms}), testing::HasSubstr("60 ms"));
    EXPECT_EQ(ending_of([&] { event(by, "name").wait(); }).reason, errc::timeout);
    begun patient{mutex(by, "name", {.wait_limit = 0ms}).async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    auto const begin = now_ms();
    ASSERT_TRUE(eventually([&] { return now_ms() > begin + 100; }));
    EXPECT_FALSE(patient.done());
    held.release();
    EXPECT_TRUE(patient.get().valid());
}

TEST_F(lease_defaults, say_how_often_one_tries_and_with_what_pauses) {
    auto& by = with({.attempts = 3, .retry_delay = 1ms, .retry_jitter = 0ms});
    server.must({"SCRIPT", "LOAD", std::string{scripts::lock_acquire.text}});
    auto held = mutex(other, "name").acquire();
    monitor watch{server};
    std::size_t before = 0;
    auto const tries = [&] {
        auto const all = watch.times_of(scripts::lock_acquire.sha1, "lockstep:{name}:lock").size();
        return all - std::exchange(before, all);
    };
    EXPECT_THAT(timeout_of(by), testing::HasSubstr("3 attempts"));
    EXPECT_EQ(tries(), 3U);
    EXPECT_THAT(timeout_of(by, {.attempts = 5}), testing::HasSubstr("5 attempts"));
    EXPECT_EQ(tries(), 5U);
    auto const begin = now_ms();
    timeout_of(by, {.retry_delay = 100ms});
    EXPECT_GE(now_ms() - begin, 200) << "two pauses";
    begun queued{mutex(by, "name", {.attempts = 0}).async_acquire()};
    EXPECT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    held.release();
    EXPECT_TRUE(queued.get().valid());
}

TEST_F(lease_defaults, draw_the_pauses_between_attempts) {
    auto& by = with({.attempts = 2, .retry_delay = 1ms, .retry_jitter = 1h});
    auto held = mutex(other, "name").acquire();
    std::stop_source stop;
    std::vector<begun<lease>> resting;
    for (int i = 0; i < 20; ++i)
        resting.emplace_back(with_stop_token(mutex(by, "name").async_acquire(), stop.get_token()));
    for (int i = 0; i < 20; ++i) timeout_of(by, {.retry_jitter = 0ms});
    EXPECT_TRUE(falls_silent(server));
    EXPECT_TRUE(std::ranges::any_of(resting, [](auto const& one) { return !one.done(); }))
        << "each rests for up to an hour";
    stop.request_stop();
    for (auto const& one : resting) EXPECT_NE(ending_of([&] { static_cast<void>(one.get()); }).reason, std::nullopt);
}

TEST_F(lease_defaults, say_whether_those_who_wait_share_a_place) {
    auto& by = with({.cohort_passes = 0});
    auto const held = mutex(other, "name").acquire();
    auto const held_too = mutex(other, "shared").acquire();
    std::vector<begun<lease>> all;
    for (int i = 0; i < 5; ++i) {
        all.emplace_back(mutex(by, "name").async_acquire());
        all.emplace_back(mutex(by, "shared", {.cohort_passes = 4}).async_acquire());
    }
    EXPECT_TRUE(eventually([&] { return waiting_at(server, "name") == 5 && waiting_at(server, "shared") == 1; }));
}

TEST_F(lease_defaults, say_for_how_long_a_lease_is_passed_on) {
    auto& by = with({.cohort_time = 0ms});
    for (bool const passes : {false, true}) {
        std::string const name = passes ? "passes" : "does not";
        lease_options const options = passes ? lease_options{.cohort_time = 1h} : lease_options{};
        auto first = mutex(by, name, options).acquire();
        begun far{mutex(other, name).async_acquire()};
        ASSERT_TRUE(eventually([&] { return waiting_at(server, name) == 1; }));
        begun near{mutex(by, name, options).async_acquire()};
        run_turn(by);
        first.release();
        auto next = (passes ? near : far).get();
        EXPECT_FALSE((passes ? far : near).done());
        next.release();
        EXPECT_TRUE((passes ? far : near).get().valid());
    }
}

// The one that is told does not answer: its answers, and what it hears, stop on the way.
TEST_F(lease_defaults, say_how_long_one_may_take_to_claim) {
    auto& by = with({});
    for (bool const own : {false, true}) {
        std::string const name = own ? "own" : "usual";
        fault_proxy proxy{server.address()};
        client far{{.url = proxy.url(), .defaults = {.claim_window = 100s}}};
        auto held = mutex(by, name).acquire();
        begun waiting{mutex(far, name, own ? lease_options{.claim_window = 30s} : lease_options{}).async_acquire()};
        ASSERT_TRUE(eventually([&] { return waiting_at(server, name) == 1; }));
        proxy.hold();
        held.release();
        record written{server, "lockstep:{" + name + "}:lock"};
        ASSERT_TRUE(written.offered());
        EXPECT_LE(written.left(), own ? 30s : 100s);
        EXPECT_GT(written.left(), own ? 10s : 50s);
        proxy.heal();
        EXPECT_TRUE(waiting.get().valid());
    }
}

TEST_F(lease_defaults, say_how_long_the_server_remembers) {
    auto& by = with({.ttl = 1s, .retention = 1000s});
    mutex(by, "usual").acquire().release();
    mutex(by, "own", {.retention = 100s}).acquire().release();
    auto const kept = [&](std::string const& name) {
        return server.must({"PTTL", "lockstep:{" + name + "}:lock"}).integer;
    };
    EXPECT_GT(kept("usual"), 900'000);
    EXPECT_LE(kept("usual"), 2'010'000);
    EXPECT_GT(kept("own"), 90'000);
    EXPECT_LE(kept("own"), 210'000);
}

TEST_F(lease_defaults, limit_how_many_wait) {
    auto& by = with({.cohort_passes = 0, .max_waiters = 1});
    auto const held = mutex(other, "name").acquire();
    begun first{mutex(by, "name").async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    EXPECT_EQ(ending_of([&] { static_cast<void>(mutex(by, "name").acquire()); }).reason, errc::server);
    begun second{mutex(by, "name", {.max_waiters = 2}).async_acquire()};
    EXPECT_TRUE(eventually([&] { return waiting_at(server, "name") == 2; }));
}

TEST_F(lease_defaults, that_make_no_sense_are_refused_by_the_object) {
    EXPECT_EQ(ending_of([&] { mutex(with({.ttl = 1ms}), "name"); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { mutex(with({.ttl = 1ms}), "name", {.ttl = 1s}); }).reason, std::nullopt);
    EXPECT_EQ(ending_of([&] { mutex(with({.renew_every = 5s}), "name", {.ttl = 1s}); }).reason, errc::invalid_argument);
}

#ifndef LOCKSTEP_SANITIZE  // which allocates by itself

// With a pool nothing is allocated: lease_memory_test.cpp.
TEST(lease_pool, keeps_no_unused_leases_when_it_is_told_so) {
    redis_server server;
    child_process use{{program_path("steady_use"), server.url(), "0"}};
    auto const line = use.read_line(50s);
    ASSERT_TRUE(line);
    EXPECT_GE(std::stoi(*line), 10'000) << "one allocation for each lease";
}

#endif

}  // namespace
}  // namespace lockstep::test
