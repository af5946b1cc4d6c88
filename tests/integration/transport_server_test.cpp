// A server in trouble: killed, stopped, loading, unable to save, busy, out of memory, a replica, without our scripts.
#include <lockstep/client.hpp>

#include "core/core.hpp"
#include "redis/command.hpp"
#include "scripts/all.hpp"
#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/forms.hpp"
#include "support/log_lines.hpp"
#include "support/redis_server.hpp"
#include "support/scratch_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

client_options patient(redis_server const& server) {
    return {.url = server.url(), .command_timeout = 60s, .reconnect_max = 50ms};
}

// Keeps a connection under constant watch.
client_options watchful(redis_server const& server) {
    auto options = patient(server);
    options.keepalive_interval = 20ms;
    options.keepalive_timeout = 30s;
    return options;
}

template <class Form>
class transport_server : public testing::Test {
protected:
    log_lines log;

    template <class F>
    static auto meanwhile(F work) {
        return std::async(std::launch::async, std::move(work));
    }

    // A server that refuses is asked again until the time is up. Mostly the request then waits for its next attempt; now
    // and then it is just under way.
    static bool ends_with(client& client, std::string_view refusal) {
        return eventually([&] {
            try {
                Form::execute(client, request{"INCR", "refused"}.within(200ms));
                ADD_FAILURE() << "it ran";
            } catch (unavailable_error const& problem) {
                EXPECT_THAT(problem.what(), HasSubstr(refusal));
                return true;
            } catch (timeout_error const&) {        // was about to be sent again
            } catch (indeterminate_error const&) {  // was sent again
            }
            return false;
        });
    }
};
TYPED_TEST_SUITE(transport_server, forms, form_names);

TYPED_TEST(transport_server, goes_on_after_the_server_was_killed_and_restarted) {
    redis_server server{{.append_only = true}};
    client client{patient(server)};
    TypeParam::command(client, "SET", "key", "value");
    server.kill9();
    EXPECT_TRUE(eventually([&] { return client.statistics().connections == 0; }));
    EXPECT_THAT(failure<unavailable_error>([&] {
                    until_heard([&] { TypeParam::execute(client, request{"INCR", "count"}.within(100ms)); });
                }),
                HasSubstr(server.socket_path()));
    auto waiting = this->meanwhile([&] { return TypeParam::template command<int>(client, "INCR", "count"); });
    EXPECT_TRUE(eventually([&] { return client.statistics().pending == 1; }));
    server.restart();
    EXPECT_EQ(waiting.get(), 1);
    EXPECT_EQ(TypeParam::template command<std::string>(client, "GET", "key"), "value");
}

// Every request counts on a key of its own: what was acknowledged ran, once unless it may run twice; what ended as
// indeterminate ran at most once; what may be repeated succeeds.
TYPED_TEST(transport_server, loses_and_invents_nothing_while_the_server_is_killed_under_load) {
    // "always": with "everysec" Redis acknowledges before it writes while a slow fsync is under way.
    redis_server server{{.config = {"appendfsync always"}, .append_only = true}};
    client client{patient(server)};
    std::atomic<bool> enough{false};
    std::atomic<int> done{0};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; !enough; ++i) {
                auto const key = std::to_string(t) + "." + std::to_string(i);
                bool const repeatable = t % 2 == 0;
                auto command = request{"INCR", key};
                if (repeatable) command.repeatable();
                auto const end = outcome([&] { TypeParam::execute(client, command); });
                if (repeatable && end) ++wrong;
                if (!repeatable && end && end != errc::indeterminate) ++wrong;
                if (end != errc::indeterminate) ++done;
                auto const got =
                    TypeParam::template execute<std::optional<int>>(client, request{"GET", key}.repeatable())
                        .value_or(0);
                if (!end && (got < 1 || (!repeatable && got != 1))) ++wrong;
                if (end == errc::indeterminate && got > 1) ++wrong;
            }
        });
    }
    for (int round = 0; round < 3; ++round) {
        auto const before = done.load();
        EXPECT_TRUE(eventually([&] { return done > before + 200; }));
        server.kill9();
        server.restart();
    }
    auto const before = done.load();
    EXPECT_TRUE(eventually([&] { return done > before + 200; }));
    enough = true;
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GE(client.statistics().reconnects, 3U);
}

