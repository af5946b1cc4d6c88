// What a consumer promises, with both kinds of handler on every topology.
#include "consumer_support.hpp"
#include "support/failures.hpp"

#include <lockstep/idempotency.hpp>
#include <lockstep/later.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class consumer_contract : public contract {
protected:
    consumer begin(client& by, std::function<void(delivery const&)> work, consumer_options options = {}) {
        options.group = "g";
        return {by, "name", handler_of(GetParam().how, std::move(work)), options};
    }
    consumer begin(client& by, consumer_options options = {}) {
        return begin(by, [this](delivery const& what) { done.note(what.as<std::string>()); }, std::move(options));
    }
    void stop(client& by, consumer& which) {
        run(
            by, [&] { which.stop(); }, [&] { return which.async_stop(); });
    }
    void add(int from, int to) {
        std::vector<stream_fields> many;
        for (int i = from; i < to; ++i) many.push_back({{"data", std::to_string(i)}});
        of_a.add_all(many);
    }
    bool all_is_acknowledged() {
        return eventually([&] { return pending_at(server) == 0; });
    }

    ledger_of_work done;
    stream of_a{a, "name"};
};
LOCKSTEP_CONTRACT(consumer_contract);

TEST_P(consumer_contract, handles_each_entry_once_between_all_of_the_group) {
    add(0, 300);
    auto first = begin(a, {.concurrency = 3, .batch = 10});
    auto second = begin(b, {.concurrency = 3, .batch = 10});
    add(300, 600);
    ASSERT_TRUE(eventually([&] { return done.different() == 600; }));
    EXPECT_EQ(done.order().size(), 600U) << "none twice";
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_TRUE(eventually([&] { return first.statistics().acknowledged + second.statistics().acknowledged == 600; }));
    auto const backlog = run(a, [&] { return first.backlog(); }, [&] { return first.async_backlog(); });
    EXPECT_EQ(backlog.lag, 0);
    EXPECT_EQ(backlog.pending, 0);
    EXPECT_GT(first.statistics().per_second + second.statistics().per_second, 0);
}

TEST_P(consumer_contract, keeps_the_order_with_one_at_a_time) {
    auto one = begin(a);
    add(0, 200);
    ASSERT_TRUE(eventually([&] { return done.different() == 200; }));
    std::vector<std::string> expected;
    for (int i = 0; i < 200; ++i) expected.push_back(std::to_string(i));
    EXPECT_EQ(done.order(), expected);
}

TEST_P(consumer_contract, tries_again_what_failed) {
    std::atomic<int> tries{0};
    std::vector<std::int64_t> deliveries;
    auto one = begin(
        a,
        [&](delivery const& what) {
            deliveries.push_back(what.deliveries);
            if (++tries < 3) throw std::runtime_error{"not yet"};
            done.note(what.as<std::string>());
        },
        {.retry_min = 10ms});
    add(0, 1);
    ASSERT_TRUE(eventually([&] { return done.different() == 1; }));
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_THAT(deliveries, ElementsAre(1, 2, 3));
    EXPECT_TRUE(eventually([&] { return one.statistics().acknowledged == 1; }));
    EXPECT_EQ(one.statistics().failed, 2U);
    EXPECT_EQ(one.statistics().retried, 2U);
    EXPECT_EQ(of_a.dead_letters().length(), 0);
}

TEST_P(consumer_contract, moves_what_fails_too_often_to_the_dead_letters_with_the_reason) {
    std::atomic<int> tries{0};
    auto one = begin(
        a,
        [&](delivery const& what) {
            if (what.as<std::string>() == "1") {
                ++tries;
                throw std::runtime_error{"it is odd"};
            }
            done.note(what.as<std::string>());
        },
        {.name = "me", .max_deliveries = 3, .retry_min = 5ms});
    add(0, 3);
    ASSERT_TRUE(eventually([&] { return of_a.dead_letters().length() == 1 && done.different() == 2; }));
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(tries, 3);
    auto const dead = of_a.dead_letters().range().at(0);
    EXPECT_EQ(dead.as<std::string>(), "1");
    EXPECT_EQ(*dead.find("dead.reason"), "it is odd");
    EXPECT_EQ(*dead.find("dead.id"), of_a.range().at(1).id);
    EXPECT_EQ(*dead.find("dead.group"), "g");
    EXPECT_EQ(*dead.find("dead.consumer"), "me");
    EXPECT_EQ(*dead.find("dead.deliveries"), "3");
    EXPECT_TRUE(eventually([&] { return one.statistics().dead == 1; }));
}

