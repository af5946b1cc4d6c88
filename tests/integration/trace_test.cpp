// Records of what happens: to a hook, to a file, to the flight recorder; and what is made of them.
#include "lease_support.hpp"
#include "support/eventually.hpp"
#include "support/scratch_dir.hpp"

#include <lockstep/broadcast_event.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/error.hpp>
#include <lockstep/event.hpp>
#include <lockstep/latch.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/trace.hpp>

#include <gmock/gmock.h>

#include <fstream>
#include <mutex>
#include <thread>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct seen_record {
    std::string what, kind, use, name, hold, trace, detail;
    std::uint64_t fence;
    std::chrono::microseconds waited, held;
    std::chrono::system_clock::time_point at;
};

class trace : public testing::Test {
protected:
    trace_hook hook() {
        return [this](trace_record const& one) {
            std::lock_guard const guard{lock};
            seen.push_back({std::string{to_string(one.what)}, std::string{one.kind}, std::string{one.use}, std::string{one.name},
                            std::string{one.hold}, std::string{one.trace}, std::string{one.detail}, one.fence, one.waited, one.held, one.at});
        };
    }
    std::vector<seen_record> records() {
        std::lock_guard const guard{lock};
        return seen;
    }
    std::vector<std::string> words() {
        std::vector<std::string> found;
        for (auto const& one : records()) found.push_back(one.what);
        return found;
    }

    redis_server server;
    std::mutex lock;
    std::vector<seen_record> seen;
};

TEST_F(trace, tells_of_a_hold_from_its_beginning_to_its_end) {
    client a{{.url = server.url(), .trace = hook()}};
    auto held = mutex(a, "x").acquire();
    auto const fence = held.fence();
    held.release();
    ASSERT_THAT(words(), ElementsAre("acquired", "released"));
    auto const all = records();
    EXPECT_EQ(all[0].kind, "lock");
    EXPECT_EQ(all[0].use, "owner");
    EXPECT_EQ(all[0].name, "x");
    EXPECT_EQ(all[0].fence, fence);
    EXPECT_EQ(all[1].fence, fence);
    EXPECT_EQ(all[1].hold, all[0].hold);
    EXPECT_FALSE(all[0].hold.empty());
    EXPECT_LE(all[0].at, all[1].at);
    EXPECT_LT(std::chrono::abs(all[0].at - std::chrono::system_clock::now()), 1min) << "by the server's clock, which is this one's";
}

TEST_F(trace, tells_of_waits_timeouts_cancellations_and_losses) {
    client a{server.url()};
    client b{{.url = server.url(), .trace = hook()}};
    auto held = mutex(a, "x").acquire();
    EXPECT_FALSE(mutex(b, "x").try_acquire_for(20ms));
    EXPECT_THAT(words(), ElementsAre("queued", "timed_out"));
    EXPECT_GT(records()[1].waited, 0ms) << "from when its request arrived: on a busy machine later than it was made";
    std::stop_source stop;
    begun waits{with_stop_token(mutex(b, "x").async_acquire(), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return words().size() == 3; }));
    stop.request_stop();
    ASSERT_TRUE(eventually([&] { return words().size() == 4; }));
    EXPECT_EQ(words().back(), "cancelled");
    held.release();
    auto const lost = mutex(b, "x", {.ttl = 200ms}).acquire();
    server.must({"DEL", "lockstep:{x}:lock"});
    ASSERT_TRUE(eventually([&] { return words().back() == "lost"; }));
    EXPECT_THAT(records().back().detail, HasSubstr("the server does not know it any more"));
}

TEST_F(trace, carries_the_id_that_its_thread_has_set) {
    client a{{.url = server.url(), .trace = hook()}};
    {
        trace_scope const outer{"order-1"};
        auto held = mutex(a, "x").acquire();
        {
            trace_scope const inner{std::string(100, 'i')};
            auto permit = counting_semaphore::create(a, "s", 2).acquire();
            permit.release();
        }
        held.release();
    }
    mutex(a, "y").acquire().release();
    auto const all = records();
    ASSERT_EQ(all.size(), 6U);
    EXPECT_EQ(all[0].trace, "order-1");
    EXPECT_EQ(all[1].trace, std::string(64, 'i'));
    EXPECT_EQ(all[2].trace, std::string(64, 'i'));
    EXPECT_EQ(all[3].trace, "order-1") << "the release belongs to the acquisition";
    EXPECT_EQ(all[4].trace, "");
}

