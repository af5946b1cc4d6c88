// What a monitor sees and does, on every topology and in both forms.
#include "support/contract.hpp"
#include "topology_support.hpp"
#include "support/eventually.hpp"

#include <lockstep/counting_semaphore.hpp>
#include <lockstep/latch.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/recursive_mutex.hpp>
#include <lockstep/shared_mutex.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <mutex>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class monitor_contract : public contract {
protected:
    /// Through all keys, so that nobody waits until clients have told of what they use (object_index_test.cpp).
    snapshot look(snapshot_options what = {}) {
        what.scan = true;
        return run(
            c, [&] { return eye.snapshot(what); }, [&] { return eye.async_snapshot(what); });
    }
    std::vector<hold_info> active(std::string_view name = {}) {
        return run(
            c, [&] { return eye.active(name); }, [&] { return eye.async_active(name); });
    }
    std::vector<wait_info> waiters(std::string_view name) {
        return run(
            c, [&] { return eye.waiters(name); }, [&] { return eye.async_waiters(name); });
    }
    explanation why(std::string_view name) {
        return run(
            c, [&] { return eye.why(name); }, [&] { return eye.async_why(name); });
    }
    bool release(hold_info const& which, release_options how) {
        return run(
            c, [&] { return eye.release(which, how); }, [&] { return eye.async_release(which, how); });
    }
    /// It has said who it is and what it holds or waits for.
    bool known(std::string_view name) {
        auto const is_known = [&] {
            auto const all = eye.clients();
            return std::any_of(all.begin(), all.end(), [&](client_info const& one) { return one.held + one.waiting > 0 && one.name == name; });
        };
        return eventually(is_known, 20s);
    }

    client c{{.url = url(), .name = "looks"}};
    lockstep::monitor eye{c};
};
LOCKSTEP_CONTRACT(monitor_contract);

TEST_P(monitor_contract, shows_who_holds_what_and_who_waits_in_which_order) {
    auto const held = mutex(a, "report", {.ttl = 20s}).acquire();
    begun first{mutex(b, "report").async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiters("report").size() == 1; }));
    begun second{mutex(a, "report", {.cohort_passes = 0}).async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiters("report").size() == 2; }));

    auto const holds = active("report");
    ASSERT_EQ(holds.size(), 1U);
    EXPECT_EQ(holds[0].name, "report");
    EXPECT_EQ(holds[0].kind, "lock");
    EXPECT_EQ(holds[0].use, "owner");
    EXPECT_GE(holds[0].fence, held.fence());
    EXPECT_TRUE(eventually([&] { return active("report").at(0).fence == held.fence(); }, 20s)) << "when its client has said so";
    EXPECT_EQ(holds[0].queue, 2U);
    EXPECT_FALSE(holds[0].stale);
    EXPECT_GT(holds[0].remaining, 5s);
    EXPECT_LE(holds[0].remaining, 20s);
    EXPECT_LT(holds[0].held_for, 30s);
    auto const waits = waiters("report");
    EXPECT_EQ(waits[0].position, 1U);
    EXPECT_EQ(waits[1].position, 2U);
    EXPECT_NE(waits[0].who.id, waits[1].who.id);
    EXPECT_EQ(waits[1].who.id, holds[0].owner.id);
    EXPECT_TRUE(active("another").empty());
}

