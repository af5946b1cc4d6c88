// What others write, a monitor reads in small pieces: keys that are large or of another type hide nothing else, cost no lease, and are named.
#include "observe/picture.hpp"
#include "support/eventually.hpp"
#include "support/forms.hpp"
#include "support/redis_server.hpp"

#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/session_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pthread.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr int many = 100'000;

class monitor_bounds : public testing::Test {
protected:
    /// In steps, as one command with so many words would be a burden to the server.
    void fill(std::vector<std::string> const& begin, int count, std::vector<std::string> (*element)(int)) {
        for (int from = 0; from < count; from += 1'000) {
            auto words = begin;
            for (int i = from; i < std::min(count, from + 1'000); ++i) {
                for (auto& word : element(i)) words.push_back(std::move(word));
            }
            server.must(words);
        }
    }
    std::string now_ms() { return server.must({"EVAL", "local t = redis.call('TIME') return t[1] .. '000'", "0"}).text; }
    void poison_a_client(std::string const& id) {
        fill({"HSET", "lockstep:{clients}:" + id}, many, [](int i) { return std::vector<std::string>{"f" + std::to_string(i), "x"}; });
        server.must({"ZADD", "lockstep:{clients}:index", now_ms(), id});
    }

    redis_server server;
    client by{{.url = server.url(), .name = "looks", .command_timeout = 30s}};
    lockstep::monitor eye{by};
};

TEST_F(monitor_bounds, looking_at_a_large_record_costs_no_lease) {
    poison_a_client("evil");
    auto const names = +[](int i) { return std::vector<std::string>{"lock n" + std::to_string(i), "x"}; };
    fill({"HSET", "lockstep:{statistics}:names"}, many, names);
    auto const members = +[](int i) { return std::vector<std::string>{"9999999999999", "{n" + std::to_string(i) + "}:lock"}; };
    fill({"ZADD", "lockstep:{objects/1}:index"}, many, members);
    auto const entry = +[](int i) { return std::vector<std::string>{"f" + std::to_string(i), "x"}; };
    for (int i = 0; i < 3; ++i) fill({"XADD", "lockstep:{record}:log", "*"}, many, entry);
    fill({"RPUSH", "lockstep-audit:log"}, many, +[](int i) { return std::vector<std::string>{"id " + std::to_string(i) + "-x\naction ask\nreason " + std::string(100, 'x')}; });
    auto const clients = +[](int i) { return std::vector<std::string>{"9999999999999", "c" + std::to_string(i)}; };
    fill({"ZADD", "lockstep:{clients}:index"}, many, clients);

    auto const held = mutex(by, "payroll", {.ttl = 3s}).acquire();
    auto const seen = eye.snapshot();
    EXPECT_THAT(eye.active("payroll"), testing::SizeIs(1));
    eye.clients();
    eye.statistics();
    eye.contention();
    eye.why("payroll");
    EXPECT_THAT(eye.audit(), testing::SizeIs(100));
    eye.history();
    EXPECT_TRUE(held.valid());
    EXPECT_FALSE(held.stop_token().stop_requested());
    EXPECT_THAT(seen.notes, Contains(AllOf(StartsWith("lockstep:{clients}:index: "), HasSubstr("10000 clients"))));
}

TEST_F(monitor_bounds, of_a_record_with_a_hundred_thousand_fields_only_the_known_ones_are_read) {
    poison_a_client("evil");
    eye.snapshot();  // the scripts are there now
    auto const before = by.statistics().bytes_received;
    auto const seen = eye.snapshot();
    EXPECT_LT(by.statistics().bytes_received - before, 20'000U);
    EXPECT_THAT(seen.notes, IsEmpty());
    auto const before_clients = by.statistics().bytes_received;
    eye.clients();
    EXPECT_LT(by.statistics().bytes_received - before_clients, 20'000U);
}

TEST_F(monitor_bounds, a_record_with_a_field_that_is_too_large_is_passed_over_and_named) {
    auto const held = mutex(by, "payroll").acquire();
    server.must({"HSET", "lockstep:{clients}:evil", "name", "evil", "holds", std::string(40'000, 'x')});
    server.must({"ZADD", "lockstep:{clients}:index", now_ms(), "evil"});
    auto const seen = eye.snapshot();
    EXPECT_THAT(seen.notes, ElementsAre(AllOf(HasSubstr("lockstep:{clients}:evil"), HasSubstr("holds"), HasSubstr("40000 bytes"))));
    EXPECT_TRUE(std::none_of(seen.clients.begin(), seen.clients.end(), [](client_info const& one) { return one.id == "evil"; }));
}

TEST_F(monitor_bounds, a_session_with_a_hundred_thousand_fields_is_read_without_losing_a_lease) {
    session_store web{by, "web", {.command_timeout = 30s}};
    session_fields fields;
    for (int i = 0; i < many; ++i) fields.emplace("field" + std::to_string(i), "value");
    auto const id = web.create("ada", fields);
    auto const held = mutex(by, "payroll", {.ttl = 3s}).acquire();
    EXPECT_EQ(web.read(id)->fields.size(), fields.size());
    EXPECT_TRUE(held.valid());
    EXPECT_FALSE(held.stop_token().stop_requested());
}

/// In texts of 40 MB, which whoever may write can put anywhere.
class monitor_of_large_texts : public monitor_bounds {
protected:
    std::string const large = std::string(40'000'000, 'x');
    lease const held = mutex(by, "payroll", {.ttl = 3s}).acquire();

    /// What a look at all and one at this name have noted.
    std::vector<std::string> notes_of(std::string const& name) {
        eye.snapshot({.scan = true});  // the scripts are there now
        auto const before = by.statistics().bytes_received;
        auto const all = eye.snapshot({.scan = true});
        EXPECT_TRUE(std::any_of(all.holds.begin(), all.holds.end(), [](hold_info const& one) { return one.name == "payroll"; }));
        auto notes = all.notes;
        for (auto& one : eye.snapshot().notes) notes.push_back(std::move(one));
        for (auto& one : eye.snapshot({.name = name}).notes) notes.push_back(std::move(one));
        eye.statistics();
        for (auto& one : eye.notes()) notes.push_back(std::move(one));
        eye.audit();
        for (auto& one : eye.notes()) notes.push_back(std::move(one));
        EXPECT_LT(by.statistics().bytes_received - before, 1'000'000U);
        EXPECT_TRUE(held.valid());
        return notes;
    }
};

TEST_F(monitor_of_large_texts, passes_over_the_owner_of_a_lock) {
    server.must({"HSET", "lockstep:{evil}:lock", "v", "3", "o", large, "f", now_ms() + "000", "t", "3600000"});
    EXPECT_THAT(notes_of("evil"), Contains(StartsWith("lockstep:{evil}:lock: ")));
}

TEST_F(monitor_of_large_texts, passes_over_a_place_in_a_queue) {
    server.must({"HSET", "lockstep:{evil}:lock", "v", "3", "o", "a.1", "f", now_ms() + "000", "t", "3600000", "h", "1", "l", "2", "q1", "b.1", "q2", large});
    EXPECT_THAT(notes_of("evil"), Contains(AllOf(StartsWith("lockstep:{evil}:lock: "), HasSubstr("place 2"), HasSubstr("40000000 bytes"))));
    EXPECT_THAT(eye.waiters("evil"), testing::SizeIs(1));
}

TEST_F(monitor_of_large_texts, passes_over_a_member_of_the_index) {
    server.must({"ZADD", "lockstep:{objects/1}:index", "9999999999999", "{" + large + "}:lock"});
    EXPECT_THAT(notes_of("payroll"), Contains(StartsWith("lockstep:{objects/1}:index: ")));
}

TEST_F(monitor_of_large_texts, passes_over_a_value_of_the_statistics) {
    server.must({"HSET", "lockstep:{statistics}:names", "lock evil", large});
    EXPECT_THAT(notes_of("payroll"), Contains(StartsWith("lockstep:{statistics}:names: ")));
}

TEST_F(monitor_of_large_texts, passes_over_entries_of_the_audit_log) {
    server.must({"RPUSH", "lockstep-audit:log", "id 1700000000000-1\naction ask\n", large, "id 1700000000000-2\naction ask\n", large});
    EXPECT_THAT(notes_of("payroll"), Contains(AllOf(StartsWith("lockstep-audit:log: "), HasSubstr("40000000 bytes"))));
    EXPECT_THAT(eye.audit(), testing::SizeIs(2));
}

TEST_F(monitor_bounds, objects_that_are_too_large_together_are_read_one_by_one) {
    for (int i = 0; i < 20; ++i) {
        server.must({"HSET", "lockstep:{n" + std::to_string(i) + "}:lock", "v", "3", "o", std::string(20'000, 'x') + ".1", "f", now_ms() + "000", "t", "3600000"});
    }
    client small{{.url = server.url(), .max_reply_bytes = 100'000}};
    monitor in{small};
    auto const seen = in.snapshot({.scan = true});
    EXPECT_THAT(seen.holds, testing::SizeIs(20));
    EXPECT_THAT(seen.notes, Contains(HasSubstr("one by one")));
}

TEST_F(monitor_bounds, a_look_ends_between_groups_of_objects) {
    fill({"ZADD", "lockstep:{objects/1}:index"}, 20'000, +[](int i) { return std::vector<std::string>{"9999999999999", "{n" + std::to_string(i) + "}:lock"}; });
    auto const seen = eye.snapshot({.within = 1ms});
    EXPECT_THAT(seen.notes, Contains(AllOf(StartsWith("lockstep: "), HasSubstr("the time for a look is over"))));
    EXPECT_GT(seen.left_out, 0U);
    EXPECT_GT(seen.at.time_since_epoch().count(), 0);
}

TEST_F(monitor_bounds, work_is_weighed_by_all_that_is_described) {
    observe::picture all;
    all.seen.objects.resize(400);
    for (auto& one : all.seen.objects) one.holds.resize(1'000);
    all.seen.objects[0].queue.resize(50);
    all.people["a"].waits.resize(7);
    EXPECT_EQ(observe::elements_of(all), 400U + 400'000U + 50U + 1U + 7U);
}

TEST_F(monitor_bounds, without_a_further_thread_the_work_is_done_on_that_of_the_client) {
    fill({"ZADD", "lockstep:{objects/1}:index"}, 2'000, +[](int i) { return std::vector<std::string>{"9999999999999", "{n" + std::to_string(i) + "}:lock"}; });
    auto const held = mutex(by, "payroll").acquire();
    pthread_attr_t usual, impossible;
    ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
    ASSERT_EQ(::pthread_getattr_default_np(&impossible), 0);
    ::pthread_attr_setstacksize(&impossible, std::size_t{1} << 46);
    ASSERT_EQ(::pthread_setattr_default_np(&impossible), 0);
    EXPECT_NO_THROW(EXPECT_THAT(eye.snapshot({.scan = true}).holds, testing::SizeIs(1)));
    EXPECT_NO_THROW(eye.snapshot());
    ::pthread_setattr_default_np(&usual);
    EXPECT_TRUE(held.valid());
}

class monitor_of_another_type : public monitor_bounds, public testing::WithParamInterface<char const*> {};
INSTANTIATE_TEST_SUITE_P(keys, monitor_of_another_type,
                         testing::Values("lockstep:{clients}:index", "lockstep:{statistics}:names", "lockstep-audit:log", "lockstep:{record}:log",
                                         "lockstep:{e}:changes", "lockstep:{evil}:lock", "lockstep:{objects/0}:index", "lockstep:{clients}:evil"),
                         [](auto const& of) {
                             std::string name;
                             for (char const c : std::string{of.param}.substr(9)) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                             return name;
                         });

TEST_P(monitor_of_another_type, hides_nothing_else_and_is_named) {
    std::string const key = GetParam();
    auto const held = mutex(by, "payroll").acquire();
    ASSERT_TRUE(eventually([&] { return eye.clients().size() == 1 && eye.snapshot().holds.size() == 1; }, 20s));
    server.must({"DEL", key});
    server.must({"SET", key, "x"});
    auto named = eye.snapshot({.scan = true}).notes;
    auto const add = [&] {
        for (auto& one : eye.notes()) named.push_back(std::move(one));
    };
    EXPECT_EQ(eye.snapshot({.scan = true}).holds.size(), 1U);
    EXPECT_EQ(eye.snapshot({.name = "payroll"}).holds.size(), 1U);
    for (auto& one : eye.snapshot().notes) named.push_back(std::move(one));
    EXPECT_EQ(eye.active("payroll").size(), 1U);
    EXPECT_EQ(eye.why("payroll").holds.size(), 1U);
    if (key == "lockstep:{clients}:evil") server.must({"ZADD", "lockstep:{clients}:index", now_ms(), "evil"});
    EXPECT_NO_THROW(eye.clients());
    add();
    EXPECT_FALSE(eye.statistics().empty());
    add();
    EXPECT_NO_THROW(eye.audit());
    add();
    EXPECT_NO_THROW(eye.history());
    add();
    EXPECT_NO_THROW(eye.changes("e"));
    add();
    EXPECT_NO_THROW(eye.contention());
    add();
    EXPECT_THAT(named, Contains(StartsWith(key + ": "))) << "of all that was asked";
    EXPECT_EQ(coroutine::await(by, [&] { return eye.async_clients(); }).empty(), key == "lockstep:{clients}:index");
}

TEST_F(monitor_bounds, a_lock_whose_fields_are_not_those_of_a_lock_hides_nothing_else) {
    auto const held = mutex(by, "payroll").acquire();
    server.must({"HSET", "lockstep:{evil}:lock", "v", "3", "o", "*", "p", "id", "s", "held", "e", "x", "d", "y"});
    server.must({"HSET", "lockstep:{evil2}:lock", "v", "3", "o", "id"});
    server.must({"HSET", "lockstep:{evil3}:lock", "v", "3", "o", "id", "f", "99999999999999999", "t", "1e300"});
    auto const seen = eye.snapshot({.scan = true});
    EXPECT_EQ(std::count_if(seen.holds.begin(), seen.holds.end(), [](hold_info const& one) { return one.name == "payroll"; }), 1);
    EXPECT_THAT(seen.notes, Contains(StartsWith("lockstep:{evil}:lock: ")));
    EXPECT_THAT(seen.notes, Contains(StartsWith("lockstep:{evil2}:lock: ")));
}

TEST_F(monitor_bounds, a_look_ends_when_its_time_is_over_and_says_so) {
    for (int i = 0; i < 20; ++i) server.must({"EVAL", "for i = 1, 1000 do redis.call('SET', 'x' .. ARGV[1] .. ':' .. i, 1) end", "0", std::to_string(i)});
    auto const cut = eye.snapshot({.scan = true, .within = 1ms});
    EXPECT_THAT(cut.notes, Contains(AllOf(StartsWith("SCAN lockstep:"), HasSubstr("the time for a look is over"))));
    EXPECT_THAT(eye.snapshot({.scan = true}).notes, IsEmpty());
}

}  // namespace
}  // namespace lockstep::test
