// Jobs that are spread over several names, in both forms on every topology.
#include "jobs_support.hpp"

#include <lockstep/job_shards.hpp>

#include "redis/slot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace lockstep::test {
namespace {

using text = std::string;

class job_shards_contract : public contract {
protected:
    job_counts counts(job_shards& of) {
        return run(
            a, [&] { return of.counts("mail"); }, [&] { return of.async_counts("mail"); });
    }
};
LOCKSTEP_CONTRACT(job_shards_contract);

TEST_P(job_shards_contract, have_jobs_that_one_worker_runs) {
    job_shards jobs{a, "name", 5};
    for (int i = 0; i < 50; ++i) jobs.next().schedule("mail", std::to_string(i));
    for (std::size_t i = 0; i != jobs.size(); ++i) EXPECT_EQ(jobs[i].counts("mail").waiting, 10) << "one after the other";
    EXPECT_EQ(counts(jobs).waiting, 50);
    auto const mine = jobs.of("customer").schedule("mail", text{"mine"}, {.key = "k"});
    EXPECT_FALSE(jobs.of("customer").schedule("mail", text{"again"}, {.key = "k"}).is_new) << "a key is always in the same one";

    diary seen;
    job_shard_worker worker{b, "name", 5, {.concurrency = 10}};
    worker.handle<text>("mail", [&](text const& what) { seen.add(what); });
    worker.start();
    ASSERT_TRUE(jobs.of("customer").wait(mine.id, 20s));
    ASSERT_TRUE(eventually([&] { return counts(jobs).completed == 51; }));
    EXPECT_TRUE(worker.stop(20s));
    EXPECT_EQ(worker.completed(), 51);
    auto const all = seen.all();
    EXPECT_EQ((std::set<text>{all.begin(), all.end()}.size()), 51);
}

TEST(job_shard_names, are_the_same_always_and_lie_evenly_apart) {
    auto const names = shard_names("shop", 16);
    ASSERT_EQ(names.size(), 16);
    EXPECT_EQ(names, shard_names("shop", 16));
    for (std::size_t i = 0; i != names.size(); ++i) EXPECT_EQ(redis::key_slot("lockstep:{" + names[i] + "}:jobs") / 1024, i) << names[i];
    EXPECT_EQ(shard_names("shop", 1).size(), 1);
    EXPECT_EQ(shard_names("shop", 1024).size(), 1024);
    EXPECT_THROW(shard_names("shop", 0), invalid_argument_error);
    EXPECT_THROW(shard_names("shop", 1025), invalid_argument_error);
    std::vector<int> count(7);
    for (int i = 0; i < 7000; ++i) ++count[shard_of("key" + std::to_string(i), 7)];
    for (auto const one : count) EXPECT_NEAR(one, 1000, 150);
}

}  // namespace
}  // namespace lockstep::test
