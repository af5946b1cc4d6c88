// A mutex behind a bad network and on a server that is restarted, flushed of scripts, or whose clock jumps.
#include "mutex_fault_support.hpp"
#include "scripts/all.hpp"
#include "support/clock_file.hpp"
#include "support/fault_proxy.hpp"

namespace lockstep::test {
namespace {

// `far` reaches the server through a proxy that loses what it is told to lose; `near` does not.
class mutex_with_lost_replies : public testing::Test {
protected:
    void TearDown() override {
        EXPECT_EQ(proxy.counters().struck, struck) << "nothing was lost, so nothing was tested";
    }
    /// Scripts that ran.
    long scripts() { return calls_of(server, "evalsha") + calls_of(server, "eval"); }
    /// The next reply is lost. What was asked before this has been answered.
    void lose_next_reply() {
        proxy.drop_replies(1);
        ++struck;
    }
    void warm_up() {
        auto held = of_far.acquire();
        held.release();
    }

    redis_server server;
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    client near{server.url()};
    mutex of_far{far, "name"};
    mutex of_near{near, "name"};
    std::uint64_t struck = 0;
};

TEST_F(mutex_with_lost_replies, acquires_once_though_the_answer_was_lost) {
    warm_up();
    auto const before = scripts();
    lose_next_reply();
    auto held = of_far.acquire();
    EXPECT_EQ(scripts(), before + 2) << "asked twice";
    EXPECT_TRUE(held.valid());
    EXPECT_FALSE(of_near.try_acquire());
    held.release();
    auto next = of_near.try_acquire();
    ASSERT_TRUE(next) << "nothing of the first question is left";
    EXPECT_GT(next->fence(), held.fence());
}

TEST_F(mutex_with_lost_replies, queues_once_though_the_answer_was_lost) {
    warm_up();
    auto held = of_near.acquire();
    lose_next_reply();
    begun waiting{of_far.async_acquire()};
    ASSERT_TRUE(eventually([&] { return proxy.counters().struck == struck && proxy.counters().accepted > 1; }));
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    held.release();
    auto next = waiting.get();
    EXPECT_GT(next.fence(), held.fence());
    EXPECT_EQ(waiting_at(server, "name"), 0);
}

// The push arrives, then the first byte of the answer to the claim, and then the connection breaks.
TEST_F(mutex_with_lost_replies, claims_once_though_the_answer_was_lost) {
    auto held = of_near.acquire();
    begun waiting{of_far.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    auto const hold = server.must({"HGET", "lockstep:{name}:lock", "q1"}).text;
    auto const channel = "lockstep:wake:" + hold.substr(0, hold.find('.'));
    auto const bulk = [](std::string const& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; };
    ASSERT_TRUE(eventually([&] { return server.must({"PUBSUB", "NUMSUB", channel}).elements.at(1).integer == 1; }));
    far.command("PING");  // everything that was on its way has arrived
    proxy.cut_after((">3\r\n" + bulk("message") + bulk(channel) + bulk(hold)).size() + 1);
    ++struck;
    auto const before = scripts();
    held.release();
    auto got = waiting.get();
    EXPECT_TRUE(got.valid());
    EXPECT_GT(got.fence(), held.fence());
    EXPECT_GE(scripts(), before + 3) << "a release and two claims";
    EXPECT_EQ(held_at(server, "name"), hold) << "with the id under which it waited";
    EXPECT_FALSE(of_near.try_acquire());
    got.release();
    EXPECT_TRUE(of_near.try_acquire());
}

TEST_F(mutex_with_lost_replies, stays_held_though_the_answer_to_a_renewal_was_lost) {
    mutex brief{far, "name", {.ttl = 900ms}};
    auto held = brief.acquire();
    auto const stop = held.stop_token();
    auto const fence = held.fence();
    lose_next_reply();
    ASSERT_TRUE(eventually([&] { return proxy.counters().struck == struck; }));
    for (auto const end = now_ms() + 1'500; now_ms() < end;) ASSERT_FALSE(of_near.try_acquire());
    EXPECT_TRUE(held.valid());
    EXPECT_FALSE(stop.stop_requested());
    EXPECT_EQ(held.fence(), fence);
}

TEST_F(mutex_with_lost_replies, is_released_once_though_the_answer_was_lost) {
    warm_up();
    auto held = of_far.acquire();
    lose_next_reply();
    held.release();  // and throws nothing
    EXPECT_TRUE(of_near.try_acquire());
}

// Sent again, the release must not take it from the one that has it by then.
TEST_F(mutex_with_lost_replies, is_handed_on_once_though_the_answer_was_lost) {
    warm_up();
    auto held = of_far.acquire();
    begun waiting{of_near.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    lose_next_reply();
    held.release();
    auto next = waiting.get();
    EXPECT_TRUE(next.valid());
    EXPECT_NE(held_at(server, "name"), "");
    EXPECT_FALSE(of_far.try_acquire());
    next.release();
}

// Its end here counts from when the request was sent: an answer that took its time must not make the lease longer.
TEST_F(mutex_with_lost_replies, ends_here_before_it_ends_there_though_answers_are_slow) {
    warm_up();
    for (bool const renewed : {false, true}) {
        SCOPED_TRACE(renewed ? "renewed" : "fixed");
        proxy.delay(100ms, direction::to_client);
        mutex brief{far, "name", {.ttl = 600ms, .renew = renewed}};
        auto held = brief.acquire();
        auto const stop = held.stop_token();
        if (renewed) {
            auto const before = scripts();
            ASSERT_TRUE(eventually([&] { return scripts() > before + 2; }));
            proxy.refuse();  // and now it is on its own
            proxy.cut();
        }
        std::optional<lease> next;
        while (!next) next = of_near.try_acquire();
        EXPECT_FALSE(held.valid()) << held.remaining().count() << " ms left";
        EXPECT_GT(next->fence(), held.fence());
        EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
        next->release();
        proxy.heal();
    }
}

class mutex_faults : public testing::Test {
protected:
    redis_server server{{.config = {"appendfsync always"}, .append_only = true}};
};

// Who hands on to another process looks once more whether that arrived, and stops looking when it asks for itself.
TEST_F(mutex_faults, are_not_needed_for_a_hand_off_between_processes) {
    mutex_load load{server.url(), "name"};
    EXPECT_TRUE(load.wait_for_more(300));
    EXPECT_THAT(load.finish(), testing::IsEmpty());
    EXPECT_EQ(load.losses(), 0U);
}

TEST_F(mutex_faults, while_waiting_are_survived_by_asking_again) {
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    client near{server.url()};
    mutex of_far{far, "name", {.ttl = 60s}};
    mutex of_near{near, "name", {.ttl = 60s}};
    auto held = of_near.acquire();
    begun waiting{of_far.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    for (int i = 0; i < 10; ++i) {
        auto const before = proxy.counters().accepted;
        proxy.cut();
        ASSERT_TRUE(eventually([&] { return proxy.counters().accepted > before && proxy.counters().open == 1; }));
    }
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; })) << "one place, however often it came";

    // Released while it cannot hear: it finds out when it is back, long before anything runs out.
    proxy.refuse();
    proxy.cut();
    ASSERT_TRUE(eventually([&] { return server.connections() == 1; }));
    held.release();
    proxy.heal();
    EXPECT_TRUE(waiting.get(10s + load_slack).valid());
}

TEST_F(mutex_faults, of_a_network_that_breaks_again_and_again_harm_nobody) {
    std::vector<std::unique_ptr<fault_proxy>> ways;
    std::vector<std::string> urls;
    for (int i = 0; i < 3; ++i) {
        ways.push_back(std::make_unique<fault_proxy>(server.address()));
        urls.push_back(ways.back()->url());
    }
    mutex_load load{urls, "name", {}};
    ASSERT_TRUE(load.wait_for_more());
    for (std::size_t i = 0; i < 60; ++i) {
        auto& way = *ways.at(i % 3);
        if (i % 2 == 0) {
            way.cut();
        } else {
            way.drop_replies(1);
        }
        ASSERT_TRUE(load.wait_for_more(5));
    }
    EXPECT_THAT(load.finish(), testing::IsEmpty());
    EXPECT_EQ(load.losses(), 0U);
    EXPECT_TRUE(eventually([&] { return held_at(server, "name").empty() && waiting_at(server, "name") == 0; }, 20s));
}

TEST_F(mutex_faults, of_a_server_that_forgets_its_scripts_harm_nobody) {
    mutex_load load{server.url(), "name"};
    for (int i = 0; i < 100; ++i) {
        server.must({"SCRIPT", "FLUSH"});
        ASSERT_TRUE(load.wait_for_more(3));
    }
    EXPECT_THAT(load.finish(), testing::IsEmpty());
    EXPECT_EQ(load.losses(), 0U);
    EXPECT_GT(errors_of(server, "NOSCRIPT"), 10);
}

TEST_F(mutex_faults, of_a_server_that_kept_its_data_do_not_end_a_hold) {
    client a{server.url()};
    client b{server.url()};
    mutex of_a{a, "name", {.ttl = 20s}};
    mutex of_b{b, "name"};
    auto held = of_a.acquire();
    begun waiting{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    server.restart();
    EXPECT_FALSE(mutex(b, "name").try_acquire());
    EXPECT_TRUE(held.valid());
    EXPECT_FALSE(waiting.done());
    held.extend(20s);
    held.release();
    EXPECT_GT(waiting.get().fence(), held.fence());
}

TEST_F(mutex_faults, of_a_server_that_lost_its_data_are_reported_to_the_holder) {
    redis_server forgetful;
    client a{forgetful.url()};
    client b{forgetful.url()};
    mutex of_a{a, "name", {.ttl = 1'500ms}};
    mutex of_b{b, "name"};
    auto held = of_a.acquire();
    auto const stop = held.stop_token();
    begun waiting{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(forgetful, "name") == 1; }));
    forgetful.restart();
    auto next = waiting.get();
    EXPECT_GT(next.fence(), held.fence());
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(ending_of([&] { held.release(); }).reason, errc::lease_lost);
    EXPECT_TRUE(next.valid());
    EXPECT_EQ(ending_of([&] { next.release(); }).reason, std::nullopt);
}

TEST_F(mutex_faults, of_a_server_that_hangs_end_a_hold_here_in_time) {
    client by{server.url()};
    mutex of{by, "name", {.ttl = 600ms}};
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

// The first of two equal questions may arrive last, when what the second got was given back already. Whoever had to ask twice looks
// once more, when the first can't run any more.
TEST(mutex_ghost, that_takes_a_lock_for_nobody_is_driven_out_when_its_deadline_has_passed) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client by{proxy.url()};
    mutex of{by, "name"};
    of.acquire().release();
    proxy.drop_replies(1);
    auto held = of.acquire();
    ASSERT_EQ(proxy.counters().struck, 1U);
    auto const hold = held_at(server, "name");
    held.release();
    auto const time = server.must({"TIME"}).elements;
    auto const deadline = std::to_string((std::stoll(time.at(0).text) + 4) * 1000);
    auto ghost = server.connect();
    ghost.must({"EVAL", std::string{scripts::lock_acquire.text}, "1", "lockstep:{name}:lock", hold, "30000", deadline, "1", "100000",
                "500 3600000 lockstep:wake:"});
    ASSERT_EQ(held_at(server, "name"), hold);
    EXPECT_TRUE(eventually([&] { return held_at(server, "name").empty(); }, 5s + load_slack)) << "long before the lease's end";
}

class mutex_when_the_clock_jumps : public testing::Test {
protected:
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client a{server.url()};
    client b{server.url()};
    mutex of_a{a, "name", {.ttl = 1'500ms}};
    mutex of_b{b, "name", {.ttl = 1'500ms}};
};

TEST_F(mutex_when_the_clock_jumps, back_is_kept_held_with_growing_fences) {
    auto first = of_a.acquire();
    auto const stop = first.stop_token();
    clock.step(-1h);
    auto const begin = now_ms();
    while (now_ms() < begin + 2'000) {
        ASSERT_FALSE(of_b.try_acquire()) << "after " << now_ms() - begin << " ms; the first is " << (first.valid() ? "valid" : "lost");
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
TEST_F(mutex_when_the_clock_jumps, back_is_free_within_a_ttl_when_its_holder_is_dead) {
    holder_process holder{server.url(), "name", 1'000ms};
    auto const fence = holder.acquire();
    begun waiting{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    holder.process.kill();
    clock.step(-1h);
    auto const begin = now_ms();
    auto got = waiting.get();
    EXPECT_GT(got.fence(), fence);
    EXPECT_LE(now_ms() - begin, (2 * 1'000ms + 200ms + load_slack).count());
}

TEST_F(mutex_when_the_clock_jumps, forward_is_lost_and_the_holder_is_told) {
    auto first = of_a.acquire();
    auto const stop = first.stop_token();
    clock.step(1h);
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(first.valid());
    auto next = of_b.try_acquire_for(10s);
    ASSERT_TRUE(next) << "what it asks is not late for ever";
    EXPECT_GT(next->fence(), first.fence());
}

TEST_F(mutex_when_the_clock_jumps, under_load_has_growing_fences) {
    mutex_load load{server.url(), "name", {.exclusive = false, .lease = {.ttl = 1s}}};
    ASSERT_TRUE(load.wait_for_more());
    for (auto const step : {5s, -20s, 3s, -1s, 30s, -40s, 1s, -1s}) {
        clock.step(step);
        ASSERT_TRUE(load.wait_for_more());
    }
    EXPECT_THAT(load.finish(), testing::IsEmpty());
}

}  // namespace
}  // namespace lockstep::test