TEST_P(consumer_contract, moves_what_is_rejected_to_the_dead_letters_at_once) {
    std::atomic<int> tries{0};
    auto one = begin(a, [&](delivery const&) {
        ++tries;
        throw reject{"never"};
    });
    add(0, 1);
    ASSERT_TRUE(eventually([&] { return of_a.dead_letters().length() == 1; }));
    EXPECT_EQ(*of_a.dead_letters().range().at(0).find("dead.reason"), "never");
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(tries, 1);
}

TEST_P(consumer_contract, waits_for_somebody_else_who_does_it_and_never_gives_that_up) {
    server.must({"SET", "lockstep:{name}:idempotency:0", "by one who died", "PX", "60000"});
    idempotency once{a, "name"};
    std::atomic<int> tries{0};
    auto const as_function = [&](delivery const& what) {
        ++tries;
        auto const number = what.as<std::string>();
        once.run(number, [&] { done.note(number); });
    };
    auto const as_task = [&](delivery const& what) -> task<void> {
        ++tries;
        auto const number = what.as<std::string>();
        auto running = once.async_run(number, [this, number]() -> task<void> {
            done.note(number);
            co_return;
        });
        co_await std::move(running);
    };
    delivery_handler work{as_function};
    if (GetParam().how == form::coroutine) work = delivery_handler{as_task};
    consumer one{a, "name", std::move(work), {.group = "g", .max_deliveries = 2, .retry_min = 2ms, .retry_max = 20ms}};
    add(0, 2);
    ASSERT_TRUE(eventually([&] { return tries >= 8; }));
    EXPECT_EQ(of_a.dead_letters().length(), 0);
    EXPECT_EQ(one.statistics().failed, 0U);
    EXPECT_EQ(of_a.pending_entries("g", 10).at(0).deliveries, 1);
    server.must({"DEL", "lockstep:{name}:idempotency:0"});  // as when the lease is over
    ASSERT_TRUE(eventually([&] { return done.times("0") == 1; }));
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(done.times("1"), 1);
}

TEST_P(consumer_contract, delivers_again_what_is_postponed_and_counts_neither_a_failure_nor_a_delivery) {
    std::vector<std::int64_t> deliveries;
    std::vector<std::int64_t> times;
    auto const work = [&](delivery const& what) {
        deliveries.push_back(what.deliveries);
        times.push_back(now_ms());
        if (deliveries.size() < 4) throw later{200ms};
        done.note(what.as<std::string>());
    };
    auto one = begin(a, work, {.idle_limit = 1h, .max_deliveries = 2});
    add(0, 1);
    ASSERT_TRUE(eventually([&] { return done.times("0") == 1; }));
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_THAT(deliveries, ElementsAre(1, 1, 1, 1));
    for (std::size_t i = 1; i < times.size(); ++i) EXPECT_GE(times[i] - times[i - 1], 190);
    EXPECT_EQ(one.statistics().failed, 0U);
    EXPECT_EQ(one.statistics().postponed, 3U);
    EXPECT_EQ(of_a.dead_letters().length(), 0);
}

TEST_P(consumer_contract, leaves_to_others_what_it_postponed_when_it_is_gone) {
    {
        auto one = begin(a, [](delivery const&) { throw later{300ms}; }, {.idle_limit = 1h});
        add(0, 1);
        ASSERT_TRUE(eventually([&] { return one.statistics().returned == 1; }));
        stop(a, one);
    }
    auto other = begin(b, {.idle_limit = 1h, .max_deliveries = 1});
    ASSERT_TRUE(eventually([&] { return done.times("0") == 1; })) << "it looks when it begins, and then when something is due";
    EXPECT_TRUE(all_is_acknowledged());
}

