// What one client can take from others where nobody logs in.
#include "server_fixture.hpp"

#include <memory>
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

}  // namespace
}  // namespace lockstep::test
