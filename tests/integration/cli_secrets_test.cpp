// `lockstep` keeps secrets from commands, from other users and from its own output, and what is stored from terminals.

#include "cli_support.hpp"

#include "support/certificates.hpp"

#include <lockstep/event_bus.hpp>
#include <lockstep/job_client.hpp>
#include <lockstep/queue.hpp>
#include <lockstep/shared_map.hpp>
#include <lockstep/shared_value.hpp>

#include <boost/json.hpp>
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// What a program writes to it comes out unchanged.
class pseudo_terminal {
public:
    pseudo_terminal() : descriptor_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
        termios modes{};
        if (::grantpt(descriptor_) != 0 || ::unlockpt(descriptor_) != 0 || ::tcgetattr(descriptor_, &modes) != 0) throw std::runtime_error{"no terminal"};
        ::cfmakeraw(&modes);
        ::tcsetattr(descriptor_, TCSANOW, &modes);
    }
    ~pseudo_terminal() { ::close(descriptor_); }
    pseudo_terminal(pseudo_terminal const&) = delete;
    pseudo_terminal& operator=(pseudo_terminal const&) = delete;

    std::string path() const {
        std::array<char, 64> name{};
        return ::ptsname_r(descriptor_, name.data(), name.size()) == 0 ? name.data() : "";
    }
    // All that is written until no program has it open.
    std::string read_all() const {
        std::string text;
        std::array<char, 4096> buffer;
        for (ssize_t size = 0; (size = ::read(descriptor_, buffer.data(), buffer.size())) > 0;) text.append(buffer.data(), static_cast<std::size_t>(size));
        return text;
    }

private:
    int descriptor_;
};

class cli_secrets : public cli {
protected:
    // A title, a cleared screen, colours by the other escape, a line written over, no UTF-8.
    std::string const harmful = "two\nlines\t\033]0;title\007\033[2J\u009b31m\rover\xff";
    std::string const harmless = "two\nlines\t\\x1B]0;title\\x07\\x1B[2J\\xC2\\x9B31m\\x0Dover\\xFF";

    std::string on_terminal(std::vector<std::string> const& words) const {
        pseudo_terminal const terminal;
        child_process const program{line(words), {.environment = {{"NO_COLOR", "1"}}, .output_file = terminal.path()}};
        return terminal.read_all();
    }
    // The result of a job whose command is this.
    std::string result_of(std::string const& command, std::vector<std::string> more, std::vector<std::pair<std::string, std::string>> const& environment) {
        more.insert(more.begin(), {program_path("lockstep"), "worker", "shop", "--exec", "job=" + command});
        child_process const worker{more, {.environment = environment}};
        auto const end = jobs.wait(jobs.schedule("job", std::string{}).id, 20s);
        return end ? end->result + end->reason : "nothing";
    }

    client by{server.url()};
    job_client jobs{by, "shop"};
};

TEST_F(cli_secrets, what_is_stored_is_escaped_on_a_terminal_and_nowhere_else) {
    shared_value<std::string>{by, "x"}.set(harmful);
    shared_map<std::string>{by, "x"}.set("field", harmful);
    for (int i = 0; i != 2; ++i) queue<std::string>{by, "x"}.enqueue(harmful);
    for (auto const& words : std::vector<std::vector<std::string>>{{"value", "get", "x"}, {"map", "get", "x", "field"}, {"queue", "pop", "x"}}) {
        EXPECT_EQ(on_terminal(words), harmless + "\n") << words[0];
        EXPECT_EQ(run(words).text, harmful + "\n") << words[0];
    }
}