TEST_F(trace, tells_of_what_all_wait_for_together) {
    client a{{.url = server.url(), .trace = hook()}};
    latch done{a, "done", 1};
    begun waits{as_true(done.async_wait())};
    ASSERT_TRUE(eventually([&] { return words().size() == 1; }));
    done.count_down(1);
    waits.get();
    EXPECT_FALSE(broadcast_event(a, "open").wait_for(20ms));
    event(a, "ready").set();
    EXPECT_THAT(words(), testing::UnorderedElementsAre("queued", "signalled", "passed", "queued", "timed_out", "signalled"));
    auto all = records();
    if (all[1].what == "passed") std::swap(all[1], all[2]);  // the push may come before the reply
    EXPECT_EQ(all[1].detail, "count_down");
    EXPECT_EQ(all[2].kind, "latch");
    EXPECT_EQ(all[2].name, "done");
    EXPECT_EQ(all[4].use, "set");
    EXPECT_EQ(all[5].kind, "event");
}

TEST_F(trace, goes_on_when_the_hook_throws) {
    client a{{.url = server.url(), .trace = [](trace_record const&) { throw std::runtime_error{"full"}; }}};
    EXPECT_TRUE(mutex(a, "x").acquire().valid());
}

TEST_F(trace, writes_lines_of_json) {
    scratch_dir const folder;
    auto const file = (folder.path() / "trace.jsonl").string();
    {
        client a{{.url = server.url(), .trace = json_lines(file)}};
        trace_scope const scope{"a\"b"};
        mutex(a, "na\nme \xff").acquire().release();
    }
    std::ifstream in{file};
    std::string first, second, third;
    std::getline(in, first);
    std::getline(in, second);
    EXPECT_FALSE(std::getline(in, third));
    EXPECT_THAT(first, HasSubstr(R"("what":"acquired","kind":"lock","use":"owner","name":"na\nme )"));
    EXPECT_THAT(first, HasSubstr("\xEF\xBF\xBD")) << "what is no UTF-8 is replaced";
    EXPECT_THAT(first, HasSubstr(R"("trace":"a\"b")"));
    EXPECT_THAT(second, HasSubstr(R"("what":"released")"));
    EXPECT_THROW(json_lines((folder.path() / "no" / "such.jsonl").string()), invalid_argument_error);
}

TEST_F(trace, is_kept_by_the_flight_recorder_and_found_by_name) {
    client eye{server.url()};
    {
        client a{{.url = server.url(), .name = "records", .record = true}};
        for (int i = 0; i < 3; ++i) mutex(a, "x").acquire().release();
        mutex(a, "other").acquire().release();
    }
    auto const history = lockstep::monitor(eye).history("x");
    ASSERT_EQ(history.size(), 6U);
    EXPECT_EQ(history[0].what, "acquired");
    EXPECT_EQ(history[0].fence, history[1].fence);
    EXPECT_LT(history[0].fence, history[2].fence);
    EXPECT_THAT(history[0].owner, testing::StartsWith("records "));
    EXPECT_EQ(lockstep::monitor(eye).history().size(), 8U);
    EXPECT_TRUE(verify(history).empty());
    EXPECT_EQ(lockstep::monitor(eye).history("x", 2).size(), 2U) << "the newest";
}

TEST_F(trace, tells_how_it_ends_when_the_client_is_closed_while_it_holds_something) {
    client eye{server.url()};
    {
        client a{{.url = server.url(), .record = true}};
        auto const held = mutex(a, "x").acquire();
        a.close();
    }
    auto const history = lockstep::monitor(eye).history("x");
    ASSERT_EQ(history.size(), 2U);
    EXPECT_EQ(history[1].what, "released");
    EXPECT_EQ(lockstep::monitor(eye).statistics("x").at(1).held.count, 1U) << "and it is counted";
}

TEST_F(trace, of_the_recorder_is_capped) {
    {
        client a{{.url = server.url(), .record = true, .record_limit = 200}};
        mutex busy{a, "x"};
        for (int i = 0; i < 1'000; ++i) busy.acquire().release();
    }
    auto const length = server.must({"XLEN", "lockstep:{record}:log"}).integer;
    EXPECT_GE(length, 200);
    EXPECT_LE(length, 500) << "the server cuts whole nodes";
}

TEST_F(trace, of_many_processes_that_contend_has_nothing_to_verify) {
    client a{{.url = server.url(), .record = true}};
    client b{{.url = server.url(), .record = true}};
    auto const contend = [](client& by) {
        for (int i = 0; i < 50; ++i) mutex(by, "x").acquire().release();
    };
    std::thread beside{contend, std::ref(b)};
    contend(a);
    beside.join();
    a.close();
    b.close();
    client eye{server.url()};
    auto const records = lockstep::monitor(eye).history("x");
    EXPECT_GE(records.size(), 200U);
    for (auto const& one : verify(records)) ADD_FAILURE() << one.text;
}

}  // namespace
}  // namespace lockstep::test