TEST_P(consumer_contract, gives_back_at_once_what_it_can_not_do_within_the_limit_of_a_stop) {
    std::atomic<bool> gone{false};
    std::atomic<int> begun_here{0};
    std::atomic<bool> is_asked{false};
    auto const halting = [&](delivery const& what) {
        ++begun_here;
        EXPECT_TRUE(eventually([&] { return what.stop.stop_requested(); }));
        is_asked = true;
        EXPECT_TRUE(eventually([&] { return gone.load(); }, 20s));
        throw std::runtime_error{"too late"};
    };
    // On threads in both forms: a handler that blocks there.
    consumer one{a, "name", delivery_handler{halting}, {.group = "g", .concurrency = 2, .idle_limit = 1h}};
    ASSERT_TRUE(eventually([&] { return blocked_at(server) == 1; }));
    add(0, 5);
    ASSERT_TRUE(eventually([&] { return begun_here == 2; }));
    auto other = begin(b, [this](delivery const& what) {
        EXPECT_EQ(what.deliveries, 1);
        done.note(what.as<std::string>());
    }, {.idle_limit = 1h, .max_deliveries = 1});
    auto const in_time = run(a, [&] { return one.stop(100ms); }, [&] { return one.async_stop(100ms); });
    EXPECT_FALSE(in_time);
    EXPECT_TRUE(is_asked);
    EXPECT_TRUE(eventually([&] { return done.different() == 5; })) << done.different();
    EXPECT_TRUE(all_is_acknowledged());
    gone = true;
    one.stop();
    EXPECT_EQ(of_a.dead_letters().length(), 0);
    EXPECT_EQ(done.order().size(), 5U);
}

TEST_P(consumer_contract, stops_within_a_limit_when_its_handlers_end_as_they_are_asked_to) {
    std::atomic<int> begun_here{0};
    auto const obedient = [&](delivery const& what) {
        ++begun_here;
        EXPECT_TRUE(eventually([&] { return what.stop.stop_requested(); }));
    };
    consumer one{a, "name", delivery_handler{obedient}, {.group = "g"}};
    add(0, 1);
    ASSERT_TRUE(eventually([&] { return begun_here == 1; }));
    EXPECT_TRUE(run(a, [&] { return one.stop(20s); }, [&] { return one.async_stop(20s); }));
    EXPECT_EQ(pending_at(server), 0);
    EXPECT_EQ(consumers_at(server), 0U);
}

TEST_P(consumer_contract, stops_when_all_that_it_has_is_done_and_leaves_the_group) {
    auto one = begin(a);
    add(0, 50);
    ASSERT_TRUE(eventually([&] { return done.different() >= 1; }));
    stop(a, one);
    EXPECT_EQ(pending_at(server), 0);
    EXPECT_EQ(consumers_at(server), 0U);
    auto const before = done.order().size();
    add(50, 51);
    one.stop();  // again, which changes nothing
    EXPECT_EQ(done.order().size(), before);
    EXPECT_EQ(pending_at(server), 0) << "it does not read any more";
}