TEST_P(monitor_contract, shows_all_kinds_at_once) {
    auto const one = mutex(a, "lock <b>").acquire();
    auto tickets = counting_semaphore::create(a, "tickets", 3);
    auto const two = tickets.acquire(2);
    auto const reader_1 = shared_mutex(a, "index").acquire_shared();
    auto const reader_2 = shared_mutex(b, "index").acquire_shared();
    auto const again_1 = recursive_mutex(b, "account").as("me").acquire();
    auto const again_2 = recursive_mutex(b, "account").as("me").acquire();
    latch done{a, "done", 3};
    done.count_down(1);

    auto const seen = look();
    auto const object = [&](std::string_view name) {
        auto const found = std::find_if(seen.objects.begin(), seen.objects.end(), [&](object_info const& any) { return any.name == name; });
        return found == seen.objects.end() ? object_info{} : *found;
    };
    auto const holds = [&](std::string_view name) {
        return std::count_if(seen.holds.begin(), seen.holds.end(), [&](hold_info const& any) { return any.name == name; });
    };
    EXPECT_EQ(seen.objects.size(), 5U);
    EXPECT_EQ(object("lock <b>").holders, 1U);
    EXPECT_EQ(object("tickets").count, 3);
    EXPECT_EQ(object("tickets").taken, 2);
    EXPECT_EQ(object("index").holders, 2U);
    EXPECT_EQ(object("account").holders, 2U);
    EXPECT_EQ(object("done").kind, "latch");
    EXPECT_EQ(object("done").count, 3);
    EXPECT_EQ(object("done").taken, 1);
    EXPECT_EQ(holds("index"), 2);
    EXPECT_EQ(holds("account"), 2);
    EXPECT_TRUE(std::all_of(seen.holds.begin(), seen.holds.end(), [](hold_info const& any) { return any.name != "index" || any.use == "reader"; }));
    EXPECT_EQ(look({.pattern = "t*"}).objects.size(), 1U);
    auto const cut = look({.limit = 2});
    EXPECT_EQ(cut.objects.size(), 2U);
    EXPECT_EQ(cut.left_out, 3U);
    EXPECT_TRUE(std::is_sorted(seen.objects.begin(), seen.objects.end(), [](auto const& x, auto const& y) { return x.name < y.name; }));
}

TEST_P(monitor_contract, knows_owners_and_waiters_by_name_and_for_how_long_they_wait) {
    client named{{.url = url(), .name = "billing"}};
    client other{{.url = url(), .name = "printing"}};
    auto const held = mutex(named, "x").acquire();
    begun waits{mutex(other, "x").async_acquire()};
    latch never{other, "never", 1};
    begun at_latch{as_true(never.async_wait())};
    ASSERT_TRUE(known("billing"));
    ASSERT_TRUE(known("printing"));
    auto const holds = active("x");
    ASSERT_EQ(holds.size(), 1U);
    EXPECT_EQ(holds[0].owner.name, "billing");
    EXPECT_EQ(holds[0].owner.pid, ::getpid());
    EXPECT_FALSE(holds[0].owner.host.empty());
    EXPECT_TRUE(holds[0].owner.connected);
    auto const queue = waiters("x");
    ASSERT_EQ(queue.size(), 1U);
    EXPECT_EQ(queue[0].who.name, "printing");
    ASSERT_TRUE(queue[0].waiting_for);
    EXPECT_GT(*queue[0].waiting_for, 0ms);
    EXPECT_LT(*queue[0].waiting_for, 60s);
    auto const at = waiters("never");
    ASSERT_EQ(at.size(), 1U);
    EXPECT_EQ(at[0].use, "open");
    EXPECT_EQ(at[0].who.name, "printing");
}

TEST_P(monitor_contract, finds_a_deadlock_between_processes) {
    auto const of_a = mutex(a, "left").acquire();
    auto const of_b = mutex(b, "right").acquire();
    begun a_waits{mutex(a, "right").async_acquire()};
    begun b_waits{mutex(b, "left").async_acquire()};
    ASSERT_TRUE(eventually([&] { return why("left").cycles.size() == 1; }, 20s));
    auto const found = why("left");
    EXPECT_EQ(found.cycles[0].size(), 2U);
    EXPECT_EQ(found.holds.size(), 1U);
    EXPECT_EQ(found.waits.size(), 1U);
    EXPECT_THAT(found.text(), HasSubstr("Deadlock"));
    EXPECT_THAT(found.text(), HasSubstr("'right'"));
    EXPECT_EQ(why("nobody").text(), "Nobody holds 'nobody', and nobody waits for it.\n");
}

TEST_P(monitor_contract, sees_no_deadlock_where_one_only_waits_for_the_other) {
    auto const of_a = mutex(a, "left").acquire();
    begun b_waits{mutex(b, "left").async_acquire()};
    ASSERT_TRUE(eventually([&] { return why("left").waits.size() == 1; }));
    EXPECT_TRUE(why("left").cycles.empty());
}

