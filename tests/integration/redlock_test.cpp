// What redlock promises, in both forms, over one, three and five servers.
#include "redlock_support.hpp"

#include "scripts/all.hpp"
#include "support/certificates.hpp"
#include "support/contract.hpp"
#include "support/monitor.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

namespace lockstep::test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct redlock_setting {
    std::size_t nodes;
    form how;
};

class redlock_contract : public testing::TestWithParam<redlock_setting> {
protected:
    template <class F, class G>
    auto run(F call, G async_call) {
        bool const blocks = GetParam().how == form::blocking;
        if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
            if (blocks) return call();
            coroutine::await(io, [&] { return as_true(async_call()); });
        } else {
            return blocks ? call() : coroutine::await(io, std::move(async_call));
        }
    }
    redlock_lease acquire(redlock& of) {
        return run([&] { return of.acquire(); }, [&] { return of.async_acquire(); });
    }
    std::optional<redlock_lease> try_acquire(redlock& of) {
        return run([&] { return of.try_acquire(); }, [&] { return of.async_try_acquire(); });
    }
    std::optional<redlock_lease> try_acquire_for(redlock& of, std::chrono::milliseconds time) {
        return run([&] { return of.try_acquire_for(time); }, [&] { return of.async_try_acquire_for(time); });
    }
    void release(redlock_lease& held) {
        run([&] { held.release(); }, [&] { return held.async_release(); });
    }
    void extend(redlock_lease& held, std::chrono::milliseconds length) {
        run([&] { held.extend(length); }, [&] { return held.async_extend(length); });
    }

    std::size_t all() const { return GetParam().nodes; }
    std::size_t majority() const { return all() / 2 + 1; }

    redlock_contract() {
        connect(a);
        connect(b);
    }

    server_set servers{GetParam().nodes};
    client io{servers[0].url()};  // somebody else's I/O thread, on which coroutines run here
    redlock_nodes a{servers.urls()};
    redlock_nodes b{servers.urls()};
    redlock of_a{a, "name"};
    redlock of_b{b, "name"};
};

INSTANTIATE_TEST_SUITE_P(nodes, redlock_contract,
                         testing::Values(redlock_setting{1, form::blocking}, redlock_setting{1, form::coroutine},
                                         redlock_setting{3, form::blocking}, redlock_setting{3, form::coroutine},
                                         redlock_setting{5, form::blocking}, redlock_setting{5, form::coroutine}),
                         [](auto const& of) {
                             return std::to_string(of.param.nodes) + (of.param.how == form::blocking ? "_blocking" : "_coroutine");
                         });

TEST_P(redlock_contract, excludes_others_until_it_is_released) {
    auto held = acquire(of_a);
    EXPECT_TRUE(held.valid());
    EXPECT_FALSE(held.stop_token().stop_requested());
    EXPECT_FALSE(try_acquire(of_b));
    EXPECT_FALSE(try_acquire(of_a));
    EXPECT_FALSE(try_acquire_for(of_b, 30ms));
    release(held);
    EXPECT_FALSE(held);
    EXPECT_TRUE(try_acquire(of_b));
}

TEST_P(redlock_contract, puts_the_token_under_the_name_itself_with_the_ttl) {
    redlock brief{a, "name", {.ttl = 20s}};
    auto held = acquire(brief);
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == all(); }));
    EXPECT_GE(held.token().size(), 22U);
    for (std::size_t i = 0; i != all(); ++i) {
        auto const left = servers[i].must({"PTTL", "name"}).integer;
        EXPECT_GT(left, 0);
        EXPECT_LE(left, 20'000);
    }
    EXPECT_LE(held.remaining(), 18s - 202ms) << "drift and a tenth are taken off";
    release(held);
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; }));
}

TEST_P(redlock_contract, is_released_by_its_destructor) {
    {
        auto const held = acquire(of_a);
        EXPECT_FALSE(try_acquire(of_b));
    }
    EXPECT_TRUE(try_acquire_for(of_b, 10s));
}