TEST_F(cli_secrets, messages_and_results_of_jobs_are_escaped_on_a_terminal) {
    event_bus bus{by, "bus"};
    for (bool const by_pattern : {false, true}) {
        pseudo_terminal const terminal;
        std::vector<std::string> words{"subscribe", "bus", by_pattern ? "c*" : "c", "--most", "1"};
        if (by_pattern) words.emplace_back("--pattern");
        child_process const listening{line(words), {.output_file = terminal.path()}};
        EXPECT_TRUE(eventually([&] { return bus.publish("c", harmful) > 0; }));
        EXPECT_EQ(terminal.read_all(), (by_pattern ? "c " : "") + harmless + "\n");
    }
    auto const worker = begin({"worker", "shop", "--exec", "echo=cat"});
    EXPECT_EQ(on_terminal({"jobs", "enqueue", "shop", "echo", harmful, "--wait", "20s"}), harmless + "\n");
}

TEST_F(cli_secrets, json_means_the_same_everywhere_and_a_terminal_obeys_none_of_it) {
    std::string const value = "\033[2J\u009b31m\x7f\u202eabc \u00e4";
    shared_value<std::string>{by, "x"}.set(value);
    auto const shown = on_terminal({"--json", "value", "get", "x"});
    EXPECT_EQ(shown, run({"--json", "value", "get", "x"}).text);
    EXPECT_THAT(shown, AllOf(HasSubstr("\\u001b[2J\\u009b31m\\u007f\\u202eabc \u00e4"), Not(HasSubstr("\u009b"))));
    EXPECT_EQ(boost::json::parse(shown).at("value").as_string(), value);
}

TEST_F(cli_secrets, a_worker_keeps_its_secrets_from_its_commands) {
    auto const result = result_of("env", {}, {{"LOCKSTEP_URL", server.url()}, {"REDIS_URL", server.url()}, {"LOCKSTEP_DASHBOARD_TOKEN", "sesame"},
                                              {"LOCKSTEP_PASSWORD", "sesame"}, {"LOCKSTEP_PREFIX", "lockstep"}, {"SHOP", "open"}});
    EXPECT_THAT(result, AllOf(HasSubstr("LOCKSTEP_URL=none:\n"), Not(HasSubstr(server.url())), Not(HasSubstr("sesame"))));
    EXPECT_THAT(result, AllOf(HasSubstr("LOCKSTEP_PREFIX=lockstep\n"), HasSubstr("LOCKSTEP_JOB_TYPE=job\n"), HasSubstr("SHOP=open\n")));
}

TEST_F(cli_secrets, a_worker_passes_its_url_on_if_it_is_told_to) {
    std::string const other = "redis://elsewhere.invalid";
    auto passed = result_of("env", {"--pass-url"}, {{"LOCKSTEP_URL", server.url()}, {"REDIS_URL", other}, {"LOCKSTEP_DASHBOARD_TOKEN", "sesame"}});
    EXPECT_THAT(passed, AllOf(HasSubstr("LOCKSTEP_URL=" + server.url() + "\n"), HasSubstr("REDIS_URL=" + other + "\n"), Not(HasSubstr("sesame"))));
    passed = result_of("env", {"--pass-url", "--redis", server.url()}, {{"LOCKSTEP_URL", other}});
    EXPECT_THAT(passed, AllOf(HasSubstr("LOCKSTEP_URL=" + server.url() + "\n"), Not(HasSubstr(other)))) << "the one that it uses itself";
}

// The lock of another server, or of one that is started for it, would be held by two.
TEST_F(cli_secrets, a_command_without_the_url_is_refused_and_uses_no_other_server) {
    auto const command = program_path("lockstep") + " run nightly -- echo ran 2>&1; echo code $?";
    auto const result = result_of(command, {"--redis", server.url()}, {{"REDIS_URL", server.url()}, {"LOCKSTEP_EMBEDDED_DIR", home.file("run")}});
    EXPECT_THAT(result, AllOf(HasSubstr("LOCKSTEP_URL is none:"), HasSubstr("--pass-url"), HasSubstr("code 64"), Not(HasSubstr("ran"))));
    auto const started = result_of(program_path("lockstep") + " server start 2>&1; echo code $?", {"--redis", server.url()}, {{"LOCKSTEP_EMBEDDED_DIR", home.file("run")}});
    EXPECT_THAT(started, AllOf(HasSubstr("LOCKSTEP_URL is none:"), HasSubstr("code 64")));
    EXPECT_FALSE(std::filesystem::exists(home.file("run")));
    auto const passed = result_of("unset REDIS_URL; " + command, {"--redis", server.url(), "--pass-url"}, {{"LOCKSTEP_URL", ""}});
    EXPECT_EQ(passed, "ran\ncode 0");
}

