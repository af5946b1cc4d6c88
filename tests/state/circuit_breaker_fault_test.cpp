// Circuit breakers under lost replies, cuts, killed processes and clocks that are set back.
#include <lockstep/circuit_breaker.hpp>

#include "integration/topology_support.hpp"
#include "state/breaker_rules.hpp"
#include "support/child_process.hpp"
#include "support/clock_file.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/forms.hpp"
#include "support/program_path.hpp"
#include "support/redis_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>

namespace lockstep::test {
namespace {

TEST(outcome_window, covers_its_length_and_forgets_what_is_a_ninth_older) {
    detail::outcome_window window{9'000ms};
    for (auto const begin : {1h + 0ms, 1h + 1ms, 1h + 999ms}) {  // wherever in a slice
        window.clear();
        detail::outcome_window::clock::time_point const first{begin};
        window.add({.ok = 1, .failed = 2}, first);
        window.add({.ok = 1, .failed = 0}, first + 5'000ms);
        EXPECT_EQ(window.sum(first + 9'000ms).all(), 4);
        EXPECT_EQ(window.sum(first + 10'000ms).all(), 1);
        EXPECT_EQ(window.sum(first + 15'000ms).all(), 0);
        window.add({.ok = 0, .failed = 5}, first + 10'000ms);  // in the place of the first
        EXPECT_EQ(window.sum(first + 10'000ms).failed, 5);
    }
}

std::string call(circuit_breaker& which, bool works) {
    try {
        which.execute([&] {
            if (!works) throw std::logic_error("it does not work");
        });
        return "ok";
    } catch (circuit_open_error const&) {
        return "refused";
    } catch (std::logic_error const&) {
        return "fail";
    }
}

class circuit_breaker_faults : public testing::Test {
protected:
    static circuit_breaker_options plan() {
        return {.failure_threshold = 5, .sampling = 10min, .recovery_timeout = 10min, .report_interval = 10ms, .server_timeout = 40s};
    }
    long failures() {
        long sum = 0;
        for (int i = 0; i < 10; ++i) {
            auto const text = server.must({"HGET", "lockstep:{name}:breaker", "c" + std::to_string(i)}).text;
            if (!text.empty()) sum += std::stol(text.substr(text.rfind(' ')));
        }
        return sum;
    }
    /// The server has refused several writes from here on, or `meanwhile` came.
    bool is_asked_and_refuses(std::function<bool()> const& meanwhile) {
        auto const before = refused_scripts();
        return eventually([&] { return meanwhile() || refused_scripts() >= before + 3; });
    }
    long refused_scripts() {
        auto const text = server.must({"INFO", "commandstats"}).text;
        auto const at = text.find("failed_calls=", text.find("cmdstat_evalsha:"));
        return at == std::string::npos ? 0 : std::stol(text.substr(at + 13));
    }
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
};

TEST_F(circuit_breaker_faults, a_report_whose_reply_is_lost_counts_once) {
    auto how = plan();
    how.report_interval = 1min;
    how.failure_threshold = 100;
    circuit_breaker there{far, "name", how};
    EXPECT_EQ(call(there, true), "ok");
    there.flush();
    for (int i = 1; i <= 3; ++i) {
        EXPECT_EQ(call(there, false), "fail");
        proxy.drop_replies(1);
        there.flush();
        EXPECT_EQ(failures(), i);
    }
    EXPECT_EQ(proxy.counters().struck, 3U);
}

TEST_F(circuit_breaker_faults, a_report_of_what_was_before_the_latest_change_counts_nothing) {
    auto how = plan();
    how.report_interval = 1min;
    how.failure_threshold = 4;
    circuit_breaker here{near, "name", how};
    circuit_breaker there{far, "name", how};
    here.close();  // it has a version
    EXPECT_EQ(call(there, true), "ok");
    there.flush();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(call(there, false), "fail");
    proxy.hold(direction::to_client);  // so that it does not hear of this:
    here.open();
    here.close();
    auto const before = calls_of(server, "evalsha");
    begun report{as_true(there.async_flush())};
    ASSERT_TRUE(eventually([&] { return calls_of(server, "evalsha") > before; }));
    EXPECT_EQ(failures(), 0);
    proxy.heal();
    EXPECT_TRUE(report.get());
    EXPECT_EQ(there.state().version, here.state().version);
}

TEST_F(circuit_breaker_faults, a_probe_whose_reply_is_lost_is_one_probe) {
    auto how = plan();
    how.half_open_probes = 2;
    circuit_breaker here{near, "name", how};
    circuit_breaker there{far, "name", how};
    EXPECT_EQ(call(there, true), "ok");
    here.open(1ms);
    ASSERT_TRUE(eventually([&] { return there.state().state == circuit::open && there.state().retry_after == 0ms; }));
    std::optional<circuit_permit> first;  // the push may reach it later than the other
    ASSERT_TRUE(eventually([&] { return (first = here.try_allow()).has_value(); }));
    ASSERT_TRUE(eventually([&] { return there.state().state == circuit::half_open; }));
    proxy.drop_replies(1);
    auto second = there.try_allow();
    EXPECT_TRUE(second);
    EXPECT_EQ(proxy.counters().struck, 1U);
    EXPECT_FALSE(here.try_allow());
    second->success();
    EXPECT_TRUE(eventually([&] { return here.state().state == circuit::closed; }));
}

TEST_F(circuit_breaker_faults, what_changed_while_a_process_was_cut_off_is_learnt_when_it_is_back) {
    circuit_breaker here{near, "name", plan()};
    circuit_breaker there{far, "name", plan()};
    EXPECT_EQ(call(there, true), "ok");
    there.flush();
    proxy.refuse();
    proxy.cut();
    here.open();
    EXPECT_EQ(there.state().state, circuit::closed);
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return there.state().state == circuit::open; }));
}

TEST_F(circuit_breaker_faults, without_a_server_it_works_by_its_own_counts_and_says_so) {
    auto how = plan();
    how.server_timeout = 50ms;
    how.recovery_timeout = 50ms;
    how.successes_to_close = 2;
    circuit_breaker there{far, "name", how};
    EXPECT_EQ(call(there, true), "ok");
    there.flush();
    proxy.refuse();
    proxy.cut();
    for (int i = 0; i < 5; ++i) call(there, false);
    ASSERT_TRUE(eventually([&] { return there.state().state == circuit::open; }));
    EXPECT_TRUE(there.state().local);
    EXPECT_EQ(ending_of([&] { there.open({}, {}); }).reason, errc::unavailable);
    // It is tried again here, too.
    EXPECT_TRUE(eventually([&] { return call(there, false) == "fail"; }));
    EXPECT_TRUE(eventually([&] { return there.state().state == circuit::open; }));
    EXPECT_TRUE(eventually([&] { return call(there, true) == "ok"; }));
    EXPECT_TRUE(eventually([&] { return call(there, true) == "ok" && there.state().state == circuit::closed; }));
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return call(there, true) == "ok" && !there.state().local; }));
}

TEST_F(circuit_breaker_faults, that_never_saw_a_server_lets_calls_go) {
    auto how = plan();
    how.server_timeout = 50ms;
    proxy.refuse();
    circuit_breaker there{far, "name", how};
    EXPECT_EQ(call(there, true), "ok");
    EXPECT_TRUE(there.state().local);
    circuit_breaker here{near, "name", plan()};
    here.open();
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return there.state().state == circuit::open; })) << "it listens as soon as it can";
    EXPECT_FALSE(there.state().local);
}

TEST_F(circuit_breaker_faults, what_was_counted_without_a_server_is_reported_when_it_is_back) {
    auto how = plan();
    how.server_timeout = 50ms;
    how.failure_threshold = 100;
    circuit_breaker there{far, "name", how};
    EXPECT_EQ(call(there, true), "ok");
    there.flush();
    proxy.refuse();
    proxy.cut();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(call(there, false), "fail");
    ASSERT_TRUE(eventually([&] { return there.state().local; }));
    proxy.heal();
    EXPECT_TRUE(eventually([&] {
        call(there, true);
        return failures() == 20;
    }));
}

TEST_F(circuit_breaker_faults, what_is_older_than_the_sampling_time_is_not_reported_when_the_server_is_back) {
    auto how = plan();
    how.server_timeout = 50ms;
    how.sampling = 300ms;
    circuit_breaker there{far, "name", how};
    EXPECT_EQ(call(there, true), "ok");
    there.flush();
    proxy.refuse();
    proxy.cut();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(call(there, false), "fail");
    ASSERT_TRUE(eventually([&] { return there.state().local; }));
    auto const until = now_ms() + 400;
    ASSERT_TRUE(eventually([&] { return now_ms() > until; }));
    EXPECT_EQ(call(there, false), "fail");
    proxy.heal();
    ASSERT_TRUE(eventually([&] { return !there.state().local; }));
    there.flush();
    EXPECT_LE(failures(), 1) << "the other four are over";
    EXPECT_EQ(there.look().state, circuit::closed);
}

// Out of memory, or without the replicas that it wants, a server answers, but takes nothing.
TEST_F(circuit_breaker_faults, with_a_server_that_refuses_it_works_by_its_own_counts) {
    auto how = plan();
    std::atomic<int> changes = 0;
    how.on_change = [&](circuit_change const&) { ++changes; };
    circuit_breaker here{near, "name", how};
    EXPECT_EQ(call(here, true), "ok");
    here.flush();
    server.must({"CONFIG", "SET", "min-replicas-to-write", "1"});
    EXPECT_EQ(call(*std::make_unique<circuit_breaker>(far, "name", plan()), true), "ok") << "its first call, too, and it only reads";
    for (int i = 0; i < 5; ++i) EXPECT_EQ(call(here, false), "fail");
    EXPECT_TRUE(eventually([&] { return here.state().state == circuit::open; }));
    EXPECT_TRUE(here.state().local);
    EXPECT_EQ(call(here, true), "refused");
    EXPECT_TRUE(is_asked_and_refuses([&] { return here.state().state != circuit::open; }));
    EXPECT_EQ(here.look().state, circuit::open) << "what such a server still answers says nothing";
    EXPECT_TRUE(here.state().local);
    EXPECT_EQ(changes, 1);
    server.must({"CONFIG", "SET", "min-replicas-to-write", "0"});
    EXPECT_TRUE(eventually([&] { return !here.state().local; }));
    EXPECT_EQ(here.state().state, circuit::closed);
}

TEST_F(circuit_breaker_faults, with_a_server_that_refuses_it_is_closed_by_its_own_probe) {
    auto how = plan();
    how.report_interval = 1min;
    circuit_breaker here{near, "name", how};
    here.open(1ms);
    ASSERT_TRUE(eventually([&] { return here.state().retry_after == 0ms; }));
    server.must({"CONFIG", "SET", "min-replicas-to-write", "1"});
    EXPECT_TRUE(eventually([&] { return call(here, true) == "ok"; }));
    EXPECT_TRUE(eventually([&] { return here.state().state == circuit::closed; }));
    EXPECT_TRUE(is_asked_and_refuses([&] { return here.state().state != circuit::closed; }));
    EXPECT_EQ(here.state().state, circuit::closed) << "the server still says that it is open";
    server.must({"CONFIG", "SET", "min-replicas-to-write", "0"});
    EXPECT_TRUE(eventually([&] { return !here.state().local; }));
}

TEST_F(circuit_breaker_faults, without_a_server_a_probe_of_which_nothing_is_heard_is_given_up) {
    auto how = plan();
    how.server_timeout = 50ms;
    how.recovery_timeout = 50ms;
    how.probe_lease = 100ms;
    circuit_breaker there{far, "name", how};
    EXPECT_EQ(call(there, true), "ok");
    there.flush();
    proxy.refuse();
    proxy.cut();
    for (int i = 0; i < 5; ++i) call(there, false);
    ASSERT_TRUE(eventually([&] { return there.state().local && there.state().state == circuit::open; }));
    std::optional<circuit_permit> first, second;
    ASSERT_TRUE(eventually([&] { return (first = there.try_allow()).has_value(); }));
    EXPECT_TRUE(first->is_probe());
    ASSERT_TRUE(eventually([&] { return (second = there.try_allow()).has_value(); })) << "the first hangs";
    EXPECT_TRUE(second->is_probe());
    first->success();
    there.look();
    EXPECT_EQ(there.state().state, circuit::half_open) << "too late";
    EXPECT_TRUE(eventually([&] { return call(there, true) == "ok" && there.state().state == circuit::closed; }));
}

TEST_F(circuit_breaker_faults, a_probe_that_is_given_up_does_not_keep_its_place) {
    auto how = plan();
    how.recovery_timeout = 1ms;
    how.probe_lease = 10min;
    circuit_breaker here{near, "name", how};
    circuit_breaker there{far, "name", how};
    here.open(1ms);
    ASSERT_TRUE(eventually([&] { return there.look().state != circuit::closed; }));
    proxy.hold(direction::to_client);
    auto const before = calls_of(server, "evalsha");
    std::stop_source stop;
    std::optional<begun<bool>> probing;
    auto const nothing = []() -> task<void> { co_return; };
    ASSERT_TRUE(eventually([&] {  // until it may be tried
        if (!probing || probing->done()) probing.emplace(with_stop_token(as_true(there.async_execute(nothing)), stop.get_token()));
        return calls_of(server, "evalsha") > before;
    }));
    stop.request_stop();
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return call(here, true) == "ok"; })) << "nobody makes that probe";
}

TEST_F(circuit_breaker_faults, passes_on_what_can_only_be_moved) {
    circuit_breaker here{near, "name", plan()};
    EXPECT_EQ(*here.execute([] { return std::make_unique<int>(7); }), 7);
    int number = 1;
    EXPECT_EQ(&here.execute([&]() -> int& { return number; }), &number);
}

TEST_F(circuit_breaker_faults, in_a_child_of_fork_neither_hangs_nor_falls_back) {
    circuit_breaker here{near, "name", plan()};
    auto const one = []() -> task<int> { co_return 1; };
    auto const is_refused = [](auto const& call) { return ending_of(call).reason == errc::invalid_argument; };
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(10);
        bool ok = is_refused([&] { here.execute([] { return 1; }, [] { return 1; }); });
        ok = is_refused([&] { sync_wait(here.async_execute(one)); }) && ok;
        ok = is_refused([&] { sync_wait(here.async_execute(one, one)); }) && ok;
        ::_exit(ok ? 0 : 1);
    }
    int status = -1;
    ASSERT_TRUE(eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 50s));
    EXPECT_EQ(status, 0);
}

