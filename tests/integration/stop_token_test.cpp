// A stop token ends what waits for the server, also what only asks it something: the server here does not answer.
#include "lease_support.hpp"
#include "support/failures.hpp"

#include <lockstep/counting_semaphore.hpp>
#include <lockstep/event.hpp>

#include <functional>
#include <thread>

namespace lockstep::test {
namespace {

class stop_tokens : public testing::Test {
protected:
    void TearDown() override { server.cont(); }

    /// Requested before it begins, and while it waits.
    void expect_it_ends(std::function<void(std::stop_token)> const& call) {
        server.stop();
        std::stop_source before;
        before.request_stop();
        EXPECT_EQ(outcome([&] { call(before.get_token()); }), errc::cancelled);
        std::stop_source meanwhile;
        auto const sent = a.statistics().pending;
        std::jthread other{[&] {
            EXPECT_TRUE(eventually([&] { return a.statistics().pending > sent; }));
            meanwhile.request_stop();
        }};
        EXPECT_EQ(outcome([&] { call(meanwhile.get_token()); }), errc::cancelled);
    }

    redis_server server;
    client a{{.url = server.url(), .command_timeout = 30s}};
};

TEST_F(stop_tokens, end_the_creation_of_a_semaphore) {
    a.command("PING");
    expect_it_ends([&](std::stop_token token) { static_cast<void>(counting_semaphore::create(a, "name", 2, {}, token)); });
}

TEST_F(stop_tokens, end_a_count_of_permits) {
    auto const permits = counting_semaphore::create(a, "name", 2);
    expect_it_ends([&](std::stop_token token) { static_cast<void>(permits.count(token)); });
}

TEST_F(stop_tokens, end_a_count_of_free_permits) {
    auto const permits = counting_semaphore::create(a, "name", 2);
    expect_it_ends([&](std::stop_token token) { static_cast<void>(permits.available(token)); });
}

TEST_F(stop_tokens, end_a_resize) {
    auto permits = counting_semaphore::create(a, "name", 2);
    expect_it_ends([&](std::stop_token token) { permits.resize(3, token); });
}

TEST_F(stop_tokens, end_the_setting_of_an_event) {
    event ready{a, "name"};
    static_cast<void>(ready.is_set());
    expect_it_ends([&](std::stop_token token) { ready.set(token); });
}

TEST_F(stop_tokens, end_the_clearing_of_an_event) {
    event ready{a, "name"};
    static_cast<void>(ready.is_set());
    expect_it_ends([&](std::stop_token token) { ready.clear(token); });
}

TEST_F(stop_tokens, end_a_look_at_an_event) {
    event ready{a, "name"};
    static_cast<void>(ready.is_set());
    expect_it_ends([&](std::stop_token token) { static_cast<void>(ready.is_set(token)); });
}

}  // namespace
}  // namespace lockstep::test