TEST_F(cli_secrets, run_and_elect_pass_the_url_on_but_not_the_token_of_the_dashboard) {
    child_options const environment{.environment = {{"LOCKSTEP_URL", server.url()}, {"REDIS_URL", "redis://r"}, {"LOCKSTEP_DASHBOARD_TOKEN", "sesame"}}};
    for (std::string const name : {"run", "elect"}) {
        auto const seen = run({name, "x", "--", "env"}, environment);
        EXPECT_THAT(seen.text, AllOf(HasSubstr("LOCKSTEP_URL=" + server.url() + "\n"), HasSubstr("REDIS_URL=redis://r\n"), Not(HasSubstr("sesame"))));
    }
}

TEST_F(cli_secrets, a_password_on_the_command_line_is_hidden_as_soon_as_it_was_read) {
    redis_server guarded{{.password = "sesame"}};
    auto const url = guarded.url("default", "sesame");
    for (auto const& words : std::vector<std::vector<std::string>>{{"--redis", url}, {"--redis=" + url}}) {
        auto all = words;
        all.insert(all.begin(), program_path("lockstep"));
        all.insert(all.end(), {"run", "x", "--", "sh", "-c", "echo runs; read -r line"});
        child_process program{all};
        EXPECT_EQ(program.read_line(), "runs") << "it has logged in";
        auto const shown = file_content("/proc/" + std::to_string(program.pid()) + "/cmdline");
        EXPECT_THAT(shown, AllOf(HasSubstr("--redis"), HasSubstr("unix://default:***@/"), Not(HasSubstr("sesame"))));
        EXPECT_THAT(shown, HasSubstr(std::string{"run\0x\0--\0sh", 11})) << "nothing else is changed";
        program.close_input();
        EXPECT_TRUE(program.wait()) << "it gives the lock back";
    }
}

TEST_F(cli_secrets, a_password_file_that_others_can_read_is_warned_of) {
    redis_server guarded{{.password = "sesame"}};
    auto const file = home.file("password");
    std::ofstream{file} << "sesame\n";
    for (int const mode : {0600, 0644}) {
        std::filesystem::permissions(file, static_cast<std::filesystem::perms>(mode));
        auto const seen = finish({program_path("lockstep"), "--redis", guarded.url(), "--password-file", file, "counter", "get", "x"});
        EXPECT_EQ(seen.text, mode == 0600 ? "0\n" : "lockstep: warning: security: the password file " + file + " can be read by other users (mode 0644): chmod 600 it\n0\n");
    }
    auto const seen = finish({program_path("lockstep"), "--json", "--redis", guarded.url(), "--password-file", file, "counter", "get", "x"});
    EXPECT_THAT(boost::json::serialize(boost::json::parse(seen.text.substr(0, seen.text.find('\n')))), AllOf(HasSubstr("\"event\":\"log\""), HasSubstr("mode 0644")));
}

TEST_F(cli_secrets, an_encrypted_key_is_an_error_and_nobody_is_asked_for_its_pass_phrase) {
    certificates const files;
    auto const encrypted = files.client_with_encrypted_key();
    child_process program{{program_path("lockstep"), "--redis", "rediss://localhost", "--tls-cert", encrypted.certificate, "--tls-key", encrypted.key, "ls"}};
    EXPECT_THAT(program.read_line().value_or(""), AllOf(HasSubstr(encrypted.key), HasSubstr("is encrypted with a pass phrase")));
    auto const end = program.wait();
    ASSERT_TRUE(end) << "its standard input is open: it may wait there";
    EXPECT_EQ(end->code, 64);
}

}  // namespace
}  // namespace lockstep::test