TEST(circuit_breaker_clock, two_failures_within_the_sampling_time_are_both_counted) {
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client by{server.url()};
    clock.stop();
    for (auto const offset : {0ms, 1ms, 500ms, 999ms}) {  // wherever in a slice the first one comes
        circuit_breaker breaker{by, "at " + std::to_string(offset.count()), {.failure_threshold = 2, .sampling = 10s, .report_interval = 1min}};
        clock.step(offset);
        EXPECT_EQ(call(breaker, false), "fail");
        breaker.flush();
        clock.step(9'999ms);
        EXPECT_EQ(call(breaker, false), "fail");
        breaker.flush();
        EXPECT_EQ(breaker.look().state, circuit::open) << "9,999 ms apart, the first " << offset.count() << " ms into a second";
    }
    circuit_breaker later{by, "later", {.failure_threshold = 2, .sampling = 10s, .report_interval = 1min}};
    EXPECT_EQ(call(later, false), "fail");
    later.flush();
    clock.step(11'200ms);
    EXPECT_EQ(call(later, false), "fail");
    later.flush();
    EXPECT_EQ(later.look().state, circuit::closed);
}

TEST(circuit_breaker_clock, set_back_does_not_keep_it_open_for_long) {
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client by{server.url()};
    circuit_breaker breaker{by, "name", {.failure_threshold = 1, .recovery_timeout = 100ms, .half_open_probes = 1, .probe_lease = 200ms, .report_interval = 10ms}};
    EXPECT_EQ(call(breaker, false), "fail");
    ASSERT_TRUE(eventually([&] { return breaker.state().state == circuit::open; }));
    clock.step(-24h);
    EXPECT_TRUE(eventually([&] { return breaker.try_allow().has_value(); }));
    EXPECT_TRUE(eventually([&] { return breaker.look().state == circuit::half_open; }));
    auto held = breaker.try_allow();
    EXPECT_TRUE(eventually([&] { return held || (held = breaker.try_allow()); }));
    clock.step(-24h);
    EXPECT_TRUE(eventually([&] { return call(breaker, true) == "ok"; })) << "nor a probe's lease";
}

class slow_breaker_fleet : public testing::Test {
protected:
    /// Two on each machine.
    void start_fleet(int count, std::string threshold, std::string recovery_ms, std::string probes, std::string reporters, std::string lease_ms) {
        for (int i = 0; i < count; ++i) {
            fleet.push_back(child_process{{program_path("breaker_user"), server.url(), "name", threshold, recovery_ms, probes, reporters, lease_ms, "machine" + std::to_string(i / 2)}});
        }
        for (auto& one : fleet) ASSERT_EQ(one.read_line(40s), "ready");
    }
    std::string tell(child_process& one, std::string const& what) {
        one.write_line(what);
        return one.read_line(40s).value_or("nothing");
    }
    redis_server server;
    std::vector<child_process> fleet;
};

TEST_F(slow_breaker_fleet, agrees_on_what_one_of_them_found) {
    start_fleet(16, "8", "600000", "1", "1", "600000");
    for (int i = 0; i < 8; ++i) EXPECT_EQ(tell(fleet[static_cast<std::size_t>(i)], "fail"), "fail");
    for (auto& one : fleet) {
        EXPECT_TRUE(eventually([&] { return tell(one, "state") == "open"; }, 5s));
    }
    for (auto& one : fleet) EXPECT_EQ(tell(one, "ok"), "refused");
}

TEST_F(slow_breaker_fleet, is_probed_by_exactly_so_many_and_not_blocked_by_one_that_is_killed) {
    start_fleet(16, "1", "100", "3", "1", "5000");
    EXPECT_EQ(tell(fleet[0], "fail"), "fail");
    std::vector<std::size_t> probing;
    ASSERT_TRUE(eventually([&] {
        for (std::size_t i = 0; i < fleet.size(); ++i) {
            if (std::find(probing.begin(), probing.end(), i) == probing.end() && tell(fleet[i], "state") != "closed" && tell(fleet[i], "allow") == "probe") probing.push_back(i);
        }
        return probing.size() >= 3;
    }));
    ASSERT_EQ(probing.size(), 3U) << "one round of all found no fourth";
    // Those are killed with what they hold. Their leases end, and others may try.
    for (auto const one : probing) fleet[one].kill();
    std::size_t other = 0;
    while (std::find(probing.begin(), probing.end(), other) != probing.end()) ++other;
    EXPECT_TRUE(eventually([&] { return tell(fleet[other], "allow") == "probe"; }, 20s));
    EXPECT_EQ(tell(fleet[other], "success"), "said");
    for (std::size_t i = 0; i < fleet.size(); ++i) {
        if (std::find(probing.begin(), probing.end(), i) != probing.end()) continue;
        EXPECT_TRUE(eventually([&] { return tell(fleet[i], "state") == "closed"; }));
    }
}

TEST_F(slow_breaker_fleet, is_not_opened_by_one_bad_machine) {
    start_fleet(6, "6", "600000", "1", "3", "600000");
    for (int i = 0; i < 50; ++i) EXPECT_EQ(tell(fleet[0], "fail"), "fail");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(tell(fleet[1], "fail"), "fail");  // on the same machine
    for (int i = 0; i < 2; ++i) EXPECT_EQ(tell(fleet[2], "fail"), "fail");
    auto const bad_machines = [&] {
        auto const text = server.must({"HGET", "lockstep:{name}:breaker", "f"}).text;
        return std::count(text.begin(), text.end(), ' ') / 2;
    };
    EXPECT_TRUE(eventually([&] { return bad_machines() == 2; }));
    EXPECT_EQ(tell(fleet[3], "state"), "closed");
    for (int i = 0; i < 2; ++i) tell(fleet[4], "fail");
    for (auto& one : fleet) EXPECT_TRUE(eventually([&] { return tell(one, "state") == "open"; }));
}

}  // namespace
}  // namespace lockstep::test
