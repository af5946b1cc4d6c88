// Several names at once, in both forms, and across the slots of a Cluster.
#include <lockstep/multi_lock.hpp>
#include <lockstep/mutex.hpp>

#include "lease_support.hpp"
#include "support/cluster.hpp"

namespace lockstep::test {
namespace {

template <class Form>
class multi_lock_contract : public testing::Test {
protected:
    static leases acquire(client& by, multi_lock& of) {
        return Form::run(
            by, [&] { return of.acquire(); }, [&] { return of.async_acquire(); });
    }
    static std::optional<leases> try_acquire(client& by, multi_lock& of, std::chrono::milliseconds time = 0ms) {
        return Form::run(
            by, [&] { return of.try_acquire_for(time); }, [&] { return of.async_try_acquire_for(time); });
    }
    static void release(client& by, leases& held) {
        Form::run(
            by,
            [&] {
                held.release();
                return true;
            },
            [&] { return as_true(held.async_release()); });
    }

    redis_server server;
    client a{server.url()};
    client b{server.url()};
};
TYPED_TEST_SUITE(multi_lock_contract, forms, form_names);

TYPED_TEST(multi_lock_contract, holds_all_names_or_none) {
    multi_lock all{this->a, {"z", "x", "y"}};
    mutex middle{this->b, "y"};
    auto one = middle.acquire();
    EXPECT_FALSE(this->try_acquire(this->a, all));
    EXPECT_FALSE(this->try_acquire(this->a, all, 30ms));
    EXPECT_TRUE(eventually([&] { return held_at(this->server, "x").empty(); })) << "what was held is given back";
    one.release();
    auto held = this->acquire(this->a, all);
    ASSERT_EQ(held.size(), 3U);
    EXPECT_TRUE(held.valid());
    EXPECT_EQ(held[0].name(), "z") << "in the order in which they were given";
    EXPECT_GT(held[0].fence(), held[1].fence()) << "taken in the order of their keys";
    for (std::string const name : {"x", "y", "z"}) EXPECT_NE(held_at(this->server, name), "");
    this->release(this->a, held);
    EXPECT_EQ(ending_of([&] { held.release(); }).reason, errc::not_held);
    for (std::string const name : {"x", "y", "z"}) EXPECT_EQ(held_at(this->server, name), "");
}

TYPED_TEST(multi_lock_contract, does_not_deadlock_whatever_the_order_of_the_names) {
    multi_lock there{this->a, {"one", "two", "three"}};
    multi_lock back{this->b, {"three", "two", "one"}};
    begun both{as_true(when_all([&] {
        std::vector<task<void>> works;
        auto const loop = [](multi_lock& of) -> task<void> {
            for (int i = 0; i < 50; ++i) {
                auto work = of.async_acquire();
                auto held = co_await std::move(work);
                auto end = held.async_release();
                co_await std::move(end);
            }
        };
        works.push_back(loop(there));
        works.push_back(loop(back));
        return works;
    }()))};
    EXPECT_TRUE(both.get());
}

TYPED_TEST(multi_lock_contract, refuses_no_names_and_one_twice) {
    EXPECT_EQ(ending_of([&] { multi_lock{this->a, {}}; }).reason, errc::invalid_argument);
    auto const twice = ending_of([&] { multi_lock{this->a, {"x", "y", "x"}}; });
    EXPECT_EQ(twice.reason, errc::invalid_argument);
    EXPECT_THAT(twice.text, testing::HasSubstr("'x'"));
}

TYPED_TEST(multi_lock_contract, takes_independent_names_that_are_free_in_one_round_trip) {
    mutex busy{this->b, "n7"};
    auto const one = busy.acquire();
    std::vector<std::string> names;
    for (int i = 0; i < 20; ++i) names.push_back("n" + std::to_string(i));
    this->a.command("PING");
    auto const before = this->a.statistics().batches;
    auto got = TypeParam::run(
        this->a, [&] { return try_acquire_all(this->a, names); }, [&] { return async_try_acquire_all(this->a, names); });
    EXPECT_LE(this->a.statistics().batches, before + 3) << "the scripts had to be sent once";
    ASSERT_EQ(got.size(), 20U);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].has_value(), i != 7);
    TypeParam::run(
        this->a,
        [&] {
            release_all(std::move(got));
            return true;
        },
        [&] { return as_true(async_release_all(std::move(got))); });
    for (auto const& name : names) EXPECT_EQ(held_at(this->server, name).empty(), name != "n7");
}

TEST(multi_lock_in_a_cluster, holds_names_in_several_slots) {
    cluster nodes{{.replicas_per_master = 0}};
    client by{nodes.url()};
    multi_lock all{by, {"a", "b", "c", "d", "e"}};
    auto held = all.acquire();
    EXPECT_TRUE(held.valid());
    EXPECT_FALSE(mutex(by, "c").try_acquire());
    held.release();
    EXPECT_TRUE(mutex(by, "c").try_acquire());
}

}  // namespace
}  // namespace lockstep::test
