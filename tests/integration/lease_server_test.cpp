// Leases on a server that is restarted, flushed of scripts, or whose clock jumps: the same for all kinds of which one hold excludes another.
#include "lease_fault_support.hpp"
#include "lease_load.hpp"
#include "support/clock_file.hpp"

#include "core/core.hpp"

namespace lockstep::test {
namespace {

class lease_on_a_server : public testing::TestWithParam<kind> {
protected:
    redis_server server{{.config = {"appendfsync always"}, .append_only = true}};
    record written{server, key_of(GetParam(), "name")};
};
INSTANTIATE_TEST_SUITE_P(of, lease_on_a_server, exclusive_kinds(), kind_name);

TEST_P(lease_on_a_server, that_forgets_its_scripts_is_not_harmed) {
    lease_load load{GetParam(), server.url()};
    for (int i = 0; i < 100; ++i) {
        server.must({"SCRIPT", "FLUSH"});
        ASSERT_TRUE(load.wait_for_more(3));
    }
    EXPECT_THAT(load.finish(), testing::IsEmpty());
    EXPECT_EQ(load.losses(), 0U);
    EXPECT_GT(errors_of(server, "NOSCRIPT"), 10);
}

TEST_P(lease_on_a_server, that_kept_its_data_goes_on) {
    client a{server.url()};
    client b{server.url()};
    holdable of_a{GetParam(), a, "name", {.ttl = 20s}};
    holdable of_b{GetParam(), b, "name"};
    auto held = of_a.acquire();
    begun waiting{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return written.waiting() == 1; }));
    server.restart();
    EXPECT_FALSE(holdable(GetParam(), b, "name").try_acquire());
    EXPECT_TRUE(held.valid());
    EXPECT_FALSE(waiting.done());
    held.extend(20s);
    held.release();
    EXPECT_GT(waiting.get().fence(), held.fence());
}

TEST_P(lease_on_a_server, that_lost_its_data_is_reported_as_lost) {
    redis_server forgetful;
    client a{forgetful.url()};
    client b{forgetful.url()};
    holdable of_a{GetParam(), a, "name", {.ttl = 1'500ms}};
    holdable of_b{GetParam(), b, "name"};
    auto held = of_a.acquire();
    auto const stop = held.stop_token();
    begun waiting{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return record(forgetful, key_of(GetParam(), "name")).waiting() == 1; }));
    forgetful.restart();
    holdable const again{GetParam(), b, "name"};  // a semaphore has to be created again
    auto next = [&] {
        try {
            return waiting.get();
        } catch (not_found_error const&) {  // it was asked for before that
            return of_b.acquire();
        }
    }();
    EXPECT_GT(next.fence(), held.fence());
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(ending_of([&] { held.release(); }).reason, errc::lease_lost);
    EXPECT_TRUE(next.valid());
    EXPECT_EQ(ending_of([&] { next.release(); }).reason, std::nullopt);
}

// What waits to be sent must not keep the client, whose spare parts it becomes.
TEST_P(lease_on_a_server, that_is_away_leaves_nothing_of_a_client_behind) {
    std::weak_ptr<detail::core> left;
    {
        client a{server.url()};
        left = detail::core_access::of(a);
        holdable of_a{GetParam(), a, "name"};
        a.command("PING");
        server.kill9();
        EXPECT_THROW(static_cast<void>(of_a.try_acquire_for(300ms)), unavailable_error);
    }
    EXPECT_TRUE(eventually([&] { return left.expired(); }));
}

TEST_P(lease_on_a_server, that_hangs_ends_here_in_time) {
    client by{server.url()};
    holdable of{GetParam(), by, "name", {.ttl = 600ms}};
    auto held = of.acquire();
    auto const stop = held.stop_token();
    server.stop();
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }, 600ms + load_slack));
    EXPECT_FALSE(held.valid());
    server.cont();
    EXPECT_FALSE(held.valid()) << "what is lost stays lost";
    EXPECT_EQ(ending_of([&] { held.release(); }).reason, errc::lease_lost);
    EXPECT_TRUE(of.try_acquire_for(5s));
}

class lease_when_the_clock_jumps : public testing::TestWithParam<kind> {
protected:
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client a{server.url()};
    client b{server.url()};
    holdable of_a{GetParam(), a, "name", {.ttl = 1'500ms}};
    holdable of_b{GetParam(), b, "name", {.ttl = 1'500ms}};
    record written{server, key_of(GetParam(), "name")};
};
INSTANTIATE_TEST_SUITE_P(of, lease_when_the_clock_jumps, exclusive_kinds(), kind_name);

TEST_P(lease_when_the_clock_jumps, back_is_kept_held_with_growing_fences) {
    auto first = of_a.acquire();
    auto const stop = first.stop_token();
    clock.step(-1h);
    auto const begin = now_ms();
    while (now_ms() < begin + 2'000) {
        ASSERT_FALSE(of_b.try_acquire()) << "after " << now_ms() - begin << " ms; the first is "
                                         << (first.valid() ? "valid" : "lost");
    }
    EXPECT_TRUE(first.valid());
    EXPECT_FALSE(stop.stop_requested());
    first.release();
    auto fence = first.fence();
    for (int i = 0; i < 20; ++i) {
        clock.step(-1s);
        auto next = (i % 2 == 0 ? of_b : of_a).acquire();
        EXPECT_GT(next.fence(), fence);
        fence = next.fence();
        next.release();
    }
}

// Its end is an hour away by the new time, and nobody is there to renew it.
TEST_P(lease_when_the_clock_jumps, back_is_free_within_a_ttl_when_its_holder_is_dead) {
    holder_process holder{GetParam(), server.url(), 1'000ms};
    auto const fence = holder.acquire();
    begun waiting{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return written.waiting() == 1; }));
    holder.process.kill();
    clock.step(-1h);
    auto const begin = now_ms();
    auto got = waiting.get();
    EXPECT_GT(got.fence(), fence);
    EXPECT_LE(now_ms() - begin, (2 * 1'000ms + 200ms + load_slack).count());
}

TEST_P(lease_when_the_clock_jumps, forward_is_lost_and_the_holder_is_told) {
    auto first = of_a.acquire();
    auto const stop = first.stop_token();
    clock.step(GetParam() == kind::permits ? 1min : 60min);  // a semaphore that nobody has used for an hour is gone
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(first.valid());
    auto next = of_b.try_acquire_for(10s);
    ASSERT_TRUE(next) << "what it asks is not late for ever";
    EXPECT_GT(next->fence(), first.fence());
}

TEST_P(lease_when_the_clock_jumps, under_load_has_growing_fences) {
    lease_load load{GetParam(), server.url(), {.exclusive = false, .lease = {.ttl = 1s}}};
    ASSERT_TRUE(load.wait_for_more());
    for (auto const step : {5s, -20s, 3s, -1s, 30s, -40s, 1s, -1s}) {
        clock.step(step);
        ASSERT_TRUE(load.wait_for_more());
    }
    EXPECT_THAT(load.finish(), testing::IsEmpty());
}

}  // namespace
}  // namespace lockstep::test
