// Leases behind a bad network: the same for all kinds of which one hold excludes another. Bad servers: lease_server_test.cpp.
#include "lease_fault_support.hpp"
#include "lease_load.hpp"
#include "scripts/all.hpp"
#include "support/fault_proxy.hpp"

namespace lockstep::test {
namespace {

// `far` reaches the server through a proxy that loses what it is told to lose; `near` does not.
class lease_with_lost_replies : public testing::TestWithParam<kind> {
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
    holdable of_far{GetParam(), far, "name"};
    holdable of_near{GetParam(), near, "name"};
    record written{server, key_of(GetParam(), "name")};
    std::uint64_t struck = 0;
};
INSTANTIATE_TEST_SUITE_P(of, lease_with_lost_replies, exclusive_kinds(), kind_name);

TEST_P(lease_with_lost_replies, acquires_once_though_the_answer_was_lost) {
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

TEST_P(lease_with_lost_replies, queues_once_though_the_answer_was_lost) {
    warm_up();
    auto held = of_near.acquire();
    lose_next_reply();
    begun waiting{of_far.async_acquire()};
    ASSERT_TRUE(eventually([&] { return proxy.counters().struck == struck && proxy.counters().accepted > 1; }));
    ASSERT_TRUE(eventually([&] { return written.waiting() == 1; }));
    held.release();
    auto next = waiting.get();
    EXPECT_GT(next.fence(), held.fence());
    EXPECT_EQ(written.waiting(), 0);
}

// The push arrives, then the first byte of the answer to the claim, and then the connection breaks.
TEST_P(lease_with_lost_replies, claims_once_though_the_answer_was_lost) {
    auto held = of_near.acquire();
    begun waiting{of_far.async_acquire()};
    ASSERT_TRUE(eventually([&] { return written.waiting() == 1; }));
    auto const hold = written.first_waiting();
    auto const channel = "lockstep:wake:" + hold.substr(0, hold.find('.'));
    auto const bulk = [](std::string const& text) {
        return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    };
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
    EXPECT_TRUE(written.held_by(hold)) << "with the id under which it waited";
    EXPECT_FALSE(of_near.try_acquire());
    got.release();
    EXPECT_TRUE(of_near.try_acquire());
}

TEST_P(lease_with_lost_replies, stays_held_though_the_answer_to_a_renewal_was_lost) {
    holdable brief{GetParam(), far, "name", {.ttl = 900ms}};
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

TEST_P(lease_with_lost_replies, is_released_once_though_the_answer_was_lost) {
    warm_up();
    auto held = of_far.acquire();
    lose_next_reply();
    held.release();  // and throws nothing
    EXPECT_TRUE(of_near.try_acquire());
}

// Sent again, the release must not take it from the one that has it by then.
TEST_P(lease_with_lost_replies, is_handed_on_once_though_the_answer_was_lost) {
    warm_up();
    auto held = of_far.acquire();
    begun waiting{of_near.async_acquire()};
    ASSERT_TRUE(eventually([&] { return written.waiting() == 1; }));
    lose_next_reply();
    held.release();
    auto next = waiting.get();
    EXPECT_TRUE(next.valid());
    EXPECT_TRUE(written.held());
    EXPECT_FALSE(of_far.try_acquire());
    next.release();
}

// Its end here counts from when the request was sent: an answer that took its time must not make the lease longer.
TEST_P(lease_with_lost_replies, ends_here_before_it_ends_there_though_answers_are_slow) {
    warm_up();
    for (bool const renewed : {false, true}) {
        SCOPED_TRACE(renewed ? "renewed" : "fixed");
        proxy.delay(100ms, direction::to_client);
        holdable brief{GetParam(), far, "name", {.ttl = 600ms, .renew = renewed}};
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

// The first of two equal questions may arrive last, when what the second got was given back already. Whoever had to ask twice looks
// once more, when the first can't run any more; or when it leaves.
class lease_of_a_ghost : public lease_with_lost_replies {
protected:
    /// For nobody.
    void take() {
        warm_up();
        lose_next_reply();
        auto held = of_far.acquire();
        auto const hold = written.holder();
        held.release();
        auto const time = server.must({"TIME"}).elements;
        auto const deadline = std::to_string((std::stoll(time.at(0).text) + 4) * 1000);
        bool const is_mutex = GetParam() == kind::mutex;
        auto const& script = is_mutex ? scripts::lock_acquire : scripts::pool_acquire;
        std::vector<std::string> late{
            "EVAL",   std::string{script.text}, "1",      key_of(GetParam(), "name"),  hold, "30000",
            deadline, is_mutex ? "1" : "2",     "100000", "500 3600000 lockstep:wake:"};
        if (!is_mutex) late.insert(late.end(), {"3", ""});
        server.must(late);
        ASSERT_TRUE(written.held_by(hold));
    }
};
INSTANTIATE_TEST_SUITE_P(of, lease_of_a_ghost, testing::Values(kind::mutex, kind::permits), kind_name);

TEST_P(lease_of_a_ghost, is_given_back_when_its_deadline_has_passed) {
    take();
    EXPECT_TRUE(eventually([&] { return !written.held(); }, 5s + load_slack)) << "long before the lease's end";
}

TEST_P(lease_of_a_ghost, is_given_back_when_the_client_closes) {
    take();
    far.close();
    EXPECT_FALSE(written.held());
}

class lease_faults : public testing::TestWithParam<kind> {
protected:
    redis_server server;
    record written{server, key_of(GetParam(), "name")};
};
INSTANTIATE_TEST_SUITE_P(of, lease_faults, exclusive_kinds(), kind_name);

// It counts as lost here a tenth of its ttl before the server gives it to anybody: time for whoever had it to stop. Fences are the server's
// time in microseconds, so the next one tells when it was granted.
TEST_P(lease_faults, leave_a_holder_whose_time_is_over_the_rest_of_it_to_stop) {
    client one{server.url()};
    client other{server.url()};
    auto held = holdable{GetParam(), one, "name", {.ttl = 2s, .renew = false}}.acquire();
    auto const next = holdable{GetParam(), other, "name"}.acquire();
    EXPECT_FALSE(held.valid());
    EXPECT_GE(next.fence(), held.fence() + 1'900'000) << "at nine tenths it counted as lost; its ttl is counted from when it was asked for";
}

// Who hands on to another process looks once more whether that arrived, and stops looking when it asks for itself.
TEST_P(lease_faults, are_not_needed_for_a_hand_off_between_processes) {
    lease_load load{GetParam(), server.url()};
    EXPECT_TRUE(load.wait_for_more(300));
    EXPECT_THAT(load.finish(), testing::IsEmpty());
    EXPECT_EQ(load.losses(), 0U);
}

TEST_P(lease_faults, while_waiting_are_survived_by_asking_again) {
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    client near{server.url()};
    holdable of_far{GetParam(), far, "name", {.ttl = 60s}};
    holdable of_near{GetParam(), near, "name", {.ttl = 60s}};
    auto held = of_near.acquire();
    begun waiting{of_far.async_acquire()};
    ASSERT_TRUE(eventually([&] { return written.waiting() == 1; }));
    for (int i = 0; i < 10; ++i) {
        auto const before = proxy.counters().accepted;
        proxy.cut();
        ASSERT_TRUE(eventually([&] { return proxy.counters().accepted > before && proxy.counters().open == 1; }));
    }
    ASSERT_TRUE(eventually([&] { return written.waiting() == 1; })) << "one place, however often it came";

    // Released while it cannot hear: it finds out when it is back, long before anything runs out.
    proxy.refuse();
    proxy.cut();
    ASSERT_TRUE(eventually([&] { return server.connections() == 1; }));
    held.release();
    proxy.heal();
    EXPECT_TRUE(waiting.get(10s + load_slack).valid());
}

TEST_P(lease_faults, of_a_network_that_breaks_again_and_again_harm_nobody) {
    std::vector<std::unique_ptr<fault_proxy>> ways;
    std::vector<std::string> urls;
    for (int i = 0; i < 3; ++i) {
        ways.push_back(std::make_unique<fault_proxy>(server.address()));
        urls.push_back(ways.back()->url());
    }
    lease_load load{GetParam(), urls, {}};
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
    EXPECT_TRUE(eventually([&] { return written.idle(); }, 20s)) << written.text();
}

// The cancellation can't be said while the server is away; it is owed until it can.
TEST_P(lease_faults, while_giving_up_leave_nobody_in_the_queue) {
    fault_proxy proxy{server.address()};
    client far{{.url = proxy.url(), .command_timeout = 500ms}};
    client near{server.url()};
    holdable there{GetParam(), far, "name"};
    holdable here{GetParam(), near, "name"};
    auto held = here.acquire();
    std::stop_source stop;
    begun next{with_stop_token(there.async_acquire(), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return written.waiting() == 1; }));
    proxy.refuse();
    proxy.cut();
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { static_cast<void>(next.get()); }).reason, errc::cancelled);
    auto const until = now_ms() + 6'500;  // longer than a cancellation is tried at a time
    EXPECT_TRUE(eventually([&] { return now_ms() > until; }));
    EXPECT_EQ(written.waiting(), 1);
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return written.waiting() == 0; }));
}

}  // namespace
}  // namespace lockstep::test
