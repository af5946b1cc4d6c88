// The sliding log against a model of it: every number of every answer, however hits come and go.
#include <lockstep/rate_limiter.hpp>

#include "support/clock_file.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace lockstep::test {
namespace {

using std::chrono::microseconds;
using namespace std::chrono_literals;

struct log_model {
    struct hit {
        microseconds at;
        std::int64_t cost;
    };

    std::int64_t used() const {
        std::int64_t sum = 0;
        for (auto const& one : hits) sum += one.cost;
        return sum;
    }

    /// What an exact limiter says at this time, and does.
    rate_decision ask(microseconds now, std::int64_t cost, bool counts) {
        while (!hits.empty() && hits.front().at <= now - per) hits.pop_front();
        rate_decision made;
        auto excess = used() + cost - limit;
        made.allowed = excess <= 0;
        for (auto const& one : hits) {
            if (excess <= 0) break;
            excess -= one.cost;
            made.retry_after = one.at + per - now;
        }
        if (made.allowed && counts) hits.push_back({now, cost});
        made.remaining = limit - used();
        if (!hits.empty()) made.reset = hits.back().at + per - now;
        return made;
    }

    std::int64_t limit;
    microseconds per;
    std::deque<hit> hits{};
};

class rate_log : public testing::Test {
protected:
    static rate_limit_options plan(std::int64_t limit, microseconds per) { return {.limit = limit, .per = per, .block_cache = 0, .command_timeout = 10s}; }

    void walk(std::int64_t limit, microseconds per, std::int64_t most_cost, int steps, unsigned seed) {
        SCOPED_TRACE(testing::Message() << limit << " in " << per.count() << " us, seed " << seed);
        rate_limiter limiter{by, "api", plan(limit, per)};
        log_model model{limit, per};
        limiter.reset("key");
        std::mt19937 random{seed};
        auto const below = [&](auto bound) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound)); };
        microseconds now{0};
        for (int i = 0; i < steps; ++i) {
            auto const kind = below(10);
            microseconds passed{below(kind == 0 ? per.count() * 5 / 4 : 2 * per.count() / limit + 1)};
            if (kind == 1 && !model.hits.empty()) {
                auto const until_one_goes = model.hits[static_cast<std::size_t>(below(model.hits.size()))].at + per - now;
                passed = std::max(0us, until_one_goes);
            }
            clock.step(passed);
            now += passed;
            auto const cost = 1 + below(most_cost);
            bool const counts = below(8) != 0;
            auto const made = counts ? limiter.try_acquire("key", cost) : limiter.peek("key", cost);
            auto const expected = model.ask(now, cost, counts);
            ASSERT_EQ(made.allowed, expected.allowed) << i;
            ASSERT_EQ(made.remaining, expected.remaining) << i;
            ASSERT_EQ(made.retry_after, expected.retry_after) << i;
            ASSERT_EQ(made.reset, expected.reset) << i;
            if (!counts || !made.allowed) continue;
            auto const gone = server.must({"LLEN", "lockstep:{key}:hits:api"}).integer - static_cast<std::int64_t>(model.hits.size());
            ASSERT_LE(gone, std::min<std::int64_t>(16, model.used())) << "hits that are gone take no more room than those that are there";
        }
    }

    clock_file clock;
    redis_server server{{.clock = &clock}};
    client by{server.url()};
};

TEST_F(rate_log, agrees_with_a_model_of_it) {
    clock.stop();
    for (unsigned seed = 1; seed <= 3; ++seed) {
        walk(1, 1ms, 1, 200, seed);
        walk(7, 1s, 1, 400, seed);
        walk(10, 1s, 10, 400, seed);
        walk(200, 1s, 1, 2'000, seed);
        walk(300, 24h, 4, 2'000, seed);
        walk(5, 366 * 24h, 2, 100, seed);
    }
}

// Of the sum of all costs only the last three bytes are kept.
TEST_F(rate_log, goes_on_when_its_sum_no_longer_fits) {
    clock.stop();
    rate_limiter limiter{by, "api", plan(1'000'000, 1s)};
    log_model model{1'000'000, 1s};
    microseconds now{0};
    std::int64_t sum = 0;
    for (int i = 0; i < 200; ++i) {
        auto const cost = 150'000 + 1'000 * (i % 100);
        auto const made = limiter.try_acquire("key", cost);
        auto const expected = model.ask(now, cost, true);
        ASSERT_EQ(made.allowed, expected.allowed) << i;
        ASSERT_EQ(made.remaining, expected.remaining) << i;
        ASSERT_EQ(made.retry_after, expected.retry_after) << i;
        sum += made.allowed ? cost : 0;
        clock.step(150ms);
        now += 150ms;
    }
    EXPECT_GT(sum, 1 << 24);
}

TEST_F(rate_log, leaves_a_list_alone_that_is_none) {
    rate_limiter limiter{by, "api", plan(10, 1s)};
    std::string const key = "lockstep:{key}:hits:api";
    for (std::string const& mine : {std::string{"mine"}, std::string(16, 'm'), std::string(23, 'm'), std::string(23, '\0'), std::string(34, '~')}) {
        server.must({"DEL", key});
        server.must({"RPUSH", key, mine});
        EXPECT_THROW(static_cast<void>(limiter.try_acquire("key")), server_error);
        EXPECT_EQ(server.must({"LINDEX", key, "-1"}).text, mine);
        EXPECT_EQ(server.must({"LLEN", key}).integer, 1);
    }
}

}  // namespace
}  // namespace lockstep::test
