// Which connection makes room for which.
#include "dashboard/connection_table.hpp"

#include <gmock/gmock.h>

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
    table.set_state(first, false, false);
    (void)admit("a", "third");
    EXPECT_THAT(dropped, ElementsAre("second")) << "the first is being answered, the other is somebody else's";
    table.set_state(first, true, false);
    (void)admit("a", "fourth");
    EXPECT_THAT(dropped, ElementsAre("second", "third")) << "the first became idle after it";
    EXPECT_EQ(table.size(), 3U);
}

TEST_F(dashboard_connections, that_take_for_ever_to_read_make_room_for_their_own_network) {
    for (auto const* name : {"first", "second"}) table.set_state(admit("a", name).value(), false, false);
    EXPECT_TRUE(admit("a", "third"));
    EXPECT_THAT(dropped, ElementsAre("first"));
}

TEST_F(dashboard_connections, of_those_who_have_logged_in_stay) {
    for (int i = 0; i < 3; ++i) table.set_state(admit("a", "trusted").value(), true, true);
    (void)admit("a", "stranger");
    EXPECT_THAT(dropped, IsEmpty()) << "four of a network, and one of a stranger";
    (void)admit("a", "another");
    EXPECT_THAT(dropped, ElementsAre("stranger"));
    EXPECT_EQ(table.size(), 4U);
}

TEST_F(dashboard_connections, that_are_idle_make_room_when_all_places_are_taken) {
    auto const busy = admit("a", "busy").value();
    table.set_state(busy, false, false);
    table.set_state(admit("b", "trusted").value(), true, true);
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
        table.set_state(all.back(), false, true);
    }
    EXPECT_FALSE(admit("e", "new"));
    EXPECT_THAT(dropped, IsEmpty());
    table.set_state(all[2], true, true);
    EXPECT_TRUE(admit("e", "new")) << "one that is idle goes, though it has logged in";
    EXPECT_THAT(dropped, ElementsAre("c"));
    table.remove(all[0]);
    EXPECT_TRUE(admit("f", "newer"));
    EXPECT_EQ(dropped.size(), 1U);
    table.set_state(all[2], false, true);
    table.remove(all[2]);  // long gone: nothing happens
    EXPECT_EQ(table.size(), 4U);
}

}  // namespace
}  // namespace lockstep::dashboard
