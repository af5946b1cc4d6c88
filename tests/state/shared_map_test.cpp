// What a shared map promises, in both forms on every topology; then under faults.
#include <lockstep/shared_map.hpp>

#include "state_support.hpp"

#include <future>
#include <stop_token>

namespace lockstep::test {
namespace {

using numbers = shared_map<int>;

std::string const key = "lockstep:{name}:map";

class shared_map_contract : public contract {
protected:
    auto get(client& by, numbers& which, std::string const& field) {
        return run(
            by, [&] { return which.get(field); }, [&] { return which.async_get(field); });
    }
    std::uint64_t set(client& by, numbers& which, std::string const& field, int value, write_options how = {}) {
        return run(
            by, [&] { return which.set(field, value, how); }, [&] { return which.async_set(field, value, how); });
    }
    std::uint64_t set_all(client& by, numbers& which, std::map<std::string, int> const& values) {
        return run(
            by, [&] { return which.set_all(values); }, [&] { return which.async_set_all(values); });
    }
    auto compare_and_set(client& by, numbers& which, std::string const& field, std::uint64_t version, int value) {
        return run(
            by, [&] { return which.compare_and_set(field, version, value); }, [&] { return which.async_compare_and_set(field, version, value); });
    }
    bool erase(client& by, numbers& which, std::string const& field, write_options how = {}) {
        return run(
            by, [&] { return which.erase(field, how); }, [&] { return which.async_erase(field, how); });
    }
    std::uint64_t clear(client& by, numbers& which) {
        return run(
            by, [&] { return which.clear(); }, [&] { return which.async_clear(); });
    }
    std::map<std::string, int> all(client& by, numbers& which) {
        auto const found = run(
            by, [&] { return which.all(); }, [&] { return which.async_all(); });
        std::map<std::string, int> plain;
        for (auto const& [field, one] : found) plain[field] = *one;
        return plain;
    }
    std::uint64_t size(client& by, numbers& which) {
        return run(
            by, [&] { return which.size(); }, [&] { return which.async_size(); });
    }

    template <class F>
    numbers::result update(client& by, numbers& which, std::string const& field, F change, write_options how = {}) {
        return run(
            by, [&] { return which.update(field, change, how); }, [&] { return which.async_update(field, change, how); });
    }
    numbers::result wait_newer(client& by, numbers& which, std::string const& field, std::uint64_t version, std::chrono::milliseconds time) {
        return run(
            by, [&] { return which.wait_newer(field, version, time); }, [&] { return which.async_wait_newer(field, version, time); });
    }
    versioned<int> wait_newer(client& by, numbers& which, std::string const& field, std::uint64_t version) {
        return run(
            by, [&] { return which.wait_newer(field, version); }, [&] { return which.async_wait_newer(field, version); });
    }
    /// How many listen for its changes, at the server.
    std::int64_t listeners() {
        auto const by = [&](char const* word) { return server.must({"PUBSUB", word, key}).elements.at(1).integer; };
        return by("NUMSUB") + by("SHARDNUMSUB");
    }

