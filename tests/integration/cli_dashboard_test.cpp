// `lockstep dashboard`: what it prints, warns of and refuses. What its server does is in tests/dashboard.
#include "cli_support.hpp"

#include <sys/stat.h>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class cli_dashboard : public cli {
protected:
    void SetUp() override {
        if (run({"dashboard", "--listen", "nowhere"}).text.find("built without") != std::string::npos) GTEST_SKIP() << "no page in this build";
    }
    std::string token_file(std::string const& token, mode_t mode = 0600) const {
        auto const path = home.file("token");
        std::ofstream{path} << token << '\n';
        EXPECT_EQ(::chmod(path.c_str(), mode), 0);
        return path;
    }
    // What it prints until its last line, which tells how to end it.
    std::string told(std::vector<std::string> words, child_options const& options = {}) const {
        words.insert(words.begin(), {"dashboard", "--port", "0"});
        auto program = begin(words, options);
        std::string text;
        while (auto const line = program.read_line(20s)) {
            text += *line + '\n';
            if (line->find("Ctrl-C ends it") != std::string::npos) break;
        }
        program.kill(SIGINT);
        EXPECT_TRUE(program.wait(20s));
        return text;
    }
    static inline std::string const token = "a-token-of-some-length";
};

TEST_F(cli_dashboard, prints_a_link_that_logs_in_and_the_token_that_it_made) {
    auto const text = told({});
    EXPECT_THAT(text, AllOf(HasSubstr("http://127.0.0.1:"), HasSubstr("/#code="), HasSubstr("once, within 2 minutes"), Not(HasSubstr("warning"))));
    EXPECT_NE(text, told({})) << "another one each time";
}

TEST_F(cli_dashboard, never_prints_a_token_that_it_was_given) {
    for (auto const& text : {told({"--token-file", token_file(token)}), told({}, {.environment = {{"LOCKSTEP_DASHBOARD_TOKEN", token}}})})
        EXPECT_THAT(text, AllOf(HasSubstr("http://127.0.0.1:"), Not(HasSubstr("#code=")), Not(HasSubstr(token)), Not(HasSubstr("warning"))));
}

TEST_F(cli_dashboard, warns_of_secrets_that_others_can_read) {
    auto const path = token_file(token, 0644);
    EXPECT_THAT(told({"--token-file", path}), AllOf(HasSubstr("warning"), HasSubstr(path), HasSubstr("mode 0644"), HasSubstr("chmod 600"), Not(HasSubstr(token))));
}

TEST_F(cli_dashboard, warns_of_plain_http_beyond_loopback) { EXPECT_THAT(told({"--listen", "0.0.0.0"}), AllOf(HasSubstr("warning"), HasSubstr("--tls-cert"))); }

TEST_F(cli_dashboard, refuses_what_lets_others_do_what_only_its_user_should) {
    auto const refused = [&](std::vector<std::string> words) {
        words.insert(words.begin(), "dashboard");
        auto const seen = run(words);
        EXPECT_EQ(seen.code, 64) << seen.text;
        return seen.text;
    };
    EXPECT_THAT(refused({"--no-token", "--allow-actions"}), AllOf(HasSubstr("--no-token"), HasSubstr("--allow-actions")));
    EXPECT_THAT(refused({"--no-token", "--listen", "0.0.0.0"}), HasSubstr("--no-token"));
    EXPECT_THAT(refused({"--no-token", "--token-file", token_file(token)}), HasSubstr("--token-file"));
    EXPECT_THAT(refused({"--no-token", "--metrics-token-file", token_file(token)}), HasSubstr("--metrics-token-file"));
    EXPECT_THAT(refused({"--token-file", "/nowhere/token"}), AllOf(HasSubstr("/nowhere/token"), HasSubstr("No such file")));
    EXPECT_THAT(refused({"--token-file", token_file("")}), HasSubstr("no token in"));
    EXPECT_THAT(refused({"--token-file", token_file("aaaaaaaaaaaaaaaaaaaa")}), AllOf(HasSubstr("guessed"), HasSubstr("openssl rand"), Not(HasSubstr("aaaa"))));
    EXPECT_THAT(refused({"--tls-cert", "/nowhere/certificate"}), HasSubstr("--tls-key"));
    EXPECT_THAT(refused({"--tls-cert", "/nowhere/certificate", "--tls-key", "/nowhere/key"}), HasSubstr("/nowhere/certificate"));
}

TEST_F(cli_dashboard, is_open_to_all_users_of_the_machine_only_when_told_so) {
    EXPECT_THAT(told({"--no-token"}), AllOf(StartsWith("http://127.0.0.1:"), Not(HasSubstr("token"))));
}

}  // namespace
}  // namespace lockstep::test
