// check_health on a server in every state that decides whether locks work: what it says, and that its advice helps.
#include "health_support.hpp"
#include "support/certificates.hpp"
#include "support/fault_proxy.hpp"
#include "support/scratch_dir.hpp"
#include "support/stub_peer.hpp"

#include <lockstep/error.hpp>
#include <lockstep/mutex.hpp>

#include <filesystem>
#include <thread>

namespace lockstep::test {
namespace {

template <class Form>
class health : public testing::Test {
protected:
    static health_report look(client& by, health_options options = patient) { return health_of<Form>(by, options); }
};
TYPED_TEST_SUITE(health, forms, form_names);

TYPED_TEST(health, of_a_server_that_is_well) {
    redis_server server;
    client by{server.url()};
    auto const report = this->look(by);
    EXPECT_EQ(report.state, health_state::healthy) << report.text();
    for (auto const* const check :
         {"connect", "version", "probe_lock", "push", "scripts", "eviction", "memory", "persistence", "replicas"}) {
        EXPECT_EQ(state_of(report, check), "healthy") << check;
    }
    EXPECT_EQ(report.server.substr(0, report.server.find(' ')),
              server.info("valkey_version").empty() ? "redis" : "valkey");
    EXPECT_GT(found_in(report, "probe_lock").took, 0us);
    EXPECT_GT(found_in(report, "push").took, 0us);
}

TYPED_TEST(health, probes_leave_nothing_behind) {
    redis_server server;
    client by{server.url()};
    for (int i = 0; i < 20; ++i) ASSERT_EQ(this->look(by).state, health_state::healthy);
    EXPECT_EQ(server.must({"DBSIZE"}).integer, 0) << describe(server.must({"KEYS", "*"}));
    EXPECT_TRUE(eventually([&] { return server.must({"PUBSUB", "CHANNELS"}).elements.empty(); }));
    EXPECT_LE(server.connections(), 1);
}

TYPED_TEST(health, writes_nothing_when_it_is_told_not_to) {
    redis_server server;
    server.must({"ACL", "SETUSER", "looker", "on", "nopass", "~*", "&*", "+@all", "-hset", "-set", "-pexpire", "-del"});
    client by{server.url("looker", "any")};
    EXPECT_EQ(this->look(by).state, health_state::unhealthy) << "the probe lock is refused";
    auto options = patient;
    options.probe_lock = false;
    auto const report = this->look(by, options);
    EXPECT_EQ(report.state, health_state::healthy) << report.text();
    EXPECT_EQ(report.text().find("probe_lock"), std::string::npos) << report.text();
    EXPECT_EQ(report.text().find("rights"), std::string::npos) << report.text();
}

TYPED_TEST(health, uses_no_name_that_is_held) {
    redis_server server;
    client by{server.url()};
    auto const held = mutex(by, "name").acquire();
    EXPECT_EQ(this->look(by).state, health_state::healthy);
    EXPECT_TRUE(held.valid());
}

TYPED_TEST(health, of_a_server_that_is_down) {
    redis_server server;
    client by{server.url()};
    server.kill9();
    auto const begin = now_ms();
    auto report = this->look(by, {.within = 600ms});
    EXPECT_LE(now_ms() - begin, std::chrono::milliseconds{600ms + health_slack}.count());
    EXPECT_EQ(report.state, health_state::unhealthy);
    EXPECT_TRUE(has(found_in(report, "connect").advice, "start the server")) << report.text();
    server.restart();
    report = this->look(by);
    EXPECT_EQ(report.state, health_state::healthy) << report.text();
}

TYPED_TEST(health, of_a_server_that_hangs_is_known_in_time) {
    redis_server server;
    client by{server.url()};
    ASSERT_EQ(this->look(by).state, health_state::healthy);
    server.stop();
    auto const begin = now_ms();
    auto report = this->look(by, {.within = 500ms});
    EXPECT_LE(now_ms() - begin, std::chrono::milliseconds{500ms + health_slack}.count());
    EXPECT_EQ(state_of(report, "connect"), "unhealthy") << report.text();
    EXPECT_TRUE(has(found_in(report, "connect").advice, "does not answer")) << report.text();
    server.cont();
    EXPECT_EQ(this->look(by).state, health_state::healthy);
    EXPECT_TRUE(eventually([&] { return server.must({"DBSIZE"}).integer == 0; }))
        << "what was asked late leaves nothing either";
}

TYPED_TEST(health, behind_a_network_that_swallows_everything_is_known_in_time) {
    redis_server server{{.tcp = true}};
    fault_proxy proxy{server.address()};
    client by{proxy.url()};
    ASSERT_EQ(this->look(by).state, health_state::healthy);
    proxy.half_open();
    auto const begin = now_ms();
    auto const report = this->look(by, {.within = 500ms});
    EXPECT_LE(now_ms() - begin, std::chrono::milliseconds{500ms + health_slack}.count());
    EXPECT_EQ(state_of(report, "connect"), "unhealthy") << report.text();
}

TYPED_TEST(health, of_something_that_is_no_redis) {
    stub_peer peer{"HTTP/1.1 400 Bad Request\r\n\r\n"};
    client by{peer.url()};
    auto const report = this->look(by, {.within = 500ms});
    EXPECT_EQ(state_of(report, "connect"), "unhealthy") << report.text();
}

TYPED_TEST(health, of_a_slow_server_is_degraded) {
    redis_server server{{.tcp = true}};
    fault_proxy proxy{server.address()};
    client by{proxy.url()};
    ASSERT_EQ(this->look(by).state, health_state::healthy);
    proxy.delay(30ms);
    auto const report = this->look(by, {.slow = 20ms});
    EXPECT_EQ(state_of(report, "probe_lock"), "degraded") << report.text();
    EXPECT_EQ(state_of(report, "push"), "degraded") << report.text();
    EXPECT_EQ(report.state, health_state::degraded);
}

TYPED_TEST(health, of_a_server_that_wants_another_password_names_no_secret) {
    redis_server server{{.password = "right-secret"}};
    client by{server.url("default", "wrong-secret")};
    auto const report = this->look(by);
    EXPECT_EQ(report.state, health_state::unhealthy);
    EXPECT_TRUE(has(found_in(report, "connect").advice, "password")) << report.text();
    EXPECT_FALSE(has(report.text(), "wrong-secret")) << report.text();
    EXPECT_FALSE(has(report.text(), "right-secret")) << report.text();
    client without{server.url("", "")};
    EXPECT_TRUE(has(found_in(this->look(without), "connect").found, "password"));
}

TYPED_TEST(health, of_a_server_whose_certificate_is_not_trusted) {
    certificates const files;
    redis_server server{{.tls = files.server()}};
    auto url = server.url();
    url = url.substr(0, url.find('?'));
    client wary{{.url = url, .tls = {.ca_file = files.other_ca()}}};
    auto const report = this->look(wary, {.within = 1s, .slow = 1s});
    EXPECT_EQ(state_of(report, "connect"), "unhealthy") << report.text();
    EXPECT_TRUE(has(found_in(report, "connect").advice, "ca_file")) << report.text();
    client trusting{{.url = url, .tls = {.ca_file = files.ca()}}};
    EXPECT_EQ(this->look(trusting).state, health_state::healthy);
}

TYPED_TEST(health, of_a_server_that_evicts_says_so_and_how_to_change_it) {
    redis_server server{{.config = {"maxmemory-policy allkeys-lru"}}};
    client careful{server.url()};
    client reckless{{.url = server.url(), .allow_eviction = true}};
    auto report = this->look(careful);
    EXPECT_EQ(state_of(report, "connect"), "unhealthy")
        << "a client does not start on such a server: " << report.text();
    EXPECT_EQ(state_of(report, "eviction"), "unhealthy") << report.text();
    EXPECT_TRUE(has(found_in(report, "eviction").found, "allkeys-lru")) << report.text();
    auto const other = this->look(reckless);
    EXPECT_EQ(state_of(other, "eviction"), "degraded") << other.text();
    EXPECT_EQ(state_of(other, "probe_lock"), "healthy") << other.text();
    follow(server, found_in(report, "eviction").advice, "CONFIG SET maxmemory-policy");
    EXPECT_TRUE(eventually([&] { return this->look(careful).state == health_state::healthy; }));
    EXPECT_EQ(this->look(reckless).state, health_state::healthy);
}

TYPED_TEST(health, of_a_server_that_evicts_since_the_client_was_connected) {
    redis_server server;
    client by{server.url()};
    ASSERT_EQ(this->look(by).state, health_state::healthy);
    server.must({"CONFIG", "SET", "maxmemory-policy", "volatile-ttl"});
    auto const report = this->look(by);
    EXPECT_EQ(state_of(report, "eviction"), "unhealthy") << report.text();
    EXPECT_EQ(state_of(report, "probe_lock"), "healthy") << report.text();
    follow(server, found_in(report, "eviction").advice, "CONFIG SET maxmemory-policy");
    EXPECT_EQ(this->look(by).state, health_state::healthy);
}

TYPED_TEST(health, of_a_server_without_memory_says_how_much_it_needs) {
    redis_server server;
    client by{server.url()};
    ASSERT_EQ(this->look(by).state, health_state::healthy);
    server.must({"SET", "ballast", std::string(4'000'000, 'x')});
    server.must({"CONFIG", "SET", "maxmemory", "2mb"});
    auto report = this->look(by);
    EXPECT_EQ(state_of(report, "memory"), "unhealthy") << report.text();
    EXPECT_EQ(state_of(report, "probe_lock"), "unhealthy") << report.text();
    EXPECT_TRUE(has(found_in(report, "probe_lock").found, "OOM")) << report.text();
    EXPECT_EQ(state_of(report, "scripts"), "healthy") << "scripts run, they may not write: " << report.text();
    EXPECT_EQ(state_of(report, "push"), "healthy") << report.text();
    follow(server, found_in(report, "memory").advice, "CONFIG SET maxmemory");
    report = this->look(by);
    EXPECT_EQ(report.state, health_state::healthy) << report.text();
    server.must({"CONFIG", "SET", "maxmemory", std::to_string(std::stol(server.info("used_memory")) * 20 / 19)});
    EXPECT_EQ(state_of(this->look(by), "memory"), "degraded");
}

TYPED_TEST(health, of_a_server_that_cannot_write_to_disk) {
    scratch_dir const data;
    auto const gone = data.file("gone");
    std::filesystem::create_directory(gone);
    redis_server server{{.config = {"enable-protected-configs yes", "save 3600 1"}}};
    client by{server.url()};
    ASSERT_EQ(this->look(by).state, health_state::healthy);
    auto const before = server.must({"CONFIG", "GET", "dir"}).elements.at(1).text;
    server.must({"CONFIG", "SET", "dir", gone});
    std::filesystem::remove(gone);
    server.must({"SET", "key", "value"});
    server.must({"BGSAVE"});
    ASSERT_TRUE(eventually([&] { return server.info("rdb_last_bgsave_status") == "err"; }));
    auto report = this->look(by);
    EXPECT_EQ(state_of(report, "connect"), "healthy") << "it refuses PING too, but it is there: " << report.text();
    EXPECT_EQ(state_of(report, "probe_lock"), "unhealthy") << report.text();
    EXPECT_EQ(state_of(report, "persistence"), "unhealthy") << report.text();
    EXPECT_TRUE(has(found_in(report, "persistence").found, "MISCONF")) << report.text();
    // Its advice for the time being:
    follow(server, found_in(report, "persistence").advice, "CONFIG SET stop-writes-on-bgsave-error no");
    report = this->look(by);
    EXPECT_EQ(state_of(report, "probe_lock"), "healthy") << report.text();
    EXPECT_EQ(state_of(report, "persistence"), "degraded") << report.text();
    // And for good:
    server.must({"CONFIG", "SET", "dir", before});
    follow(server, found_in(report, "persistence").advice, "BGSAVE");
    EXPECT_TRUE(eventually([&] { return this->look(by).state == health_state::healthy; }));
}

TYPED_TEST(health, of_a_server_that_is_loading) {
    redis_server server{{.config = {"key-load-delay 5000", "loading-process-events-interval-bytes 1024"}}};
    for (int i = 0; i < 2'000; ++i) server.must({"SET", "key" + std::to_string(i), std::string(100, 'x')});
    server.must({"SAVE"});
    client by{server.url()};
    server.restart(readiness::accepting);
    auto const begin = now_ms();
    auto const report = this->look(by, {.within = 2s});
    EXPECT_LE(now_ms() - begin, std::chrono::milliseconds{2s + health_slack}.count());
    EXPECT_EQ(report.state, health_state::unhealthy) << report.text();
    EXPECT_EQ(state_of(report, "loading"), "unhealthy") << report.text();
    server.must({"CONFIG", "SET", "key-load-delay", "0"});
    server.wait_until_ready();
    EXPECT_EQ(this->look(by).state, health_state::healthy);
}

TYPED_TEST(health, of_a_server_that_is_busy_with_a_script) {
    redis_server server{{.config = {"busy-reply-threshold 10"}}};
    client by{server.url()};
    ASSERT_EQ(this->look(by).state, health_state::healthy);
    auto busy = server.connect();
    busy.send({"EVAL", "while true do end", "0"});
    ASSERT_TRUE(eventually([&] { return has(server.command({"PING"}).text, "BUSY"); }));
    auto const begin = now_ms();
    auto const report = this->look(by, {.within = 2s});
    EXPECT_LE(now_ms() - begin, std::chrono::milliseconds{2s + health_slack}.count());
    EXPECT_EQ(state_of(report, "connect"), "unhealthy") << report.text();
    EXPECT_TRUE(has(found_in(report, "connect").advice, "SCRIPT KILL")) << report.text();
    follow(server, found_in(report, "connect").advice, "SCRIPT KILL");
    EXPECT_EQ(this->look(by).state, health_state::healthy);
}

TYPED_TEST(health, of_a_user_without_rights_names_those_that_are_missing) {
    redis_server server{{.users = {"bob on >secret ~lockstep:* &lockstep:* +@all -hset -publish"}}};
    client by{server.url("bob", "secret")};
    auto report = this->look(by);
    EXPECT_EQ(report.state, health_state::unhealthy);
    EXPECT_EQ(state_of(report, "probe_lock"), "unhealthy") << report.text();
    auto const rights = found_in(report, "rights");
    EXPECT_TRUE(has(rights.found, "bob") && has(rights.found, "+hset") && has(rights.found, "+publish"))
        << report.text();
    EXPECT_FALSE(has(rights.found, "+hget")) << report.text();
    EXPECT_FALSE(has(report.text(), "secret")) << report.text();
    follow(server, rights.advice, "ACL SETUSER bob");
    report = this->look(by);
    EXPECT_EQ(report.state, health_state::healthy) << report.text();
}

TYPED_TEST(health, of_a_user_without_the_keys_or_the_channels_names_them) {
    redis_server server{{.users = {"bob on >secret ~other:* +@all resetchannels"}}};
    client by{server.url("bob", "secret")};
    auto report = this->look(by);
    auto const rights = found_in(report, "rights");
    EXPECT_TRUE(has(rights.found, "~lockstep:{*}:*") && has(rights.found, "&lockstep:wake:*")) << report.text();
    follow(server, rights.advice, "ACL SETUSER bob");
    EXPECT_TRUE(eventually([&] { return this->look(by).state == health_state::healthy; })) << report.text();
}

TYPED_TEST(health, of_a_user_who_may_not_look_is_degraded_at_most) {
    redis_server server{{.users = {"bob on >secret ~lockstep:* &lockstep:* +@all -info -config"}}};
    client by{server.url("bob", "secret")};
    auto report = this->look(by);
    EXPECT_EQ(report.state, health_state::degraded) << report.text();
    EXPECT_TRUE(has(found_in(report, "look").found, "INFO")) << report.text();
    EXPECT_EQ(state_of(report, "probe_lock"), "healthy") << report.text();
    EXPECT_NE(report.server, "") << "HELLO says that";
    follow(server, found_in(report, "look").advice, "ACL SETUSER bob");
    EXPECT_EQ(this->look(by).state, health_state::healthy);
}

TYPED_TEST(health, of_a_master_that_lost_its_replicas) {
    redis_server server{
        {.tcp = true, .config = {"min-replicas-to-write 1", "min-replicas-max-lag 1", "repl-diskless-sync-delay 0"}}};
    redis_server replica{{.tcp = true, .replica_of = server.address()}};
    client by{server.url()};
    ASSERT_TRUE(eventually([&] { return server.info("min_slaves_good_slaves") == "1"; }));
    ASSERT_EQ(this->look(by).state, health_state::healthy);
    replica.kill9();
    ASSERT_TRUE(eventually([&] { return server.info("min_slaves_good_slaves") == "0"; }));
    auto report = this->look(by);
    EXPECT_EQ(state_of(report, "replicas"), "unhealthy") << report.text();
    EXPECT_TRUE(has(found_in(report, "probe_lock").found, "NOREPLICAS")) << report.text();
    follow(server, found_in(report, "replicas").advice, "CONFIG SET min-replicas-to-write");
    report = this->look(by);
    EXPECT_EQ(report.state, health_state::healthy) << report.text();
}

TYPED_TEST(health, of_a_replica_names_its_master) {
    redis_server server{{.tcp = true}};
    redis_server replica{{.tcp = true, .replica_of = server.address()}};
    client by{replica.url()};
    auto report = this->look(by);
    EXPECT_EQ(state_of(report, "replicas"), "unhealthy") << report.text();
    EXPECT_TRUE(has(found_in(report, "replicas").advice, std::to_string(server.port()))) << report.text();
    replica.must({"REPLICAOF", "NO", "ONE"});
    EXPECT_TRUE(eventually([&] { return this->look(by).state == health_state::healthy; }));
}

TYPED_TEST(health, ends_when_it_is_stopped) {
    redis_server server;
    client by{server.url()};
    server.stop();
    std::stop_source stop;
    std::jthread const soon{[&] { stop.request_stop(); }};
    EXPECT_THROW(sync_wait(async_check_health(by, {.within = 30s}), stop.get_token()), cancelled_error);
}

TYPED_TEST(health, of_a_closed_client_is_a_result) {
    redis_server server;
    client by{server.url()};
    by.close();
    auto const report = check_health(by);
    EXPECT_EQ(report.state, health_state::unhealthy) << report.text();
    EXPECT_TRUE(has(found_in(report, "connect").found, "closed")) << report.text();
}

TEST(health_options, that_make_no_sense_are_refused) {
    redis_server server;
    client by{server.url()};
    EXPECT_THROW(check_health(by, {.within = 0ms}), invalid_argument_error);
    EXPECT_THROW(diagnose(by, {.slow = -1ms}), invalid_argument_error);
}

}  // namespace
}  // namespace lockstep::test