    numbers of_a{a, "name"};
    numbers of_b{b, "name"};
};
LOCKSTEP_CONTRACT(shared_map_contract);

using content = std::map<std::string, int>;

TEST_P(shared_map_contract, keeps_fields_with_versions_that_grow) {
    EXPECT_FALSE(get(a, of_a, "x"));
    EXPECT_EQ(size(a, of_a), 0U);
    auto const first = set(a, of_a, "x", 1);
    auto const second = set(b, of_b, std::string("y\0 z", 4), 2);
    EXPECT_GT(second, first);
    EXPECT_EQ(get(b, of_b, "x")->value, 1);
    EXPECT_EQ(get(b, of_b, "x")->version, first);
    auto const third = set_all(a, of_a, {{"p", 3}, {"q", 4}});
    EXPECT_EQ(get(b, of_b, "p")->version, third);
    EXPECT_EQ(get(b, of_b, "q")->version, third);
    EXPECT_EQ(all(b, of_b), (content{{"p", 3}, {"q", 4}, {"x", 1}, {std::string("y\0 z", 4), 2}}));
    EXPECT_EQ(size(a, of_a), 4U);
    auto const some = of_a.get_all({"p", "absent", "x"});
    EXPECT_EQ(some.size(), 2U);
    EXPECT_EQ(server.must({"PTTL", key}).integer, -1);
}

TEST_P(shared_map_contract, changes_a_field_only_when_it_is_that_version) {
    auto const first = compare_and_set(a, of_a, "x", 0, 1);
    ASSERT_TRUE(first);
    EXPECT_FALSE(compare_and_set(b, of_b, "x", 0, 9));
    set(a, of_a, "y", 5);
    auto const second = compare_and_set(b, of_b, "x", *first, 2);
    ASSERT_TRUE(second) << "another field does not matter";
    EXPECT_FALSE(compare_and_set(a, of_a, "x", *first, 9));
    EXPECT_TRUE(erase(a, of_a, "x"));
    EXPECT_FALSE(erase(a, of_a, "x"));
    EXPECT_FALSE(compare_and_set(a, of_a, "x", *second, 9));
    EXPECT_GT(*compare_and_set(a, of_a, "x", 0, 3), *second);
    EXPECT_EQ(all(a, of_a), (content{{"x", 3}, {"y", 5}}));
    EXPECT_EQ(clear(a, of_a), 2U);
    EXPECT_EQ(clear(a, of_a), 0U);
    EXPECT_TRUE(all(b, of_b).empty());
    EXPECT_EQ(server.must({"EXISTS", key}).integer, 0);
    EXPECT_GT(server.must({"PTTL", key + ":about"}).integer, 0) << "versions are remembered, not for good";
}

TEST_P(shared_map_contract, has_fields_that_many_update_without_losing_one) {
    auto const add = [](std::optional<int> const& now) { return now.value_or(0) + 1; };
    std::vector<begun<numbers::result>> updates;
    for (int i = 0; i < 10; ++i) {
        updates.emplace_back(of_a.async_update("x", add));
        updates.emplace_back(of_b.async_update("x", add));
        updates.emplace_back(of_b.async_update("y", add));
    }
    for (int i = 0; i < 5; ++i) update(a, of_a, "x", add);
    for (auto& one : updates) EXPECT_TRUE(one.get());
    EXPECT_EQ(all(b, of_b), (content{{"x", 25}, {"y", 10}}));
    auto const made = update(a, of_a, "x", add, {.fence = 5});
    EXPECT_EQ(made->value, 26);
    EXPECT_EQ(made->version, get(b, of_b, "x")->version);
    EXPECT_EQ(ending_of([&] { update(b, of_b, "y", add, {.fence = 4}); }).reason, errc::stale_fence);
    auto const none = [](std::optional<int> const&) { return std::optional<int>{}; };
    EXPECT_EQ(update(a, of_a, "x", none)->version, made->version) << "left as it is";
    EXPECT_FALSE(update(a, of_a, "absent", none));
    auto const throws = [](std::optional<int> const&) -> int { throw std::runtime_error("no"); };
    EXPECT_THROW(update(a, of_a, "x", throws), std::runtime_error);
    EXPECT_EQ(size(a, of_a), 2U);
}

TEST_P(shared_map_contract, has_a_field_waited_for_until_there_is_a_newer_one) {
    EXPECT_FALSE(wait_newer(b, of_b, "x", 0, 0ms));
    auto const first = set(a, of_a, "x", 1);
    EXPECT_EQ(wait_newer(b, of_b, "x", 0, 0ms)->value, 1);
    EXPECT_EQ(wait_newer(b, of_b, "x", 0).version, first) << "one that is there is newer than none";
    EXPECT_FALSE(wait_newer(b, of_b, "x", first, 0ms));
    auto const other = set(a, of_a, "y", 1);
    EXPECT_FALSE(wait_newer(b, of_b, "x", first, 50ms)) << "nobody wrote this field";
    EXPECT_EQ(wait_newer(b, of_b, "y", first, 20s)->version, other);

    auto waiting = std::async(std::launch::async, [&] { return wait_newer(b, of_b, "x", first); });
    EXPECT_TRUE(eventually([&] { return listeners() > 0; }));
    set(a, of_a, "y", 2);
    erase(a, of_a, "x");
    auto const second = set(a, of_a, "x", 2);
    EXPECT_EQ(waiting.get().version, second) << "an erased field has none";

    auto waiting_for_long = std::async(std::launch::async, [&] { return wait_newer(b, of_b, "f7", 0, std::chrono::milliseconds::max()); });
    EXPECT_TRUE(eventually([&] { return listeners() > 0; }));
    content many;
    for (int i = 0; i < 100; ++i) many["f" + std::to_string(i)] = i;
    set_all(a, of_a, many);
    EXPECT_EQ(waiting_for_long.get()->value, 7) << "too many for pushes, so it looks";
    EXPECT_TRUE(eventually([&] { return listeners() == 0; })) << "nobody listens any more";
}

TEST_P(shared_map_contract, has_a_field_waited_for_no_longer_than_wanted) {
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&] { return ending_of([&] { static_cast<void>(of_b.wait_newer("x", 0, stop.get_token())); }).reason; });
    EXPECT_TRUE(eventually([&] { return listeners() > 0; }));
    stop.request_stop();
    EXPECT_EQ(waiting.get(), errc::cancelled);
    EXPECT_TRUE(eventually([&] { return listeners() == 0; }));
}