TEST_P(monitor_contract, ends_a_hold_by_force_and_only_by_force_while_its_owner_is_there) {
    lease_options const long_one{.ttl = 10min};  // so that no renewal finds out
    for (std::string const kind : {"lock", "semaphore", "shared"}) {
        auto const take = [&](client& by) {
            if (kind == "lock") return mutex(by, "forced", long_one).async_acquire();
            if (kind == "shared") return shared_mutex(by, "forced", long_one).async_acquire();
            return counting_semaphore::create(by, "forced", 1, {.lease = long_one}).async_acquire();
        };
        auto const held = sync_wait(take(a));
        ASSERT_TRUE(eventually([&] { return !active("forced").at(0).owner.name.empty(); }, 20s)) << "from then on it hears";
        auto const fence = held.fence();
        begun next{take(b)};
        ASSERT_TRUE(eventually([&] { return waiters("forced").size() == 1; }));
        auto const seen = active("forced");
        ASSERT_EQ(seen.size(), 1U);
        ASSERT_EQ(seen[0].kind, kind);
        EXPECT_THROW(release(seen[0], {}), invalid_argument_error);
        EXPECT_TRUE(held.valid());
        EXPECT_TRUE(release(seen[0], {.force = true, .by = "somebody", .reason = "it hangs"}));
        auto const got = next.get();
        EXPECT_GT(got.fence(), fence);
        EXPECT_TRUE(eventually([&] { return !held.valid(); }, 20s)) << "its owner hears that it is lost";
        EXPECT_FALSE(release(seen[0], {.force = true})) << "it is over already";
        auto const audit = eye.audit();
        ASSERT_GE(audit.size(), 1U);
        EXPECT_EQ(audit[0].action, "force-release");
        EXPECT_EQ(audit[0].outcome, "done");
        EXPECT_EQ(audit[0].name, "forced");
        EXPECT_EQ(audit[0].kind, kind);
        EXPECT_EQ(audit[0].by, "somebody");
        EXPECT_EQ(audit[0].reason, "it hangs");
        EXPECT_GE(audit[0].fence, fence);
        EXPECT_LT(audit[0].fence, got.fence());
    }
}

TEST_P(monitor_contract, ends_all_that_an_owner_has_of_a_recursive_mutex_and_tells_of_each) {
    recursive_mutex mine{a, "again", {.ttl = 10min}};
    auto const outer = mine.as("me").acquire();
    auto const inner = mine.as("me").acquire();
    begun next{recursive_mutex(b, "again").as("other").async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiters("again").size() == 1 && !active("again").at(0).owner.name.empty(); }, 20s));
    EXPECT_TRUE(release(active("again").at(1), {.force = true}));
    EXPECT_GT(next.get().fence(), outer.fence());
    EXPECT_TRUE(eventually([&] { return !outer.valid() && !inner.valid(); })) << "its process hears of both";
}

TEST_P(monitor_contract, shows_all_holds_of_a_semaphore_that_has_many) {
    auto many = counting_semaphore::create(a, "many", 500);
    std::vector<task<lease>> asked;
    for (int i = 0; i < 400; ++i) asked.push_back(many.async_acquire());
    auto const held = sync_wait(when_all(std::move(asked)));
    EXPECT_EQ(active("many").size(), 400U);
    auto const seen = look({.name = "many", .holders = 10});
    EXPECT_EQ(seen.holds.size(), 10U);
    EXPECT_EQ(seen.objects.at(0).holders, 400U);
    EXPECT_EQ(seen.objects.at(0).taken, 400);
}

TEST_P(monitor_contract, is_not_disturbed_by_a_hash_of_somebody_else) {
    auto const held = mutex(a, "name").acquire();
    server_of("odd").must({"HSET", "lockstep:{odd}:lock", "v", "1", "o", "nonsense"});
    server_of("text").must({"SET", "lockstep:{text}:lock", "hello"});
    auto const seen = look();
    EXPECT_EQ(seen.holds.size(), 1U);
    EXPECT_EQ(seen.left_out, 2U);
    EXPECT_THAT(seen.notes, testing::UnorderedElementsAre(testing::StartsWith("lockstep:{odd}:lock: "), testing::StartsWith("lockstep:{text}:lock: ")));
}

