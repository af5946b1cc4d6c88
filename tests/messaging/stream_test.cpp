// What a stream promises, in both forms on every topology; then under faults.
#include <lockstep/json.hpp>
#include <lockstep/stream.hpp>

#include "integration/topology_support.hpp"
#include "support/clock_file.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace stream_test {
struct order {
    int id = 0;
    std::string item;
};
BOOST_DESCRIBE_STRUCT(order, (), (id, item))
}  // namespace stream_test

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using stream_test::order;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> ids_of(std::vector<stream_entry> const& entries) {
    std::vector<std::string> ids;
    for (auto const& one : entries) ids.push_back(one.id);
    return ids;
}

class stream_contract : public contract {
protected:
    std::string add(client& by, stream& to, stream_fields const& fields, std::string const& id = "*") {
        return run(
            by, [&] { return to.add(fields, id); }, [&] { return to.async_add(fields, id); });
    }
    stream::entries range(client& by, stream& of) {
        return run(
            by, [&] { return of.range(); }, [&] { return of.async_range(); });
    }
    stream::entries read_group(client& by, stream& of, std::string const& consumer, std::size_t count = 100, std::chrono::milliseconds wait = {}) {
        return run(
            by, [&] { return of.read_group("g", consumer, count, wait); }, [&] { return of.async_read_group("g", consumer, count, wait); });
    }
    bool create_group(client& by, stream& of, std::string const& start = "0") {
        return run(
            by, [&] { return of.create_group("g", start); }, [&] { return of.async_create_group("g", start); });
    }

    stream of_a{a, "name"};
    stream of_b{b, "name"};
};
LOCKSTEP_CONTRACT(stream_contract);

TEST_P(stream_contract, keeps_entries_in_the_order_in_which_they_were_added) {
    EXPECT_EQ(of_a.length(), 0);
    EXPECT_THAT(range(a, of_a), IsEmpty());
    auto const first = add(a, of_a, {{"k", "1"}, {"k", "2"}, {"empty", ""}});
    auto const second = add(b, of_b, {{"binary", std::string{"\0\r\n", 3}}});
    auto const all = range(b, of_b);
    ASSERT_THAT(ids_of(all), ElementsAre(first, second));
    EXPECT_EQ(all[0].fields, (stream_fields{{"k", "1"}, {"k", "2"}, {"empty", ""}}));
    EXPECT_EQ(*all[1].find("binary"), std::string("\0\r\n", 3));
    EXPECT_EQ(all[1].find("none"), nullptr);
    EXPECT_EQ(run(a, [&] { return of_a.length(); }, [&] { return of_a.async_length(); }), 2);
    EXPECT_THAT(ids_of(run(a, [&] { return of_a.reverse_range("+", "-", 1); }, [&] { return of_a.async_reverse_range("+", "-", 1); })), ElementsAre(second));
    EXPECT_THAT(ids_of(of_a.range("(" + first)), ElementsAre(second));
}

TEST_P(stream_contract, takes_ids_that_grow_and_refuses_others_without_writing) {
    EXPECT_EQ(add(a, of_a, {{"k", "v"}}, "5-1"), "5-1");
    EXPECT_EQ(add(a, of_a, {{"k", "v"}}, "5-*"), "5-2");
    EXPECT_EQ(add(a, of_a, {{"k", "v"}}, "7"), "7-0");
    EXPECT_THAT(failure<invalid_argument_error>([&] { add(b, of_b, {{"k", "v"}}, "6-0"); }), HasSubstr("6-0"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { add(b, of_b, {{"k", "v"}}, "six"); }), HasSubstr("six"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { add(b, of_b, {}); }), HasSubstr("fields"));
    EXPECT_EQ(of_a.length(), 3);
}

TEST_P(stream_contract, keeps_values_of_any_type_that_has_a_codec) {
    run(a, [&] { return of_a.add_value(order{7, "book"}); }, [&] { return of_a.async_add_value(order{7, "book"}); });
    of_a.add_value(std::string{"text"});
    of_a.add({{"no", "value"}});
    auto const all = range(b, of_b);
    EXPECT_EQ(all.at(0).as<order>().item, "book");
    EXPECT_EQ(all.at(1).as<std::string>(), "text");
    EXPECT_THAT(failure<conversion_error>([&] { static_cast<void>(all.at(1).as<order>()); }), HasSubstr("JSON"));
    EXPECT_THAT(failure<conversion_error>([&] { static_cast<void>(all.at(2).as<order>()); }), HasSubstr("data"));
}

