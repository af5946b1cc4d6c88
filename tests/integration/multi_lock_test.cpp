// Several names at once, in both forms on every topology: in a cluster they have different slots.
#include <lockstep/multi_lock.hpp>
#include <lockstep/mutex.hpp>

#include "lease_support.hpp"
#include "support/contract.hpp"

namespace lockstep::test {
namespace {

class multi_lock_contract : public contract {
protected:
    std::string holder_of(std::string const& name) { return held_at(server_of(name), name); }
};
LOCKSTEP_CONTRACT(multi_lock_contract);

TEST_P(multi_lock_contract, holds_all_names_or_none) {
    multi_lock all{a, {"z", "x", "y"}};
    mutex middle{b, "y"};
    auto one = middle.acquire();
    EXPECT_FALSE(try_acquire(a, all));
    EXPECT_FALSE(try_acquire_for(a, all, 30ms));
    EXPECT_TRUE(eventually([&] { return holder_of("x").empty(); })) << "what was held is given back";
    one.release();
    auto held = acquire(a, all);
    ASSERT_EQ(held.size(), 3U);
    EXPECT_TRUE(held.valid());
    EXPECT_EQ(held[0].name(), "z") << "in the order in which they were given";
    EXPECT_GT(held[0].fence(), held[1].fence()) << "taken in the order of their keys";
    for (std::string const name : {"x", "y", "z"}) EXPECT_NE(holder_of(name), "");
    release(a, held);
    EXPECT_EQ(ending_of([&] { held.release(); }).reason, errc::not_held);
    for (std::string const name : {"x", "y", "z"}) EXPECT_EQ(holder_of(name), "");
}

TEST_P(multi_lock_contract, does_not_deadlock_whatever_the_order_of_the_names) {
    multi_lock there{a, {"one", "two", "three"}};
    multi_lock back{b, {"three", "two", "one"}};
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

TEST_P(multi_lock_contract, refuses_no_names_and_one_twice) {
    EXPECT_EQ(ending_of([&] { multi_lock{a, {}}; }).reason, errc::invalid_argument);
    auto const twice = ending_of([&] { multi_lock{a, {"x", "y", "x"}}; });
    EXPECT_EQ(twice.reason, errc::invalid_argument);
    EXPECT_THAT(twice.text, testing::HasSubstr("'x'"));
}

TEST_P(multi_lock_contract, takes_independent_names_that_are_free_in_one_round_trip) {
    mutex busy{b, "n7"};
    auto const one = busy.acquire();
    std::vector<std::string> names;
    for (int i = 0; i < 20; ++i) names.push_back("n" + std::to_string(i));
    catch_up(a);
    auto const before = a.statistics().batches;
    auto got = run(
        a, [&] { return try_acquire_all(a, names); }, [&] { return async_try_acquire_all(a, names); });
    EXPECT_LE(a.statistics().batches, before + 3 * masters()) << "the scripts had to be sent once";
    ASSERT_EQ(got.size(), 20U);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].has_value(), i != 7);
    run(
        a, [&] { release_all(std::move(got)); }, [&] { return async_release_all(std::move(got)); });
    for (auto const& name : names) EXPECT_EQ(holder_of(name).empty(), name != "n7");
}

TEST_P(multi_lock_contract, may_have_empty_leases_among_them) {
    mutex one{a, "name"};
    std::vector<lease> held(3);
    held[1] = acquire(a, one);
    leases all{std::move(held)};
    EXPECT_FALSE(all.valid());
    release(a, all);
    EXPECT_TRUE(try_acquire(a, one));
    EXPECT_EQ(ending_of([&] { release(a, all); }).reason, errc::not_held);
    leases none{std::vector<lease>(2)};
    EXPECT_EQ(ending_of([&] { release(a, none); }).reason, errc::not_held);
}

}  // namespace
}  // namespace lockstep::test
