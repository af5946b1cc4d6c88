// A slot that stays between two nodes for a while, and clients that are told there of what they wait for: they send nothing by themselves.
#include "cluster_support.hpp"
#include "gate_support.hpp"
#include "lease_fault_support.hpp"

#include <lockstep/barrier.hpp>
#include <lockstep/broadcast_event.hpp>
#include <lockstep/event.hpp>
#include <lockstep/latch.hpp>

#include <array>
#include <future>
#include <thread>

namespace lockstep::test {
namespace {

/// A claim window, a second, and what a loaded machine adds. Without being told: a ttl, or a minute.
constexpr auto in_time = 500ms + 1s + load_slack;
constexpr auto quickly = lease_options{.ttl = 30s};

/// Three masters. The slot of all names here is the first one's, and goes to the second one.
class moving_slot {
public:
    moving_slot() : name{tag_on(0)}, slot{slot_of(name)} { name = name.substr(1, name.size() - 2); }
    void begin() {
        nodes.begin_migration(slot, 1);
        nodes.move_keys(slot);
    }
    /// Everything goes back to where it was.
    void call_off() {
        auto const number = std::to_string(slot);
        from().must({"CLUSTER", "SETSLOT", number, "STABLE"});  // first, or it would send its own keys away
        for (auto const& key : to().must({"CLUSTER", "GETKEYSINSLOT", number, "100"}).elements)
            to().must({"MIGRATE", "127.0.0.1", std::to_string(from().port()), key.text, "0", "5000"});
        to().must({"CLUSTER", "SETSLOT", number, "STABLE"});
    }
    redis_server& from() { return nodes.node(0); }
    redis_server& to() { return nodes.node(1); }
    static std::size_t listening_at(redis_server& server) {
        return server.must({"PUBSUB", "SHARDCHANNELS", "*:wake:*"}).elements.size();
    }
    /// All of them are subscribed, and none has anything under way.
    bool is_quiet(std::size_t clients) {
        auto const scripts = [this] { return calls_of(from(), "evalsha") + calls_of(from(), "ssubscribe"); };
        return eventually([&] {
            auto const before = scripts();
            std::this_thread::sleep_for(100ms);
            return listening_at(from()) == clients && scripts() == before;
        });
    }

    cluster nodes{{.replicas_per_master = 0}};
    std::string name;
    int slot;
};

// ---- whatever can be waited for

enum class awaited { mutex, permits, event, latch, barrier, broadcast_event };

class waiting_at {
public:
    waiting_at(awaited what, client& by, std::string const& name)
        : what_{what}, held_{what == awaited::permits ? kind::permits : kind::mutex, by, name, quickly},
          event_{by, name}, latch_{by, name, 1}, barrier_{by, name, 3}, broadcast_{by, name} {}

    task<bool> wait() {
        switch (what_) {
            case awaited::event: co_await event_.async_wait(); break;
            case awaited::latch: co_await latch_.async_wait(); break;
            case awaited::barrier: co_await barrier_.async_arrive_and_wait(); break;
            case awaited::broadcast_event: co_await broadcast_.async_wait(); break;
            default: {
                auto lease = co_await held_.async_acquire();
                co_await lease.async_release();
            }
        }
        co_return true;
    }
    bool wait_blocking() {
        switch (what_) {
            case awaited::event: event_.wait(); break;
            case awaited::latch: latch_.wait(); break;
            case awaited::barrier: barrier_.arrive_and_wait(); break;
            case awaited::broadcast_event: broadcast_.wait(); break;
            default: held_.acquire().release();
        }
        return true;
    }
    /// So that others wait; then `wake` frees two of them.
    void occupy() {
        if (what_ == awaited::mutex || what_ == awaited::permits) lease_ = held_.acquire();
    }
    void wake() {
        switch (what_) {
            case awaited::event:
                event_.set();
                event_.set();
                break;
            case awaited::latch: latch_.count_down(); break;
            case awaited::barrier: barrier_.arrive_and_wait(); break;
            case awaited::broadcast_event: broadcast_.set(); break;
            default: lease_->release();
        }
    }

private:
    awaited what_;
    holdable held_;
    event event_;
    latch latch_;
    barrier barrier_;
    broadcast_event broadcast_;
    std::optional<lease> lease_;
};

class cluster_migration : public testing::TestWithParam<awaited> {
protected:
    /// One waits in a coroutine, one blocks a thread.
    void park() {
        waker.occupy();
        first.emplace(one.wait());
        second = std::async(std::launch::async, [this] { return two.wait_blocking(); });
        ASSERT_TRUE(moving.is_quiet(2));
    }
    void expect_woken() {
        auto const begin = now_ms();
        waker.wake();
        EXPECT_TRUE(first->get(90s));
        EXPECT_TRUE(second.get());
        auto const after = std::chrono::milliseconds{now_ms() - begin};
        EXPECT_LE(after, in_time);
        RecordProperty("woken_after_ms", static_cast<int>(after.count()));
    }
    /// Somebody's command is answered ASK, and all who wait learn of that.
    void let_it_be_noticed() {
        by[2].command("GET", "{" + moving.name + "}");
        ASSERT_TRUE(eventually([this] { return moving_slot::listening_at(moving.to()) == 2; }));
    }

