// How leases are kept: when and with how many writes they are renewed, and that neither a hanging I/O thread nor a hanging callback hides a loss.
#include <lockstep/mutex.hpp>

#include "lease_support.hpp"
#include "support/fault_proxy.hpp"
#include "support/monitor.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <list>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace lockstep::test {
namespace {

class lease_keeper : public testing::Test {
protected:
    lease_keeper() {
        for (auto const* const one : {&scripts::lock_acquire, &scripts::lock_renew}) {
            server.must({"SCRIPT", "LOAD", std::string{one->text}});
        }
    }
    static std::string name_of(int number) { return "n" + std::to_string(number); }
    static std::string key_of(std::string const& name) { return "lockstep:{" + name + "}:lock"; }

    redis_server server;
    client by{server.url()};
};

class slow_lease_keeper : public lease_keeper {};

// While the I/O thread is busy all become due.
TEST_F(lease_keeper, sends_the_renewals_that_are_due_in_one_write) {
    constexpr unsigned count = 300;
    std::vector<lease> held;
    for (unsigned i = 0; i < count; ++i) {
        held.push_back(mutex(by, name_of(static_cast<int>(i)), {.ttl = 60s, .renew_every = 1s}).acquire());
    }
    auto const before = sync_wait(in_turn_of(by, [&] {
        auto const now = by.statistics();
        std::this_thread::sleep_for(1'250ms);
        return now;
    }));
    auto after = before;
    ASSERT_TRUE(eventually([&] {
        after = by.statistics();
        return after.requests >= before.requests + count;
    }));
    // Those that came later, if this thread was late, may have had a write each.
    auto const later = after.requests - before.requests - count;
    EXPECT_LE(after.batches - before.batches, 10 + later);
    for (auto const& one : held) EXPECT_TRUE(one.valid());
}

TEST_F(lease_keeper, renews_as_often_as_it_is_told_to_give_or_take_a_fifth) {
    constexpr auto every = 1'500ms;
    constexpr int count = 60;
    monitor watch{server};
    std::vector<lease> held;
    for (int i = 0; i < count; ++i) held.push_back(mutex(by, name_of(i), {.ttl = 60s, .renew_every = every}).acquire());
    std::vector<std::chrono::microseconds> pauses;
    for (int i = 0; i < count; ++i) {
        std::vector<std::chrono::microseconds> renewals;
        auto const key = '"' + key_of(name_of(i)) + '"';
        ASSERT_TRUE(eventually([&] {
            renewals = watch.times_of(scripts::lock_renew.sha1, key);
            return !renewals.empty();
        }));
        auto const asked = watch.times_of(scripts::lock_acquire.sha1, key);
        ASSERT_EQ(asked.size(), 1U);
        pauses.push_back(renewals.front() - asked.front());
    }
    auto const [least, most] = std::ranges::minmax(pauses);
    // One may leave up to 10 ms early, with others. How late they are is up to the machine.
    EXPECT_GE(least, every * 8 / 10 - 15ms);
    EXPECT_LE(least, every) << "it draws from both sides";
    EXPECT_GE(most - least, every * 2 / 10) << "they do not come all at once";
}

TEST_F(slow_lease_keeper, warns_before_a_lease_is_lost_because_its_renewals_are) {
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    auto const held = mutex(far, "name", {.ttl = 3s, .renew_every = 200ms}).acquire();
    auto const risk = held.at_risk_token();
    auto const stop = held.stop_token();
    auto const begin = now_ms();
    ASSERT_TRUE(eventually([&] { return now_ms() > begin + 3'000; }));
    EXPECT_FALSE(risk.stop_requested()) << "all is well";
    std::atomic<bool> was_warned{false};
    std::atomic<bool> was_valid{true};
    std::stop_callback const at_the_end{stop, [&] {
                                            was_warned = risk.stop_requested();
                                            was_valid = held.valid();
                                        }};
    proxy.half_open();
    EXPECT_TRUE(eventually([&] { return risk.stop_requested(); }));
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_TRUE(was_warned);
    EXPECT_FALSE(was_valid);
    EXPECT_TRUE(held.at_risk_token().stop_requested()) << "also for who asks late";
}

TEST_F(slow_lease_keeper, keeps_a_lease_that_was_at_risk_when_the_renewal_comes_after_all) {
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    auto held = mutex(far, "name", {.ttl = 6s, .renew_every = 200ms}).acquire();
    auto const risk = held.at_risk_token();
    auto const stop = held.stop_token();
    proxy.hold();
    EXPECT_TRUE(eventually([&] { return risk.stop_requested(); }));
    EXPECT_TRUE(held.valid());
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return held.remaining() > 4s; }));
    EXPECT_FALSE(held.at_risk_token().stop_requested()) << "a new one: the danger is over";
    EXPECT_FALSE(stop.stop_requested());
    held.release();
}

TEST_F(lease_keeper, tells_of_a_loss_though_the_io_thread_hangs) {
    auto held = mutex(by, "name", {.ttl = 1s}).acquire();
    auto const risk = held.at_risk_token();
    auto const stop = held.stop_token();
    bool const told = sync_wait(
        in_turn_of(by, [&] { return eventually([&] { return risk.stop_requested() && stop.stop_requested(); }); }));
    EXPECT_TRUE(told) << "while it hangs";
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(ending_of([&] { held.release(); }).reason, errc::lease_lost) << "and what is lost stays lost";
}

TEST_F(lease_keeper, goes_on_though_the_callbacks_of_lost_leases_hang) {
    std::atomic<bool> end{false};
    std::atomic<int> hanging{0};
    auto const hang = [&] {
        ++hanging;
        while (!end) std::this_thread::sleep_for(1ms);
    };
    std::list<lease> lost;
    std::list<std::stop_callback<decltype(hang)>> callbacks;
    auto const watched = [&](lease one) {
        callbacks.emplace_back(one.stop_token(), hang);
        lost.push_back(std::move(one));
    };
    // Of some this client finds out by the time, of the others when it asks the server.
    for (int i = 0; i < 3; ++i) {
        watched(mutex(by, "fixed" + std::to_string(i), {.ttl = 300ms, .renew = false}).acquire());
        watched(mutex(by, "forgotten" + std::to_string(i), {.ttl = 30s, .renew_every = 100ms}).acquire());
        server.must({"DEL", key_of("forgotten" + std::to_string(i))});
    }
    auto const kept = mutex(by, "kept", {.ttl = 3s, .renew_every = 200ms}).acquire();
    monitor watch{server};
    EXPECT_TRUE(eventually([&] { return hanging == 6; })) << hanging << " of 6: one that hangs holds up the next";
    auto const renewals = [&] { return watch.times_of(scripts::lock_renew.sha1, '"' + key_of("kept") + '"').size(); };
    auto const before = renewals();
    EXPECT_TRUE(eventually([&] { return renewals() >= before + 5; }));
    EXPECT_TRUE(kept.valid());
    auto const last = mutex(by, "last", {.ttl = 200ms, .renew = false}).acquire();
    auto const stop = last.stop_token();
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); })) << "who comes later is told too";
    end = true;
}

