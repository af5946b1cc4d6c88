// The tools the other tests rely on, tested themselves. The fault proxy has a file of its own.
#include "support/certificates.hpp"
#include "support/child_process.hpp"
#include "support/clock_file.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"
#include "support/port_reservation.hpp"
#include "support/program_path.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/scratch_dir.hpp"
#include "support/sentinel_group.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

TEST(support_scratch_dir, is_short_and_gone_afterwards) {
    std::filesystem::path path;
    {
        scratch_dir const directory;
        path = directory.path();
        EXPECT_TRUE(std::filesystem::is_directory(path));
        EXPECT_LT(directory.file("socket").size(), 100U);
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(support_eventually, says_whether_the_condition_came_true) {
    int calls = 0;
    EXPECT_TRUE(eventually([&] { return ++calls == 5; }));
    EXPECT_FALSE(eventually([] { return false; }, 20ms));
}

TEST(support_port_reservation, gives_no_port_twice) {
    std::vector<port_reservation> reservations(50);
    std::set<int> ports;
    for (auto const& reservation : reservations) ports.insert(reservation.port());
    EXPECT_EQ(ports.size(), reservations.size());
}

TEST(support_child_process, talks_through_its_input_and_output) {
    child_process sleeper{{program_path("sleeper")}};
    EXPECT_EQ(sleeper.read_line(), "ready");
    EXPECT_TRUE(sleeper.write_line("hello"));
    EXPECT_EQ(sleeper.read_line(), "hello");
    EXPECT_EQ(sleeper.read_line(10ms), std::nullopt);
}

TEST(support_child_process, is_stopped_continued_and_killed) {
    child_process sleeper{{program_path("sleeper")}};
    ASSERT_EQ(sleeper.read_line(), "ready");
    sleeper.stop();
    EXPECT_TRUE(sleeper.write_line("late"));
    EXPECT_EQ(sleeper.read_line(20ms), std::nullopt);
    sleeper.cont();
    EXPECT_EQ(sleeper.read_line(), "late");
    EXPECT_TRUE(sleeper.running());
    EXPECT_EQ(sleeper.wait(5ms), std::nullopt);
    sleeper.kill(SIGTERM);
    auto const status = sleeper.wait();
    ASSERT_TRUE(status);
    EXPECT_EQ(status->signal, SIGTERM);
    EXPECT_FALSE(process_alive(sleeper.pid()));
}

TEST(support_child_process, returns_its_exit_code_and_sees_the_environment_given) {
    child_process shell{{"sh", "-c", "echo $GREETING; exit 7"}, {.environment = {{"GREETING", "good day"}}}};
    EXPECT_EQ(shell.read_line(), "good day");
    auto const status = shell.wait();
    ASSERT_TRUE(status);
    EXPECT_EQ(status->code, 7);
}

TEST(support_child_process, that_can_not_be_executed_is_an_error) {
    EXPECT_THROW(child_process{{"/nowhere/at-all"}}, std::system_error);
}

TEST(support_child_process, dies_when_its_parent_is_killed_and_not_when_the_starting_thread_ends) {
    child_process parent{{program_path("nested_sleeper")}};
    auto const line = parent.read_line();  // only comes if the sleeper outlived the thread that started it
    ASSERT_TRUE(line);
    auto const grandchild = static_cast<pid_t>(std::stol(*line));
    EXPECT_TRUE(process_alive(grandchild));
    parent.kill(SIGKILL);
    EXPECT_TRUE(eventually([&] { return !process_alive(grandchild); }));
}

TEST(support_redis_server, starts_on_a_unix_socket_and_answers) {
    redis_server server;
    EXPECT_EQ(server.url(), "unix://" + server.socket_path());
    EXPECT_EQ(server.command({"PING"}).text, "PONG");
    EXPECT_EQ(server.info("tcp_port"), "0");
    EXPECT_EQ(server.connections(), 0);
    auto client = server.connect();
    std::string const odd{"a\0b\r\n{}", 7};
    EXPECT_EQ(client.command({"SET", odd, odd}).text, "OK");
    EXPECT_EQ(client.command({"GET", odd}).text, odd);
    EXPECT_TRUE(client.command({"GET", "nothing"}).is_nil());
    EXPECT_EQ(describe(client.command({"EVAL", "return {1, 'two', {3}}", "0"})), "[1, \"two\", [3]]");
    EXPECT_EQ(server.connections(), 1);
}

TEST(support_redis_server, keeps_its_port_and_its_data_when_it_restarts) {
    redis_server server{{.tcp = true, .append_only = true}};
    auto const url = server.url();
    raw_client client{server.address()};
    EXPECT_EQ(client.command({"SET", "key", "value"}).text, "OK");
    server.kill9();
    EXPECT_FALSE(server.running());
    EXPECT_THROW(raw_client{server.address()}, std::exception);
    server.restart();
    EXPECT_EQ(server.url(), url);
    EXPECT_EQ(raw_client{server.address()}.command({"GET", "key"}).text, "value");
    server.shutdown();
    EXPECT_FALSE(server.running());
    server.restart();
    EXPECT_EQ(server.command({"GET", "key"}).text, "value");
}

TEST(support_redis_server, can_be_caught_while_it_loads) {
    // 1 ms for each key, and a look at the sockets every few dozen keys.
    redis_server server{{.config = {"key-load-delay 1000", "loading-process-events-interval-bytes 1024"}}};
    server.must({"DEBUG", "POPULATE", "1000"});
    server.must({"SAVE"});
    server.restart(readiness::accepting);
    EXPECT_TRUE(server.command({"GET", "key:1"}).text.starts_with("LOADING"));
    server.wait_until_ready();
    EXPECT_EQ(server.command({"DBSIZE"}).integer, 1000);
}

TEST(support_redis_server, answers_nothing_while_it_is_stopped) {
    redis_server server;
    raw_client client{server.address(), 50ms};
    server.stop();
    EXPECT_THROW(client.command({"PING"}), std::exception);
    server.cont();
    EXPECT_EQ(server.command({"PING"}).text, "PONG");
}

TEST(support_redis_server, refuses_whom_its_rules_refuse) {
    redis_server server{{.password = "s3cret \"\\", .users = {"bob on >builder ~only:* &* +@all"}}};
    auto client = server.connect();
    EXPECT_TRUE(client.command({"GET", "key"}).text.starts_with("NOAUTH"));
    EXPECT_TRUE(client.command({"AUTH", "bob", "wrong"}).text.starts_with("WRONGPASS"));
    EXPECT_EQ(client.command({"AUTH", "bob", "builder"}).text, "OK");
    EXPECT_TRUE(client.command({"GET", "key"}).text.starts_with("NOPERM"));
    EXPECT_TRUE(client.command({"GET", "only:key"}).is_nil());
    EXPECT_EQ(client.command({"AUTH", "s3cret \"\\"}).text, "OK");
    EXPECT_FALSE(server.command({"CONFIG", "GET", "port"}).is_error()) << "the administrator gets in all the same";
}

TEST(support_redis_server, replicates_from_the_server_it_is_told) {
    redis_server master{{.tcp = true, .password = "p"}};
    redis_server replica{{.password = "p", .replica_of = master.address()}};
    master.must({"SET", "key", "value"});
    EXPECT_TRUE(eventually([&] { return replica.command({"GET", "key"}).text == "value"; }));
}

TEST(support_redis_server, speaks_tls_to_those_who_trust_its_ca) {
    certificates const files;
    redis_server server{{.tls = files.server()}};
    EXPECT_TRUE(server.url().starts_with("rediss://127.0.0.1:"));
    EXPECT_EQ(raw_client{server.address()}.command({"PING"}).text, "PONG");
    auto by_name = server.address();
    by_name.host = "localhost";
    EXPECT_EQ(raw_client{by_name}.command({"PING"}).text, "PONG");
    auto distrustful = server.address();
    distrustful.tls->ca = files.other_ca();
    EXPECT_THROW(raw_client{distrustful}, std::exception);
    child_process openssl{{"openssl", "s_client", "-connect", server.address().address(), "-CAfile", files.ca(),
                           "-verify_return_error", "-verify_ip", "127.0.0.1", "-brief"}};
    bool verified = false;
    while (auto const line = openssl.read_line(5s)) {
        verified = *line == "Verification: OK";
        if (verified) break;
    }
    EXPECT_TRUE(verified) << "a second opinion";
}

std::string refusal_of(redis_server const& server) {
    try {
        raw_client client{server.address()};
        return "accepted";
    } catch (std::exception const& error) {
        return error.what();
    }
}

TEST(support_certificates, that_are_expired_or_for_another_host_are_refused) {
    certificates const files;
    redis_server const expired{{.tls = files.expired_server()}};
    EXPECT_NE(refusal_of(expired).find("certificate has expired"), std::string::npos) << refusal_of(expired);
    redis_server const elsewhere{{.tls = files.wrong_host_server()}};
    EXPECT_NE(refusal_of(elsewhere).find("IP address mismatch"), std::string::npos) << refusal_of(elsewhere);
}

TEST(support_certificates, let_a_client_in_where_the_server_asks_for_one) {
    certificates const files;
    redis_server server{{.tls = files.server(), .require_client_certificate = true}};
    auto address = server.address();
    EXPECT_THROW(raw_client{address}.command({"PING"}), std::exception);
    address.tls = files.client();
    EXPECT_EQ(raw_client{address}.command({"PING"}).text, "PONG");
}

TEST(support_clock_file, moves_the_clock_of_a_running_server_there_and_back) {
    clock_file clock;
    redis_server server{{.clock = &clock}};
    auto const seconds = [&] { return std::stoll(server.must({"TIME"}).elements[0].text); };
    auto const start = seconds();
    clock.step(1h);
    EXPECT_NEAR(static_cast<double>(seconds() - start), 3600, 60);
    clock.step(-2h);
    EXPECT_NEAR(static_cast<double>(seconds() - start), -3600, 60);
    clock.set_offset(0ms);
    server.must({"SET", "key", "value", "PX", "3600000"});
    clock.step(2h);
    EXPECT_TRUE(eventually([&] { return server.must({"GET", "key"}).is_nil(); })) << "leases run out by it";
}

TEST(support_clock_file, can_stop_the_clock_so_that_only_steps_move_it) {
    clock_file clock;
    redis_server server{{.clock = &clock}};
    clock.stop();
    auto const time = [&] {
        auto const said = server.must({"TIME"}).elements;
        return std::stoll(said[0].text) * 1'000'000 + std::stoll(said[1].text);
    };
    auto const start = time();
    EXPECT_EQ(start % 1'000'000, 0);
    clock.step(130us);
    EXPECT_EQ(time() - start, 130);
    clock.step(-1s);
    EXPECT_EQ(time() - start, -999'870);
}

TEST(support_sentinel_group, has_a_master_that_an_orderly_failover_changes) {
    sentinel_group group;
    auto const old = group.master_address();
    EXPECT_EQ(&group.master(), &group.server(0));
    EXPECT_TRUE(group.sentinel_url().starts_with("redis+sentinel://127.0.0.1:"));
    EXPECT_TRUE(group.sentinel_url().ends_with("/mymaster"));
    group.failover();
    EXPECT_NE(group.master_address(), old);
    EXPECT_EQ(group.master().info("role"), "master");
    EXPECT_EQ(group.server(0).info("role"), "slave");
}

TEST(support_sentinel_group, replaces_a_master_that_was_killed) {
    sentinel_group group{{.password = "servers", .sentinel_password = "sentinels"}};
    auto client = group.sentinel(0).connect();
    EXPECT_TRUE(client.command({"SENTINEL", "MASTERS"}).text.starts_with("NOAUTH"));
    auto const old = group.master_address();
    auto& killed = group.kill_master();
    ASSERT_TRUE(group.wait_until_master_is_not(old));
    killed.restart();
    EXPECT_TRUE(group.wait_until_whole()) << "it comes back as a replica";
    EXPECT_EQ(killed.info("role"), "slave");
}

TEST(support_sentinel_group, replaces_a_master_that_was_stopped) {
    sentinel_group group;
    auto const old = group.master_address();
    auto& stopped = group.pause_master();
    ASSERT_TRUE(group.wait_until_master_is_not(old));
    stopped.cont();
    EXPECT_TRUE(group.wait_until_whole());
}

TEST(support_cluster, agrees_with_redis_on_the_slot_of_a_key) {
    cluster nodes{{.masters = 1, .replicas_per_master = 0}};
    for (auto const* key : {"foo", "123456789", "{user}.x", "a{}b", "a{{b}c", "}{", "{", ""})
        EXPECT_EQ(slot_of(key), nodes.node(0).must({"CLUSTER", "KEYSLOT", key}).integer) << key;
}

TEST(support_cluster, moves_a_slot_with_its_keys_step_by_step) {
    cluster nodes;
    auto const slot = slot_of("{tag}");
    auto const from = nodes.owner_of(slot);
    auto const to = (from + 1) % 3;
    auto& source = nodes.node(from);
    for (int i = 0; i < 250; ++i) source.must({"SET", "{tag}" + std::to_string(i), "value"});
    nodes.begin_migration(slot, to);
    EXPECT_EQ(source.command({"GET", "{tag}1"}).text, "value");
    EXPECT_TRUE(source.command({"GET", "{tag}none"}).text.starts_with("ASK "));
    nodes.move_keys(slot);
    EXPECT_TRUE(source.command({"GET", "{tag}1"}).text.starts_with("ASK "));
    nodes.finish_migration(slot);
    EXPECT_EQ(nodes.owner_of(slot), to);
    auto const moved = "MOVED " + std::to_string(slot) + " " + nodes.node(to).address().address();
    EXPECT_EQ(source.command({"GET", "{tag}1"}).text, moved);
    EXPECT_EQ(nodes.node(to).command({"GET", "{tag}249"}).text, "value");
    nodes.migrate_slots(slot - 1, slot + 1, from);
    EXPECT_EQ(nodes.owner_of(slot), from);
    EXPECT_EQ(source.command({"GET", "{tag}249"}).text, "value");
    EXPECT_TRUE(nodes.wait_until_ok());
}

TEST(support_cluster, fails_over_by_agreement_and_back) {
    cluster nodes;
    nodes.master(0).must({"SET", "{06S}", "value"});  // in slot 0
    ASSERT_EQ(nodes.master_of(0), 0U);
    nodes.failover(0);
    EXPECT_EQ(nodes.master_of(0), 3U);
    EXPECT_EQ(nodes.owner_of(0), 3U);
    EXPECT_EQ(nodes.master(0).command({"GET", "{06S}"}).text, "value");
    nodes.failover(0);
    EXPECT_EQ(nodes.master_of(0), 0U);
}

TEST(support_cluster, promotes_a_replica_when_its_master_is_killed) {
    cluster nodes{{.password = "secret"}};
    auto const killed = nodes.kill_master(1);
    EXPECT_EQ(killed, 1U);
    EXPECT_EQ(nodes.master_of(1), 4U);
    nodes.node(killed).restart();
    EXPECT_TRUE(nodes.wait_until_ok());
    EXPECT_EQ(nodes.node(killed).info("role"), "slave");
}

TEST(support_cluster, works_over_tls_with_passwords) {
    certificates const files;
    cluster nodes{{.password = "secret", .tls = files.server()}};
    EXPECT_TRUE(nodes.url().starts_with("rediss+cluster://"));
    auto const slot = slot_of("key");
    auto const from = nodes.owner_of(slot);
    nodes.node(from).must({"SET", "key", "value"});
    nodes.migrate_slot(slot, (from + 1) % 3);
    raw_client client{nodes.node(nodes.owner_of(slot)).address()};
    client.must({"AUTH", "secret"});
    EXPECT_EQ(client.command({"GET", "key"}).text, "value");
}

}  // namespace
}  // namespace lockstep::test
