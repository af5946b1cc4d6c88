// diagnose: each setting that it warns of is set, warned of, and well again when its advice is followed.
#include "health_support.hpp"
#include "observe/acl.hpp"
#include "support/clock_file.hpp"

#include <lockstep/embedded_server.hpp>
#include <lockstep/mutex.hpp>

#include <vector>

namespace lockstep::test {
namespace {

template <class Form>
class diagnosis : public testing::Test {
protected:
    static health_report look(client& by, health_options options = patient) { return diagnosis_of<Form>(by, options); }
};
TYPED_TEST_SUITE(diagnosis, forms, form_names);

TYPED_TEST(diagnosis, of_a_server_that_is_set_up_well) {
    redis_server server{{.append_only = true}};
    client by{server.url()};
    auto const report = this->look(by);
    EXPECT_EQ(report.state, health_state::healthy) << report.text();
    for (auto const* const check : {"probe_lock", "rights", "durability", "output_buffers", "clients", "idle_timeout",
                                    "tcp_keepalive", "exposure", "script_time", "slow_log", "latency", "clock"}) {
        EXPECT_EQ(state_of(report, check), "healthy") << check << "\n" << report.text();
    }
    EXPECT_EQ(server.must({"DBSIZE"}).integer, 0) << describe(server.must({"KEYS", "*"}));
}

struct setting {
    char const* check;
    std::vector<std::string> bad;  // CONFIG SET, name and value
    char const* advice;            // the command in it that mends it
};

std::ostream& operator<<(std::ostream& to, setting const& one) { return to << one.check << " " << one.bad[0]; }

class diagnosed_setting : public testing::TestWithParam<setting> {};
INSTANTIATE_TEST_SUITE_P(
    of, diagnosed_setting,
    testing::Values(setting{"durability", {"appendonly", "no"}, "CONFIG SET appendonly yes"},
                    setting{"durability", {"appendfsync", "no"}, "CONFIG SET appendfsync everysec"},
                    setting{"output_buffers",
                            {"client-output-buffer-limit", "pubsub 100000 0 0"},
                            "CONFIG SET client-output-buffer-limit"},
                    setting{"output_buffers",
                            {"client-output-buffer-limit", "normal 100000 0 0"},
                            "CONFIG SET client-output-buffer-limit"},
                    setting{"clients", {"maxclients", "3"}, "CONFIG SET maxclients"},
                    setting{"idle_timeout", {"timeout", "2"}, "CONFIG SET timeout 0"},
                    setting{"tcp_keepalive", {"tcp-keepalive", "0"}, "CONFIG SET tcp-keepalive"},
                    setting{"script_time", {"busy-reply-threshold", "0"}, "CONFIG SET busy-reply-threshold"},
                    setting{"script_time", {"busy-reply-threshold", "5"}, "CONFIG SET busy-reply-threshold"},
                    setting{"replica_writes", {"replica-read-only", "no"}, "CONFIG SET replica-read-only yes"}),
    [](auto const& of) { return std::string{of.param.check} + "_" + std::to_string(of.index); });

TEST_P(diagnosed_setting, is_well_again_when_its_advice_is_followed) {
    auto const& what = GetParam();
    redis_server server{{.append_only = true}};
    client by{server.url()};
    auto other = server.connect();  // so that a few connections are in use
    other.must({"PING"});
    server.must({"CONFIG", "SET", what.bad[0], what.bad[1]});
    auto report = diagnose(by, patient);
    EXPECT_EQ(state_of(report, what.check), "degraded") << report.text();
    follow(server, found_in(report, what.check).advice, what.advice);
    report = diagnose(by, patient);
    EXPECT_NE(state_of(report, what.check), "degraded") << report.text();
    EXPECT_EQ(report.state, health_state::healthy) << report.text();
}

TYPED_TEST(diagnosis, of_a_server_that_anybody_can_reach) {
    redis_server server{{.tcp = true, .config = {"bind 0.0.0.0", "protected-mode no"}, .append_only = true}};
    client by{server.url()};
    auto report = this->look(by);
    EXPECT_EQ(state_of(report, "exposure"), "unhealthy") << report.text();
    server.must({"CONFIG", "SET", "protected-mode", "yes"});
    EXPECT_EQ(state_of(this->look(by), "exposure"), "healthy");
    server.must({"CONFIG", "SET", "protected-mode", "no"});
    server.must({"CONFIG", "SET", "requirepass", "secret"});
    EXPECT_EQ(state_of(this->look(by), "exposure"), "degraded") << "still without TLS";
}

TYPED_TEST(diagnosis, of_a_port_without_tls_that_others_can_reach_names_no_secret) {
    redis_server server{{.tcp = true, .password = "top-secret", .config = {"bind 0.0.0.0"}, .append_only = true}};
    client by{server.url("default", "top-secret")};
    auto const report = this->look(by);
    EXPECT_EQ(state_of(report, "exposure"), "degraded") << report.text();
    EXPECT_FALSE(has(report.text(), "top-secret")) << report.text();
}

TYPED_TEST(diagnosis, of_clocks_that_differ) {
    clock_file clock;
    redis_server server{{.append_only = true, .clock = &clock}};
    client by{server.url()};
    EXPECT_EQ(state_of(this->look(by), "clock"), "healthy");
    clock.step(-1min);
    auto const report = this->look(by);
    EXPECT_EQ(state_of(report, "clock"), "degraded") << report.text();
    EXPECT_TRUE(has(found_in(report, "clock").found, "behind")) << report.text();
}

TYPED_TEST(diagnosis, of_our_own_scripts_in_the_slow_log) {
    redis_server server{{.config = {"slowlog-log-slower-than 0"}, .append_only = true}};
    client by{server.url()};
    mutex(by, "name").acquire().release();
    auto const report = this->look(by, {.within = 20s, .slow = 10s});
    EXPECT_TRUE(has(found_in(report, "slow_log").found, "in the slow log, the slowest")) << report.text();
    EXPECT_EQ(state_of(report, "slow_log"), "healthy") << "none took longer than that: " << report.text();
}

TYPED_TEST(diagnosis, of_a_user_who_may_only_use_locks_says_what_was_not_looked_at) {
    redis_server server{
        {.users = {"bob on >secret ~lockstep:* &lockstep:* +@all -@admin -@dangerous -info"}, .append_only = true}};
    client by{server.url("bob", "secret")};
    auto report = this->look(by);
    EXPECT_EQ(report.state, health_state::degraded) << report.text();
    for (auto const* const what : {"INFO", "CONFIG GET", "SLOWLOG", "ACL GETUSER"})
        EXPECT_TRUE(has(found_in(report, "look").found, what)) << report.text();
    EXPECT_EQ(state_of(report, "rights"), "healthy") << report.text();
    follow(server, found_in(report, "look").advice, "ACL SETUSER bob");
    report = this->look(by);
    EXPECT_EQ(report.state, health_state::healthy) << report.text();
}

// As `lockstep acl` prints them: they are enough, and what only monitors need is told apart.
TYPED_TEST(diagnosis, of_a_user_with_the_least_rights) {
    for (bool const looks : {false, true}) {
        observe::acl_needs needs;
        if (looks) needs.uses.push_back(observe::acl_use::look);
        std::string rules = "bob";
        for (auto const& one : observe::acl_rules(needs)) rules += " " + one;
        rules += " on >secret";
        redis_server server{{.users = {rules}, .append_only = true}};
        client by{server.url("bob", "secret")};
        EXPECT_EQ(health_of<TypeParam>(by).state, health_state::healthy);
        auto const report = this->look(by);
        EXPECT_EQ(state_of(report, "rights"), looks ? "healthy" : "degraded") << report.text();
        EXPECT_EQ(state_of(report, "look"), "degraded") << report.text();
        EXPECT_EQ(report.state, health_state::degraded) << report.text();
        if (!looks) {
            follow(server, found_in(report, "rights").advice, "ACL SETUSER bob");
            EXPECT_EQ(state_of(this->look(by), "rights"), "healthy");
        }
        EXPECT_EQ(server.must({"DBSIZE"}).integer, 0) << describe(server.must({"KEYS", "*"}));
    }
}

TYPED_TEST(diagnosis, of_the_embedded_server) {
    embedded_server server;
    client by{server.url()};
    auto const report = this->look(by);
    EXPECT_EQ(state_of(report, "exposure"), "healthy") << report.text();
    EXPECT_NE(report.state, health_state::unhealthy) << report.text();
}

}  // namespace
}  // namespace lockstep::test
