// What is written about the `lockstep` program says what it does: man page and completions against --help.

#include "cli/exit_code.hpp"
#include "cli_support.hpp"

#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>

#include <regex>
#include <set>

namespace lockstep::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string folder() { return std::string{LOCKSTEP_SOURCE_DIR} + "/apps/cli/"; }

class cli_pages : public cli {
protected:
    static std::string help(std::vector<std::string> path) {
        path.insert(path.begin(), program_path("lockstep"));
        path.emplace_back("--help");
        return finish(path).text;
    }
    static std::set<std::string> options_in(std::string const& text) {
        static std::regex const option{"(^|[ ,])(--?[a-zA-Z0-9][-a-z]*)"};
        std::set<std::string> found;
        std::istringstream lines{text};
        for (std::string line; std::getline(lines, line);) {
            if (!line.starts_with("  -")) continue;
            auto const end = line.find(' ', 3);
            auto const words = line.substr(1, end == std::string::npos ? end : end - 1);
            for (std::sregex_iterator it{words.begin(), words.end(), option}, last; it != last; ++it) found.insert((*it)[2]);
        }
        return found;
    }
    static std::vector<std::string> actions_in(std::string const& text) {
        std::vector<std::string> found;
        std::istringstream lines{text};
        static std::regex const action{"^  ([a-z][-a-z]*) .*"};
        std::smatch match;
        for (std::string line; std::getline(lines, line);) {
            if (std::regex_match(line, match, action)) found.push_back(match[1]);
        }
        return found;
    }
    // What bash offers for a line that ends in the word to complete.
    std::vector<std::string> completed(std::vector<std::string> const& words) {
        auto const program = home.file("lockstep");
        if (!std::filesystem::exists(program)) std::filesystem::create_symlink(program_path("lockstep"), program);
        std::string list;
        for (auto const& word : words) list += " '" + word + "'";
        auto const script = "source " + folder() + "completion/lockstep.bash; COMP_WORDS=('" + program + "'" + list + "); COMP_CWORD=" +
                            std::to_string(words.size()) + "; _lockstep; printf '%s\\n' \"${COMPREPLY[@]}\"";
        child_options const environment{.environment = {{"LOCKSTEP_URL", server.url()}}};
        std::istringstream lines{finish({"bash", "--norc", "-c", script}, environment).text};
        std::vector<std::string> offered;
        for (std::string line; std::getline(lines, line);) offered.push_back(line);
        return offered;
    }
};

TEST_F(cli_pages, the_man_page_has_every_sub_command_and_option) {
    auto page = file_content(folder() + "man/lockstep.1");
    page = std::regex_replace(page, std::regex{"\\\\-"}, "-");
    auto const expect_options = [&](std::vector<std::string> const& path) {
        for (auto const& option : options_in(help(path))) {
            EXPECT_TRUE(std::regex_search(page, std::regex{"[ \"(]" + option + "[ \",\n)]"})) << (path.empty() ? "" : path[0]) << " takes " << option;
        }
    };
    expect_options({});
    EXPECT_GT(options_in(help({"run"})).size(), 20U);
    auto const shown = actions_in(help({}));
    EXPECT_GT(shown.size(), 15U);
    for (auto const& name : shown) {
        EXPECT_TRUE(std::regex_search(page, std::regex{"\n\\.SS [^\n]*lockstep " + name + "[, \n]"})) << "no section on " << name;
        expect_options({name});
        for (auto const& action : actions_in(help({name}))) {
            EXPECT_THAT(page, HasSubstr(action));
            expect_options({name, action});
        }
    }
}

TEST_F(cli_pages, the_man_page_and_the_help_have_every_exit_code) {
    using lockstep::cli::exit_code;
    auto const page = file_content(folder() + "man/lockstep.1");
    auto const text = help({});
    for (auto const code : {exit_code::ok, exit_code::no, exit_code::usage, exit_code::unavailable, exit_code::internal, exit_code::system, exit_code::lost,
                            exit_code::server, exit_code::denied, exit_code::unsuitable}) {
        auto const number = std::to_string(static_cast<int>(code));
        EXPECT_THAT(page, HasSubstr(".TP\n.B " + number + "\n"));
        EXPECT_TRUE(std::regex_search(text, std::regex{"[ \n]" + number + " "})) << number;
    }
}

TEST_F(cli_pages, the_man_page_is_one) {
    auto const seen = finish({"groff", "-man", "-Tutf8", "-ww", "-z", folder() + "man/lockstep.1"});
    EXPECT_EQ(seen.code, 0);
    EXPECT_EQ(seen.text, "");
}

TEST_F(cli_pages, bash_completes_sub_commands_options_and_names) {
    client other{server.url()};
    auto const held = mutex{other, "nightly report"}.acquire();
    ASSERT_TRUE(eventually([&] { return monitor{other}.active().size() == 1; }, 12s)) << "the server was told of it";
    EXPECT_THAT(completed({""}), Contains("run"));
    EXPECT_EQ(completed({"ba"}), std::vector<std::string>{"barrier"});
    EXPECT_THAT(completed({"run", "--at"}), Contains("--at-least"));
    EXPECT_THAT(completed({"run", "--re"}), Contains("--redis")) << "the common ones too";
    EXPECT_THAT(completed({"event", ""}), Contains("is-set"));
    EXPECT_THAT(completed({"event", "wait", "--br"}), Contains("--broadcast"));
    EXPECT_EQ(completed({"run", ""}), std::vector<std::string>{"nightly\\ report"});
    EXPECT_EQ(completed({"run", "-w", "5", "ni"}), std::vector<std::string>{"nightly\\ report"});
    EXPECT_EQ(completed({"who", "x"}), std::vector<std::string>{""});
    EXPECT_THAT(completed({"run", "x", "--", "bas"}), Contains("bash")) << "the command's own";
}

TEST_F(cli_pages, names_are_completed_behind_every_action_that_takes_one) {
    client other{server.url()};
    auto const held = mutex{other, "nightly"}.acquire();
    ASSERT_TRUE(eventually([&] { return monitor{other}.active().size() == 1; }, 12s)) << "the server was told of it";
    std::string with_actions = " ";
    for (auto const& name : actions_in(help({}))) {
        auto const actions = actions_in(help({name}));
        if (actions.empty()) continue;
        with_actions += name + " ";
        auto const expected = name == "server" ? "" : "nightly";
        EXPECT_EQ(completed({name, actions.front(), ""}), std::vector<std::string>{expected}) << name;
    }
    EXPECT_THAT(with_actions, HasSubstr(" board "));
    EXPECT_THAT(file_content(folder() + "completion/_lockstep"), HasSubstr('"' + with_actions + '"')) << "as zsh has it";
    EXPECT_THAT(completed({"board", "top", "--period", ""}), Contains("week"));
}

TEST_F(cli_pages, completing_a_name_starts_no_server) {
    child_options const own{.environment = {{"LOCKSTEP_EMBEDDED_DIR", home.file("run")}, {"LOCKSTEP_URL", ""}, {"REDIS_URL", ""}}};
    EXPECT_EQ(finish({program_path("lockstep"), "ls", "--names"}, own).text, "");
    EXPECT_FALSE(std::filesystem::exists(home.file("run/redis.sock")));
}

}  // namespace
}  // namespace lockstep::test
