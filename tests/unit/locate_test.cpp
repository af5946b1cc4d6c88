#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <lockstep/error.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "redis/url.hpp"
#include "support/log_lines.hpp"

namespace lockstep::redis {
namespace {

using namespace std::chrono_literals;

environment variables(std::map<std::string, std::string> values) {
    return [values = std::move(values)](char const* name) {
        auto const found = values.find(name);
        return found == values.end() ? nullptr : found->second.c_str();
    };
}

environment const none = variables({});

// Returns the text of the error, empty when there is none.
template <class Call>
std::string refusal(Call call) {
    try {
        call();
    } catch (invalid_argument_error const& error) {
        return error.what();
    }
    return {};
}

TEST(locate, prefers_the_option_then_lockstep_url_then_redis_url) {
    auto const both = variables({{"LOCKSTEP_URL", "redis://second"}, {"REDIS_URL", "redis://third"}});
    EXPECT_EQ(locate({.url = "redis://first"}, both).endpoints[0].host, "first");
    EXPECT_EQ(locate({}, both).endpoints[0].host, "second");
    EXPECT_EQ(locate({}, variables({{"LOCKSTEP_URL", ""}, {"REDIS_URL", "redis://third"}})).endpoints[0].host, "third");
}

TEST(locate, means_the_embedded_server_when_nothing_is_configured) {
    auto const where = locate({.name = "me"}, none);
    EXPECT_TRUE(where.embedded);
    EXPECT_TRUE(where.endpoints.empty());
    EXPECT_EQ(where.prefix, "lockstep");
    EXPECT_EQ(where.name, "me");
    EXPECT_FALSE(locate({.url = "redis://h"}, none).embedded);
}

TEST(locate, does_not_fall_back_when_a_server_was_meant) {
    EXPECT_NE(refusal([] { locate({.password = "hush"}, none); }).find("LOCKSTEP_URL"), std::string::npos);
    EXPECT_NE(refusal([] { locate({.tls = {.ca_file = "/ca"}}, none); }).find("LOCKSTEP_URL"), std::string::npos);
}

// What `lockstep worker` gives to its commands. With any server in its place they would hold locks that exclude nobody.
TEST(locate, refuses_none_instead_of_falling_back_to_another_server) {
    auto const set = variables({{"LOCKSTEP_URL", "none:"}, {"REDIS_URL", "redis://other"}});
    auto const text = refusal([&] { locate({}, set); });
    EXPECT_NE(text.find("LOCKSTEP_URL is none:"), std::string::npos) << text;
    EXPECT_NE(text.find("--pass-url"), std::string::npos) << text;
    EXPECT_NE(refusal([] { locate({.url = "none:"}, none); }).find("the URL is none:"), std::string::npos);
    EXPECT_NE(refusal([] { locate({.password = "hush"}, variables({{"REDIS_URL", "none:"}})); }).find("REDIS_URL is none:"), std::string::npos);
    EXPECT_EQ(locate({.url = "redis://own"}, set).endpoints[0].host, "own");
    EXPECT_EQ(redact_url("none:"), "none:");
}

TEST(locate, lays_the_options_over_the_url) {
    auto const* const url = "rediss://u:p@h?name=n&prefix=pre&ca_file=/a&connect_timeout_ms=5&command_timeout_ms=6";
    auto where = locate({.url = url}, none);
    EXPECT_EQ(where.user + where.password + where.name + where.prefix + where.tls_files.ca_file, "upnpre/a");
    EXPECT_EQ(where.connect_timeout, 5ms);
    EXPECT_EQ(where.command_timeout, 6ms);
    where = locate({.url = url,
                    .user = "U",
                    .password = "P",
                    .name = "N",
                    .prefix = "PRE",
                    .tls = {.ca_file = "/A"},
                    .connect_timeout = 50ms,
                    .command_timeout = 60ms},
                   none);
    EXPECT_EQ(where.user + where.password + where.name + where.prefix + where.tls_files.ca_file, "UPNPRE/A");
    EXPECT_EQ(where.connect_timeout, 50ms);
    EXPECT_EQ(where.command_timeout, 60ms);
}

TEST(locate, fills_in_the_defaults) {
    auto const where = locate({.url = "redis://h"}, none);
    EXPECT_EQ(where.prefix, "lockstep");
    EXPECT_EQ(where.connect_timeout, client_options{}.connect_timeout);
    EXPECT_EQ(where.command_timeout, client_options{}.command_timeout);
}

// The command always read it: a lock of `lockstep run` and one of a program under the same name must be one lock.
TEST(locate, takes_the_prefix_from_the_option_then_the_url_then_lockstep_prefix) {
    auto const set = variables({{"LOCKSTEP_PREFIX", "of-the-variable"}});
    EXPECT_EQ(locate({}, set).prefix, "of-the-variable");
    EXPECT_EQ(locate({.url = "redis://h"}, set).prefix, "of-the-variable");
    EXPECT_EQ(locate({.url = "redis://h?prefix=of-the-url"}, set).prefix, "of-the-url");
    EXPECT_EQ(locate({.url = "redis://h?prefix=of-the-url", .prefix = "of-the-option"}, set).prefix, "of-the-option");
    EXPECT_EQ(locate({.prefix = "lockstep"}, set).prefix, "lockstep") << "an option that was set wins, even if it says what the default would";
    EXPECT_EQ(locate({}, variables({{"LOCKSTEP_PREFIX", ""}})).prefix, "lockstep") << "an empty variable is one that is not set";
    EXPECT_NE(refusal([] { locate({}, variables({{"LOCKSTEP_PREFIX", "{x}"}})); }).find("braces"), std::string::npos);
}

TEST(locate, replaces_a_password_by_a_file_and_the_other_way_round) {
    auto where = locate({.url = "redis://u:p@h", .password_file = "/f"}, none);
    EXPECT_EQ(where.password + where.password_file, "/f");
    where = locate({.url = "redis://u@h?password_file=/f", .password = "p"}, none);
    EXPECT_EQ(where.password + where.password_file, "p");
    EXPECT_EQ(locate({.url = "redis://u@h", .password = "p"}, none).user, "u")
        << "the password follows from the options";
}

TEST(locate, refuses_what_contradicts_itself) {
    auto const refused = [](client_options const& options, std::string_view word) {
        auto const text = refusal([&options] { locate(options, none); });
        EXPECT_NE(text.find(word), std::string::npos) << word << " -> " << text;
    };
    refused({.url = "redis://h", .password = "a", .password_file = "b"}, "give one");
    refused({.url = "redis://h", .tls = {.ca_file = "/ca"}}, "in the clear");
    refused({.url = "redis://h?ca_file=/ca"}, "in the clear");
    refused({.url = "rediss://h?cert_file=/c"}, "go together");
    refused({.url = "redis://h", .name = "two words"}, "no spaces");
    refused({.url = "redis://h", .prefix = "{x}"}, "braces");
    refused({.url = "redis://h", .connect_timeout = 0ms}, "connect_timeout");
}

TEST(locate, names_the_variable_of_a_bad_url_and_not_its_password) {
    auto const text = refusal([] { locate({}, variables({{"REDIS_URL", "redis://u:hush@h:x"}})); });
    EXPECT_NE(text.find("REDIS_URL"), std::string::npos) << text;
    EXPECT_EQ(text.find("hush"), std::string::npos) << text;
}

class password_file : public testing::Test {
protected:
    password_file() {
        auto name = (std::filesystem::temp_directory_path() / "lockstep-password-XXXXXX").string();
        if (auto const file = ::mkstemp(name.data()); file >= 0) ::close(file);
        path_ = name;
    }
    ~password_file() override { std::filesystem::remove(path_); }