TEST_P(consumer_contract, stops_at_once_while_it_waits) {
    auto one = begin(a);
    ASSERT_TRUE(eventually([&] { return blocked_at(server) == 1; }));
    auto const begun_at = now_ms();
    stop(a, one);
    EXPECT_LT(now_ms() - begun_at, 10'000) << "and not when its read is over";
    EXPECT_EQ(consumers_at(server), 0U);
}

TEST_P(consumer_contract, takes_over_what_a_dead_consumer_had) {
    of_a.create_group("g");
    add(0, 250);
    EXPECT_EQ(of_a.read_group("g", "dead", 250).size(), 250U);
    auto one = begin(b, {.concurrency = 10, .idle_limit = 200ms});
    ASSERT_TRUE(eventually([&] { return done.different() == 250; }, 30s));
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_GE(one.statistics().recovered, 250U);
}

TEST_P(consumer_contract, gives_up_what_nobody_ever_acknowledged) {
    of_a.create_group("g");
    add(0, 1);
    auto const id = of_a.read_group("g", "dies").at(0).id;
    for (int i = 0; i < 4; ++i) of_a.claim("g", "dies", 0ms, {id});
    auto one = begin(b, {.idle_limit = 200ms, .max_deliveries = 5});
    ASSERT_TRUE(eventually([&] { return of_a.dead_letters().length() == 1; }));
    EXPECT_THAT(*of_a.dead_letters().range().at(0).find("dead.reason"), HasSubstr("never acknowledged"));
    EXPECT_EQ(done.different(), 0U);
    EXPECT_TRUE(all_is_acknowledged());
}

TEST_P(consumer_contract, goes_on_with_what_an_earlier_one_of_its_name_had) {
    of_a.create_group("g");
    add(0, 3);
    EXPECT_EQ(of_a.read_group("g", "fixed").size(), 3U);
    auto one = begin(b, {.name = "fixed", .idle_limit = 1h});
    ASSERT_TRUE(eventually([&] { return done.different() == 3; }));
    EXPECT_TRUE(all_is_acknowledged());
}

TEST_P(consumer_contract, goes_on_when_its_group_is_deleted) {
    auto one = begin(a);
    add(0, 5);
    ASSERT_TRUE(eventually([&] { return done.different() == 5; }));
    ASSERT_TRUE(eventually([&] { return one.statistics().acknowledged == 5; }));
    of_a.destroy_group("g");
    add(5, 10);
    EXPECT_TRUE(eventually([&] { return done.different() == 10; }));
    EXPECT_TRUE(all_is_acknowledged());
}

TEST_P(consumer_contract, goes_on_when_all_data_is_deleted) {
    auto one = begin(a);
    add(0, 5);
    ASSERT_TRUE(eventually([&] { return done.different() == 5; }));
    server.must({"FLUSHALL"});
    add(5, 10);
    EXPECT_TRUE(eventually([&] { return done.different() == 10; }));
    EXPECT_TRUE(all_is_acknowledged());
}

TEST_P(consumer_contract, refuses_what_makes_no_sense) {
    auto const refused = [&](consumer_options const& options) {
        return failure<invalid_argument_error>([&] { consumer(a, "name", [](delivery const&) {}, options); });
    };
    EXPECT_THAT(refused({}), HasSubstr("group"));
    EXPECT_THAT(refused({.group = "g", .start = "now"}), HasSubstr("start"));
    EXPECT_THAT(refused({.group = "g", .concurrency = 0}), HasSubstr("concurrency"));
    EXPECT_THAT(refused({.group = "g", .batch = 0}), HasSubstr("batch"));
    EXPECT_THAT(refused({.group = "g", .concurrency = 5, .max_pending = 4}), HasSubstr("max_pending"));
    EXPECT_THAT(refused({.group = "g", .idle_limit = 1ms}), HasSubstr("idle_limit"));
    EXPECT_THAT(refused({.group = "g", .retry_min = 10s, .retry_max = 1s}), HasSubstr("retry_min"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { consumer(a, "", [](delivery const&) {}, {.group = "g"}); }), HasSubstr("name"));
    EXPECT_EQ(server.must({"EXISTS", stream_key}).integer, 0);
}

/// A handler that waits until it is let go.
class turnstile {
public:
    void pass() {
        std::unique_lock guard{mutex_};
        ++inside_;
        changed_.wait(guard, [this] { return open_; });
    }
    void open() {
        std::lock_guard const guard{mutex_};
        open_ = true;
        changed_.notify_all();
    }
    [[nodiscard]] int inside() const {
        std::lock_guard const guard{mutex_};
        return inside_;
    }

private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
    int inside_ = 0;
};

TEST(consumer_threads, leaves_to_others_what_it_can_not_do_soon) {
    redis_server server;
    client a{server.url()};
    client b{server.url()};
    stream of{a, "name"};
    turnstile gate;
    ledger_of_work done;
    consumer slow{a, "name", [&](delivery const&) { gate.pass(); }, {.group = "g"}};
    of.add_value(std::string{"0"});
    ASSERT_TRUE(eventually([&] { return gate.inside() == 1; }));
    for (int i = 1; i <= 20; ++i) of.add_value(std::to_string(i));
    consumer quick{b, "name", [&](delivery const& what) { done.note(what.as<std::string>()); }, {.group = "g"}};
    EXPECT_TRUE(eventually([&] { return done.different() >= 19; })) << "one may wait behind the slow one";
    gate.open();
}

TEST(consumer_threads, asks_handlers_to_end_when_stopping_takes_too_long) {
    redis_server server;
    client by{server.url()};
    stream of{by, "name"};
    std::atomic<int> begun_here{0};
    consumer one{by, "name",
                 [&](delivery const& what) {
                     ++begun_here;
                     EXPECT_TRUE(eventually([&] { return what.stop.stop_requested(); }));
                 },
                 {.group = "g", .stop_limit = 100ms}};
    of.add_value(1);
    of.add_value(2);
    of.add_value(3);
    ASSERT_TRUE(eventually([&] { return begun_here == 1; }));
    one.stop();
    EXPECT_EQ(begun_here, 1);
    EXPECT_LE(pending_at(server), 2) << "the first was done; the others stay for others";
}

TEST(consumer_threads, an_idle_one_costs_the_server_nothing) {
    redis_server server;
    client by{server.url()};
    consumer one{by, "name", [](delivery const&) {}, {.group = "g", .idle_limit = 1h}};
    ASSERT_TRUE(eventually([&] { return blocked_at(server) == 1; }));
    ASSERT_TRUE(eventually([&] { return calls_of(server, "zadd") == 1; })) << "its stream is listed, once";
    ASSERT_TRUE(eventually([&] { return calls_of(server, "hrandfield") == 1; })) << "it looked once for what others left";
    ASSERT_TRUE(eventually([&] { return calls_of(server, "xinfo|consumers") == 1; })) << "and for what is to be forgotten";
    auto const scripts = calls_of(server, "evalsha") + calls_of(server, "eval");
    auto const reads = calls_of(server, "xreadgroup");
    auto const until = now_ms() + 2'000;
    EXPECT_TRUE(eventually([&] { return now_ms() > until; }));
    EXPECT_EQ(calls_of(server, "evalsha") + calls_of(server, "eval"), scripts);
    EXPECT_EQ(calls_of(server, "xreadgroup"), reads);
}

TEST(consumer_threads, looks_now_and_then_however_often_it_is_told_that_something_was_given_back) {
    redis_server server;
    client by{server.url()};
    consumer one{by, "name", [](delivery const&) {}, {.group = "g", .idle_limit = 1h}};
    auto const looks = [&] { return calls_of(server, "hrandfield"); };
    ASSERT_TRUE(eventually([&] { return blocked_at(server) == 1 && looks() > 0; }));
    auto const before = looks();
    auto const begun_at = now_ms();
    EXPECT_TRUE(eventually([&] {
        server.must({"PUBLISH", stream_key + ":returned:g", "0"});
        return now_ms() > begun_at + 1'000;
    }));
    EXPECT_GT(looks() - before, 3);
    EXPECT_LE(looks() - before, (now_ms() - begun_at) / 30 + 2);
}

TEST(consumer_threads, stops_within_its_limit_although_the_server_is_gone) {
    redis_server server;
    client by{server.url()};
    std::atomic<bool> inside{false};
    std::atomic<bool> open{false};
    consumer one{by, "name",
                 [&](delivery const&) {
                     inside = true;
                     EXPECT_TRUE(eventually([&] { return open.load(); }));
                 },
                 {.group = "g", .stop_limit = 200ms}};
    stream{by, "name"}.add_value(1);
    ASSERT_TRUE(eventually([&] { return inside.load(); }));
    server.kill9();
    open = true;
    auto const begun_at = now_ms();
    one.stop();
    EXPECT_LT(now_ms() - begun_at, 8'000) << "it does not wait for the acknowledgement's whole time";
}

TEST(consumer_threads, may_outlive_its_client) {
    redis_server server;
    ledger_of_work done;
    auto by = std::make_unique<client>(server.url());
    consumer one{*by, "name", [&](delivery const& what) { done.note(what.id); }, {.group = "g"}};
    stream{*by, "name"}.add_value(1);
    ASSERT_TRUE(eventually([&] { return done.different() == 1; }));
    by.reset();
}

TEST(consumer_threads, may_be_stopped_by_several_at_once) {
    redis_server server;
    client by{server.url()};
    stream of{by, "name"};
    for (bool const on_threads : {false, true}) {
        turnstile gate;
        consumer one{by, "name", [&](delivery const&) { gate.pass(); }, {.group = "g", .stop_limit = 1h}};
        of.add_value(1);
        ASSERT_TRUE(eventually([&] { return gate.inside() == 1; }));
        auto const begun_at = now_ms();
        if (on_threads) {
            std::jthread const first{[&] { one.stop(); }};
            std::jthread const second{[&] { one.stop(); }};
            gate.open();
        } else {
            begun const first{as_true(one.async_stop())};
            begun const second{as_true(one.async_stop())};
            gate.open();
            EXPECT_TRUE(first.get(20s));
            EXPECT_TRUE(second.get(20s));
        }
        EXPECT_LT(now_ms() - begun_at, 25'000);
    }
}

/// co_await: goes on on a thread of its own, when `until` has returned.
struct elsewhere {
    std::function<void()> until;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> awaiting) const {
        std::thread{[until = until, awaiting] {
            until();
            awaiting.resume();
        }}.detach();
    }
    void await_resume() const noexcept {}
};

TEST(consumer_threads, coroutines_begin_on_the_io_thread_wherever_the_last_one_ended) {
    redis_server server;
    client by{server.url()};
    std::atomic<int> count{0};
    std::atomic<int> at_home{0};
    auto const work = [&](delivery const&) -> task<void> {
        if (detail::on_io_thread()) ++at_home;
        elsewhere going{[] {}};
        co_await going;
        ++count;
    };
    consumer one{by, "name", work, {.group = "g"}};
    std::vector<stream_fields> const many(20, stream_fields{{"data", "x"}});
    stream{by, "name"}.add_all(many);
    ASSERT_TRUE(eventually([&] { return count == 20; }));
    EXPECT_EQ(at_home, 20);
    one.stop();
}

TEST(consumer_threads, waits_for_its_coroutines_though_its_client_was_closed_before) {
    redis_server server;
    auto by = std::make_unique<client>(server.url());
    std::atomic<bool> inside{false};
    std::atomic<bool> over{false};
    std::atomic<bool> gone{false};
    auto const work = [&](delivery const& what) -> task<void> {
        auto const wait_for_the_end = [stop = what.stop, &gone] {
            EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
            EXPECT_FALSE(eventually([&] { return gone.load(); }, 50ms)) << "the consumer does not wait for it";
        };
        elsewhere going{wait_for_the_end};
        inside = true;
        co_await going;
        over = true;
    };
    {
        consumer const one{*by, "name", work, {.group = "g"}};
        stream{*by, "name"}.add_value(1);
        ASSERT_TRUE(eventually([&] { return inside.load(); }));
        by.reset();
    }
    gone = true;
    EXPECT_TRUE(over);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need that memory themselves
TEST(consumer_threads, leaves_no_thread_behind_where_there_can_not_be_so_many) {
    redis_server server;
    client by{server.url()};
    by.command("PING");
    auto const threads = [] { return std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, std::filesystem::directory_iterator{}); };
    auto const before = threads();
    constexpr std::size_t gigabyte = 1 << 30;
    pthread_attr_t usual;
    pthread_attr_t huge;
    ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
    ASSERT_EQ(pthread_attr_init(&huge), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&huge, gigabyte), 0);
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &limit), 0);
    std::size_t pages = 0;
    std::ifstream{"/proc/self/statm"} >> pages;
    rlimit const low{pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + 5 * gigabyte / 2, limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &low), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    EXPECT_THROW(consumer(by, "name", [](delivery const&) {}, {.group = "g", .concurrency = 4}), std::system_error);
    EXPECT_EQ(pthread_setattr_default_np(&usual), 0);
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
    EXPECT_TRUE(eventually([&] { return threads() == before; }));
}
#endif

TEST(consumer_threads, begins_although_the_server_is_not_there_yet) {
    redis_server server;
    auto const url = server.url();
    server.kill9();
    client by{url};
    ledger_of_work done;
    consumer one{by, "name", [&](delivery const& what) { done.note(what.as<std::string>()); }, {.group = "g"}};
    server.restart();
    stream{by, "name"}.add_value(std::string{"x"});
    EXPECT_TRUE(eventually([&] { return done.times("x") == 1; }));
}

}  // namespace
}  // namespace lockstep::test
