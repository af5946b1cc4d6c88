// What a shared value promises, in both forms on every topology; then under faults.
#include <lockstep/json.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/shared_value.hpp>

#include "state_support.hpp"
#include "support/log_lines.hpp"

#include <malloc.h>

#include <algorithm>
#include <future>
#include <stop_token>

namespace lockstep::test {
namespace {

using text = shared_value<std::string>;
using number = shared_value<int>;

std::string const key = "lockstep:{name}:value";

class shared_value_contract : public contract {
protected:
    template <class V>
    auto get(client& by, V& which) {
        return run(
            by, [&] { return which.get(); }, [&] { return which.async_get(); });
    }
    template <class V, class T>
    std::uint64_t set(client& by, V& which, T value, write_options how = {}) {
        return run(
            by, [&] { return which.set(value, how); }, [&] { return which.async_set(value, how); });
    }
    template <class V, class T>
    auto compare_and_set(client& by, V& which, std::uint64_t version, T value, write_options how = {}) {
        return run(
            by, [&] { return which.compare_and_set(version, value, how); }, [&] { return which.async_compare_and_set(version, value, how); });
    }
    template <class V>
    bool erase(client& by, V& which, write_options how = {}) {
        return run(
            by, [&] { return which.erase(how); }, [&] { return which.async_erase(how); });
    }
    template <class V, class F>
    auto update(client& by, V& which, F change) {
        return run(
            by, [&] { return which.update(change); }, [&] { return which.async_update(change); });
    }
    bool exists(client& by, text& which) {
        return run(
            by, [&] { return which.exists(); }, [&] { return which.async_exists(); });
    }
    text::result wait_newer(client& by, text& which, std::uint64_t version, std::chrono::milliseconds time) {
        return run(
            by, [&] { return which.wait_newer(version, time); }, [&] { return which.async_wait_newer(version, time); });
    }
    versioned<std::string> wait_newer(client& by, text& which, std::uint64_t version) {
        return run(
            by, [&] { return which.wait_newer(version); }, [&] { return which.async_wait_newer(version); });
    }
    /// How many listen for its changes, at the server.
    std::int64_t listeners() {
        auto const by = [&](char const* word) { return server.must({"PUBSUB", word, key}).elements.at(1).integer; };
        return by("NUMSUB") + by("SHARDNUMSUB");
    }
    template <class V, class F>
    watching watch(client& by, V& which, F handler) {
        return run(
            by, [&] { return which.watch(handler); }, [&] { return which.async_watch(handler); });
    }