    void write(std::string const& content) { std::ofstream{path_, std::ios::binary} << content; }
    std::string read() const { return password_of(locate({.url = "redis://h", .password_file = path_}, none)); }

    std::string path_;
};

TEST_F(password_file, is_read_at_each_call_without_its_final_newline) {
    auto const where = locate({.url = "redis://h", .password_file = path_}, none);
    write("one\n");
    EXPECT_EQ(password_of(where), "one");
    write("two\r\n");
    EXPECT_EQ(password_of(where), "two");
    write(" three\n\n");
    EXPECT_EQ(password_of(where), " three\n");
    write("four");
    EXPECT_EQ(password_of(where), "four");
}

TEST_F(password_file, serves_sentinels_too) {
    write("hush\n");
    EXPECT_EQ(sentinel_password_of(parse_url("redis+sentinel://h/m?sentinel_password_file=" + path_)), "hush");
    EXPECT_EQ(sentinel_password_of(parse_url("redis+sentinel://h/m?sentinel_password=p")), "p");
    EXPECT_EQ(password_of(parse_url("redis://:p@h")), "p");
    EXPECT_EQ(password_of(parse_url("redis://h")), "");
}

TEST_F(password_file, that_other_users_can_read_is_warned_of_once) {
    test::log_lines const log;
    write("hush");
    std::filesystem::permissions(path_, std::filesystem::perms{0600});
    read();
    EXPECT_EQ(log.count("security:"), 0U);
    for (int const mode : {0640, 0604}) {
        std::filesystem::permissions(path_, static_cast<std::filesystem::perms>(mode));
        EXPECT_EQ(read(), "hush");
    }
    EXPECT_EQ(log.count(log_level::warning, "the password file " + path_ + " can be read by other users (mode 0640)"), 1U) << log.text();
    EXPECT_EQ(log.count("security:"), 1U);
    EXPECT_EQ(log.count("hush"), 0U);
}

TEST_F(password_file, that_is_of_no_use_is_named_with_the_reason) {
    auto const says = [this](std::string_view word) {
        auto const text = refusal([this] { read(); });
        EXPECT_NE(text.find(path_), std::string::npos) << text;
        EXPECT_NE(text.find(word), std::string::npos) << text;
        EXPECT_EQ(text.find("hush"), std::string::npos) << text;
    };
    write("\n");
    says("is empty");
    write("hush" + std::string(70'000, 'x'));
    says("more than");
    std::filesystem::remove(path_);
    says("No such file");
    std::filesystem::create_directory(path_);
    says("directory");
    std::filesystem::remove(path_);
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    says("not a regular file");
}

}  // namespace
}  // namespace lockstep::redis