TEST_P(stream_contract, adds_many_at_once_side_by_side) {
    std::vector<stream_fields> many;
    for (int i = 0; i < 1000; ++i) many.push_back({{"n", std::to_string(i)}});
    auto const ids = run(a, [&] { return of_a.add_all(many); }, [&] { return of_a.async_add_all(many); });
    auto const all = range(b, of_b);
    ASSERT_EQ(all.size(), 1000U);
    EXPECT_EQ(ids_of(all), ids);
    EXPECT_EQ(*all[999].find("n"), "999");
    EXPECT_THAT(failure<invalid_argument_error>([&] { of_a.add_all({}); }), HasSubstr("10000"));
}

TEST_P(stream_contract, is_trimmed_by_length_and_by_id_and_by_each_add) {
    for (int i = 1; i <= 10; ++i) add(a, of_a, {{"k", "v"}}, std::to_string(i));
    EXPECT_EQ(run(a, [&] { return of_a.trim_to_length(8); }, [&] { return of_a.async_trim_to_length(8); }), 2);
    EXPECT_EQ(run(b, [&] { return of_b.trim_to_id("5"); }, [&] { return of_b.async_trim_to_id("5"); }), 2);
    EXPECT_EQ(of_a.trim_to_length(1, trim::about), 0) << "a block stays whole";
    EXPECT_EQ(run(a, [&] { return of_a.remove({"6-0", "1-0"}); }, [&] { return of_a.async_remove({"6-0", "1-0"}); }), 1);
    EXPECT_THAT(ids_of(range(a, of_a)), ElementsAre("5-0", "7-0", "8-0", "9-0", "10-0"));
    stream short_one{a, "name", {.max_length = 2, .exact = true}};
    short_one.add({{"k", "v"}}, "11");
    EXPECT_THAT(ids_of(range(a, of_a)), ElementsAre("10-0", "11-0"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { stream(a, "name", {.max_length = -1}); }), HasSubstr("max_length"));
    EXPECT_TRUE(run(a, [&] { return of_a.remove_all(); }, [&] { return of_a.async_remove_all(); }));
    EXPECT_FALSE(of_a.remove_all());
}

TEST_P(stream_contract, gives_each_entry_to_one_consumer_of_a_group) {
    EXPECT_TRUE(create_group(a, of_a));
    EXPECT_FALSE(create_group(b, of_b)) << "it is there";
    for (int i = 1; i <= 4; ++i) add(a, of_a, {{"k", "v"}}, std::to_string(i));
    EXPECT_THAT(ids_of(read_group(a, of_a, "x", 3)), ElementsAre("1-0", "2-0", "3-0"));
    EXPECT_THAT(ids_of(read_group(b, of_b, "y")), ElementsAre("4-0"));
    EXPECT_THAT(read_group(b, of_b, "y"), IsEmpty());
    EXPECT_EQ(run(a, [&] { return of_a.acknowledge("g", {"1-0", "9-0"}); }, [&] { return of_a.async_acknowledge("g", {"1-0", "9-0"}); }), 1);
    auto const summary = run(a, [&] { return of_a.pending("g"); }, [&] { return of_a.async_pending("g"); });
    EXPECT_EQ(summary.count, 3);
    EXPECT_EQ(summary.first, "2-0");
    EXPECT_EQ(summary.last, "4-0");
    EXPECT_EQ(summary.consumers, (std::map<std::string, std::int64_t>{{"x", 2}, {"y", 1}}));
    auto const list = run(a, [&] { return of_a.pending_entries("g", 10, "x"); }, [&] { return of_a.async_pending_entries("g", 10, "x"); });
    ASSERT_EQ(list.size(), 2U);
    EXPECT_EQ(list[0].id, "2-0");
    EXPECT_EQ(list[0].consumer, "x");
    EXPECT_EQ(list[0].deliveries, 1);
    EXPECT_THAT(of_a.pending_entries("g", 10, {}, 1h), IsEmpty());
    EXPECT_THAT(ids_of(run(a, [&] { return of_a.read_pending("g", "x"); }, [&] { return of_a.async_read_pending("g", "x"); })), ElementsAre("2-0", "3-0"));
}