TEST_P(redlock_contract, gives_another_token_to_each_hold) {
    std::set<std::string> tokens;
    for (int i = 0; i != 10; ++i) {
        auto held = acquire(of_a);
        EXPECT_TRUE(tokens.insert(held.token()).second);
        release(held);
    }
}

TEST_P(redlock_contract, takes_several_resources_all_or_none) {
    redlock both{a, {"first", "second"}};
    redlock second{b, "second"};
    redlock first{b, "first"};
    auto other = acquire(second);
    EXPECT_FALSE(try_acquire(both));
    EXPECT_TRUE(eventually([&] { return servers.that_have("first") == 0; })) << "half of it is taken";
    release(other);
    EXPECT_TRUE(eventually([&] { return servers.that_have("second") == 0; })) << "also where it comes late";
    auto held = try_acquire_for(both, 10s);
    ASSERT_TRUE(held);
    EXPECT_TRUE(eventually([&] { return servers.that_have("first", held->token()) == all(); }));
    EXPECT_TRUE(eventually([&] { return servers.that_have("second", held->token()) == all(); }));
    EXPECT_FALSE(try_acquire(first));
    EXPECT_FALSE(try_acquire(second));
    release(*held);
    EXPECT_TRUE(eventually([&] { return servers.that_have("first") + servers.that_have("second") == 0; }));
}

TEST_P(redlock_contract, is_extended_for_as_long_as_it_is_held) {
    redlock brief{a, "name", {.ttl = 2s}};
    auto held = acquire(brief);
    EXPECT_FALSE(try_acquire_for(of_b, 4s)) << "twice its ttl";
    EXPECT_TRUE(held.valid());
    EXPECT_FALSE(held.stop_token().stop_requested());
    release(held);
}

