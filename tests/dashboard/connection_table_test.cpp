// Which connection makes room for which.
#include "dashboard/connection_table.hpp"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

namespace lockstep::dashboard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct dashboard_connections : testing::Test {
    std::optional<connection_table::id> admit(std::string const& network, std::string const& name) {
        return table.admit(network, [this, name] { dropped.push_back(name); });
    }
    connection_table table{{.total = 4, .untrusted_per_network = 2}};
    std::vector<std::string> dropped;
};

TEST_F(dashboard_connections, of_one_network_make_room_for_each_other_the_oldest_idle_first) {
    auto const first = admit("a", "first").value();
    (void)admit("a", "second");
    (void)admit("b", "other");
    table.set_state(first, activity::answering, false);
    (void)admit("a", "third");
    EXPECT_THAT(dropped, ElementsAre("second")) << "the first is being answered, the other is somebody else's";
    table.set_state(first, activity::idle, false);
    (void)admit("a", "fourth");
    EXPECT_THAT(dropped, ElementsAre("second", "third")) << "the first became idle after it";
    EXPECT_EQ(table.size(), 3U);
}

TEST_F(dashboard_connections, that_take_for_ever_to_read_make_room_for_their_own_network) {
    for (auto const* name : {"first", "second"}) table.set_state(admit("a", name).value(), activity::answering, false);
    EXPECT_TRUE(admit("a", "third"));
    EXPECT_THAT(dropped, ElementsAre("first"));
}

TEST_F(dashboard_connections, that_wait_as_the_throttle_wants_are_the_last_of_their_network_to_make_room) {
    table.set_state(admit("a", "delayed").value(), activity::delayed, false);
    table.set_state(admit("a", "answering").value(), activity::answering, false);
    (void)admit("a", "silent");
    (void)admit("a", "another");
    EXPECT_THAT(dropped, ElementsAre("answering", "silent"));
}

// Whoever comes first, last or often has no better chance than others.
TEST_F(dashboard_connections, that_wait_as_the_throttle_wants_are_few_and_each_may_be_the_one_too_many) {
    std::map<std::string, int> times;
    for (int round = 0; round < 200; ++round) {
        connection_table many{{.total = 64, .untrusted_per_network = 16, .delayed_per_network = 4}};
        std::vector<std::string> gone;
        auto const delay = [&](std::string const& network, std::string const& name, bool trusted) {
            many.set_state(many.admit(network, [&gone, name] { gone.push_back(name); }).value(), activity::delayed, trusted);
        };
        for (auto const* name : {"first", "second", "third", "fourth"}) delay("a", name, false);
        delay("b", "of another network", false);
        delay("a", "trusted", true);
        EXPECT_THAT(gone, IsEmpty());
        delay("a", "last", false);
        EXPECT_EQ(gone.size(), 1U);
        for (auto const& name : gone) ++times[name];
    }
    EXPECT_THAT(times, testing::UnorderedElementsAre(testing::Key("first"), testing::Key("second"), testing::Key("third"), testing::Key("fourth"), testing::Key("last")));
}

TEST_F(dashboard_connections, that_are_streams_make_room_for_each_other_the_oldest_first) {
    connection_table many{{.total = 64, .untrusted_per_network = 16, .streams_per_network = 2}};
    std::vector<std::string> ended;
    auto const follow = [&](std::string const& network, std::string const& name, bool trusted) {
        auto const id = many.admit(network, [] { ADD_FAILURE() << "it is a stream now"; }).value();
        many.set_drop(id, [&ended, name] { ended.push_back(name); });
        many.set_state(id, activity::streaming, trusted);
    };
    for (auto const* name : {"first", "second"}) follow("a", name, false);
    for (int i = 0; i < 5; ++i) follow("a", "trusted", true);
    follow("b", "of another network", false);
    EXPECT_THAT(ended, IsEmpty());
    follow("a", "third", false);
    EXPECT_THAT(ended, ElementsAre("first"));
}

TEST_F(dashboard_connections, of_those_who_have_logged_in_stay) {
    for (int i = 0; i < 3; ++i) table.set_state(admit("a", "trusted").value(), activity::idle, true);
    (void)admit("a", "stranger");
    EXPECT_THAT(dropped, IsEmpty()) << "four of a network, and one of a stranger";
    (void)admit("a", "another");
    EXPECT_THAT(dropped, ElementsAre("stranger"));
    EXPECT_EQ(table.size(), 4U);
}

TEST_F(dashboard_connections, that_are_idle_make_room_when_all_places_are_taken) {
    auto const busy = admit("a", "busy").value();
    table.set_state(busy, activity::answering, false);
    table.set_state(admit("b", "trusted").value(), activity::idle, true);
    (void)admit("c", "idle");
    (void)admit("d", "younger");
    EXPECT_TRUE(admit("e", "new"));
    EXPECT_THAT(dropped, ElementsAre("idle"));
    EXPECT_EQ(table.size(), 4U);
}

TEST_F(dashboard_connections, are_refused_only_while_all_are_busy_with_what_may_be_asked) {
    std::vector<connection_table::id> all;
    for (auto const* network : {"a", "b", "c", "d"}) {
        all.push_back(admit(network, network).value());
        table.set_state(all.back(), activity::answering, true);
    }
    EXPECT_FALSE(admit("e", "new"));
    EXPECT_THAT(dropped, IsEmpty());
    table.set_state(all[2], activity::idle, true);
    EXPECT_TRUE(admit("e", "new")) << "one that is idle goes, though it has logged in";
    EXPECT_THAT(dropped, ElementsAre("c"));
    table.remove(all[0]);
    EXPECT_TRUE(admit("f", "newer"));
    EXPECT_EQ(dropped.size(), 1U);
    table.set_state(all[2], activity::answering, true);
    table.remove(all[2]);  // long gone: nothing happens
    EXPECT_EQ(table.size(), 4U);
}

}  // namespace
}  // namespace lockstep::dashboard
