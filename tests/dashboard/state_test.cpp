// What of a snapshot is news, and what a page that missed some of it is sent.
#include "dashboard/state.hpp"

#include <gtest/gtest.h>
#include <boost/json.hpp>

namespace lockstep::dashboard {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

struct dashboard_state : testing::Test {
    dashboard_state() {
        now.at = std::chrono::system_clock::time_point{1'700'000'000s};
        now.clients = {{.id = "c1", .name = "one"}, {.id = "c2", .name = "two"}};
        now.objects = {{.name = "a", .kind = "lock", .holders = 1}};
        now.holds = {{.name = "a",
                      .kind = "lock",
                      .use = "owner",
                      .id = "c1.1",
                      .owner = now.clients[0],
                      .fence = 7,
                      .held_for = 1s,
                      .remaining = 9s}};
        tracked.update(now);
    }
    void pass(std::chrono::milliseconds time) {
        now.at += time;
        for (auto& hold : now.holds) {
            hold.held_for += time;
            hold.remaining -= time;
        }
        for (auto& wait : now.waits)
            if (wait.waiting_for) *wait.waiting_for += time;
    }
    json::object sent(std::string const& seen) { return json::parse(tracked.message(seen)).as_object(); }
    static std::size_t count(json::object const& message, char const* part, char const* of) {
        return message.at(part).at(of).as_array().size();
    }

    snapshot now;
    state tracked;
};

TEST_F(dashboard_state, sends_everything_to_a_page_that_has_nothing) {
    auto const message = sent("");
    EXPECT_TRUE(message.at("whole").as_bool());
    EXPECT_EQ(count(message, "set", "objects"), 1U);
    EXPECT_EQ(count(message, "set", "holds"), 1U);
    EXPECT_EQ(count(message, "set", "clients"), 2U);
    auto const& hold = message.at("set").at("holds").at(0);
    EXPECT_EQ(hold.at("owner").as_string(), "c1");
    EXPECT_EQ(hold.at("fence").as_string(), "7");
    EXPECT_EQ(hold.at("ends_at_ms").as_int64(), 1'700'000'009'000);
    EXPECT_EQ(hold.at("since_ms").as_int64(), 1'699'999'999'000);
}

// A page reads numbers as doubles.
TEST_F(dashboard_state, sends_what_a_counter_has_so_that_a_page_can_read_it) {
    now.objects.push_back({.name = "large", .kind = "counter", .count = 9'223'372'036'854'775'807});
    now.objects.push_back({.name = "small", .kind = "counter", .count = -7});
    ASSERT_TRUE(tracked.update(now));
    auto const message = sent("");
    std::map<std::string, std::string> seen;
    for (auto const& one : message.at("set").at("objects").as_array()) {
        seen[boost::json::value_to<std::string>(one.at("name"))] = boost::json::serialize(one.at("count"));
    }
    EXPECT_EQ(seen["large"], "\"9223372036854775807\"");
    EXPECT_EQ(seen["small"], "-7");
}

TEST_F(dashboard_state, finds_nothing_new_in_a_lease_that_only_ran_down) {
    for (int i = 0; i < 8; ++i) {
        pass(1s);
        EXPECT_FALSE(tracked.update(now));
    }
}

TEST_F(dashboard_state, sends_a_renewed_lease_and_only_that) {
    auto const seen = tracked.version();
    pass(3s);
    now.holds[0].remaining = 10s;
    ASSERT_TRUE(tracked.update(now));
    auto const message = sent(seen);
    EXPECT_FALSE(message.at("whole").as_bool());
    EXPECT_EQ(count(message, "set", "holds"), 1U);
    EXPECT_EQ(count(message, "set", "objects"), 0U);
    EXPECT_EQ(count(message, "set", "clients"), 0U);
}

TEST_F(dashboard_state, tells_what_went_by_the_key_the_page_knows_it_by) {
    auto const seen = tracked.version();
    now.holds.clear();
    now.objects.clear();
    ASSERT_TRUE(tracked.update(now));
    auto const message = sent(seen);
    EXPECT_EQ(message.at("gone").at("holds").at(0).as_string(), "lock:c1.1:a");
    EXPECT_EQ(message.at("gone").at("objects").at(0).as_string(), "lock:a");
    EXPECT_EQ(count(sent(tracked.version()), "gone", "holds"), 0U) << "once";
}

TEST_F(dashboard_state, knows_jobs_of_one_name_by_their_types) {
    now.objects = {{.name = "shop", .kind = "jobs", .count = 1, .type = "mail"}, {.name = "shop", .kind = "jobs", .count = 2, .type = "report"}};
    tracked.update(now);
    auto const seen = tracked.version();
    now.objects[1].blocked = 7;
    ASSERT_TRUE(tracked.update(now));
    auto const message = sent(seen);
    EXPECT_EQ(count(message, "set", "objects"), 1U);
    EXPECT_EQ(message.at("set").at("objects").at(0).at("type").as_string(), "report");
    EXPECT_EQ(message.at("set").at("objects").at(0).at("blocked").as_int64(), 7);
    now.objects.pop_back();
    tracked.update(now);
    EXPECT_EQ(sent(seen).at("gone").at("objects").at(0).as_string(), "jobs:shop/report");
}

TEST_F(dashboard_state, sends_one_that_went_and_came_back_as_there) {
    auto const seen = tracked.version();
    auto const before = now.holds;
    now.holds.clear();
    tracked.update(now);
    now.holds = before;
    tracked.update(now);
    auto const message = sent(seen);
    EXPECT_EQ(count(message, "set", "holds"), 1U);
    EXPECT_EQ(count(message, "gone", "holds"), 0U);
}

TEST_F(dashboard_state, sends_everything_to_a_page_of_another_server) {
    state other;
    other.update(now);
    EXPECT_TRUE(sent(other.version()).at("whole").as_bool());
    EXPECT_TRUE(sent("nonsense").at("whole").as_bool());
    EXPECT_TRUE(sent(tracked.version() + "9").at("whole").as_bool()) << "from the future";
}

TEST_F(dashboard_state, sends_everything_to_a_page_that_missed_more_than_is_remembered) {
    auto const seen = tracked.version();
    for (int round = 0; round < 3; ++round) {
        now.objects.clear();
        for (int i = 0; i < 10'000; ++i)
            now.objects.push_back({.name = std::to_string(round) + "/" + std::to_string(i), .kind = "lock"});
        tracked.update(now);
    }
    now.objects.clear();
    tracked.update(now);
    auto const message = sent(seen);
    EXPECT_TRUE(message.at("whole").as_bool());
    EXPECT_EQ(count(message, "set", "objects"), 0U);
}

TEST_F(dashboard_state, knows_the_owner_of_a_hold_after_it_is_gone) {
    now.clients.erase(now.clients.begin());
    now.holds[0].owner.connected = false;
    now.holds[0].stale = true;
    auto const seen = tracked.version();
    ASSERT_TRUE(tracked.update(now));
    auto const message = sent(seen);
    EXPECT_EQ(message.at("set").at("clients").at(0).at("name").as_string(), "one");
    EXPECT_FALSE(message.at("set").at("clients").at(0).at("connected").as_bool());
    EXPECT_EQ(count(message, "gone", "clients"), 0U);
    EXPECT_EQ(tracked.stale(), 1U);
    now.holds[0].owner = {.id = "c1", .connected = false};
    tracked.update(now);
    EXPECT_EQ(sent(seen).at("set").at("clients").at(0).at("name").as_string(), "one")
        << "although the server has forgotten it";
}

TEST_F(dashboard_state, writes_names_that_are_not_utf8_as_json_can_have_them) {
    now.objects.push_back({.name = "\xff\"<b>", .kind = "lock"});
    tracked.update(now);
    auto const all = sent("").at("set").at("objects").as_array();
    auto const found =
        std::find_if(all.begin(), all.end(), [](json::value const& one) { return one.as_object().contains("raw"); });
    ASSERT_NE(found, all.end());
    EXPECT_EQ(found->at("name").as_string(), "\\xff\"<b>");
    EXPECT_EQ(found->at("raw").as_string(), "%ff%22%3cb%3e");
}

}  // namespace
}  // namespace lockstep::dashboard
