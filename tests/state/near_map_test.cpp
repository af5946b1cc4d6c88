// What a near cache of a map's fields promises, in both forms on every topology; then under faults. What it shares with near_cache is tested there.
#include <lockstep/near_cache.hpp>
#include <lockstep/near_map.hpp>
#include <lockstep/shared_map.hpp>
#include <lockstep/shared_value.hpp>

#include "state_support.hpp"

#include <atomic>
#include <thread>

namespace lockstep::test {
namespace {

using cache = near_map<std::string>;
using texts = shared_map<std::string>;

std::string const key = "lockstep:{name}:map";

std::string value_of(cache::result const& found) { return found ? found->value : "(none)"; }

class near_map_contract : public contract {
protected:
    cache::result get(cache const& from, std::string const& field) {
        return run(
            a, [&] { return from.get(field); }, [&] { return from.async_get(field); });
    }
    bool sees(std::string const& field, std::string const& what) {
        return eventually([&] { return value_of(get(near, field)) == what; });
    }

    texts map{b, "name"};
    cache near{a, "name"};
};
LOCKSTEP_CONTRACT(near_map_contract);

TEST_P(near_map_contract, asks_once_for_each_field_and_then_no_more) {
    auto const version = map.set("one", "1");
    map.set("", "a name of no bytes");
    EXPECT_EQ(value_of(get(near, "one")), "1");
    EXPECT_EQ(get(near, "one")->version, version);
    EXPECT_EQ(value_of(get(near, "")), "a name of no bytes");
    EXPECT_EQ(value_of(get(near, "absent")), "(none)");
    server.must({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 300; ++i) {
        EXPECT_EQ(value_of(get(near, "one")), "1");
        EXPECT_EQ(value_of(get(near, "absent")), "(none)") << "that a field is not there is kept too";
    }
    EXPECT_EQ(calls_of(server, "evalsha_ro") + calls_of(server, "eval_ro"), 0);
    EXPECT_EQ(near.statistics().misses, 3U);
    EXPECT_EQ(near.statistics().entries, 3U);
}

TEST_P(near_map_contract, hears_of_every_kind_of_change) {
    map.set_all({{"one", "1"}, {"two", "2"}});
    EXPECT_EQ(value_of(get(near, "one")), "1");
    EXPECT_EQ(value_of(get(near, "new")), "(none)");
    map.set("one", "uno");
    EXPECT_TRUE(sees("one", "uno"));
    map.set("new", "3");
    EXPECT_TRUE(sees("new", "3"));
    map.compare_and_set("one", get(near, "one")->version, "une");
    EXPECT_TRUE(sees("one", "une"));
    map.erase("one");
    EXPECT_TRUE(sees("one", "(none)"));
    EXPECT_EQ(value_of(get(near, "two")), "2");
    map.clear();
    EXPECT_TRUE(sees("two", "(none)"));
    map.set("two", "again");
    EXPECT_TRUE(sees("two", "again"));
    server.must({"DEL", key});
    EXPECT_TRUE(sees("two", "(none)"));
    map.set("two", "back");
    EXPECT_TRUE(sees("two", "back")) << "also when the map was not there";
    server.must({"FLUSHALL"});
    EXPECT_TRUE(sees("two", "(none)"));
    map.set("two", "the first of all");
    EXPECT_TRUE(sees("two", "the first of all"));
}

TEST_P(near_map_contract, is_not_confused_by_maps_and_values_of_the_like_names) {
    shared_value<std::string> value{b, "name"};
    texts other{b, "other"};
    near_cache<std::string> values{a};
    value.set("the value");
    map.set("name", "the field");
    other.set("name", "another's");
    EXPECT_EQ(value_of(get(near, "name")), "the field");
    EXPECT_EQ(values.get("name")->value, "the value");
    server.must({"CONFIG", "RESETSTAT"});
    value.set("changed");
    EXPECT_TRUE(eventually([&] { return values.get("name")->value == "changed"; }));
    EXPECT_EQ(value_of(get(near, "name")), "the field");
    EXPECT_EQ(near.statistics().misses, 1U) << "the value's change is none of the map's";
    map.set("name", "too");
    EXPECT_TRUE(sees("name", "too"));
    auto const misses = values.statistics().misses;
    EXPECT_EQ(values.get("name")->value, "changed");
    EXPECT_EQ(values.statistics().misses, misses);
}

TEST_P(near_map_contract, keeps_nothing_longer_than_the_maps_ttl) {
    texts brief{b, "name", {.ttl = 1s}};
    brief.set("one", "1");
    EXPECT_EQ(value_of(get(near, "one")), "1");
    EXPECT_TRUE(sees("one", "(none)"));
}

TEST_P(near_map_contract, does_not_keep_what_changes_while_it_is_read) {
    for (int round = 0; round < 5; ++round) {
        std::atomic<bool> done = false;
        std::thread reader{[&] {
            while (!done) static_cast<void>(near.get("one"));
        }};
        std::string last;
        for (int i = 0; i < 100; ++i) map.set("one", last = std::to_string(round) + '.' + std::to_string(i));
        done = true;
        reader.join();
        EXPECT_TRUE(sees("one", last));
    }
}

TEST_P(near_map_contract, says_what_is_wrong) {
    EXPECT_EQ(ending_of([&] { cache(a, ""); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { cache(a, "name", {.max_entries = 1}); }).reason, errc::invalid_argument);
    server.must({"SET", key, "mine"});
    server.must({"HSET", key + ":about", "v", "map 1", "n", "1"});
    EXPECT_EQ(ending_of([&] { static_cast<void>(get(near, "one")); }).reason, errc::server);
    server.must({"DEL", key});
    server.must({"HSET", key, "one", "no version"});
    EXPECT_EQ(ending_of([&] { static_cast<void>(get(near, "one")); }).reason, errc::protocol);
}

TEST(near_map_faults, forgets_everything_when_the_connection_is_lost) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client writer{server.url()};
    client reader{proxy.url()};
    texts map{writer, "name"};
    cache const near{reader, "name"};
    map.set("one", "before");
    EXPECT_EQ(value_of(near.get("one")), "before");
    proxy.refuse();
    proxy.cut();
    map.set("one", "meanwhile");
    EXPECT_TRUE(eventually([&] { return near.statistics().entries == 0; }));
    proxy.heal();
    EXPECT_EQ(value_of(near.get("one")), "meanwhile");
    map.set("one", "after");
    EXPECT_TRUE(eventually([&] { return value_of(near.get("one")) == "after"; }));
}

TEST(near_map_on_a_cluster, hears_of_changes_after_its_slot_has_moved) {
    cluster nodes{{.masters = 3, .replicas_per_master = 0}};
    client a{{.url = nodes.url(), .command_timeout = 40s}};
    client b{{.url = nodes.url(), .command_timeout = 40s}};
    texts map{a, "name"};
    texts emptied{a, "emptied"};
    cache const near{b, "name"};
    cache const none{b, "emptied"};
    cache const absent{b, "absent"};
    map.set("one", "1");
    emptied.set("one", "1");
    emptied.clear();
    EXPECT_EQ(value_of(near.get("one")), "1");
    EXPECT_EQ(value_of(none.get("one")), "(none)");
    EXPECT_EQ(value_of(absent.get("one")), "(none)");
    for (auto const* const name : {"name", "emptied", "absent"}) {
        auto const slot = slot_of("lockstep:{" + std::string{name} + "}:map");
        nodes.migrate_slot(slot, (nodes.owner_of(slot) + 1) % 3);
    }
    map.set("one", "2");
    emptied.set("one", "2");
    texts{a, "absent"}.set("one", "2");
    EXPECT_TRUE(eventually([&] { return value_of(near.get("one")) == "2"; }));
    EXPECT_TRUE(eventually([&] { return value_of(none.get("one")) == "2"; })) << "its versions were there, and have moved";
    EXPECT_TRUE(eventually([&] { return value_of(absent.get("one")) == "2"; })) << "what the server knows nothing of is not kept";
}

}  // namespace
}  // namespace lockstep::test