TEST_P(shared_map_contract, refuses_a_stale_fence_for_any_field_also_after_all_are_gone) {
    set(a, of_a, "x", 1, {.fence = 5});
    EXPECT_EQ(ending_of([&] { set(b, of_b, "y", 2, {.fence = 4}); }).reason, errc::stale_fence);
    EXPECT_EQ(ending_of([&] { erase(b, of_b, "x", {.fence = 4}); }).reason, errc::stale_fence);
    set(a, of_a, "y", 2, {.fence = 5});
    clear(a, of_a);
    EXPECT_EQ(ending_of([&] { set(b, of_b, "y", 2, {.fence = 4}); }).reason, errc::stale_fence);
    EXPECT_TRUE(all(a, of_a).empty());
}

TEST_P(shared_map_contract, is_gone_after_its_ttl) {
    numbers brief{a, "name", {.ttl = 40ms, .retention = 60ms}};
    auto const first = set(a, brief, "x", 1);
    EXPECT_TRUE(eventually([&] { return !get(a, brief, "x"); }));
    EXPECT_EQ(server.must({"EXISTS", key}).integer, 0);
    auto const left = server.must({"PTTL", key + ":about"}).integer;
    EXPECT_GT(left, 100'000) << "as long as a call may be sent again, and longer";
    EXPECT_LE(left, 120'040);
    server.must({"DEL", key + ":about"});
    EXPECT_GT(set(a, of_a, "x", 1), first);
}

TEST_P(shared_map_contract, tells_those_who_watch) {
    set(a, of_a, "x", 1);
    told<std::string> heard;
    auto const note = [&](std::string const& field, numbers::result const& now) {
        heard.add(field + (now ? "=" + std::to_string(**now) : std::string{" gone"}));
    };
    auto watching = run(
        b, [&] { return of_b.watch(note); }, [&] { return of_b.async_watch(note); });
    EXPECT_THAT(heard.all(), testing::ElementsAre("x=1"));
    set(a, of_a, "y", 2);
    EXPECT_TRUE(eventually([&] { return heard.last() == "y=2"; }));
    erase(a, of_a, "x");
    EXPECT_TRUE(eventually([&] { return heard.last() == "x gone"; }));
    content many;
    for (int i = 0; i < 100; ++i) many["f" + std::to_string(i)] = i;
    set_all(a, of_a, many);
    EXPECT_TRUE(eventually([&] { return heard.size() == 103; })) << "too many for pushes, so it looks";
    clear(a, of_a);
    EXPECT_TRUE(eventually([&] { return heard.size() == 103 + 101; })) << "each that was there is gone";
    watching.stop();
    set(a, of_a, "z", 1);
    catch_up(b);
    EXPECT_EQ(heard.size(), 204U);
}

// Many fields, or large ones, are not pushed; but the others are not read for their sake.
TEST_P(shared_map_contract, reads_only_what_has_changed_for_those_who_watch) {
    shared_map<std::string> mine{a, "big"};
    shared_map<std::string> theirs{b, "big"};
    auto& there = server_of("big");
    std::map<std::string, std::string> all;
    for (int i = 0; i < 300; ++i) all["f" + std::to_string(i)] = "old";
    mine.set_all(all);
    told<std::string> heard;
    auto const watching = theirs.watch([&](std::string const& field, auto const& now) { heard.add(field + (now ? '=' + (**now).substr(0, 3) : " gone")); });
    EXPECT_EQ(heard.size(), 300U);
    auto const whole = calls_of(there, "hgetall");
    mine.set("f1", std::string(20'000, 'x'));
    ASSERT_TRUE(eventually([&] { return heard.size() == 301; }));
    EXPECT_EQ(heard.last(), "f1=xxx");
    std::map<std::string, std::string> some;
    for (int i = 0; i < 40; ++i) some["f" + std::to_string(i)] = "new";
    mine.set_all(some);
    ASSERT_TRUE(eventually([&] { return heard.size() == 341; }));
    std::map<std::string, std::string> long_names;  // more than fit into one message
    for (int i = 0; i < 50; ++i) long_names[std::string(1'000, 'a') + std::to_string(i)] = "new";
    mine.set_all(long_names);
    ASSERT_TRUE(eventually([&] { return heard.size() == 391; }));
    mine.erase("f0");
    ASSERT_TRUE(eventually([&] { return heard.size() == 392; }));
    EXPECT_EQ(calls_of(there, "hgetall"), whole);
    mine.clear();
    ASSERT_TRUE(eventually([&] { return heard.size() == 392 + 349; }));
    EXPECT_EQ(calls_of(there, "hgetall"), whole + 1);
}

TEST_P(shared_map_contract, tells_with_the_next_change_that_the_ttl_had_run_out) {
    shared_map<int> mine{a, "brief", {.ttl = 1h}};
    shared_map<int> theirs{b, "brief", {.ttl = 1h}};
    mine.set_all({{"x", 1}, {"y", 2}});
    told<std::string> heard;
    auto const watching = theirs.watch([&](std::string const& field, auto const& now) { heard.add(field + (now ? "" : " gone")); });
    server_of("brief").must({"DEL", "lockstep:{brief}:map"});  // as when it has expired
    mine.set("z", 3);
    EXPECT_TRUE(eventually([&] { return heard.size() == 5; }));
    EXPECT_THAT(heard.all(), testing::UnorderedElementsAre("x", "y", "x gone", "y gone", "z"));
}

TEST_P(shared_map_contract, refuses_what_it_cannot_use) {
    EXPECT_EQ(ending_of([&] { set(a, of_a, "x", 1, {.ttl = 1s}); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { set(a, of_a, "x", 1, {.fence = 1ULL << 60}); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { numbers(a, "", {}); }).reason, errc::invalid_argument);
    server.must({"SET", key, "mine"});
    EXPECT_EQ(ending_of([&] { set(a, of_a, "x", 1); }).reason, errc::server);
    EXPECT_EQ(server.must({"EXISTS", key + ":about"}).integer, 0) << "nothing was written";
}

class shared_map_faults : public testing::Test {
protected:
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    numbers here{near, "name"};
    numbers there{far, "name"};
};

TEST_F(shared_map_faults, a_write_whose_reply_is_lost_counts_once_and_does_not_overwrite_a_newer_one) {
    there.set("x", 1);
    proxy.drop_replies(1);
    auto const version = there.set("x", 2);
    EXPECT_EQ(here.get("x")->version, version);
    proxy.drop_replies(1);
    EXPECT_TRUE(there.compare_and_set("x", version, 3));
    proxy.drop_replies(1);
    EXPECT_TRUE(there.erase("x"));
    EXPECT_EQ(proxy.counters().struck, 3U);
    proxy.hold(direction::to_client);
    begun writing{there.async_set("x", 4)};
    ASSERT_TRUE(eventually([&] { return here.get("x").has_value(); }));
    here.set("x", 5);
    proxy.cut();
    proxy.heal();
    writing.get();
    EXPECT_EQ(*here.get("x")->operator->(), 5);
}

TEST_F(shared_map_faults, a_clear_that_is_sent_again_does_not_clear_a_newer_one_however_short_the_retention) {
    numbers brief{far, "name", {.retention = 1ms}};
    here.set("x", 1);
    brief.size();  // connected
    proxy.hold(direction::to_client);
    begun clearing{brief.async_clear()};
    ASSERT_TRUE(eventually([&] { return here.size() == 0; }));
    auto const until = now_ms() + 20;
    EXPECT_TRUE(eventually([&] { return now_ms() > until; })) << "the retention is over";
    here.set("x", 2);
    proxy.cut();
    proxy.heal();
    EXPECT_EQ(clearing.get(), 1U);
    EXPECT_EQ(here.size(), 1U);
}

TEST_F(shared_map_faults, who_watches_hears_of_what_happened_while_it_was_cut_off) {
    here.set_all({{"stays", 1}, {"goes", 2}, {"changes", 3}});
    told<std::string> heard;
    auto const watching = there.watch([&](std::string const& field, numbers::result const& now) {
        heard.add(field + (now ? "=" + std::to_string(**now) : std::string{" gone"}));
    });
    EXPECT_EQ(heard.size(), 3U);
    proxy.refuse();
    proxy.cut();
    here.erase("goes");
    here.set("changes", 4);
    here.set("comes", 5);
    proxy.heal();
    ASSERT_TRUE(eventually([&] { return heard.size() == 6; }));
    auto latest = heard.all();
    latest.erase(latest.begin(), latest.begin() + 3);
    EXPECT_THAT(latest, testing::UnorderedElementsAre("goes gone", "changes=4", "comes=5"));
}

TEST_F(shared_map_faults, who_waits_for_a_newer_one_gets_it_though_it_was_cut_off_when_it_came) {
    auto const first = here.set("x", 1);
    begun waiting{there.async_wait_newer("x", first)};
    ASSERT_TRUE(eventually([&] { return server.must({"PUBSUB", "NUMSUB", key}).elements.at(1).integer == 1; }));
    proxy.refuse();
    proxy.cut();
    here.set("x", 2);
    proxy.heal();
    EXPECT_EQ(waiting.get().value, 2);
}

TEST_F(shared_map_faults, each_of_many_updates_counts_once_though_replies_are_lost) {
    there.set("x", 0);
    int calls = 0;
    auto const add = [&](std::optional<int> const& now) {
        if (++calls % 3 == 0) proxy.drop_replies(1);  // of the write that follows
        return now.value_or(0) + 1;
    };
    for (int i = 0; i < 30; ++i) there.update("x", add);
    EXPECT_EQ(proxy.counters().struck, 10U);
    EXPECT_EQ(here.get("x")->value, 30);
}

TEST_F(shared_map_faults, who_watches_is_told_what_is_there_when_a_server_takes_over_that_does_not_have_the_last_writes) {
    here.set_all({{"stays", 1}, {"changes", 2}, {"goes", 3}});
    auto const fields = server.must({"DUMP", key}).text;
    auto const about = server.must({"DUMP", key + ":about"}).text;
    told<std::string> heard;
    auto const watching = there.watch([&](std::string const& field, numbers::result const& now) {
        heard.add(field + (now ? "=" + std::to_string(**now) : std::string{" gone"}));
    });
    here.set("changes", 4);
    here.erase("goes");
    here.set("comes", 5);
    ASSERT_TRUE(eventually([&] { return heard.last() == "comes=5"; }));
    auto const count = heard.size();
    server.must({"RESTORE", key, "0", fields, "REPLACE"});
    server.must({"RESTORE", key + ":about", "0", about, "REPLACE"});
    proxy.cut();
    ASSERT_TRUE(eventually([&] { return heard.size() >= count + 3; }));
    auto latest = heard.all();
    latest.erase(latest.begin(), latest.begin() + static_cast<std::ptrdiff_t>(count));
    EXPECT_THAT(latest, testing::UnorderedElementsAre("changes=2", "goes=3", "comes gone"));
}

TEST_F(shared_map_faults, who_watches_takes_a_message_that_is_none_of_ours_for_a_hint) {
    here.set("x", 1);
    told<int> heard;
    auto const watching = there.watch([&](std::string const&, numbers::result const& now) { heard.add(now ? now->value : 0); });
    begun waiting{there.async_wait_newer("y", 0)};
    ASSERT_TRUE(eventually([&] { return server.must({"PUBSUB", "NUMSUB", key}).elements.at(1).integer == 1; }));
    for (std::string const one : {"", "1", "1 =", "1 =18446744073709551615 ", "1 =18446744073709551615", "1 -9 x", "1 =1", "99999999999999999999 =1 x"}) {
        server.must({"PUBLISH", key, one});
    }
    here.set_all({{"x", 2}, {"y", 3}});
    EXPECT_EQ(waiting.get().value, 3);
    EXPECT_TRUE(eventually([&] { return heard.all() == std::vector{1, 2, 3}; }));
}

TEST_F(shared_map_faults, has_a_field_found_that_is_newer_however_short_the_wait) {
    here.set("x", 1);
    EXPECT_EQ(there.get("x")->value, 1);  // connected
    proxy.delay(100ms);
    auto const found = there.wait_newer("x", 0, 1ms);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->value, 1);
    EXPECT_EQ(begun{there.async_wait_newer("x", 0, 1ms)}.get()->value, 1);
    EXPECT_FALSE(there.wait_newer("x", found->version, 1ms));
}

}  // namespace
}  // namespace lockstep::test