TEST_P(monitor_contract, gives_no_fence_twice_when_a_hold_was_ended_by_force) {
    auto const held = mutex(a, "x").acquire();
    EXPECT_TRUE(release(active("x").at(0), {.force = true}));
    EXPECT_TRUE(active("x").empty());
    EXPECT_GT(mutex(b, "x").acquire().fence(), held.fence());
}

TEST_P(monitor_contract, refuses_to_end_what_is_no_hold) {
    EXPECT_THROW(release({.name = "x", .kind = "latch", .id = "a.1"}, {.force = true}), invalid_argument_error);
    EXPECT_THROW(release({.name = "x", .kind = "lock", .id = "nonsense"}, {.force = true}), invalid_argument_error);
    EXPECT_FALSE(release({.name = "x", .kind = "lock", .id = "nobody.1"}, {.force = true}));
}

TEST_P(monitor_contract, asks_an_owner_to_let_go) {
    auto const held = mutex(a, "asked").acquire();
    auto const token = held.at_risk_token();
    auto const seen = active("asked").at(0);
    EXPECT_TRUE(eventually([&] { return eye.ask(seen); }, 20s)) << "its client hears as soon as it has said who it is";
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_TRUE(held.valid()) << "it was only asked";
    EXPECT_EQ(eye.audit(1).at(0).action, "ask");
}

TEST_P(monitor_contract, counts_what_clients_did) {
    {
        client busy{{.url = url()}};
        mutex counted{busy, "counted"};
        for (int i = 0; i < 20; ++i) counted.acquire().release();
        auto const held = counted.acquire();
        EXPECT_FALSE(mutex(busy, "counted").try_acquire_for(20ms));
        begun waits{mutex(b, "counted").async_acquire()};
        ASSERT_TRUE(eventually([&] { return waiters("counted").size() == 1; }));
    }
    auto const counts = [&](std::string_view name) {
        auto const all = run(
            c, [&] { return eye.statistics(name); }, [&] { return eye.async_statistics(name); });
        return all.size() > 1 ? all[1] : name_statistics{};
    };
    ASSERT_TRUE(eventually([&] { return counts("counted").acquisitions >= 21; }, 5s)) << "a client that closes says what it counted";
    auto const found = counts("counted");
    EXPECT_EQ(found.kind, "lock");
    EXPECT_EQ(found.timeouts, 1U);
    EXPECT_EQ(found.losses, 0U);
    EXPECT_GE(found.held.count, 21U);
    EXPECT_GE(found.waited.max, found.waited.p50);
    EXPECT_GE(found.held.max.count(), 20'000) << "the last one was held while another waited for 20 ms";
    EXPECT_GE(eye.statistics().at(0).acquisitions, 21U) << "the first is the total";
}

TEST_P(monitor_contract, watches_and_tells_of_each_change) {
    std::mutex lock;
    std::vector<std::size_t> seen;
    auto const last = [&] {
        std::lock_guard const guard{lock};
        return seen.empty() ? std::size_t{999} : seen.back();
    };
    auto const first = mutex(a, "first").acquire();
    ASSERT_TRUE(eventually([&] { return !active("first").at(0).owner.name.empty(); }, 20s)) << "its client is known, and hears that it is watched";
    auto watching = eye.watch(
        [&](snapshot const& now) {
            std::lock_guard const guard{lock};
            seen.push_back(now.holds.size());
        },
        {.at_most_every = 20ms, .at_least_every = 10min});  // so that only news make it look
    ASSERT_TRUE(eventually([&] { return last() == 1; }));
    ASSERT_TRUE(eventually([&] {
        auto const held = mutex(a, "seen").acquire();
        return eventually([&] { return last() == 2; }, 1s);
    }, 20s)) << "as soon as it has heard that it is watched";
    EXPECT_TRUE(eventually([&] { return last() == 1; }));
    watching.stop();
    auto const count = [&] {
        std::lock_guard const guard{lock};
        return seen.size();
    };
    auto const before = count();
    auto const held = mutex(a, "not seen").acquire();
    EXPECT_EQ(eye.active("not seen").size(), 1U);
    EXPECT_EQ(count(), before) << "it does not run any more";
}

}  // namespace
}  // namespace lockstep::test
