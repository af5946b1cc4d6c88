// Processes that were killed, or hang, while they stand in line before a living one: how long that one waits.
#include "lease_fault_support.hpp"

namespace lockstep::test {
namespace {

class dead_waiters : public testing::TestWithParam<kind> {
protected:
    bool stand_in_line(int count) {
        return eventually([&] { return written.waiting() == count; }, 60s);
    }
    redis_server server;
    record written{server, key_of(GetParam(), "name")};
};
class slow_dead_waiters : public dead_waiters {};
auto kinds() { return testing::Values(kind::mutex, kind::permits); }
INSTANTIATE_TEST_SUITE_P(of, dead_waiters, kinds(), kind_name);
INSTANTIATE_TEST_SUITE_P(of, slow_dead_waiters, kinds(), kind_name);

// Measured on a machine of its own: 1.2 s for 1,000 and for 3,000 places; it was 22 s and 124 s.
TEST_P(slow_dead_waiters, of_a_killed_process_delay_the_next_one_by_hardly_more_than_the_lease) {
    for (int const places : {1'000, 3'000}) {
        SCOPED_TRACE(places);
        holder_process dead{GetParam(), server.url(), 1s};
        dead.acquire();
        ASSERT_EQ(dead.ask("crowd " + std::to_string(places)), "waiting");
        ASSERT_TRUE(stand_in_line(places));
        holder_process next{GetParam(), server.url(), 1s};
        next.begin("acquire");
        ASSERT_TRUE(stand_in_line(places + 1));
        auto const begin = now_ms();
        dead.process.kill();
        next.held();
        EXPECT_LE(std::chrono::milliseconds{now_ms() - begin}, 2s + load_slack);
        EXPECT_EQ(next.ask("release"), "released");
        EXPECT_TRUE(eventually([&] { return written.idle(); })) << written.text();
    }
}

// Each hung process gets its claim window, and who waits looks at its end.
TEST_P(dead_waiters, of_hung_processes_delay_a_living_one_by_their_claim_windows) {
    constexpr int hung = 6;
    std::vector<std::unique_ptr<holder_process>> asleep;
    for (int i = 0; i <= hung; ++i) {
        asleep.push_back(std::make_unique<holder_process>(GetParam(), server.url(), 2s, 200ms));
        asleep.back()->begin("acquire");
        if (i == 0) {
            asleep.back()->held();
        } else {
            ASSERT_TRUE(stand_in_line(i));
        }
    }
    for (auto const& one : asleep) one->process.stop();
    auto const begin = now_ms();
    holder_process living{GetParam(), server.url(), 2s, 200ms};
    living.acquire();
    EXPECT_LE(std::chrono::milliseconds{now_ms() - begin}, 2s + hung * (200ms + 160ms) + 1s + load_slack);
}

// The places of a hung client go with its first offer, and when it wakes up it stands in line again.
TEST_P(dead_waiters, that_wake_up_stand_in_line_again) {
    client by{server.url()};
    holdable of{GetParam(), by, "name", {.ttl = 2s}};
    auto held = of.acquire();
    holder_process asleep{GetParam(), server.url(), 2s, 100ms};
    ASSERT_EQ(asleep.ask("crowd 5"), "waiting");
    ASSERT_TRUE(stand_in_line(5));
    asleep.process.stop();
    held.release();
    ASSERT_TRUE(eventually([&] { return written.idle(); })) << written.text();
    held = of.acquire();
    asleep.process.cont();
    EXPECT_TRUE(stand_in_line(5)) << written.text();
    held.release();
}

}  // namespace
}  // namespace lockstep::test
