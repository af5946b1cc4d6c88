// Sub-commands that show things, where somebody else wrote a key that they read.
#include "cli_support.hpp"

#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class cli_unreadable : public cli {
protected:
    void expect_named(std::vector<std::string> const& words, std::string const& key, int code) const {
        auto const seen = run(words);
        EXPECT_EQ(seen.code, code) << seen.text;
        EXPECT_THAT(seen.text, AllOf(HasSubstr("not shown: " + key + ": "), Not(HasSubstr("WRONGTYPE")))) << words.front();
    }

    client by{server.url()};
    lease held = mutex{by, "payroll"}.acquire();
};

TEST_F(cli_unreadable, a_list_of_clients_of_another_type_is_named_and_hides_no_lock) {
    std::string const key = "lockstep:{clients}:index";
    server.must({"DEL", key});
    server.must({"SET", key, "x"});
    expect_named({"ls", "--scan"}, key, 0);
    EXPECT_THAT(run({"ls", "--scan"}).text, HasSubstr("payroll"));
    EXPECT_EQ(run({"who", "payroll"}).code, 0);
    EXPECT_EQ(run({"why", "payroll"}).code, 0);
    EXPECT_THAT(run({"--json", "ls", "--scan"}).text, HasSubstr("{\"not_shown\":\"" + key + ": "));
}

TEST_F(cli_unreadable, statistics_and_records_of_another_type_are_named) {
    server.must({"SET", "lockstep:{statistics}:names", "x"});
    expect_named({"stats"}, "lockstep:{statistics}:names", 1);
    server.must({"SET", "lockstep:{record}:log", "x"});
    expect_named({"history", "payroll"}, "lockstep:{record}:log", 1);
}

TEST_F(cli_unreadable, a_key_is_shown_without_its_control_characters) {
    server.must({"SET", "lockstep:{a\x1b[31m}:lock", "x"});
    auto const seen = run({"ls", "--scan"});
    EXPECT_THAT(seen.text, AllOf(HasSubstr("payroll"), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace lockstep::test
