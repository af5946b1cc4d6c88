// What a rate limiter does when no server answers.
#include <lockstep/rate_limiter.hpp>

#include "state/local_limits.hpp"
#include "state_support.hpp"
#include "support/forms.hpp"

namespace lockstep::test {
namespace {

using enum rate_algorithm;
using steady = std::chrono::steady_clock;

class rate_policies : public testing::Test {
protected:
    // One that has been answered, so that it waits for no connection.
    rate_limiter limiter(rate_policy how, std::int64_t limit = 3, bool together = false) {
        rate_limiter made{by,
                          "api",
                          {.limit = limit,
                           .per = 1h,
                           .algorithm = token_bucket,
                           .together = together,
                           .block_cache = 0,
                           .command_timeout = 300ms,
                           .on_unavailable = how}};
        EXPECT_TRUE(eventually([&] { return !ending_of([&] { static_cast<void>(made.peek("other")); }).reason; }));
        return made;
    }

    redis_server server{};
    client by{server.url()};
    std::vector<std::string_view> keys{"x", "y"};
};

TEST_F(rate_policies, know_within_their_time_that_the_server_hangs) {
    rate_limiter api{by, "api", {.limit = 3, .per = 1h}};
    EXPECT_TRUE(eventually([&] { return !ending_of([&] { static_cast<void>(api.peek("key")); }).reason; }));
    server.stop();
    for (int i = 0; i < 3; ++i) {
        auto const begin = steady::now();
        EXPECT_EQ(ending_of([&] { api.try_acquire("key"); }).reason, errc::timeout);
        EXPECT_EQ(ending_of([&] { api.acquire("key"); }).reason, errc::timeout);
        EXPECT_EQ(ending_of([&] { static_cast<void>(begun{api.async_try_acquire("key")}.get()); }).reason,
                  errc::timeout);
        EXPECT_LT(steady::now() - begin, 2s) << "100 ms each, on a busy machine a little more";
    }
    server.cont();
    EXPECT_TRUE(eventually([&] { return !ending_of([&] { api.try_acquire("key"); }).reason; }));
}

TEST_F(rate_policies, admit_all) {
    auto api = limiter(rate_policy::admit);
    server.stop();
    for (int i = 0; i < 3; ++i) {
        auto const made = api.try_acquire("key", 3);
        EXPECT_TRUE(made.allowed);
        EXPECT_TRUE(made.local);
    }
    EXPECT_TRUE(begun{api.async_try_acquire("key")}.get().allowed);
    EXPECT_TRUE(api.acquire("key").allowed);
    EXPECT_TRUE(api.try_acquire_for("key", 1s).allowed);
    for (auto const& one : api.try_acquire_all(keys)) EXPECT_TRUE(one.allowed);
    EXPECT_TRUE(api.peek("key").allowed);
    EXPECT_EQ(api.statistics().without_server, 8U);
    server.cont();
    EXPECT_TRUE(eventually([&] { return !api.try_acquire("key").local; })) << "and the server decides again";
}

TEST_F(rate_policies, refuse_all) {
    auto api = limiter(rate_policy::refuse);
    server.stop();
    auto const made = api.try_acquire("key");
    EXPECT_FALSE(made.allowed);
    EXPECT_TRUE(made.local);
    EXPECT_GT(made.retry_after, 0us);
    EXPECT_FALSE(begun{api.async_try_acquire("key")}.get().allowed);
    EXPECT_FALSE(api.try_acquire_for("key", 1s).allowed);
    for (auto const& one : api.try_acquire_all(keys)) EXPECT_FALSE(one.allowed);
    EXPECT_FALSE(api.peek("key").allowed);
    EXPECT_EQ(ending_of([&] { api.acquire("key"); }).reason, errc::timeout) << "there is no refusal for one who waits";
    EXPECT_EQ(api.statistics().without_server, 5U);
    server.cont();
}

TEST_F(rate_policies, decide_for_themselves) {
    auto api = limiter(rate_policy::local);
    server.stop();
    for (int i = 0; i < 3; ++i) {
        auto const made = api.try_acquire("key");
        EXPECT_TRUE(made.allowed);
        EXPECT_EQ(made.remaining, 2 - i);
        EXPECT_TRUE(made.local);
    }
    EXPECT_FALSE(api.peek("key").allowed);
    auto const refused = api.try_acquire("key");
    EXPECT_FALSE(refused.allowed);
    EXPECT_GT(refused.retry_after, 15min);
    EXPECT_LE(refused.retry_after, 20min);
    EXPECT_FALSE(api.try_acquire_for("key", 1s).allowed);
    EXPECT_TRUE(api.try_acquire("another key").allowed);
    server.kill9();
    EXPECT_FALSE(api.try_acquire("key").allowed);
    EXPECT_TRUE(api.try_acquire("third key").allowed);
}

TEST_F(rate_policies, decide_for_all_of_a_question_or_none) {
    auto api = limiter(rate_policy::local, 1, true);
    server.stop();
    EXPECT_TRUE(api.try_acquire("x").allowed);
    for (auto const& one : api.try_acquire_all(keys)) EXPECT_FALSE(one.allowed);
    EXPECT_TRUE(api.try_acquire("y").allowed) << "it was not taken";
}

// Who waits gets its turn here, or there when the server is back.
TEST_F(rate_policies, let_who_waits_go_on) {
    rate_limiter api{by,
                     "api",
                     {.limit = 10,
                      .per = 1s,
                      .algorithm = token_bucket,
                      .burst = 1,
                      .command_timeout = 300ms,
                      .on_unavailable = rate_policy::local}};
    EXPECT_TRUE(eventually([&] { return !ending_of([&] { static_cast<void>(api.peek("other")); }).reason; }));
    server.stop();
    EXPECT_TRUE(api.acquire("key").allowed);
    EXPECT_TRUE(api.acquire("key").allowed);
    EXPECT_TRUE(begun{api.async_acquire("key")}.get().allowed);
    server.cont();
    EXPECT_TRUE(api.acquire("key").allowed);
}

TEST_F(rate_policies, do_not_hide_what_else_is_wrong) {
    auto api = limiter(rate_policy::admit);
    server.must({"LPUSH", "lockstep:{key}:rate:api", "x"});
    EXPECT_EQ(ending_of([&] { api.try_acquire("key"); }).reason, errc::server);
    EXPECT_EQ(ending_of([&] { api.try_acquire("key", 4); }).reason, errc::invalid_argument);
}

TEST(local_limits, admit_the_burst_and_then_one_at_a_time) {
    detail::local_limits alone{detail::rate_rules{{.limit = 10, .per = 1s, .algorithm = token_bucket, .burst = 5}}};
    std::string const key[] = {"key"};
    auto now = steady::now();
    int admitted = 0;
    for (int i = 0; i < 100; ++i, now += 10ms) admitted += alone.decide(key, 1, true, now).front().allowed ? 1 : 0;
    EXPECT_EQ(admitted, 5 + 9);
    auto const refused = alone.decide(key, 5, true, now).front();
    ASSERT_FALSE(refused.allowed);
    EXPECT_FALSE(alone.decide(key, 5, true, now + refused.retry_after - 1us).front().allowed);
    EXPECT_TRUE(alone.decide(key, 5, false, now + refused.retry_after).front().allowed);
    EXPECT_TRUE(alone.decide(key, 5, true, now + refused.retry_after + 1us).front().allowed);
    for (int i = 0; i < 30'000; ++i) {  // it keeps so many of them only
        std::string const other[] = {std::to_string(i)};
        EXPECT_TRUE(alone.decide(other, 5, true, now).front().allowed);
    }
}

}  // namespace
}  // namespace lockstep::test