TEST_P(redlock_contract, ends_before_others_can_have_it_unless_it_is_extended) {
    redlock brief{a, "name", {.ttl = 2s, .renew = false}};
    auto const begin = now_ms();
    auto held = acquire(brief);
    std::atomic<std::int64_t> told = 0;
    std::stop_callback const hears{held.stop_token(), [&] { told = now_ms(); }};
    auto next = acquire(of_b);
    EXPECT_FALSE(held.valid()) << "two have it";
    auto const taken = now_ms();
    EXPECT_GE(taken - begin, 1'998) << "the rest of its ttl is there to stop in";
    EXPECT_TRUE(eventually([&] { return told != 0; }));
    EXPECT_LE(told, taken) << "it was told when somebody else had it";
    EXPECT_EQ(ending_of([&] { extend(held, 1s); }).reason, errc::lease_lost);
    EXPECT_EQ(ending_of([&] { release(held); }).reason, errc::lease_lost);
    EXPECT_TRUE(next.valid());
    EXPECT_GE(servers.that_have("name", next.token()), majority()) << "it has released another's";
}

TEST_P(redlock_contract, can_be_extended_by_hand) {
    redlock brief{a, "name", {.ttl = 5s, .renew = false}};
    auto held = acquire(brief);
    extend(held, 20s);
    EXPECT_GT(held.remaining(), 10s);
    EXPECT_TRUE(eventually([&] {
        std::size_t longer = 0;
        for (std::size_t i = 0; i != all(); ++i) longer += servers[i].must({"PTTL", "name"}).integer > 10'000 ? 1 : 0;
        return longer == all();
    }));
    EXPECT_EQ(ending_of([&] { extend(held, 1ms); }).reason, errc::invalid_argument);
    release(held);
}

TEST_P(redlock_contract, wakes_those_who_wait) {
    for (auto const* const one : {&scripts::redlock_acquire, &scripts::redlock_release, &scripts::compare_and_delete}) {
        servers[0].must({"SCRIPT", "LOAD", std::string{one->text}});
    }
    auto held = acquire(of_a);
    monitor watch{servers[0]};
    auto const tries = [&] { return watch.times_of(scripts::redlock_acquire.sha1, "name"); };
    begun<redlock_lease> waits{of_b.async_acquire()};
    EXPECT_TRUE(eventually([&] { return !tries().empty(); }));
    auto const token = held.token();
    release(held);
    auto next = waits.get();
    EXPECT_TRUE(next.valid());
    std::vector<std::chrono::microseconds> released;
    EXPECT_TRUE(eventually([&] {
        released = watch.times_of(scripts::redlock_release.sha1, token);
        if (released.empty()) released = watch.times_of(scripts::compare_and_delete.sha1, token);
        return !released.empty();
    }));
    auto const all = tries();
    auto const after = std::find_if(all.begin(), all.end(), [&](auto time) { return time > released.front(); });
    // Another majority may have been free earlier, and this node's answer not have been needed.
    EXPECT_TRUE(after == all.end() || *after - released.front() < 800ms) << "it was not woken, and looked again by itself";
    release(next);
}

TEST_P(redlock_contract, keeps_what_it_was_extended_to_although_it_renews) {
    servers[0].must({"SCRIPT", "LOAD", std::string{scripts::compare_and_extend.text}});
    redlock brief{a, "name", {.ttl = 3s, .renew_every = 50ms}};
    auto held = acquire(brief);
    extend(held, 1h);
    monitor watch{servers[0]};
    EXPECT_TRUE(eventually([&] { return watch.times_of(scripts::compare_and_extend.sha1, "name").size() >= 4; })) << "nobody renews it";
    EXPECT_GT(held.remaining(), 50min);
    EXPECT_GT(servers[0].must({"PTTL", "name"}).integer, 50 * 60'000);
    release(held);
}

TEST_P(redlock_contract, serves_many_who_wait_in_two_processes) {
    constexpr int each = 8;
    int inside = 0;
    int most = 0;
    int holds = 0;
    std::mutex guard;
    std::vector<std::thread> threads;
    for (int i = 0; i != each; ++i) {
        for (auto* const one : {&of_a, &of_b}) {
            threads.emplace_back([&, one] {
                for (int k = 0; k != 5; ++k) {
                    auto held = one->acquire();
                    {
                        std::lock_guard const lock{guard};
                        most = std::max(most, ++inside);
                        ++holds;
                    }
                    std::this_thread::yield();
                    {
                        std::lock_guard const lock{guard};
                        --inside;
                    }
                    held.release();
                }
            });
        }
    }
    for (auto& one : threads) one.join();
    EXPECT_EQ(most, 1);
    EXPECT_EQ(holds, 2 * each * 5);
}

TEST_P(redlock_contract, gives_up_when_it_was_told_to) {
    auto held = acquire(of_a);
    redlock limited{b, "name", {.wait_limit = 50ms}};
    EXPECT_EQ(ending_of([&] { static_cast<void>(acquire(limited)); }).reason, errc::timeout);
    redlock twice{b, "name", {.attempts = 2, .retry_delay = 5ms, .retry_jitter = 0ms}};
    auto const end = ending_of([&] { static_cast<void>(acquire(twice)); });
    EXPECT_EQ(end.reason, errc::timeout);
    EXPECT_THAT(end.text, HasSubstr("2 attempts"));
    auto const begin = now_ms();
    EXPECT_FALSE(try_acquire_for(twice, 300ms));
    EXPECT_GE(now_ms() - begin, 300) << "attempts are those of acquire and lock";
    std::stop_source stop;
    begun<redlock_lease> waits{with_stop_token(of_b.async_acquire(), stop.get_token())};
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { static_cast<void>(waits.get()); }).reason, errc::cancelled);
    release(held);
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; })) << "something was left behind";
    EXPECT_TRUE(try_acquire(of_b));
}