    text of_a{a, "name"};
    text of_b{b, "name"};
};
LOCKSTEP_CONTRACT(shared_value_contract);

TEST_P(shared_value_contract, is_read_by_all_as_it_was_set_last_and_versions_grow) {
    EXPECT_FALSE(get(a, of_a));
    EXPECT_FALSE(exists(a, of_a));
    auto const first = set(a, of_a, "one");
    auto const second = set(b, of_b, std::string("tw\0o", 4));
    EXPECT_GT(first, 0U);
    EXPECT_GT(second, first);
    auto const now = get(a, of_a);
    ASSERT_TRUE(now);
    EXPECT_EQ(now->value, std::string("tw\0o", 4));
    EXPECT_EQ(now->version, second);
    EXPECT_TRUE(exists(b, of_b));
    EXPECT_EQ(server.must({"PTTL", key}).integer, -1) << "what has no ttl stays";
}

TEST_P(shared_value_contract, is_set_by_version_only_when_it_is_that_version) {
    EXPECT_FALSE(compare_and_set(a, of_a, 7, "x"));
    auto const first = compare_and_set(a, of_a, 0, "one");
    ASSERT_TRUE(first);
    EXPECT_FALSE(compare_and_set(b, of_b, 0, "late"));
    EXPECT_FALSE(compare_and_set(b, of_b, *first - 1, "late"));
    auto const second = compare_and_set(b, of_b, *first, "two");
    ASSERT_TRUE(second);
    EXPECT_FALSE(compare_and_set(a, of_a, *first, "late"));
    EXPECT_EQ(get(a, of_a)->value, "two");
    EXPECT_TRUE(erase(a, of_a));
    EXPECT_FALSE(compare_and_set(a, of_a, *second, "late"));
    EXPECT_GT(*compare_and_set(a, of_a, 0, "three"), *second);
}

TEST_P(shared_value_contract, is_updated_by_many_without_losing_one) {
    number count_a{a, "name"};
    number count_b{b, "name"};
    auto const add = [](std::optional<int> const& now) { return now.value_or(0) + 1; };
    std::vector<begun<number::result>> updates;
    for (int i = 0; i < 10; ++i) {
        updates.emplace_back(count_a.async_update(add));
        updates.emplace_back(count_b.async_update(add));
    }
    for (int i = 0; i < 5; ++i) update(a, count_a, add);
    for (auto& one : updates) EXPECT_TRUE(one.get());
    EXPECT_EQ(get(b, count_b)->value, 25);
    auto const none = [](std::optional<int> const&) { return std::optional<int>{}; };
    EXPECT_EQ(update(a, count_a, none)->value, 25) << "left as it is";
    auto const throws = [](std::optional<int> const&) -> int { throw std::runtime_error("no"); };
    EXPECT_THROW(update(a, count_a, throws), std::runtime_error);
}

TEST_P(shared_value_contract, refuses_a_stale_fence_also_after_the_value_has_ended) {
    set(a, of_a, "by 5", {.fence = 5});
    EXPECT_EQ(ending_of([&] { set(b, of_b, "by 4", {.fence = 4}); }).reason, errc::stale_fence);
    EXPECT_EQ(ending_of([&] { static_cast<void>(compare_and_set(b, of_b, 0, "by 4", {.fence = 4})); }).reason, errc::stale_fence);
    EXPECT_EQ(ending_of([&] { erase(b, of_b, {.fence = 4}); }).reason, errc::stale_fence);
    EXPECT_EQ(get(a, of_a)->value, "by 5");
    set(a, of_a, "again by 5", {.fence = 5});
    EXPECT_TRUE(erase(a, of_a, {.fence = 6}));
    EXPECT_EQ(ending_of([&] { set(a, of_a, "by 5", {.fence = 5}); }).reason, errc::stale_fence) << "after an erase";
    set(a, of_a, "by 7", {.ttl = 1ms, .fence = 7});
    EXPECT_TRUE(eventually([&] { return !get(a, of_a); }));
    EXPECT_EQ(ending_of([&] { set(a, of_a, "by 6", {.fence = 6}); }).reason, errc::stale_fence) << "after the ttl";
    set(a, of_a, "by nobody");
    EXPECT_EQ(ending_of([&] { set(a, of_a, "by 6", {.fence = 6}); }).reason, errc::stale_fence) << "after a write without";
    // The way it is meant to be used.
    mutex guard{a, "name"};
    auto lease = guard.acquire();
    set(a, of_a, "by the holder", {.fence = lease.fence()});
    auto const old = lease.fence();
    lease.release();
    auto next = guard.acquire();
    set(b, of_b, "by the next", {.fence = next.fence()});
    EXPECT_EQ(ending_of([&] { set(a, of_a, "too late", {.fence = old}); }).reason, errc::stale_fence);
    EXPECT_EQ(get(b, of_b)->value, "by the next");
}

TEST_P(shared_value_contract, ends_with_its_ttl_and_leaves_no_key_for_good) {
    text brief{a, "name", {.ttl = 40ms, .retention = 100ms}};
    auto const first = set(a, brief, "brief");
    EXPECT_TRUE(eventually([&] { return !get(b, of_b); }));
    EXPECT_FALSE(erase(a, brief));
    auto const is_gone_soon = [&] {
        auto const left = server.must({"PTTL", key}).integer;
        EXPECT_GT(left, 100'000) << "as long as a call may be sent again, and longer";
        EXPECT_LE(left, 120'040);
        server.must({"PEXPIRE", key, "1"});
        return eventually([&] { return server.must({"EXISTS", key}).integer == 0; });
    };
    EXPECT_TRUE(is_gone_soon());
    auto const second = set(a, brief, "longer", {.ttl = 1h});
    EXPECT_GT(second, first) << "also after all was forgotten";
    EXPECT_GT(server.must({"PTTL", key}).integer, 1000 * 3600);
    set(a, brief, "for good", {.ttl = 0ms});
    EXPECT_EQ(server.must({"PTTL", key}).integer, -1);
    EXPECT_TRUE(erase(a, brief));
    EXPECT_FALSE(erase(a, brief));
    EXPECT_TRUE(is_gone_soon());
}

TEST_P(shared_value_contract, leaves_its_bytes_for_long_only_where_a_fence_is_to_be_remembered) {
    auto const stays = [&] { return server.must({"PTTL", key}).integer; };
    auto constexpr minute = 60'000;
    auto constexpr day = 86'400'000;
    set(a, of_a, "brief", {.ttl = 1min});
    EXPECT_LE(stays(), 3 * minute);
    set(a, of_a, "guarded", {.ttl = 1min, .fence = 5});
    EXPECT_GT(stays(), day);
    set(a, of_a, "not guarded any more", {.ttl = 1min});
    EXPECT_GT(stays(), day) << "the fence is still known";
    server.must({"DEL", key});
    set(a, of_a, "one");
    text brief{a, "name", {.ttl = 1h}};
    EXPECT_TRUE(erase(a, brief));
    EXPECT_GT(stays(), day - minute) << "versions";
    EXPECT_LE(stays(), day) << "what is erased has no ttl";
}

TEST_P(shared_value_contract, tells_those_who_watch) {
    set(a, of_a, "before");
    told<std::string> heard;
    std::vector<std::uint64_t> versions;
    auto watching = watch(b, of_b, [&](text::result const& now) {
        if (now) versions.push_back(now->version);
        heard.add(now ? now->value : "(none)");
    });
    EXPECT_THAT(heard.all(), testing::ElementsAre("before"));
    set(a, of_a, "after");
    EXPECT_TRUE(eventually([&] { return heard.last() == "after"; }));
    erase(a, of_a);
    EXPECT_TRUE(eventually([&] { return heard.last() == "(none)"; }));
    std::string const large(100'000, 'x');
    set(a, of_a, large);
    EXPECT_TRUE(eventually([&] { return heard.last() == large; })) << "too large for a push, so it looks";
    auto const count = heard.size();
    watching.stop();
    set(a, of_a, "unheard");
    catch_up(b);
    EXPECT_EQ(heard.size(), count);
    EXPECT_TRUE(std::is_sorted(versions.begin(), versions.end()));
    EXPECT_EQ(ending_of([&] { static_cast<void>(of_a.watch({})); }).reason, errc::invalid_argument);
}

TEST_P(shared_value_contract, is_waited_for_until_there_is_a_newer_one) {
    EXPECT_FALSE(wait_newer(b, of_b, 0, 0ms));
    auto const first = set(a, of_a, "one");
    EXPECT_EQ(wait_newer(b, of_b, 0, 0ms)->value, "one");
    EXPECT_EQ(wait_newer(b, of_b, 0).version, first) << "one that is there is newer than none";
    EXPECT_FALSE(wait_newer(b, of_b, first, 0ms));
    EXPECT_FALSE(wait_newer(b, of_b, first, 50ms)) << "nobody wrote";

    auto waiting = std::async(std::launch::async, [&] { return wait_newer(b, of_b, first); });
    auto waiting_for_long = std::async(std::launch::async, [&] { return wait_newer(b, of_b, first, std::chrono::milliseconds::max()); });
    EXPECT_TRUE(eventually([&] { return listeners() > 0; }));
    erase(a, of_a);
    auto const second = set(a, of_a, std::string(100'000, 'x'));
    EXPECT_EQ(waiting.get().version, second) << "an erased value is none, and a large one is read";
    EXPECT_EQ(waiting_for_long.get()->version, second);
    EXPECT_TRUE(eventually([&] { return listeners() == 0; })) << "nobody listens any more";
}

TEST_P(shared_value_contract, costs_nothing_while_it_is_waited_for) {
    auto const first = set(a, of_a, "one");
    begun waiting{of_b.async_wait_newer(first)};
    auto const scripts = [&] { return calls_of(server, "evalsha") + calls_of(server, "eval") + calls_of(server, "evalsha_ro") + calls_of(server, "eval_ro"); };
    EXPECT_TRUE(eventually([&] { return listeners() == 1; }));
    catch_up(b);
    auto const before = scripts();
    for (int i = 0; i < 20; ++i) set(a, of_a, "one", {.fence = 0});  // 20 of them, of which it hears
    EXPECT_GT(waiting.get().version, first);
    EXPECT_LE(scripts() - before, 21) << "a value that is pushed is not read";
}

TEST_P(shared_value_contract, is_waited_for_no_longer_than_wanted) {
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&] { return ending_of([&] { static_cast<void>(of_b.wait_newer(0, stop.get_token())); }).reason; });
    EXPECT_TRUE(eventually([&] { return listeners() > 0; }));
    stop.request_stop();
    EXPECT_EQ(waiting.get(), errc::cancelled);
    EXPECT_TRUE(eventually([&] { return listeners() == 0; }));
    client closed{url()};
    text of_closed{closed, "name"};
    begun still{of_closed.async_wait_newer(0)};
    EXPECT_TRUE(eventually([&] { return listeners() > 0; }));
    closed.close();
    EXPECT_EQ(ending_of([&] { static_cast<void>(still.get()); }).reason, errc::cancelled);
}

TEST_P(shared_value_contract, refuses_what_it_cannot_use_and_changes_nothing) {
    EXPECT_EQ(ending_of([&] { text(a, ""); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { text(a, "x", {.ttl = -1ms}); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { text(a, "x", {.retention = 0ms}); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { set(a, of_a, "x", {.fence = 1ULL << 60}); }).reason, errc::invalid_argument);
    set(a, of_a, "no number");
    number as_number{a, "name"};
    EXPECT_EQ(ending_of([&] { static_cast<void>(get(a, as_number)); }).reason, errc::conversion);
    server.must({"DEL", key});
    server.must({"HSET", key, "mine", "1"});
    EXPECT_EQ(ending_of([&] { set(a, of_a, "x"); }).reason, errc::server);
    EXPECT_EQ(ending_of([&] { static_cast<void>(get(a, of_a)); }).reason, errc::server);
    EXPECT_EQ(server.must({"HLEN", key}).integer, 1);
}

struct order {
    int id = 0;
    std::string customer;
    bool operator==(order const&) const = default;
};
BOOST_DESCRIBE_STRUCT(order, (), (id, customer))

TEST_P(shared_value_contract, keeps_structs_as_json) {
    shared_value<order> last{a, "name"};
    set(a, last, order{7, "Ada"});
    EXPECT_EQ(get(a, last)->value, (order{7, "Ada"}));
    EXPECT_EQ(get(b, of_b)->value, R"({"id":7,"customer":"Ada"})");
}

class shared_value_faults : public testing::Test {
protected:
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    text here{near, "name"};
    text there{far, "name"};
};

TEST_F(shared_value_faults, a_write_whose_reply_is_lost_is_one_version) {
    there.set("first");
    proxy.drop_replies(1);
    auto const version = there.set("second");
    EXPECT_EQ(proxy.counters().struck, 1U);
    EXPECT_EQ(here.get()->version, version) << "one write, one version, and it is told which";
    proxy.drop_replies(1);
    auto const next = there.compare_and_set(version, "third");
    EXPECT_EQ(proxy.counters().struck, 2U);
    ASSERT_TRUE(next) << "its own write is no conflict";
    EXPECT_EQ(here.get()->version, *next);
    proxy.drop_replies(1);
    EXPECT_TRUE(there.erase()) << "there was one when it was erased";
}

TEST_F(shared_value_faults, a_write_that_is_sent_again_does_not_overwrite_a_newer_one) {
    there.set("first");
    proxy.hold(direction::to_client);
    begun writing{there.async_set("mine")};
    ASSERT_TRUE(eventually([&] { return here.get()->value == "mine"; }));
    auto const mine = here.get()->version;
    auto const newer = here.set("newer");
    proxy.refuse();
    proxy.cut();
    EXPECT_FALSE(writing.done());
    proxy.heal();
    EXPECT_EQ(writing.get(), mine) << "it is answered as it was before";
    EXPECT_EQ(here.get()->value, "newer");
    EXPECT_EQ(here.get()->version, newer);
}

TEST_F(shared_value_faults, an_erase_that_is_sent_again_does_not_erase_a_newer_one_however_short_the_retention) {
    text brief{far, "name", {.retention = 1ms}};
    here.set("first");
    brief.exists();  // connected
    proxy.hold(direction::to_client);
    begun erasing{brief.async_erase()};
    ASSERT_TRUE(eventually([&] { return !here.exists(); }));
    auto const until = now_ms() + 20;
    EXPECT_TRUE(eventually([&] { return now_ms() > until; })) << "the retention is over";
    here.set("newer");
    proxy.cut();
    proxy.heal();
    EXPECT_TRUE(erasing.get());
    ASSERT_TRUE(here.exists());
    EXPECT_EQ(here.get()->value, "newer");
}

TEST_F(shared_value_faults, each_of_many_updates_counts_once_though_replies_are_lost) {
    number count{far, "count"};
    number seen{near, "count"};
    count.set(0);
    int calls = 0;
    auto const add = [&](std::optional<int> const& now) {
        if (++calls % 3 == 0) proxy.drop_replies(1);  // of the write that follows
        return now.value_or(0) + 1;
    };
    for (int i = 0; i < 30; ++i) count.update(add);
    EXPECT_EQ(proxy.counters().struck, 10U);
    EXPECT_EQ(seen.get()->value, 30);
}

TEST_F(shared_value_faults, a_write_that_is_given_up_says_so_and_does_not_come_late) {
    client brief{{.url = proxy.url(), .command_timeout = 300ms}};
    text through{brief, "name"};
    through.set("first");
    proxy.hold(direction::to_server);
    EXPECT_EQ(ending_of([&] { through.set("late"); }).reason, errc::indeterminate);
    auto const until = now_ms() + 50;
    EXPECT_TRUE(eventually([&] { return now_ms() > until; }));
    proxy.heal();
    EXPECT_EQ(through.get()->value, "first");
}

TEST_F(shared_value_faults, who_watches_hears_of_what_happened_while_it_was_cut_off) {
    here.set("before");
    told<std::string> heard;
    auto const watching = there.watch([&](text::result const& now) { heard.add(now ? now->value : "(none)"); });
    proxy.refuse();
    proxy.cut();
    here.set("meanwhile");
    here.set("latest");
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return heard.last() == "latest"; }));
}

TEST_F(shared_value_faults, who_watches_is_told_what_is_there_when_a_server_takes_over_that_does_not_have_the_last_write) {
    here.set("kept");
    auto const before = server.must({"DUMP", key}).text;
    here.set("lost");
    told<std::string> heard;
    auto const watching = there.watch([&](text::result const& now) { heard.add(now ? now->value : "(none)"); });
    EXPECT_EQ(heard.last(), "lost");
    server.must({"RESTORE", key, "0", before, "REPLACE"});
    proxy.cut();
    EXPECT_TRUE(eventually([&] { return heard.last() == "kept"; }));
    server.must({"DEL", key});
    proxy.cut();
    EXPECT_TRUE(eventually([&] { return heard.last() == "(none)"; }));
    auto const count = heard.size();
    proxy.cut();
    here.set("next");
    EXPECT_TRUE(eventually([&] { return heard.last() == "next"; }));
    EXPECT_EQ(heard.size(), count + 1) << "once";
    here.set("brief", {.ttl = 1ms});
    EXPECT_TRUE(eventually([&] { return heard.last() == "brief" && !here.exists(); }));
    proxy.cut();
    EXPECT_TRUE(eventually([&] { return heard.last() == "(none)"; })) << "that it has ended is told when it looks";
}

TEST_F(shared_value_faults, who_waits_for_a_newer_one_gets_it_though_it_was_cut_off_when_it_came) {
    auto const first = here.set("before");
    begun waiting{there.async_wait_newer(first)};
    ASSERT_TRUE(eventually([&] { return server.must({"PUBSUB", "NUMSUB", key}).elements.at(1).integer == 1; }));
    proxy.refuse();
    proxy.cut();
    here.set("meanwhile");
    proxy.heal();
    EXPECT_EQ(waiting.get().value, "meanwhile");
}

TEST_F(shared_value_faults, who_waits_for_a_newer_one_is_told_that_there_is_no_server) {
    there.set("before");
    proxy.refuse();
    proxy.cut();
    EXPECT_TRUE(eventually([&] { return ending_of([&] { static_cast<void>(there.wait_newer(0, 50ms)); }).reason == errc::unavailable; }));
    proxy.heal();
    EXPECT_EQ(there.wait_newer(0, 20s)->value, "before");
}

TEST_F(shared_value_faults, one_that_is_newer_is_found_however_short_the_wait) {
    here.set("before");
    EXPECT_EQ(there.get()->value, "before");  // connected
    proxy.delay(100ms);
    auto const found = there.wait_newer(0, 1ms);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->value, "before");
    EXPECT_EQ(begun{there.async_wait_newer(0, 1ms)}.get()->value, "before");
    EXPECT_FALSE(there.wait_newer(found->version, 1ms));
}

// The connection is made for it, which takes longer than it may wait.
TEST_F(shared_value_faults, is_found_by_a_client_that_was_not_connected_however_short_the_wait) {
    here.set("before");
    proxy.delay(100ms);
    for (int i = 0; i < 2; ++i) {
        client fresh{proxy.url()};
        text of_fresh{fresh, "name"};
        auto const found = i == 0 ? of_fresh.wait_newer(0, 1ms) : begun{of_fresh.async_wait_newer(0, 1ms)}.get();
        ASSERT_TRUE(found);
        EXPECT_EQ(found->value, "before");
    }
}

TEST(shared_value_watch, looks_again_soon_when_it_could_not_look) {
    log_lines lines;
    redis_server server;
    client by{server.url()};
    text value{by, "name"};
    told<std::string> heard;
    value.set("first");
    auto const dump = server.must({"DUMP", key}).text;
    value.set("second");
    auto const watching = value.watch([&](text::result const& now) { heard.add(now ? now->value : "(none)"); });
    server.must({"SET", key, "mine"});
    server.must({"PUBLISH", key, "1 ?"});
    ASSERT_TRUE(eventually([&] { return lines.count("could not be looked at") > 0; }));
    server.must({"RESTORE", key, "0", dump, "REPLACE"});  // which tells nobody
    EXPECT_TRUE(eventually([&] { return heard.last() == "first"; }, 30s)) << "well before its rare look";
    EXPECT_EQ(lines.count("could not be looked at"), 1U) << "said once";
}

TEST_F(shared_value_faults, many_short_lived_writers_leave_bounded_memory) {
    // Each client has sessions of its own; the server forgets those that were idle for a minute: here it keeps them.
    for (int i = 0; i < 20; ++i) {
        client brief{server.url()};
        text{brief, "name"}.set("x");
    }
    auto const fields = server.must({"HLEN", key}).integer;
    EXPECT_LE(fields, 3 + 3 + 2 * 20);
}

#ifndef LOCKSTEP_SANITIZE  // which allocates by itself

TEST_F(shared_value_faults, nothing_is_left_of_a_watch_that_has_ended) {
    here.set("x");
    auto const watch_and_wait = [&](int times) {
        for (int i = 0; i < times; ++i) {
            here.watch([](text::result const&) {}).stop();
            EXPECT_TRUE(here.wait_newer(0, 10s));
        }
    };
    watch_and_wait(100);
    auto const before = ::mallinfo2().uordblks;
    watch_and_wait(2'000);
    // 100 bytes for each would be more.
    EXPECT_TRUE(eventually([&] { return ::mallinfo2().uordblks < before + 400'000; })) << ::mallinfo2().uordblks - before;
}

#endif

TEST(shared_value_with_sentinel, is_there_after_a_failover_with_a_larger_version) {
    sentinel_group group{{.replicas = 1}};
    client a{{.url = group.sentinel_url(), .command_timeout = 40s}};
    text value{a, "name"};
    told<std::string> heard;
    auto const watching = value.watch([&](text::result const& now) { heard.add(now ? now->value : "(none)"); });
    auto const first = value.set("one");
    ASSERT_TRUE(eventually([&] { return group.server(1).must({"HGET", key, "d"}).text == "one"; })) << "also at the replica";
    group.failover();
    EXPECT_GT(value.set("two"), first);
    EXPECT_EQ(value.get()->value, "two");
    EXPECT_TRUE(eventually([&] { return heard.last() == "two"; }));
}

}  // namespace
}  // namespace lockstep::test
