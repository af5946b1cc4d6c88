// Dead letters by their age: put back or dropped, in steps.
#include "queue_support.hpp"
#include "support/clock_file.hpp"

#include <gtest/gtest.h>

namespace lockstep::test {
namespace {

using texts = queue<std::string>;

class dead_letter_age_contract : public contract {
protected:
    std::int64_t requeue(std::chrono::milliseconds age) {
        return run(
            a, [&] { return dying.requeue_dead_older_than(age); }, [&] { return dying.async_requeue_dead_older_than(age); });
    }
    std::int64_t drop(std::chrono::milliseconds age) {
        return run(
            a, [&] { return dying.drop_dead_older_than(age); }, [&] { return dying.async_drop_dead_older_than(age); });
    }
    void bury(int count, std::string const& what) {
        std::vector<std::string> const values(static_cast<std::size_t>(count), what);
        dying.enqueue_many(values);
        for (int i = 0; i < count; ++i) dying.dequeue().nack();
    }

    texts dying{a, "name", {.max_deliveries = 1}};
};
LOCKSTEP_CONTRACT(dead_letter_age_contract);

TEST_P(dead_letter_age_contract, means_those_that_died_before_in_steps) {
    bury(520, "old");
    EXPECT_EQ(requeue(1min), 0);
    EXPECT_EQ(drop(1min), 0);
    EXPECT_EQ(dying.counts().dead, 520);
    std::int64_t sum = 0;
    EXPECT_TRUE(eventually([&] { return (sum += requeue(1ms)) == 520; })) << "more than one call brings";
    EXPECT_EQ(dying.counts().ready, 520);
    EXPECT_EQ(dying.counts().dead, 0);
    EXPECT_EQ(dying.purge(), 520);
    bury(3, "new");
    EXPECT_EQ(drop(0ms), 3);
    EXPECT_EQ(dying.counts().dead, 0);
    EXPECT_THROW(drop(-1ms), invalid_argument_error);
}

// Their ids are times, which may lie ahead then.
TEST(dead_letters, are_all_put_back_or_dropped_after_the_clock_was_set_back) {
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client a{server.url()};
    texts dying{a, "name", {.max_deliveries = 1}};
    auto const bury = [&] {
        dying.enqueue("x");
        dying.dequeue().nack();
    };
    bury();
    clock.step(-1h);
    ASSERT_EQ(dying.requeue_dead(), 1);
    dying.dequeue().nack();
    EXPECT_EQ(dying.counts().dead, 1);
    EXPECT_EQ(dying.drop_dead(), 1);
    EXPECT_EQ(dying.counts().dead, 0);
}

}  // namespace
}  // namespace lockstep::test