TEST_P(redlock_contract, tries_as_often_as_it_was_told_to) {
    servers[0].must({"SCRIPT", "LOAD", std::string{scripts::redlock_acquire.text}});
    auto held = acquire(of_a);
    for (bool const fenced : {false, true}) {
        for (unsigned const attempts : {1U, 2U, 3U}) {
            monitor watch{servers[0]};
            redlock few{b, "name", {.attempts = attempts, .retry_delay = 5ms, .retry_jitter = 0ms, .fence = fenced}};
            EXPECT_EQ(ending_of([&] { static_cast<void>(acquire(few)); }).reason, errc::timeout);
            auto const tries = [&] { return watch.times_of("\"SET\"", "name").size() + watch.times_of(scripts::redlock_acquire.sha1, "name").size(); };
            EXPECT_TRUE(eventually([&] { return tries() == attempts; })) << tries() << " of " << attempts;
        }
    }
    release(held);
}

TEST_P(redlock_contract, gives_fences_that_grow_if_asked_to) {
    redlock fenced_a{a, "name", {.fence = true}};
    redlock fenced_b{b, "name", {.fence = true}};
    std::uint64_t last = 0;
    for (int i = 0; i != 5; ++i) {
        for (auto* const one : {&fenced_a, &fenced_b}) {
            auto held = acquire(*one);
            EXPECT_GT(held.fence(), last);
            last = held.fence();
            EXPECT_GE(servers.that_have("lockstep:{name}:redlock-fence", std::to_string(last)), majority()) << "nobody knows it";
            release(held);
        }
    }
    auto plain = acquire(of_a);
    EXPECT_THAT(ending_of([&] { static_cast<void>(plain.fence()); }).text, HasSubstr(".fence = true"));
    for (std::size_t i = 0; i != all(); ++i) {
        // One that was late each time has none.
        EXPECT_LT(servers[i].must({"TTL", "lockstep:{name}:redlock-fence"}).integer, 0) << "a fence must not be forgotten";
    }
}

TEST_P(redlock_contract, keeps_the_order_of_fences_when_the_clocks_of_the_nodes_do_not) {
    redlock fenced{a, "name", {.fence = true}};
    auto first = acquire(fenced);
    auto const before = first.fence();
    release(first);
    auto const later = std::to_string(before + 1'000'000'000'000ULL);  // a node that ran ahead gave this one
    for (std::size_t i = 0; i != majority(); ++i) servers[i].must({"SET", "lockstep:{name}:redlock-fence", later});
    auto second = acquire(fenced);
    EXPECT_GT(second.fence(), before + 1'000'000'000'000ULL);
}

TEST_P(redlock_contract, is_a_lockable_for_threads) {
    {
        std::scoped_lock const guard{of_a};
        EXPECT_FALSE(of_a.stop_token().stop_requested());
        EXPECT_FALSE(of_b.try_lock());
        EXPECT_FALSE(of_b.try_lock_for(10ms));
        EXPECT_EQ(ending_of([&] { of_a.lock(); }).reason, errc::would_deadlock);
        std::thread{[&] { of_a.unlock(); }}.join();  // not its own
        EXPECT_FALSE(of_b.try_lock_until(std::chrono::system_clock::now() + 10ms));
    }
    EXPECT_EQ(ending_of([&] { static_cast<void>(of_a.stop_token()); }).reason, errc::not_held);
    std::unique_lock guard{of_b, std::defer_lock};
    EXPECT_TRUE(guard.try_lock_for(10s));
}

TEST_P(redlock_contract, refuses_to_block_the_io_thread) {
    begun on_io{in_turn_of(io, [&] { return ending_of([&] { of_a.lock(); }).reason; })};
    EXPECT_EQ(on_io.get(), errc::would_deadlock);
}

