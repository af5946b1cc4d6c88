// What one client can take from others where nobody logs in; and what requests that take long take from probes.
#include "server_fixture.hpp"
#include "support/eventually.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

namespace lockstep::test {
namespace {

// Its answer is more than sockets take.
struct large_backend : dashboard::monitor_backend {
    using monitor_backend::monitor_backend;
    std::string metrics() override { return std::string(4'000'000, 'x'); }
};

struct dashboard_places : dashboard_server {
    void TearDown() override { page.reset(); }
    large_backend large{observer};
    std::vector<std::unique_ptr<http_client>> many;
    http_client& connect(char const* source, std::string const& path, int receive_buffer = 0) {
        many.push_back(std::make_unique<http_client>(port(), receive_buffer, source));
        many.back()->send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
        return *many.back();
    }
};

TEST_F(dashboard_places, without_a_token_are_not_all_taken_by_one_client_that_reads_nothing) {
    page.emplace(large, dashboard::server_options{.port = 0, .max_connections = 16, .write_timeout = 1min});
    for (int i = 0; i < 24; ++i) {
        ASSERT_TRUE(connect("127.0.0.1", "/metrics", 4'096).read_until("HTTP/1.1 ")) << i;
    }
    http_client other{port(), 0, "127.0.0.2"};
    other.send("GET /api/session HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(other.read().status, 200);
    EXPECT_EQ(get(port(), "/api/session").status, 200) << "nor from another program at its address";
}

TEST_F(dashboard_places, of_streams_without_a_token_are_not_all_taken_by_one_client) {
    start({.max_streams = 4});
    auto& first = connect("127.0.0.1", "/api/stream");
    ASSERT_TRUE(first.read_until("retry:"));
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(connect("127.0.0.1", "/api/stream").read_until("retry:")) << i;
    EXPECT_TRUE(first.closed()) << "the oldest make room";
    EXPECT_TRUE(connect("127.0.0.2", "/api/stream").read_until("event: state"));
    EXPECT_TRUE(connect("127.0.0.2", "/api/stream").read_until("event: state"));
    EXPECT_TRUE(connect("127.0.0.3", "/api/stream").read_until("503 ")) << "there are as many as there may be";
}

// ---- probes ----

// Explains nothing until it is told to go on, and fails a probe with what no stranger should read.
struct troubled_backend : dashboard::monitor_backend {
    using monitor_backend::monitor_backend;
    explanation why(std::string_view) override {
        ++explaining;
        go_on.wait(false);
        return {};
    }
    health_state probe() override {
        if (fails) throw std::runtime_error{"redis-17.internal: the password of user admin is wrong"};
        return monitor_backend::probe();
    }
    std::atomic<int> explaining{0};
    std::atomic<bool> go_on{false};
    bool fails = false;
};

struct dashboard_probes : dashboard_server {
    void TearDown() override {
        troubled.go_on = true;
        troubled.go_on.notify_all();
        page.reset();
    }
    troubled_backend troubled{observer};
};

TEST_F(dashboard_probes, are_answered_while_all_workers_are_busy) {
    page.emplace(troubled, dashboard::server_options{.port = 0});
    std::vector<std::unique_ptr<http_client>> slow;
    for (int i = 0; i < 12; ++i) {
        slow.push_back(std::make_unique<http_client>(port()));
        slow.back()->send("GET /api/why?name=x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    ASSERT_TRUE(eventually([&] { return troubled.explaining == 4; })) << "there are four";
    EXPECT_EQ(get(port(), "/healthz").status, 200);
}

TEST_F(dashboard_probes, that_fail_are_told_one_word) {
    troubled.fails = true;
    page.emplace(troubled, dashboard::server_options{.port = 0, .token = token});
    auto const answer = get(port(), "/healthz");
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.body, "unhealthy\n");
    EXPECT_EQ(answer.header("Content-Type"), "text/plain; charset=utf-8");
}

}  // namespace
}  // namespace lockstep::test
