// Several names at once when something goes wrong in between: a loss, a cancellation, the death of the holder.
#include <lockstep/multi_lock.hpp>

#include "lease_fault_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace lockstep::test {
namespace {

class multi_lock_faults : public testing::Test {
protected:
    bool is_free(std::string const& name) { return held_at(server, name).empty(); }

    redis_server server;
    client a{server.url()};
    client b{server.url()};
};

TEST_F(multi_lock_faults, say_that_a_name_was_lost_while_waiting_for_the_next) {
    auto blocking = mutex(b, "y").acquire();
    multi_lock all{a, {"x", "y", "z"}, {.ttl = 300ms, .renew = false}};
    begun waiting{all.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "y") == 1; }));
    auto const taken = mutex(b, "x").acquire();  // when the lease of `a` has run out
    blocking.release();
    EXPECT_EQ(ending_of([&] { static_cast<void>(waiting.get()); }).reason, errc::lease_lost);
    EXPECT_TRUE(eventually([&] { return is_free("y") && is_free("z"); })) << "the others are given back";
    EXPECT_TRUE(taken.valid());
    EXPECT_FALSE(is_free("x")) << "and what is another's is left alone";
}

TEST_F(multi_lock_faults, leave_nothing_when_it_is_cancelled_midway) {
    for (bool const in_coroutine : {true, false}) {
        auto blocking = mutex(b, "y").acquire();
        multi_lock all{a, {"z", "y", "x"}};
        std::stop_source stop;
        auto const end = [&] {
            if (!in_coroutine) return ending_of([&] { static_cast<void>(all.acquire(stop.get_token())); }).reason;
            begun waiting{with_stop_token(all.async_acquire(), stop.get_token())};
            return ending_of([&] { static_cast<void>(waiting.get()); }).reason;
        };
        std::optional<errc> reason;
        std::thread thread{[&] { reason = end(); }};
        EXPECT_TRUE(eventually([&] { return !is_free("x") && waiting_at(server, "y") == 1; }));
        stop.request_stop();
        thread.join();
        EXPECT_EQ(reason, errc::cancelled);
        EXPECT_TRUE(eventually([&] { return is_free("x") && waiting_at(server, "y") == 0; }));
        blocking.release();
        for (std::string const name : {"x", "y", "z"}) EXPECT_TRUE(is_free(name)) << name;
    }
}

TEST_F(multi_lock_faults, leave_nothing_when_the_time_is_over_midway) {
    auto blocking = mutex(b, "y").acquire();
    multi_lock all{a, {"x", "y", "z"}, {.wait_limit = 50ms}};
    EXPECT_EQ(ending_of([&] { static_cast<void>(all.acquire()); }).reason, errc::timeout);
    EXPECT_FALSE(all.try_acquire_for(50ms));
    EXPECT_TRUE(eventually([&] { return is_free("x") && waiting_at(server, "y") == 0; }));
    EXPECT_TRUE(is_free("z"));
}

TEST_F(multi_lock_faults, free_all_names_of_a_holder_that_is_killed) {
    holder_process holder{"multi_lock", server.url(), 1'200ms};
    holder.begin("acquire");
    EXPECT_EQ(holder.answer(), "held 0") << "names, which have a fence each";
    begun waiting{multi_lock(a, {"name-2", "name", "name-3"}).async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name-2") == 1; })) << "the first by its key";
    auto const before = held_at(server, "name-3");
    holder.process.kill();
    auto held = waiting.get(1'200ms * 3 + 200ms + load_slack);
    EXPECT_TRUE(held.valid());
    EXPECT_NE(held_at(server, "name-3"), before);
    held.release();
    for (std::string const name : {"name", "name-2", "name-3"}) EXPECT_TRUE(is_free(name));
}

TEST_F(multi_lock_faults, give_the_rest_back_when_one_was_lost_and_say_so) {
    auto held = multi_lock(a, {"x", "y", "z"}).acquire();
    server.must({"DEL", key_of(kind::mutex, "y")});
    EXPECT_EQ(ending_of([&] { held.release(); }).reason, errc::lease_lost);
    EXPECT_TRUE(is_free("x") && is_free("y") && is_free("z"));
    auto some = try_acquire_all(a, {"x", "y", "z"});
    server.must({"DEL", key_of(kind::mutex, "x")});
    EXPECT_EQ(ending_of([&] { release_all(std::move(some)); }).reason, errc::lease_lost);
    EXPECT_TRUE(is_free("x") && is_free("y") && is_free("z"));
}

TEST_F(multi_lock_faults, take_and_give_back_many_in_one_write) {
    std::vector<std::string> names;
    for (int i = 0; i < 100; ++i) names.push_back("n" + std::to_string(i));
    std::uint64_t least_to_take = 1000;
    std::uint64_t least_to_give = 1000;
    for (int round = 0; round < 5; ++round) {  // of which one may have had a PING, or to send the scripts, as well
        auto const before = a.statistics().batches;
        auto some = try_acquire_all(a, names);
        auto const between = a.statistics().batches;
        for (auto const& one : some) ASSERT_TRUE(one);
        release_all(std::move(some));
        least_to_take = std::min(least_to_take, between - before);
        least_to_give = std::min(least_to_give, a.statistics().batches - between);
    }
    EXPECT_EQ(least_to_take, 1U);
    EXPECT_EQ(least_to_give, 1U);
    auto held = multi_lock(a, names).acquire();
    auto const before = a.statistics().batches;
    held.release();
    EXPECT_LE(a.statistics().batches, before + 3);
}

}  // namespace
}  // namespace lockstep::test
