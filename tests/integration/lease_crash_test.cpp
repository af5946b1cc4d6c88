// Processes that die or sleep while they hold something, wait for it, or have just been given it: the same for all kinds of which one hold
// excludes another. Permits and readers that do not: pool_crash_test.cpp.
#include "lease_fault_support.hpp"

namespace lockstep::test {
namespace {

class lease_after_a_crash : public testing::TestWithParam<kind> {
protected:
    /// A place in the server's queue, by a client of its own, once it is there.
    struct place {
        place(redis_server& server, lease_options const& options, int position)
            : by{server.url()}, of{GetParam(), by, "name", options} {
            waiting.emplace(of.async_acquire());
            record written{server, key_of(GetParam(), "name")};
            if (!eventually([&] { return written.waiting() == position; }))
                throw std::runtime_error{"it does not queue"};
        }
        client by;
        holdable of;
        std::optional<begun<lease>> waiting{};
    };

    /// Queued by a process, once it is.
    void queue(holder_process& who, int position) {
        who.begin("acquire");
        ASSERT_TRUE(eventually([&] { return written.waiting() == position; }));
    }
    std::chrono::milliseconds since(std::int64_t begin) { return std::chrono::milliseconds{now_ms() - begin}; }

    redis_server server;
    record written{server, key_of(GetParam(), "name")};
};
INSTANTIATE_TEST_SUITE_P(with, lease_after_a_crash, exclusive_kinds(), kind_name);

TEST_P(lease_after_a_crash, of_its_holder_is_free_when_the_lease_has_run_out) {
    holder_process holder{GetParam(), server.url(), 1'200ms};
    auto const fence = holder.acquire();
    place next{server, {}, 1};
    holder.process.stop();  // from here on no renewal is on its way
    auto const begin = now_ms();
    auto const left = written.left();
    holder.process.kill();
    auto got = next.waiting->get();
    EXPECT_GE(since(begin), left - 2ms);
    EXPECT_LE(since(begin), left + 200ms + load_slack);
    EXPECT_GT(got.fence(), fence);
    EXPECT_TRUE(got.valid());
}

TEST_P(lease_after_a_crash, of_its_holder_is_not_free_a_moment_before) {
    holder_process holder{GetParam(), server.url(), 500ms};
    auto const fence = holder.acquire();
    holder.process.stop();
    auto const begin = now_ms();
    auto const left = written.left();
    holder.process.kill();
    client by{server.url()};
    holdable of{GetParam(), by, "name"};
    std::optional<lease> got;
    while (!got && since(begin) < left + 200ms + load_slack) got = of.try_acquire();
    ASSERT_TRUE(got);
    EXPECT_GE(since(begin), left - 2ms);
    EXPECT_GT(got->fence(), fence);
}

// The dead one was never told: nobody hears for it any more.
TEST_P(lease_after_a_crash, of_a_waiter_goes_to_the_next_at_once) {
    client by{server.url()};
    holdable of{GetParam(), by, "name", {.claim_window = 20s}};
    auto held = of.acquire();
    holder_process dead{GetParam(), server.url(), 30s, 20s};
    queue(dead, 1);
    place next{server, {.claim_window = 20s}, 2};
    dead.process.kill();
    ASSERT_TRUE(dead.process.wait());
    ASSERT_TRUE(eventually([&] { return connections_named(server, "holder") == 0; }));
    auto const begin = now_ms();
    held.release();
    EXPECT_TRUE(next.waiting->get().valid());
    EXPECT_LE(since(begin), 50ms + load_slack) << "and not after the claim window";
    EXPECT_TRUE(eventually([&] { return written.waiting() == 0; }));
}

TEST_P(lease_after_a_crash, of_one_that_was_offered_it_goes_on_after_the_claim_window) {
    for (bool const killed : {true, false}) {
        SCOPED_TRACE(killed ? "killed" : "stopped");
        client by{server.url()};
        holdable of{GetParam(), by, "name"};
        auto held = of.acquire();
        holder_process chosen{GetParam(), server.url()};
        queue(chosen, 1);
        place next{server, {}, 2};
        chosen.process.stop();
        auto const begin = now_ms();
        held.release();
        ASSERT_TRUE(written.offered());
        if (killed) chosen.process.kill();
        auto got = next.waiting->get();
        EXPECT_GE(since(begin), 499ms) << "it had its chance";
        EXPECT_LE(since(begin), 500ms + 50ms + load_slack);
        if (killed) continue;
        chosen.process.cont();
        ASSERT_TRUE(eventually([&] { return written.waiting() == 1; })) << "it stands in line again, at the end";
        got.release();
        EXPECT_GT(chosen.held(), got.fence());
    }
}

// The one that gave it back cannot look whether it arrived: it is gone too, in order. It tells the second in line.
TEST_P(lease_after_a_crash, of_one_that_was_offered_it_by_a_process_that_ended_goes_on_after_the_claim_window) {
    holder_process first{GetParam(), server.url()};
    first.acquire();
    holder_process chosen{GetParam(), server.url()};
    queue(chosen, 1);
    place next{server, {}, 2};
    chosen.process.stop();
    auto const begin = now_ms();
    first.process.close_input();
    auto const ended = first.process.wait();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->code, 0);
    chosen.process.kill();
    EXPECT_TRUE(next.waiting->get().valid());
    EXPECT_LE(since(begin), 500ms + 50ms + load_slack);
}

/// Whose lease excludes this one.
kind rival_of(kind what) { return what == kind::reader ? kind::writer : what; }

class lease_after_a_long_sleep : public lease_after_a_crash {};
INSTANTIATE_TEST_SUITE_P(with, lease_after_a_long_sleep,
                         testing::Values(kind::mutex, kind::recursive_mutex, kind::writer, kind::reader, kind::permits),
                         kind_name);

TEST_P(lease_after_a_long_sleep, is_known_to_be_lost_by_its_holder_before_it_acts) {
    client by{server.url()};
    holdable of{rival_of(GetParam()), by, "name"};
    for (int round = 0; round < 5; ++round) {
        holder_process sleeper{GetParam(), server.url(), 200ms};
        auto const fence = sleeper.acquire();
        ASSERT_EQ(sleeper.ask("work"), "working");
        sleeper.process.stop();
        auto got = of.acquire();
        auto const taken = std::chrono::steady_clock::now().time_since_epoch().count();
        EXPECT_GT(got.fence(), fence);
        sleeper.process.cont();
        auto const last = sleeper.answer();
        ASSERT_TRUE(last.starts_with("last ")) << last;
        EXPECT_LT(std::stoll(last.substr(5)), taken) << "it acted on a lease that was another's";
        EXPECT_EQ(sleeper.answer(), "stopped");
        EXPECT_EQ(sleeper.ask("check"), "invalid");
        EXPECT_THAT(sleeper.ask("release"), testing::StartsWith("failed: the lease of 'name'"));
        EXPECT_TRUE(got.valid()) << "the late release took nothing away";
        EXPECT_TRUE(written.held());
        got.release();
        EXPECT_GT(sleeper.acquire(), got.fence()) << "it may have it again, as anybody";
    }
}

}  // namespace
}  // namespace lockstep::test