TEST_P(stream_contract, lets_entries_be_claimed) {
    create_group(a, of_a);
    for (int i = 1; i <= 4; ++i) add(a, of_a, {{"k", "v"}}, std::to_string(i));
    EXPECT_EQ(read_group(a, of_a, "x").size(), 4U);
    EXPECT_THAT(ids_of(run(a, [&] { return of_a.claim("g", "y", 0ms, {"2-0", "8-0"}); }, [&] { return of_a.async_claim("g", "y", 0ms, {"2-0", "8-0"}); })),
                ElementsAre("2-0"));
    EXPECT_THAT(of_a.claim("g", "y", 1h, {"1-0"}), IsEmpty()) << "too young";
    of_a.remove({"3-0"});
    auto const claimed = run(b, [&] { return of_b.auto_claim("g", "z", 0ms); }, [&] { return of_b.async_auto_claim("g", "z", 0ms); });
    EXPECT_THAT(ids_of(claimed.entries), ElementsAre("1-0", "2-0", "4-0"));
    EXPECT_THAT(claimed.gone, ElementsAre("3-0"));
    EXPECT_EQ(claimed.next, "0-0");
}

TEST_P(stream_contract, says_what_it_is) {
    EXPECT_FALSE(run(a, [&] { return of_a.info(); }, [&] { return of_a.async_info(); }));
    EXPECT_THAT(of_a.groups(), IsEmpty());
    EXPECT_FALSE(run(a, [&] { return of_a.destroy_group("g"); }, [&] { return of_a.async_destroy_group("g"); }));
    create_group(a, of_a, "$");
    add(a, of_a, {{"k", "v"}}, "1-0");
    add(a, of_a, {{"k", "v"}}, "2-0");
    auto const info = run(a, [&] { return of_a.info(); }, [&] { return of_a.async_info(); });
    ASSERT_TRUE(info);
    EXPECT_EQ(info->length, 2);
    EXPECT_EQ(info->added, 2);
    EXPECT_EQ(info->first, "1-0");
    EXPECT_EQ(info->last, "2-0");
    auto const groups = run(a, [&] { return of_a.groups(); }, [&] { return of_a.async_groups(); });
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].name, "g");
    EXPECT_EQ(groups[0].lag, 2);
    EXPECT_TRUE(of_a.destroy_group("g"));
    EXPECT_EQ(failure<server_error>([&] { read_group(a, of_a, "x"); }).substr(0, 7), "NOGROUP");
}

TEST_P(stream_contract, a_read_waits_for_what_is_added) {
    EXPECT_THAT(run(a, [&] { return of_a.read("0", 10, 20ms); }, [&] { return of_a.async_read("0", 10, 20ms); }), IsEmpty());
    begun reading{of_a.async_read("$", 10, 40s)};
    create_group(b, of_b, "$");
    begun taking{of_a.async_read_group("g", "x", 10, 40s)};
    ASSERT_TRUE(eventually([&] { return server.must({"INFO", "clients"}).text.find("blocked_clients:2") != std::string::npos; }));
    auto const id = add(b, of_b, {{"k", "v"}});
    EXPECT_THAT(ids_of(reading.get()), ElementsAre(id));
    EXPECT_THAT(ids_of(taking.get()), ElementsAre(id));
    EXPECT_THAT(ids_of(of_b.read("0")), ElementsAre(id));
}

TEST_P(stream_contract, a_read_that_waits_can_be_stopped) {
    std::stop_source stop;
    std::jthread const stopper{[&] {
        EXPECT_TRUE(eventually([&] { return server.must({"INFO", "clients"}).text.find("blocked_clients:1") != std::string::npos; }));
        stop.request_stop();
    }};
    EXPECT_EQ(outcome([&] {
                  run(a, [&] { return of_a.read("$", 1, 40s, stop.get_token()); }, [&] { return with_stop_token(of_a.async_read("$", 1, 40s), stop.get_token()); });
              }),
              errc::cancelled);
}

class stream_faults : public testing::Test {
protected:
    /// Carried out, then sent again when the server's clock has gone on by `step`, and others have added something if they did.
    void add_again_after(std::chrono::seconds step, bool others = false) {
        auto const before = here.length();
        proxy.refuse();
        proxy.hold(direction::to_client);
        begun adding{there.async_add({{"n", "once"}})};
        ASSERT_TRUE(eventually([&] { return here.length() == before + 1; }));
        clock.step(step);
        if (others) here.add({{"n", "other"}});
        proxy.cut();
        proxy.heal();
        EXPECT_FALSE(adding.get().empty());
        EXPECT_EQ(here.length(), before + (others ? 2 : 1));
    }

    clock_file clock;
    redis_server server{{.clock = &clock}};
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    stream here{near, "name"};
    stream there{far, "name"};
};