TEST_P(redlock_contract, outlives_its_objects) {
    std::optional<redlock_lease> held;
    {
        redlock_nodes nodes{servers.urls()};
        redlock brief{nodes, "brief", {.ttl = 2s}};
        held = brief.acquire();
    }
    redlock other{a, "brief"};
    EXPECT_FALSE(try_acquire_for(other, 3s)) << "nobody extends it";
    EXPECT_TRUE(held->valid());
    held.reset();
    EXPECT_EQ(servers.that_have("brief"), 0U) << "the last of them waits for what is under way";
}

TEST(redlock_nodes, may_differ_in_how_they_are_reached) {
    certificates const papers;
    redis_server plain{{.tcp = true, .password = "secret"}};
    redis_server by_tls{{.tls = papers.server()}};
    redis_server with_users{{.users = {"bob on >hush ~name &* +@all"}}};
    std::vector<client_options> options(3);
    options[0].url = plain.url();
    options[0].password = "secret";
    options[1].url = by_tls.url();
    options[1].tls.ca_file = papers.ca();
    options[2].url = with_users.url("bob", "hush");
    redlock_nodes const nodes{std::span<client_options const>{options}};
    EXPECT_EQ(nodes.size(), 3U);
    EXPECT_EQ(nodes.quorum(), 2U);
    EXPECT_THAT(nodes.description(), Not(HasSubstr("hush")));
    redlock lock{nodes, "name", {.wait_limit = 20s}};
    auto held = lock.acquire();
    EXPECT_TRUE(eventually([&] {
        int have = 0;
        for (auto* const one : {&plain, &by_tls, &with_users}) have += one->must({"GET", "name"}).text == held.token() ? 1 : 0;
        return have == 3;
    }));
    held.release();
}

TEST(redlock_nodes, refuses_what_it_can_not_use) {
    EXPECT_EQ(ending_of([] { redlock_nodes{std::span<client_options const>{}}; }).reason, errc::invalid_argument);
    redlock_nodes const nodes{"redis://localhost:1"};
    auto const refused = [&](auto const& what, redlock_options const& options) {
        return ending_of([&] { redlock{nodes, what, options}; }).reason == errc::invalid_argument;
    };
    auto const twice = ending_of([] { redlock_nodes{"redis://localhost:1", "redis://localhost:2", "redis://user:@localhost:1/3"}; });
    EXPECT_EQ(twice.reason, errc::invalid_argument);
    EXPECT_THAT(twice.text, HasSubstr("localhost:1 is given twice"));
    EXPECT_TRUE(refused("", {}));
    EXPECT_TRUE(refused(std::vector<std::string>{}, {}));
    EXPECT_TRUE(refused(std::vector<std::string>{"a", "a"}, {}));
    EXPECT_TRUE(refused("name", {.ttl = 9ms}));
    EXPECT_TRUE(refused("name", {.ttl = 1s, .renew_every = 501ms}));
    EXPECT_TRUE(refused("name", {.drift_factor = 0.6}));
    EXPECT_TRUE(refused("name", {.retry_delay = 0ms}));
}

TEST_P(redlock_contract, uses_clients_that_exist) {
    std::vector<std::unique_ptr<client>> clients;
    std::vector<client*> pointers;
    for (std::size_t i = 0; i != all(); ++i) {
        clients.push_back(std::make_unique<client>(client_options{.url = servers[i].url(), .name = "mine"}));
        pointers.push_back(clients.back().get());
    }
    redlock_nodes nodes{std::span<client* const>{pointers}};
    connect(nodes);
    redlock lock{nodes, "name", {.ttl = 2s}};
    auto held = acquire(lock);
    EXPECT_FALSE(try_acquire_for(of_b, 3s));
    EXPECT_TRUE(held.valid());
    for (std::size_t i = 0; i != all(); ++i) EXPECT_EQ(connections_named(servers[i], "mine"), 1);
    auto const stop = held.stop_token();
    for (auto& one : clients) one->close();
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_TRUE(try_acquire_for(of_b, 10s));
    EXPECT_NE(ending_of([&] { lock.try_acquire(); }).reason, std::nullopt);
}

}  // namespace
}  // namespace lockstep::test
