// What others write, a monitor reads in small pieces: keys that are large or of another type hide nothing else, cost no lease, and are named.
#include "support/eventually.hpp"
#include "support/forms.hpp"
#include "support/redis_server.hpp"

#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/session_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
