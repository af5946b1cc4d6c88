// lockstep elect, leader, observe.
#include "cli_support.hpp"
#include "election_support.hpp"

#include <lockstep/election.hpp>
#include <lockstep/monitor.hpp>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class cli_elect : public cli {
protected:
    client by{server.url()};
    election of{by, "name", {.id = "here"}};
    /// Once somebody leads, its id.
    std::string leader() {
        std::optional<leader_info> found;
        static_cast<void>(eventually([&] { return (found = of.leader()).has_value(); }));
        return found ? found->id : "";
    }
};

TEST_F(cli_elect, runs_a_command_while_it_leads_and_hands_over_afterwards) {
    auto const seen = run({"elect", "name", "--id", "shell", "--", "sh", "-c", "echo $LOCKSTEP_NAME $LOCKSTEP_TERM; exit 3"});
    EXPECT_EQ(seen.code, 3);
    EXPECT_THAT(seen.text, StartsWith("name 1"));
    EXPECT_TRUE(of.try_campaign());
}

TEST_F(cli_elect, waits_for_its_turn_and_no_longer_than_it_is_told) {
    auto leads = of.campaign();
    EXPECT_EQ(run({"elect", "name", "-n", "--", "true"}).code, 1);
    EXPECT_EQ(run({"elect", "name", "-w", "100ms", "-E", "7", "--", "true"}).code, 7);
    EXPECT_EQ(run({"elect", "name", "-n"}).code, 1);
    auto next = begin({"elect", "name", "--id", "shell", "--", "sh", "-c", "echo leads; read x"});
    ASSERT_TRUE(eventually([&] { return candidates_at(server) == 1; }));
    leads.resign();
    EXPECT_EQ(next.read_line(), "leads");
    EXPECT_EQ(leader(), "shell");
    next.close_input();
    EXPECT_TRUE(next.wait());
}

TEST_F(cli_elect, stops_the_command_when_the_leadership_is_lost) {
    auto job = begin({"elect", "name", "--id", "shell", "--", "sh", "-c", "echo leads; sleep 100"});
    EXPECT_EQ(job.read_line(), "leads");
    monitor watch{by};
    auto const held = watch.active("name");
    ASSERT_EQ(held.size(), 1U);
    EXPECT_TRUE(watch.release(held[0], {.force = true}));
    auto const end = job.wait(20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 75);
}

TEST_F(cli_elect, leads_without_a_command_until_a_signal_ends_it) {
    auto job = begin({"elect", "name", "--id", "shell"});
    EXPECT_THAT(job.read_line().value_or(""), StartsWith("shell leads name in term "));
    EXPECT_EQ(leader(), "shell");
    job.kill(SIGTERM);
    auto const end = job.wait(20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 128 + SIGTERM);
    EXPECT_FALSE(of.leader()) << "it has resigned";
    auto lost = begin({"elect", "name", "--id", "shell"});
    EXPECT_THAT(lost.read_line().value_or(""), StartsWith("shell leads name"));
    monitor watch{by};
    EXPECT_TRUE(watch.release(watch.active("name").at(0), {.force = true}));
    EXPECT_EQ(lost.wait(20s).value().code, 75);
}

TEST_F(cli_elect, refuses_what_is_not_allowed) {
    auto const seen = run({"elect", "name", "--priority", "1001"});
    EXPECT_EQ(seen.code, 64);
    EXPECT_EQ(run({"elect", "name", "--"}).code, 64);
    EXPECT_EQ(run({"elect", "name", "--id", "two\nlines"}).code, 64);
}

TEST_F(cli_elect, shows_who_leads) {
    EXPECT_EQ(run({"leader", "name"}).code, 1);
    EXPECT_EQ(run({"leader", "name", "--json"}).text, "{\"error\":\"not_found\",\"message\":\"nobody leads name\"}\n");
    auto const leads = of.campaign();
    auto const seen = run({"leader", "name"});
    EXPECT_EQ(seen.code, 0);
    EXPECT_THAT(seen.text, AllOf(HasSubstr("LEADER"), HasSubstr("here"), HasSubstr(std::to_string(leads.term()))));
    EXPECT_THAT(run({"leader", "name", "--json"}).text, AllOf(HasSubstr("\"id\":\"here\""), HasSubstr("\"term\":\"" + std::to_string(leads.term()))));
    EXPECT_THAT(run({"ls", "--scan"}).text, HasSubstr("election"));
    EXPECT_THAT(run({"who", "name"}).text, HasSubstr("leader"));
}

TEST_F(cli_elect, prints_changes_as_they_happen) {
    auto leads = of.campaign();
    auto watching = begin({"observe", "name", "--from-start", "--most", "3", "--json"});
    EXPECT_THAT(watching.read_line().value_or(""), AllOf(HasSubstr("\"what\":\"elected\""), HasSubstr("\"id\":\"here\"")));
    leads.resign();
    EXPECT_THAT(watching.read_line().value_or(""), HasSubstr("\"what\":\"resigned\""));
    leads = of.campaign();
    EXPECT_THAT(watching.read_line().value_or(""), HasSubstr("\"what\":\"elected\""));
    EXPECT_EQ(watching.wait(20s).value().code, 0);
    auto const text = run({"observe", "name", "--from-start", "--most", "2"}).text;
    EXPECT_THAT(text, AllOf(HasSubstr("elected "), HasSubstr("resigned"), HasSubstr("term ")));
    auto ended = begin({"observe", "name"});
    ended.kill(SIGINT);
    EXPECT_TRUE(ended.wait(20s));
}

}  // namespace
}  // namespace lockstep::test
