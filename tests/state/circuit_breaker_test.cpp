// What a circuit breaker promises, in both forms on every topology.
#include <lockstep/circuit_breaker.hpp>
#include <lockstep/event.hpp>

#include "integration/gate_support.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "support/on_host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>

namespace lockstep::test {
namespace {

struct broken : std::runtime_error {
    broken() : std::runtime_error("it does not work") {}
};
struct not_found : std::runtime_error {
    not_found() : std::runtime_error("there is none") {}
};

task<int> give(int value) { co_return value; }
task<int> fail() {
    throw broken{};
    co_return 0;
}

task<void> fail_at() {
    throw broken{};
    co_return;
}
task<void> note(bool& it) {
    it = true;
    co_return;
}

class circuit_breaker_contract : public contract {
protected:
    static circuit_breaker_options plan() {
        return {.failure_threshold = 5, .sampling = 10min, .recovery_timeout = 10min, .report_interval = 10ms, .server_timeout = 40s};
    }

    static circuit_breaker on(char const* host, client& by, circuit_breaker_options const& how) {
        on_host const there{host};
        return circuit_breaker{by, "name", how};
    }
    /// "ok", "fail", or "refused".
    std::string call(client& by, circuit_breaker& which, bool works) {
        try {
            run(
                by,
                [&] {
                    return which.execute([&] {
                        if (!works) throw broken{};
                        return 7;
                    });
                },
                [&] { return which.async_execute([works] { return works ? give(7) : fail(); }); });
            return "ok";
        } catch (circuit_open_error const&) {
            return "refused";
        } catch (broken const&) {
            return "fail";
        }
    }
    /// An operation that has this value, or fails, with a fallback.
    int or_two(client& by, circuit_breaker& which, std::optional<int> value = {}) {
        auto const operation = [&] {
            ++calls;
            if (!value) throw broken{};
            return *value;
        };
        auto const async_operation = [this, value] {
            ++calls;
            return value ? give(*value) : fail();
        };
        return run(
            by, [&] { return which.execute(operation, [] { return 2; }); },
            [&] { return which.async_execute(async_operation, [] { return give(2); }); });
    }
    /// A call by one who has this stop source, of an operation that is cancelled while it waits: by that, or by `of_operation`. With a fallback.
    void cancelled(circuit_breaker& which, event& never, std::stop_source caller, std::optional<std::stop_source> of_operation = {}) {
        auto stop = of_operation.value_or(caller);
        auto const operation = [&] {
            ++calls;
            stop.request_stop();
            never.wait(stop.get_token());
        };
        auto const async_operation = [&]() -> task<void> {
            ++calls;
            stop.request_stop();
            return of_operation ? with_stop_token(never.async_wait(), stop.get_token()) : never.async_wait();
        };
        auto const fall_back = [this]() -> task<void> {
            ++fallbacks;
            co_return;
        };
        if (GetParam().how == form::blocking) {
            which.execute(operation, [&] { ++fallbacks; }, caller.get_token());
        } else {
            auto const call = [&] { return as_true(which.async_execute(async_operation, fall_back)); };
            coroutine::await(a, call, caller.get_token());
        }
    }
    std::atomic<int> calls = 0;
    int fallbacks = 0;

