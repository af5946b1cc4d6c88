// What a client owes the server for what it asked: nothing for what was refused or never sent, one cancellation for what may have run. And
// what the server refuses just now ends nobody's wait.
#include <lockstep/event.hpp>

#include "lease_fault_support.hpp"
#include "support/failures.hpp"
#include "support/fault_proxy.hpp"
#include "support/monitor.hpp"

#include <malloc.h>

namespace lockstep::test {
namespace {

using testing::StartsWith;

std::size_t heap_in_use() { return ::mallinfo2().uordblks; }

std::string lock_key(std::string const& name) { return key_of(kind::mutex, name); }

/// Requests for leases only: it does not say at the server who it is.
client_options quiet(std::string const& url) { return {.url = url, .monitoring = false}; }

class owed : public testing::Test {
protected:
    /// 10,000 calls that fail like this leave nothing that is tried again, and no memory.
    void expect_nothing_is_left_of(client& by, mutex& of, errc reason) {
        auto const fail = [&](int times) {
            for (int i = 0; i < times; ++i) ASSERT_EQ(outcome([&] { static_cast<void>(of.try_acquire()); }), reason);
        };
        fail(1'000);  // what is kept for reuse
        auto const heap = heap_in_use();
        fail(10'000);
        expect_is_idle(by);
        EXPECT_LE(heap_in_use(), heap + heap / 20);
    }
    /// Longer than any pause between two times that something is tried.
    static void expect_is_idle(client& by) {
        EXPECT_TRUE(eventually([&] { return by.statistics().pending == 0; }));
        auto const sent = by.statistics().requests;
        auto const begin = now_ms();
        ASSERT_TRUE(eventually([&] { return now_ms() > begin + 2'500; }));
        EXPECT_EQ(by.statistics().requests, sent);
        EXPECT_EQ(by.statistics().pending, 0U);
    }
    /// How often somebody asked the server to give back or cancel something of this name.
    std::size_t cancellations(monitor& watch, std::string const& name) {
        return watch.times_of(scripts::lock_release.sha1, '"' + lock_key(name) + '"').size();
    }
    void load_scripts() {
        for (auto const* const one : {&scripts::lock_acquire, &scripts::lock_release}) {
            server.must({"SCRIPT", "LOAD", std::string{one->text}});
        }
    }

    redis_server server;
};

TEST_F(owed, nothing_is_for_what_is_of_another_type) {
    server.must({"SET", lock_key("name"), "mine"});
    client by{quiet(server.url())};
    mutex of{by, "name"};
    expect_nothing_is_left_of(by, of, errc::server);
}

TEST_F(owed, nothing_is_for_what_the_user_may_not) {
    server.must({"ACL", "SETUSER", "app", "on", ">secret", "~other", "&*", "+@all"});
    client by{quiet(server.url("app", "secret"))};
    mutex of{by, "name"};
    expect_nothing_is_left_of(by, of, errc::server);
}

TEST_F(owed, nothing_is_without_a_server) {
    auto options = quiet("unix://" + server.socket_path() + ".none");
    options.command_timeout = 1ms;
    client by{options};
    mutex of{by, "name"};
    auto const fail = [&](int times) {
        std::vector<begun<std::optional<lease>>> all;
        for (int i = 0; i < times; ++i) all.emplace_back(of.async_try_acquire());
        for (auto& one : all) EXPECT_EQ(ending_of([&] { static_cast<void>(one.get()); }).reason, errc::unavailable);
    };
    for (int i = 0; i < 3; ++i) fail(1'000);
    auto const heap = heap_in_use();
    for (int i = 0; i < 10; ++i) fail(1'000);
    expect_is_idle(by);
    EXPECT_LE(heap_in_use(), heap + heap / 20);
}

TEST_F(owed, nothing_is_for_what_was_given_up_before_it_was_sent) {
    client by{quiet(server.url())};
    by.command("PING");
    server.kill9();
    EXPECT_EQ(ending_of([&] { static_cast<void>(mutex(by, "name").try_acquire_for(200ms)); }).reason, errc::unavailable);
    server.restart();
    monitor watch{server};
    by.command("PING");
    EXPECT_EQ(cancellations(watch, "name"), 0U);
    expect_is_idle(by);
}

// The first copy's reply is lost, and the second one is refused: the first may have run, so one cancellation is sent, and again when the first
// can't run any more. Both are refused too, and that is all.
TEST_F(owed, a_cancellation_is_for_what_may_have_run_and_is_dropped_when_it_is_refused) {
    load_scripts();
    fault_proxy proxy{server.address()};
    client by{quiet(proxy.url())};
    by.command("PING");
    proxy.hold(direction::to_client);
    monitor watch{server};
    begun asked{mutex(by, "name").async_try_acquire_for(1s)};
    ASSERT_TRUE(eventually([&] { return held_at(server, "name") != ""; }));
    server.must({"SET", lock_key("name"), "mine"});
    proxy.cut();
    proxy.heal();
    EXPECT_EQ(ending_of([&] { static_cast<void>(asked.get()); }).reason, errc::server);
    ASSERT_TRUE(eventually([&] { return cancellations(watch, "name") == 2; }));
    expect_is_idle(by);
    EXPECT_EQ(cancellations(watch, "name"), 2U);
}

TEST_F(owed, what_may_have_run_is_given_back_though_its_second_copy_was_refused) {
    load_scripts();
    fault_proxy proxy{server.address()};
    client by{quiet(proxy.url())};
    by.command("PING");
    proxy.hold(direction::to_client);
    begun asked{mutex(by, "name").async_try_acquire_for(2s)};
    ASSERT_TRUE(eventually([&] { return held_at(server, "name") != ""; }));
    server.must({"RENAME", lock_key("name"), "aside"});
    server.must({"SET", lock_key("name"), "mine"});
    proxy.cut();
    proxy.heal();
    EXPECT_EQ(ending_of([&] { static_cast<void>(asked.get()); }).reason, errc::server);
    server.must({"RENAME", "aside", lock_key("name")});
    EXPECT_TRUE(eventually([&] { return held_at(server, "name") == ""; }));
    expect_is_idle(by);
}

// ---- those who wait

struct passing_trouble {
    char const* word;
    std::vector<std::string> begin, end;
};
void PrintTo(passing_trouble const& one, std::ostream* out) { *out << one.word; }

class waiting_through : public testing::TestWithParam<passing_trouble> {
protected:
    /// The one who has it is killed, so that somebody has to look.
    void let_holder_die() {
        server.must({"CONFIG", "RESETSTAT"});
        server.must(GetParam().begin);
        holder.process.kill();
    }
    long refusals() { return errors_of(server, GetParam().word); }

    redis_server server;
    client b{server.url()};
    holder_process holder{kind::mutex, server.url(), 600ms};
};
INSTANTIATE_TEST_SUITE_P(trouble, waiting_through,
                         testing::Values(passing_trouble{"OOM", {"CONFIG", "SET", "maxmemory", "1"}, {"CONFIG", "SET", "maxmemory", "0"}},
                                         passing_trouble{"NOREPLICAS",
                                                         {"CONFIG", "SET", "min-replicas-to-write", "1"},
                                                         {"CONFIG", "SET", "min-replicas-to-write", "0"}}),
                         [](auto const& one) { return std::string{one.param.word}; });

TEST_P(waiting_through, ends_no_wait) {
    holder.acquire();
    mutex of_b{b, "name", {.ttl = 1s}};
    begun first{of_b.async_acquire()};
    begun second{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    let_holder_die();
    EXPECT_TRUE(eventually([&] { return refusals() >= 2; })) << "it looks when the lease is over, and again";
    EXPECT_FALSE(first.done());
    EXPECT_FALSE(second.done());
    EXPECT_EQ(outcome([&] { static_cast<void>(mutex(b, "other").try_acquire()); }), errc::server) << "who does not wait is told";
    server.must(GetParam().end);
    first.get().release();
    EXPECT_TRUE(second.get().valid());
}

TEST_P(waiting_through, causes_no_more_looks_than_usual) {
    holder.acquire();
    begun waiting{mutex(b, "name", {.ttl = 1s}).async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    let_holder_die();
    auto const begin = now_ms();
    ASSERT_TRUE(eventually([&] { return now_ms() > begin + 3'500; }));
    EXPECT_GE(refusals(), 1);
    EXPECT_LE(refusals(), 6);
    server.must(GetParam().end);
    EXPECT_TRUE(waiting.get().valid());
}

TEST(waiting_for_long, a_busy_server_ends_no_wait) {
    redis_server server{{.config = {"busy-reply-threshold 1"}}};
    client a{server.url()};
    client b{{.url = server.url(), .command_timeout = 300ms}};
    auto const held = mutex(a, "name", {.ttl = 500ms, .renew = false}).acquire();
    begun waiting{mutex(b, "name", {.ttl = 500ms}).async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    auto busy = server.connect();
    busy.send({"EVAL", "while true do end", "0"});
    auto const begin = now_ms();
    ASSERT_TRUE(eventually([&] { return now_ms() > begin + 2'000; }));
    EXPECT_FALSE(waiting.done());
    ASSERT_TRUE(eventually([&] { return !server.command({"SCRIPT", "KILL"}).is_error(); }));
    EXPECT_TRUE(waiting.get().valid());
}

TEST(waiting_for_long, a_refusal_that_stays_ends_the_wait) {
    redis_server server;
    client a{server.url()};
    client b{quiet(server.url())};
    auto const held = mutex(a, "name", {.ttl = 500ms, .renew = false}).acquire();
    begun waiting{mutex(b, "name").async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    server.must({"SET", lock_key("name"), "mine"});
    auto const end = ending_of([&] { static_cast<void>(waiting.get()); });
    EXPECT_EQ(end.reason, errc::server);
    EXPECT_THAT(end.text, StartsWith("WRONGTYPE"));
}

// ---- maxmemory

class at_maxmemory : public testing::TestWithParam<kind> {
protected:
    redis_server server;
    client a{server.url()};
    client b{server.url()};
};
INSTANTIATE_TEST_SUITE_P(of, at_maxmemory,
                         testing::Values(kind::mutex, kind::recursive_mutex, kind::writer, kind::reader, kind::permits, kind::one_permit),
                         [](auto const& of) { return name_of(of.param); });

TEST_P(at_maxmemory, a_lease_is_kept_and_handed_on) {
    holdable of_a{GetParam(), a, "name", {.ttl = 4s}};
    holdable of_b{GetParam(), b, "name", {.ttl = 4s}};
    holdable of_c{GetParam(), b, "other", {.ttl = 4s}};
    auto held = of_a.acquire();
    auto const stop = held.stop_token();
    bool const shares = GetParam() == kind::reader || GetParam() == kind::one_permit;
    record written{server, key_of(GetParam(), "name")};
    std::optional<begun<lease>> waiting;
    if (!shares) {
        waiting.emplace(of_b.async_acquire());
        ASSERT_TRUE(eventually([&] { return written.waiting() == 1; }));
    }
    server.must({"CONFIG", "SET", "maxmemory", "1"});
    auto const begin = now_ms();
    ASSERT_TRUE(eventually([&] { return now_ms() > begin + 6'000; })) << "longer than its ttl";
    EXPECT_TRUE(held.valid());
    EXPECT_FALSE(stop.stop_requested());
    EXPECT_THAT(ending_of([&] { static_cast<void>(of_c.try_acquire()); }).text, StartsWith("OOM"));
    held.extend(4s);
    held.release();
    if (waiting) {
        auto next = waiting->get();
        EXPECT_GT(next.fence(), held.fence());
        next.release();
    }
    EXPECT_TRUE(eventually([&] { return !written.held(); }));
    server.must({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_TRUE(of_b.try_acquire());
}

}  // namespace
}  // namespace lockstep::test