TYPED_TEST(transport_server, goes_on_after_its_connection_was_killed) {
    redis_server server;
    client client{patient(server)};
    std::atomic<bool> enough{false};
    std::atomic<int> done{0};
    std::atomic<int> wrong{0};
    auto load = this->meanwhile([&] {
        for (int i = 0; !enough; ++i, ++done) {
            if (TypeParam::template execute<int>(client, request{"ECHO", i}.repeatable()) != i) ++wrong;
        }
    });
    for (int round = 0; round < 10; ++round) {
        auto const before = done.load();
        EXPECT_TRUE(eventually([&] { return done > before + 10; }));
        server.must({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    }
    EXPECT_TRUE(eventually([&] { return client.statistics().reconnects == 10; }));
    enough = true;
    load.get();
    EXPECT_EQ(wrong, 0);
}

TYPED_TEST(transport_server, waits_for_a_stopped_server_and_goes_on_with_it) {
    redis_server server;
    client client{patient(server)};
    TypeParam::command(client, "PING");
    server.stop();
    EXPECT_THROW(TypeParam::execute(client, request{"GET", "key"}.within(50ms).repeatable()), timeout_error);
    EXPECT_THROW(TypeParam::execute(client, request{"INCR", "late"}.within(50ms)), indeterminate_error);
    auto waiting = this->meanwhile([&] { return TypeParam::template command<int>(client, "INCR", "key"); });
    EXPECT_TRUE(eventually([&] { return client.statistics().requests == 4; }));
    server.cont();
    EXPECT_EQ(waiting.get(), 1);
    EXPECT_EQ(TypeParam::template command<int>(client, "GET", "late"), 1) << "a paused server runs what it was sent";
    EXPECT_EQ(client.statistics().reconnects, 0U);
}

TYPED_TEST(transport_server, gives_a_stopped_server_up_and_finds_it_again) {
    redis_server server;
    auto options = watchful(server);
    options.keepalive_timeout = 50ms;
    options.connect_timeout = 100ms;
    client client{options};
    TypeParam::command(client, "PING");
    server.stop();
    auto waiting = this->meanwhile([&] {
        return TypeParam::template execute<std::string>(client, request{"ECHO", "x"}.repeatable());
    });
    EXPECT_TRUE(eventually([&] { return client.statistics().reconnects >= 1; }));
    EXPECT_TRUE(eventually([&] { return this->log.count("did not answer") >= 1; }));
    server.cont();
    EXPECT_EQ(waiting.get(), "x");
}

TYPED_TEST(transport_server, waits_until_the_data_is_loaded) {
    redis_server server{{.config = {"key-load-delay 500", "loading-process-events-interval-bytes 1024"}}};
    server.must({"DEBUG", "POPULATE", "20000"});
    server.must({"SAVE"});
    server.restart(readiness::accepting);
    client client{patient(server)};
    EXPECT_TRUE(this->ends_with(client, "LOADING"));
    auto waiting = this->meanwhile([&] { return TypeParam::template command<std::string>(client, "GET", "key:1"); });
    auto const before = client.statistics().requests;
    EXPECT_TRUE(eventually([&] { return client.statistics().requests >= before + 3; })) << "asked again and again";
    EXPECT_EQ(client.statistics().connects, 1U) << "loading is no reason to connect again";
    server.must({"CONFIG", "SET", "key-load-delay", "0"});
    EXPECT_EQ(waiting.get(), "value:1");
}

TYPED_TEST(transport_server, delivers_misconf_and_keeps_the_connection) {
    scratch_dir data;
    redis_server server{{.config = {"save 3600 1000000"}, .data_dir = data.path().string()}};
    client client{watchful(server)};
    auto const id = TypeParam::template command<int>(client, "CLIENT", "ID");
    std::filesystem::create_directory(data.file("dump.rdb"));  // in the way of every save
    server.must({"BGSAVE"});
    ASSERT_TRUE(eventually([&] { return server.info("rdb_last_bgsave_status") == "err"; }));
    EXPECT_THAT(failure<server_error>([&] { TypeParam::command(client, "SET", "key", 1); }), HasSubstr("MISCONF"));
    EXPECT_TRUE(TypeParam::command(client, "GET", "key").is_null());
    EXPECT_THAT(failure<server_error>([&] { TypeParam::execute(client, transaction{}.add("SET", "key", 1)); }),
                HasSubstr("MISCONF"));
    auto const before = client.statistics().replies;
    EXPECT_TRUE(eventually([&] { return client.statistics().replies >= before + 3; })) << "PINGs, refused ones";
    EXPECT_THAT(server.info("cmdstat_ping"), testing::Not(HasSubstr("rejected_calls=0,")));
    EXPECT_EQ(TypeParam::template command<int>(client, "CLIENT", "ID"), id);
    EXPECT_EQ(client.statistics().reconnects, 0U);
    std::filesystem::remove(data.file("dump.rdb"));
    server.must({"BGSAVE"});
    ASSERT_TRUE(eventually([&] { return server.info("rdb_last_bgsave_status") == "ok"; }));
    EXPECT_EQ(TypeParam::command(client, "SET", "key", 1).text(), "OK");
}

TYPED_TEST(transport_server, waits_for_a_busy_server_and_keeps_the_connection) {
    redis_server server{{.config = {"busy-reply-threshold 1"}}};
    client client{watchful(server)};
    auto const id = TypeParam::template command<int>(client, "CLIENT", "ID");
    auto other = server.connect();
    other.send({"EVAL", "while true do end", "0"});
    auto probe = server.connect();
    ASSERT_TRUE(eventually([&] { return probe.command({"PING"}).text.starts_with("BUSY"); }));
    EXPECT_TRUE(this->ends_with(client, "BUSY"));
    auto waiting = this->meanwhile([&] { return TypeParam::template command<int>(client, "INCR", "key"); });
    auto both = this->meanwhile(
        [&] { return TypeParam::execute(client, transaction{}.add("INCR", "other").add("INCR", "other")); });
    auto const before = client.statistics().replies;
    EXPECT_TRUE(eventually([&] { return client.statistics().replies >= before + 20; }));
    probe.must({"SCRIPT", "KILL"});
    EXPECT_EQ(waiting.get(), 1) << "refused many times, run once";
    EXPECT_EQ(both.get()->at(1).integer(), 2);
    EXPECT_EQ(TypeParam::template command<int>(client, "CLIENT", "ID"), id);
    EXPECT_EQ(client.statistics().reconnects, 0U);
}

// INFO is refused while the server is busy: then nobody knows yet whether it evicts.
TYPED_TEST(transport_server, does_not_skip_the_check_of_a_busy_server) {
    redis_server server{{.config = {"busy-reply-threshold 1", "maxmemory-policy allkeys-lru"}}};
    auto other = server.connect();
    other.send({"EVAL", "while true do end", "0"});
    auto probe = server.connect();
    ASSERT_TRUE(eventually([&] { return probe.command({"PING"}).text.starts_with("BUSY"); }));
    client client{patient(server)};
    EXPECT_THAT(failure<unavailable_error>(
                    [&] { until_heard([&] { TypeParam::execute(client, request{"PING"}.within(100ms)); }); }),
                HasSubstr("BUSY"));
    probe.must({"SCRIPT", "KILL"});
    EXPECT_THROW(TypeParam::command(client, "PING"), unsuitable_server_error);
}

TYPED_TEST(transport_server, delivers_oom_while_reads_and_deletes_go_on) {
    redis_server server;
    client client{patient(server)};
    TypeParam::command(client, "SET", "key", 1);
    server.must({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_THAT(failure<server_error>([&] { TypeParam::command(client, "SET", "other", 1); }), HasSubstr("OOM"));
    EXPECT_EQ(TypeParam::template command<int>(client, "GET", "key"), 1);
    EXPECT_EQ(TypeParam::template command<int>(client, "DEL", "key"), 1);
    server.must({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(TypeParam::command(client, "SET", "other", 1).text(), "OK");
    EXPECT_EQ(client.statistics().connects, 1U);
}

TYPED_TEST(transport_server, waits_until_a_replica_is_a_master_again) {
    redis_server server;
    client client{patient(server)};
    TypeParam::command(client, "PING");
    server.must({"REPLICAOF", "127.0.0.1", "1"});
    EXPECT_TRUE(this->ends_with(client, "READONLY"));
    auto waiting = this->meanwhile([&] { return TypeParam::template command<int>(client, "INCR", "key"); });
    EXPECT_TRUE(eventually([&] { return client.statistics().pending >= 1 || client.statistics().requests > 10; }));
    server.must({"REPLICAOF", "NO", "ONE"});
    EXPECT_EQ(waiting.get(), 1);
}

// A server that forgets its scripts all the time: each call runs, once.
TYPED_TEST(transport_server, runs_scripts_on_a_server_that_forgets_them) {
    redis_server server;
    client client{patient(server)};
    std::atomic<bool> enough{false};
    auto forgetting = this->meanwhile([&] {
        auto admin = server.connect();
        while (!enough) admin.must({"SCRIPT", "FLUSH"});
    });
    auto& core = *detail::core_access::of(client);
    int deleted = 0;
    for (int i = 0; i < 500; ++i) {
        TypeParam::command(client, "SET", "key", i);
        std::string_view const key = "key";
        std::array const keys{key};
        std::array const arguments{detail::argument{i}};
        auto const call = [&] {
            redis::command_terms const terms{.deadline = core.deadline(60s)};
            return redis::run_script(core.way(), scripts::compare_and_delete, keys, arguments, terms);
        };
        auto const answer = TypeParam::run(
            client, [&] { return sync_wait(call()); }, call);
        deleted += static_cast<int>(answer.integer());
    }
    enough = true;
    forgetting.get();
    EXPECT_EQ(deleted, 500);
    EXPECT_EQ(server.must({"EXISTS", "key"}).integer, 0);
    EXPECT_GT(client.statistics().requests, 1'000U) << "it was forgotten at least once";
}

}  // namespace
}  // namespace lockstep::test
