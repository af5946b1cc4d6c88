// What circuit breakers cost the server: how often they report, and what a report costs.
#include <lockstep/circuit_breaker.hpp>

#include "integration/gate_support.hpp"
#include "support/on_host.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

struct rule {
    char const* name;
    circuit_breaker_options options;
};

class circuit_breaker_reports : public testing::TestWithParam<rule> {
protected:
    static void fail(circuit_breaker& which) {
        try {
            which.execute([] { throw std::logic_error("it does not work"); });
        } catch (circuit_open_error const&) {
        } catch (std::logic_error const&) {
        }
    }
    /// Each of these failures could bring a report of its own: when the next one comes, all that the one before has caused is done.
    void fail_often(circuit_breaker& which, int count) {
        for (int i = 0; i < count; ++i) {
            fail(which);
            by.command("PING");
        }
    }
    /// It has subscribed and read the state; from here on every script is a report.
    void begin(circuit_breaker& which) {
        which.look();
        ASSERT_TRUE(falls_silent(server));
        server.must({"CONFIG", "RESETSTAT"});
    }
    redis_server server;
    client by{server.url()};
};

std::vector<rule> rules() {
    std::vector<rule> all{{"by_number", {.failure_threshold = 5}},
                          {"by_number_with_a_quorum", {.failure_threshold = 5, .quorum_of_reporters = 2}},
                          {"by_ratio_with_a_quorum", {.failure_ratio = 0.5, .minimum_calls = 5, .quorum_of_reporters = 3}}};
    for (auto& one : all) {
        one.options.sampling = one.options.recovery_timeout = 10min;
        one.options.max_age = 24h;  // it does not read the state again
        one.options.server_timeout = 40s;
    }
    return all;
}
INSTANTIATE_TEST_SUITE_P(each, circuit_breaker_reports, testing::ValuesIn(rules()), [](auto const& of) { return std::string{of.param.name}; });

TEST_P(circuit_breaker_reports, come_ahead_of_their_time_once_in_an_interval_at_most) {
    auto how = GetParam().options;
    how.report_interval = 1min;
    circuit_breaker breaker{by, "name", how};
    begin(breaker);
    fail_often(breaker, 200);
    EXPECT_LE(scripts_run(server), 1) << "the regular one has not come yet";
}

TEST_P(circuit_breaker_reports, come_twice_in_an_interval_at_most) {
    auto how = GetParam().options;
    how.report_interval = 20ms;
    circuit_breaker breaker{by, "name", how};
    begin(breaker);
    auto const first = now_ms();
    while (now_ms() < first + 500) fail_often(breaker, 10);
    auto const intervals = (now_ms() - first) / 16 + 1;  // they are up to a fifth shorter
    EXPECT_LE(scripts_run(server), 2 * intervals);
}

TEST(circuit_breaker_memory, of_bad_machines_does_not_grow_with_the_processes_on_them) {
    redis_server server;
    client by{server.url()};
    circuit_breaker_options const how{.failure_threshold = 9, .sampling = 10min, .recovery_timeout = 10min, .quorum_of_reporters = 3, .report_interval = 1min};
    std::vector<circuit_breaker> processes;
    auto const report_from = [&](std::string const& machine) {
        on_host const there{machine};
        auto& one = processes.emplace_back(by, "name", how);
        for (int i = 0; i < 3; ++i) EXPECT_THROW(one.execute([] { throw std::logic_error("it does not work"); }), std::logic_error);
        one.flush();
    };
    for (int i = 0; i < 30; ++i) report_from(i % 2 == 0 ? "one" : "other");
    auto const text = server.must({"HGET", "lockstep:{name}:breaker", "f"}).text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '@'), 2) << text;
    EXPECT_EQ(processes.front().look().state, circuit::closed);
    report_from("third");
    EXPECT_EQ(processes.front().look().state, circuit::open);
}

}  // namespace
}  // namespace lockstep::test