TEST_F(stream_faults, an_add_whose_reply_is_lost_is_there_once) {
    there.add({{"n", "0"}});
    for (int i = 1; i <= 3; ++i) {
        proxy.drop_replies(1);
        auto const id = there.add({{"n", std::to_string(i)}});
        EXPECT_EQ(proxy.counters().struck, static_cast<std::uint64_t>(i));
        auto const all = here.range();
        ASSERT_EQ(all.size(), static_cast<std::size_t>(i) + 1);
        EXPECT_EQ(all.back().id, id) << "and the caller hears its id";
    }
    proxy.drop_replies(1);
    auto const ids = there.add_all({{{"n", "4"}}, {{"n", "5"}}});
    EXPECT_EQ(ids_of(here.range("(" + ids[0])), std::vector{ids[1]});
    EXPECT_EQ(here.length(), 6);
    auto const last = here.info()->last;
    auto const next = std::to_string(std::stoull(last.substr(0, last.find('-'))) + 1) + "-0";
    proxy.drop_replies(1);
    EXPECT_EQ(there.add({{"n", "6"}}, next), next) << "with an id of its own too";
    EXPECT_EQ(here.length(), 7);
    EXPECT_EQ(proxy.counters().struck, 5U);
}

TEST_F(stream_faults, each_of_thousands_of_adds_is_there_once_though_all_replies_are_lost) {
    here.add({{"n", "first"}});  // the server knows the script
    there.add({{"n", "second"}});
    proxy.hold(direction::to_client);
    std::vector<begun<std::string>> adding;
    for (int i = 0; i < 3000; ++i) adding.emplace_back(there.async_add({{"n", std::to_string(i)}}));
    ASSERT_TRUE(eventually([&] { return here.length() == 3002; }));
    proxy.cut();
    proxy.heal();
    for (auto const& one : adding) EXPECT_FALSE(one.get().empty());
    EXPECT_EQ(here.length(), 3002);
}

TEST_F(stream_faults, what_is_remembered_of_adds_expires) {
    for (int i = 0; i < 5; ++i) stream{near, "name"}.add({{"n", "1"}});
    long remembered = 0;
    for (char const* const which : {"0", "1"}) {
        auto const key = std::string{"lockstep:{name}:stream:adds:"} + which;
        if (server.must({"EXISTS", key}).integer == 0) continue;
        remembered += server.must({"HLEN", key}).integer - 1;
        auto const left = server.must({"PTTL", key}).integer;
        EXPECT_GT(left, 200'000);
        EXPECT_LE(left, 360'000);
    }
    EXPECT_EQ(remembered, 5);
}

TEST_F(stream_faults, an_add_that_is_sent_again_much_later_is_there_once_though_the_clock_goes_on_or_back) {
    // What the server remembers of adds goes by stretches of two minutes, in two places in turn.
    clock.stop();
    here.add({{"n", "0"}});
    there.add({{"n", "1"}});
    clock.step(120s);
    add_again_after(120s);  // the place of the third stretch still has what was said in the first
    add_again_after(-120s);
    clock.step(120s);
    add_again_after(-240s, true);  // others write in the place where it was noted
}

TEST_F(stream_faults, a_group_read_whose_reply_is_lost_says_so_and_its_entries_are_pending) {
    here.create_group("g");
    ASSERT_TRUE(there.read_group("g", "x").empty()) << "its connection is there";
    here.add({{"k", "v"}});
    proxy.drop_replies(1);
    EXPECT_EQ(outcome([&] { static_cast<void>(there.read_group("g", "x")); }), errc::indeterminate);
    EXPECT_EQ(there.read_pending("g", "x").size(), 1U);
}

TEST_F(stream_faults, a_read_that_waits_survives_a_cut) {
    begun reading{there.async_read("$", 10, 40s)};
    auto const blocked = [&] { return server.must({"INFO", "clients"}).text.find("blocked_clients:1") != std::string::npos; };
    ASSERT_TRUE(eventually(blocked));
    proxy.refuse();
    proxy.cut();
    auto const id = here.add({{"k", "v"}});
    proxy.heal();
    EXPECT_THAT(ids_of(reading.get()), ElementsAre(id)) << "also what came meanwhile";
}

TEST(stream_server, a_key_of_another_type_is_refused_and_left_as_it_is) {
    redis_server server;
    client by{server.url()};
    server.must({"SET", "lockstep:{name}:stream", "mine"});
    stream of{by, "name"};
    EXPECT_EQ(failure<server_error>([&] { of.add({{"k", "v"}}); }).substr(0, 9), "WRONGTYPE");
    EXPECT_EQ(server.must({"GET", "lockstep:{name}:stream"}).text, "mine");
    EXPECT_EQ(server.must({"KEYS", "lockstep:{name}*"}).elements.size(), 1U);
}

}  // namespace
}  // namespace lockstep::test