    moving_slot moving;
    client by[3] = {client{patient(moving.nodes)}, client{patient(moving.nodes)}, client{patient(moving.nodes)}};
    waiting_at one{GetParam(), by[0], moving.name};
    waiting_at two{GetParam(), by[1], moving.name};
    waiting_at waker{GetParam(), by[2], moving.name};
    std::optional<begun<bool>> first;
    std::future<bool> second;
};
std::string awaited_name(testing::TestParamInfo<awaited> const& of) {
    constexpr std::array names{"mutex", "permits", "event", "latch", "barrier", "broadcast_event"};
    return names.at(static_cast<std::size_t>(of.param));
}
INSTANTIATE_TEST_SUITE_P(of, cluster_migration,
                         testing::Values(awaited::mutex, awaited::permits, awaited::event, awaited::latch,
                                         awaited::barrier, awaited::broadcast_event),
                         awaited_name);

TEST_P(cluster_migration, wakes_those_who_wait_while_the_slot_is_between_two_nodes) {
    park();
    moving.begin();
    expect_woken();
}

TEST_P(cluster_migration, that_ends_wakes_those_who_wait) {
    park();
    moving.begin();
    let_it_be_noticed();
    moving.nodes.finish_migration(moving.slot);
    expect_woken();
}

TEST_P(cluster_migration, that_is_called_off_wakes_those_who_wait) {
    park();
    moving.begin();
    let_it_be_noticed();
    moving.call_off();
    expect_woken();
}

TEST_P(cluster_migration, whose_target_breaks_its_connections_wakes_those_who_wait) {
    park();
    moving.begin();
    let_it_be_noticed();
    auto& to = moving.to();
    for (auto const* const type : {"normal", "pubsub"}) to.must({"CLIENT", "KILL", "TYPE", type});
    expect_woken();
}

// ---- order

class cluster_migration_order : public testing::TestWithParam<kind> {};
// Not of permits: one that wants more than is free is looked for at the target (PUBSUB NUMSUB) by each call, and loses its place if it has
// not subscribed there yet.
INSTANTIATE_TEST_SUITE_P(of, cluster_migration_order, testing::Values(kind::mutex, kind::writer), kind_name);

TEST_P(cluster_migration_order, lets_no_newcomer_pass) {
    moving_slot moving;
    std::vector<std::unique_ptr<client>> clients;
    std::vector<std::unique_ptr<holdable>> of;
    for (int i = 0; i < 5; ++i) {
        clients.push_back(std::make_unique<client>(patient(moving.nodes)));
        of.push_back(std::make_unique<holdable>(GetParam(), *clients.back(), moving.name, quickly));
    }
    record queue{moving.from(), key_of(GetParam(), moving.name)};
    std::optional<lease> held = of[0]->acquire();
    std::vector<std::unique_ptr<begun<lease>>> waiters;
    for (std::size_t i = 1; i < 3; ++i) {
        waiters.push_back(std::make_unique<begun<lease>>(of[i]->async_acquire()));
        ASSERT_TRUE(eventually([&] { return queue.waiting() == static_cast<int>(i); }));
    }
    ASSERT_TRUE(moving.is_quiet(2));
    moving.begin();
    clients[3]->command("GET", "{" + moving.name + "}");
    ASSERT_TRUE(eventually([&] { return moving_slot::listening_at(moving.to()) == 2; }));
    waiters.push_back(std::make_unique<begun<lease>>(of[3]->async_acquire()));
    ASSERT_TRUE(eventually([&] { return moving_slot::listening_at(moving.to()) == 3; }));
    for (auto const& next : waiters) {
        auto const begin = now_ms();
        held->release();
        EXPECT_FALSE(of[4]->try_acquire());
        held = next->get();
        EXPECT_LE(std::chrono::milliseconds{now_ms() - begin}, in_time);
        EXPECT_FALSE(of[4]->try_acquire());
    }
    held->release();
}

}  // namespace
}  // namespace lockstep::test