    std::optional<circuit_permit> try_allow(client& by, circuit_breaker& which) {
        return run(
            by, [&] { return which.try_allow(); }, [&] { return which.async_try_allow(); });
    }
    void open(client& by, circuit_breaker& which, std::optional<std::chrono::milliseconds> time = {}) {
        run(
            by, [&] { which.open(time); }, [&] { return which.async_open(time); });
    }
    void close(client& by, circuit_breaker& which) {
        run(
            by, [&] { which.close(); }, [&] { return which.async_close(); });
    }
    void flush(client& by, circuit_breaker& which) {
        run(
            by, [&] { which.flush(); }, [&] { return which.async_flush(); });
    }
    circuit_status look(client& by, circuit_breaker& which) {
        return run(
            by, [&] { return which.look(); }, [&] { return which.async_look(); });
    }
    static bool becomes(circuit_breaker& which, circuit what) {
        return eventually([&] { return which.state().state == what; });
    }
};
LOCKSTEP_CONTRACT(circuit_breaker_contract);

TEST_P(circuit_breaker_contract, opens_for_all_when_the_failures_of_all_reach_the_threshold) {
    circuit_breaker of_a{a, "name", plan()};
    circuit_breaker of_b{b, "name", plan()};
    EXPECT_TRUE(of_a.state().local) << "nobody was asked yet";
    EXPECT_EQ(call(a, of_a, true), "ok");
    EXPECT_EQ(call(b, of_b, true), "ok");
    EXPECT_FALSE(of_a.state().local);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(call(a, of_a, false), "fail");
    flush(a, of_a);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(call(b, of_b, false), "fail");
    flush(b, of_b);
    EXPECT_EQ(look(a, of_a).state, circuit::closed) << "four of five";
    EXPECT_EQ(call(a, of_a, false), "fail");
    EXPECT_TRUE(becomes(of_a, circuit::open));
    EXPECT_TRUE(becomes(of_b, circuit::open)) << "and it is pushed to those who did nothing";
    EXPECT_EQ(call(a, of_a, true), "refused");
    EXPECT_EQ(call(b, of_b, true), "refused");
    EXPECT_FALSE(try_allow(b, of_b));
    auto const now = of_b.state();
    EXPECT_GT(now.version, 0U);
    EXPECT_EQ(now.version, of_a.state().version);
    EXPECT_GT(now.retry_after, 1min);
    EXPECT_FALSE(now.held);
    EXPECT_FALSE(now.local);
    EXPECT_THAT(ending_of([&] { of_a.execute([] {}); }).text, testing::HasSubstr("'name'"));
}

TEST_P(circuit_breaker_contract, opens_by_ratio_from_a_number_of_calls_on) {
    auto how = plan();
    how.failure_threshold = 0;
    how.failure_ratio = 0.5;
    how.minimum_calls = 8;
    circuit_breaker of_a{a, "name", how};
    circuit_breaker of_b{b, "name", how};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(call(a, of_a, false), "fail");
    for (int i = 0; i < 4; ++i) EXPECT_EQ(call(b, of_b, true), "ok");
    flush(a, of_a);
    flush(b, of_b);
    EXPECT_EQ(look(a, of_a).state, circuit::closed) << "seven calls";
    EXPECT_EQ(call(a, of_a, false), "fail");
    EXPECT_TRUE(becomes(of_b, circuit::open)) << "4 of 8";
}

TEST_P(circuit_breaker_contract, is_probed_by_exactly_so_many_and_closed_by_so_many_successes) {
    auto how = plan();
    how.recovery_timeout = 20ms;
    how.half_open_probes = 3;
    how.successes_to_close = 2;
    how.probe_lease = 10min;
    circuit_breaker of_a{a, "name", how};
    circuit_breaker of_b{b, "name", how};
    for (int i = 0; i < 5; ++i) call(a, of_a, false);
    ASSERT_TRUE(becomes(of_a, circuit::open));
    std::vector<circuit_permit> probes;
    auto const ask = [&](client& by, circuit_breaker& which) {
        auto given = try_allow(by, which);
        if (given) probes.push_back(std::move(*given));
    };
    EXPECT_TRUE(eventually([&] {
        ask(a, of_a);
        ask(b, of_b);
        return probes.size() >= 3;
    }));
    for (int i = 0; i < 20; ++i) {
        ask(a, of_a);
        ask(b, of_b);
    }
    ASSERT_EQ(probes.size(), 3U);
    for (auto const& one : probes) EXPECT_TRUE(one.is_probe());
    EXPECT_EQ(look(a, of_a).state, circuit::half_open);
    EXPECT_EQ(call(b, of_b, true), "refused");
    probes[0].success();
    probes.erase(probes.begin());
    EXPECT_TRUE(eventually([&] {
        ask(b, of_b);
        return probes.size() == 3;
    })) << "its place is free";
    EXPECT_EQ(look(a, of_a).state, circuit::half_open) << "one of two";
    probes[2].success();
    EXPECT_TRUE(becomes(of_a, circuit::closed));
    EXPECT_TRUE(becomes(of_b, circuit::closed));
    probes[0].failure();  // too late
    flush(a, of_a);
    catch_up(a);
    EXPECT_EQ(look(b, of_b).state, circuit::closed);
    EXPECT_EQ(call(a, of_a, true), "ok");
}

TEST_P(circuit_breaker_contract, opens_again_when_a_probe_fails) {
    auto how = plan();
    how.recovery_timeout = 20ms;
    circuit_breaker of_a{a, "name", how};
    circuit_breaker of_b{b, "name", how};
    EXPECT_EQ(call(b, of_b, true), "ok");
    for (int i = 0; i < 5; ++i) call(a, of_a, false);
    ASSERT_TRUE(becomes(of_b, circuit::open));
    auto const first = look(b, of_b).version;
    EXPECT_TRUE(eventually([&] { return call(b, of_b, false) == "fail"; }));
    EXPECT_TRUE(eventually([&] { return look(a, of_a).version > first + 1 && of_a.state().state == circuit::open; }));
    EXPECT_TRUE(eventually([&] { return call(a, of_a, true) == "ok"; })) << "and is tried again, and closed by that";
    EXPECT_TRUE(becomes(of_b, circuit::closed));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(call(b, of_b, false), "fail");
    flush(b, of_b);
    EXPECT_EQ(look(b, of_b).state, circuit::closed) << "it counts from the beginning";
}

TEST_P(circuit_breaker_contract, costs_no_command_for_each_call_while_it_is_closed) {
    auto how = plan();
    how.report_interval = 1min;
    circuit_breaker of_a{a, "name", how};
    EXPECT_EQ(call(a, of_a, true), "ok");
    look(a, of_a);
    ASSERT_TRUE(falls_silent(server)) << "it has subscribed and looked";
    server.must({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 10'000; ++i) of_a.execute([] {});
    for (int i = 0; i < 4; ++i) call(a, of_a, false);
    EXPECT_EQ(calls_of(server, "evalsha"), 0);
    flush(a, of_a);
    EXPECT_EQ(calls_of(server, "evalsha") + calls_of(server, "eval"), 1) << "one report for all of them";
    EXPECT_EQ(call(a, of_a, false), "fail");
    EXPECT_TRUE(becomes(of_a, circuit::open)) << "at once, when the threshold is reached";
}

TEST_P(circuit_breaker_contract, counts_what_it_is_told_to_count) {
    auto how = plan();
    how.failure_threshold = 2;
    how.counts = [](std::exception_ptr const& problem) {
        try {
            std::rethrow_exception(problem);
        } catch (not_found const&) {
            return false;
        } catch (...) {
            return true;
        }
    };
    circuit_breaker of_a{a, "name", how};
    for (int i = 0; i < 10; ++i) EXPECT_THROW(of_a.execute([] { throw not_found{}; }), not_found);
    for (int i = 0; i < 10; ++i) auto const dropped = try_allow(a, of_a);
    flush(a, of_a);
    EXPECT_EQ(look(a, of_a).state, circuit::closed);
    auto first = try_allow(a, of_a);
    ASSERT_TRUE(first);
    first->failure();
    first->failure();  // said once is enough
    flush(a, of_a);
    EXPECT_EQ(look(a, of_a).state, circuit::closed);
    EXPECT_EQ(call(a, of_a, false), "fail");
    EXPECT_TRUE(becomes(of_a, circuit::open));
}

TEST_P(circuit_breaker_contract, does_not_take_a_cancelled_call_for_a_failure) {
    auto how = plan();
    how.failure_threshold = 1;
    circuit_breaker of_a{a, "name", how};
    event never{a, "never"};
    for (int i = 0; i < 3; ++i) {
        std::stop_source stop;
        EXPECT_THROW(cancelled(of_a, never, stop), cancelled_error) << "though it has a fallback";
        flush(a, of_a);
        ASSERT_EQ(look(a, of_a).state, circuit::closed);
    }
    EXPECT_EQ(fallbacks, 0);
    EXPECT_THROW(of_a.execute([] { throw cancelled_error{"by a token that the breaker was not given"}; }, [] {}), cancelled_error);
    flush(a, of_a);
    EXPECT_EQ(look(a, of_a).state, circuit::closed);
}

TEST_P(circuit_breaker_contract, takes_an_operation_that_cancels_itself_for_a_failure) {
    auto how = plan();
    how.failure_threshold = 1;
    circuit_breaker of_a{a, "name", how};
    event never{a, "never"};
    std::stop_source stop;  // of the caller, who stays
    EXPECT_NO_THROW(cancelled(of_a, never, stop, std::stop_source{}));
    EXPECT_EQ(fallbacks, 1);
    EXPECT_TRUE(becomes(of_a, circuit::open));
}

TEST_P(circuit_breaker_contract, a_cancelled_probe_leaves_its_place_to_another) {
    auto how = plan();
    how.probe_lease = 10min;
    circuit_breaker of_a{a, "name", how};
    event never{a, "never"};
    open(a, of_a, 1ms);
    std::stop_source stop;
    ASSERT_TRUE(eventually([&] {  // until it may be probed
        try {
            cancelled(of_a, never, stop);
            return false;
        } catch (cancelled_error const&) {
            return calls > 0;
        }
    }));
    EXPECT_EQ(look(a, of_a).state, circuit::half_open);
    EXPECT_TRUE(eventually([&] { return call(a, of_a, true) == "ok"; }));
    EXPECT_TRUE(becomes(of_a, circuit::closed));
}

TEST_P(circuit_breaker_contract, does_not_count_calls_that_began_before_it_changed) {
    auto how = plan();
    how.failure_threshold = 1;
    circuit_breaker of_a{a, "name", how};
    auto old = try_allow(a, of_a);
    ASSERT_TRUE(old);
    open(a, of_a);
    close(a, of_a);
    old->failure();
    flush(a, of_a);
    EXPECT_EQ(look(a, of_a).state, circuit::closed);
    EXPECT_EQ(call(a, of_a, false), "fail");
    EXPECT_TRUE(becomes(of_a, circuit::open)) << "but those since";
}

TEST_P(circuit_breaker_contract, falls_back) {
    circuit_breaker of_a{a, "name", plan()};
    int value = 1;
    int& same = of_a.execute([&]() -> int& { return value; });
    EXPECT_EQ(&same, &value) << "a reference stays one";
    EXPECT_EQ(or_two(a, of_a, 1), 1);
    EXPECT_EQ(or_two(a, of_a), 2) << "it fails";
    open(a, of_a);
    calls = 0;
    EXPECT_EQ(or_two(a, of_a, 1), 2) << "it is open";
    EXPECT_EQ(calls, 0);
    close(a, of_a);
    bool fell_back = false;  // and without a value
    run(
        a, [&] { of_a.execute([] { throw broken{}; }, [&] { fell_back = true; }); },
        [&] { return of_a.async_execute([] { return fail_at(); }, [&] { return note(fell_back); }); });
    EXPECT_TRUE(fell_back);
}

TEST_P(circuit_breaker_contract, does_not_fall_back_where_it_is_misused) {
    circuit_breaker of_a{a, "name", plan()};
    auto const call = [&] { return of_a.execute([] { return 1; }, [] { return 2; }); };
    EXPECT_EQ(ending_of([&] { sync_wait(in_turn_of(a, call)); }).reason, errc::would_deadlock) << "it would have to ask for the first state";
    EXPECT_EQ(call(), 1);
    client closed{url()};
    circuit_breaker of_closed{closed, "name", plan()};
    closed.close();
    EXPECT_EQ(ending_of([&] { or_two(closed, of_closed, 1); }).reason, errc::cancelled);
}

TEST_P(circuit_breaker_contract, asks_once_whether_a_failure_counts) {
    auto how = plan();
    int asked = 0;
    how.counts = [&](std::exception_ptr const&) { return ++asked > 1; };
    circuit_breaker of_a{a, "name", how};
    EXPECT_THROW(or_two(a, of_a), broken);
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(or_two(a, of_a), 2);
    EXPECT_EQ(asked, 2);
}

TEST_P(circuit_breaker_contract, is_opened_and_closed_by_hand) {
    auto how = plan();
    std::mutex mutex;
    std::vector<circuit_change> changes;
    how.on_change = [&](circuit_change const& one) {
        std::lock_guard const guard{mutex};
        changes.push_back(one);
    };
    circuit_breaker of_b{b, "name", how};
    circuit_breaker of_a{a, "name", plan()};
    EXPECT_EQ(call(b, of_b, true), "ok");
    open(a, of_a);
    EXPECT_EQ(call(a, of_a, true), "refused");
    EXPECT_TRUE(becomes(of_b, circuit::open));
    EXPECT_TRUE(of_b.state().held);
    EXPECT_EQ(call(b, of_b, true), "refused");
    EXPECT_GT(server.must({"PTTL", "lockstep:{name}:breaker"}).integer, 1'000'000'000) << "it is not forgotten soon";
    close(b, of_b);
    EXPECT_EQ(call(b, of_b, true), "ok");
    EXPECT_TRUE(becomes(of_a, circuit::closed));
    open(a, of_a, 10ms);
    EXPECT_TRUE(becomes(of_b, circuit::open));
    EXPECT_TRUE(eventually([&] { return call(b, of_b, true) == "ok"; })) << "by a probe";
    EXPECT_TRUE(becomes(of_a, circuit::closed));
    EXPECT_TRUE(becomes(of_b, circuit::closed));
    std::lock_guard const guard{mutex};
    ASSERT_GE(changes.size(), 4U);
    for (std::size_t i = 0; i < changes.size(); ++i) {
        EXPECT_NE(changes[i].from, changes[i].to);
        if (i == 0) continue;
        EXPECT_EQ(changes[i].from, changes[i - 1].to);
        EXPECT_GT(changes[i].version, changes[i - 1].version);
    }
    auto const ttl = server.must({"PTTL", "lockstep:{name}:breaker"}).integer;
    EXPECT_GT(ttl, 0) << "it goes when nobody uses it";
}

TEST_P(circuit_breaker_contract, needs_a_quorum_of_reporters_if_told_so) {
    auto how = plan();
    how.failure_threshold = 6;
    how.quorum_of_reporters = 2;
    auto of_a = on("one", a, how);
    auto of_b = on("other", b, how);
    EXPECT_EQ(call(b, of_b, true), "ok");
    for (int i = 0; i < 100; ++i) EXPECT_EQ(call(a, of_a, false), "fail");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(call(b, of_b, false), "fail");
    flush(a, of_a);
    flush(b, of_b);
    EXPECT_EQ(look(a, of_a).state, circuit::closed) << "one bad machine, and two failures elsewhere";
    EXPECT_EQ(call(b, of_b, false), "fail");
    flush(b, of_b);
    EXPECT_TRUE(becomes(of_a, circuit::open)) << "now two have seen their share of six";
}

TEST_P(circuit_breaker_contract, takes_all_of_one_machine_for_one_reporter) {
    auto how = plan();
    how.failure_threshold = 0;
    how.failure_ratio = 0.5;
    how.minimum_calls = 4;
    how.quorum_of_reporters = 2;
    auto of_a = on("one", a, how);
    auto same = on("one", b, how);
    auto good = on("one", b, how);
    auto of_b = on("other", b, how);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(call(a, of_a, false), "fail");
    for (int i = 0; i < 20; ++i) EXPECT_EQ(call(b, same, false), "fail");
    flush(a, of_a);
    flush(b, same);
    EXPECT_EQ(look(a, of_a).state, circuit::closed) << "both are on the bad one";
    EXPECT_EQ(call(b, good, true), "ok");
    flush(b, good);  // does not speak for the others there
    for (int i = 0; i < 2; ++i) EXPECT_EQ(call(b, of_b, false), "fail");
    flush(b, of_b);
    EXPECT_TRUE(becomes(of_a, circuit::open));
}

TEST_P(circuit_breaker_contract, that_the_server_forgot_is_closed_and_goes_on) {
    circuit_breaker of_a{a, "name", plan()};
    circuit_breaker of_b{b, "name", plan()};
    EXPECT_EQ(call(b, of_b, true), "ok");
    open(a, of_a);
    EXPECT_TRUE(becomes(of_b, circuit::open));
    server.must({"DEL", "lockstep:{name}:breaker"});
    EXPECT_EQ(look(a, of_a).state, circuit::closed);
    EXPECT_EQ(look(b, of_b).state, circuit::closed);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(call(a, of_a, false), "fail");
    flush(a, of_a);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(call(b, of_b, false), "fail");
    EXPECT_TRUE(becomes(of_a, circuit::open)) << "no failure was lost by that";
}

TEST_P(circuit_breaker_contract, reads_an_old_state_again_when_it_is_used) {
    auto how = plan();
    how.max_age = 10ms;
    circuit_breaker of_a{a, "name", how};
    open(a, of_a);
    server.must({"DEL", "lockstep:{name}:breaker"});  // nobody is told of that
    EXPECT_TRUE(eventually([&] { return call(a, of_a, true) == "ok"; }));
}

TEST_P(circuit_breaker_contract, counts_calls_of_many_threads) {
    auto how = plan();
    how.failure_threshold = 1'000'000;
    circuit_breaker of_a{a, "name", how};
    EXPECT_EQ(call(a, of_a, true), "ok");
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            for (int n = 0; n < 2'000; ++n) {
                of_a.execute([] {});
                static_cast<void>(of_a.execute([]() -> int { throw broken{}; }, [] { return 0; }));
            }
        });
    }
    for (auto& one : threads) one.join();
    flush(a, of_a);
    long ok = 0, failed = 0;
    for (int i = 0; i < 10; ++i) {
        auto const text = server.must({"HGET", "lockstep:{name}:breaker", "c" + std::to_string(i)}).text;
        if (text.empty()) continue;
        ok += std::stol(text.substr(text.find(' ')));
        failed += std::stol(text.substr(text.rfind(' ')));
    }
    EXPECT_EQ(ok, 16'001);
    EXPECT_EQ(failed, 16'000);
}

TEST_P(circuit_breaker_contract, refuses_what_it_cannot_use) {
    auto const reason = [&](auto change, std::string_view name = "name") {
        auto how = plan();
        change(how);
        return ending_of([&] { circuit_breaker{a, name, how}; }).reason;
    };
    EXPECT_EQ(reason([](auto&) {}), std::nullopt);
    EXPECT_EQ(reason([](auto&) {}, ""), errc::invalid_argument);
    EXPECT_EQ(reason([](auto& how) { how.failure_threshold = 0; }), errc::invalid_argument) << "it would never open";
    EXPECT_EQ(reason([](auto& how) { how.failure_ratio = 1.5; }), errc::invalid_argument);
    EXPECT_EQ(reason([](auto& how) { how.sampling = 1ms; }), errc::invalid_argument);
    EXPECT_EQ(reason([](auto& how) { how.half_open_probes = 0; }), errc::invalid_argument);
    EXPECT_EQ(reason([](auto& how) { how.quorum_of_reporters = 0; }), errc::invalid_argument);
    EXPECT_EQ(reason([](auto& how) { how.max_age = std::chrono::milliseconds::max(); }), errc::invalid_argument);
    EXPECT_EQ(reason([](auto& how) { how.server_timeout = 24h + 1ms; }), errc::invalid_argument);
    EXPECT_EQ(reason([](auto& how) { how.max_age = how.server_timeout = 24h; }), std::nullopt);
    circuit_breaker of_a{a, "name", plan()};
    EXPECT_EQ(ending_of([&] { open(a, of_a, 0ms); }).reason, errc::invalid_argument);
    server.must({"SET", "lockstep:{name}:breaker", "mine"});
    EXPECT_EQ(ending_of([&] { close(a, of_a); }).reason, errc::server);
    EXPECT_EQ(server.must({"GET", "lockstep:{name}:breaker"}).text, "mine");
}

}  // namespace
}  // namespace lockstep::test