TEST_F(lease_keeper, tells_of_a_loss_however_many_callbacks_hang) {
    constexpr int many = 60;
    std::atomic<bool> end{false};
    std::atomic<int> hanging{0};
    auto const hang = [&] {
        ++hanging;
        while (!end) std::this_thread::sleep_for(1ms);
    };
    std::list<lease> lost;
    std::list<std::stop_callback<decltype(hang)>> callbacks;
    for (int i = 0; i < many; ++i) {
        lost.push_back(mutex(by, name_of(i), {.ttl = 300ms, .renew = false}).acquire());
        callbacks.emplace_back(lost.back().stop_token(), hang);
    }
    EXPECT_TRUE(eventually([&] { return hanging == many; })) << hanging;
    auto const last = mutex(by, "last", {.ttl = 200ms, .renew = false}).acquire();
    auto const stop = last.stop_token();
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(last.valid());
    end = true;
}

/// How many threads of this process have that name.
std::ptrdiff_t threads_called(std::string const& name) {
    namespace fs = std::filesystem;
    return std::ranges::count_if(fs::directory_iterator{"/proc/self/task"}, [&](auto const& one) {
        std::string found;
        std::getline(std::ifstream{one.path() / "comm"}, found);
        return found == name;
    });
}

/// While it lives the system refuses every new thread of this process: none can have a stack as large as that.
class no_more_threads {
public:
    no_more_threads() {
        ::pthread_getattr_default_np(&before_);
        pthread_attr_t huge;
        ::pthread_attr_init(&huge);
        ::pthread_attr_setstacksize(&huge, std::size_t{1} << 47U);
        ::pthread_setattr_default_np(&huge);
        ::pthread_attr_destroy(&huge);
    }
    ~no_more_threads() {
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }
    no_more_threads(no_more_threads const&) = delete;
    no_more_threads& operator=(no_more_threads const&) = delete;

private:
    pthread_attr_t before_{};
};

TEST_F(lease_keeper, tells_of_a_loss_though_no_thread_can_be_made) {
    ASSERT_TRUE(eventually([] { return threads_called("lockstep-stop") <= 1; })) << "those of the test before have ended";
    std::atomic<bool> end{false};
    auto const hang = [&] {
        while (!end) std::this_thread::sleep_for(1ms);
    };
    auto const first = mutex(by, "first", {.ttl = 300ms, .renew = false}).acquire();
    auto const first_stop = first.stop_token();
    std::stop_callback const hanging{first_stop, hang};
    std::vector<lease> others;
    std::vector<std::stop_token> stops;
    for (int i = 0; i < 3; ++i) {
        others.push_back(mutex(by, name_of(i), {.ttl = 900ms, .renew = false}).acquire());
        stops.push_back(others.back().stop_token());
    }
    {
        no_more_threads const none;
        EXPECT_THROW(std::thread{[] {}}.join(), std::system_error);
        EXPECT_TRUE(eventually([&] { return first_stop.stop_requested(); })) << "one thread is there from the beginning";
        EXPECT_TRUE(eventually([&] { return !others.back().valid(); })) << "whatever hangs";
        auto const begin = now_ms();
        ASSERT_TRUE(eventually([&] { return now_ms() > begin + 200; }));
        for (auto const& one : stops) EXPECT_FALSE(one.stop_requested()) << "or this tests nothing";
    }
    for (auto const& one : stops) EXPECT_TRUE(eventually([&] { return one.stop_requested(); })) << "as soon as there is a thread";
    end = true;
}

}  // namespace
}  // namespace lockstep::test
