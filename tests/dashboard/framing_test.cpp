// Requests that two programs could read in two ways: refused, and nothing behind them is taken for another request.
#include "server_fixture.hpp"

#include <gmock/gmock.h>

#include <cstddef>
#include <vector>

namespace lockstep::test {
namespace {

struct dashboard_framing : dashboard_server {
    // All that comes back, until the connection ends.
    std::string exchange(std::string const& bytes) {
        http_client peer{port()};
        peer.send(bytes);
        EXPECT_TRUE(peer.closed(10s)) << "it stays open after: " << bytes;
        return peer.received();
    }
    static std::vector<std::string> statuses_in(std::string const& received) {
        std::vector<std::string> all;
        for (auto at = received.find("HTTP/1.1 "); at != std::string::npos; at = received.find("HTTP/1.1 ", at + 1)) all.push_back(received.substr(at + 9, 3));
        return all;
    }
    static std::string login(std::string const& headers, std::string const& body = {}) {
        return "POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers + "\r\n" + body;
    }
    std::string const smuggled = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
};

TEST_F(dashboard_framing, refuses_encodings_that_it_does_not_know_and_takes_nothing_behind_them) {
    start();
    auto const length = "Content-Length: " + std::to_string(smuggled.size()) + "\r\n";
    for (std::string const encoding :
         {"Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: gzip, chunked\r\n",
          "Transfer-Encoding: \"chunked\"\r\n", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding:\r\n"}) {
        for (auto const& headers : {encoding, encoding + length, length + encoding}) {
            auto const answers = statuses_in(exchange(login(headers, smuggled)));
            EXPECT_THAT(answers, testing::ElementsAre("400")) << headers;
        }
        EXPECT_THAT(statuses_in(exchange("GET /api/session HTTP/1.1\r\nHost: localhost\r\n" + encoding + "\r\n" + smuggled)), testing::ElementsAre("400")) << encoding;
    }
}

TEST_F(dashboard_framing, takes_chunked_bodies) {
    start({.token = token});
    auto const body = json::serialize(json::object{{"token", token}});
    for (auto const* name : {"chunked", "Chunked"}) {
        http_client peer{port()};
        peer.send(login(std::string{"Transfer-Encoding: "} + name + "\r\n", "5\r\n" + body.substr(0, 5) + "\r\n" + std::string{"1d\r\n"} + body.substr(5) + "\r\n0\r\n\r\n"));
        ASSERT_EQ(body.size(), 5U + 0x1d) << "as the chunks say";
        EXPECT_EQ(peer.read().status, 200) << name;
    }
    EXPECT_THAT(statuses_in(exchange("POST /api/login HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")), testing::ElementsAre("400"))
        << "HTTP/1.0 has no encodings";
}

TEST_F(dashboard_framing, wants_exactly_one_host_that_is_one) {
    start();
    for (std::string const host : {"", "Host: localhost\r\nHost: localhost\r\n", "Host: localhost\r\nHost: evil.example\r\n", "Host: localhost:80@evil.example\r\n",
                                   "Host: localhost:x\r\n", "Host: localhost:0\r\n", "Host: localhost:65536\r\n", "Host: \r\n", "Host: local host\r\n"}) {
        for (auto const* path : {"/", "/api/session", "/api/stream", "/healthz", "/metrics"})
            EXPECT_THAT(statuses_in(exchange("GET " + std::string{path} + " HTTP/1.1\r\n" + host + "\r\n" + smuggled)), testing::ElementsAre("400")) << host << path;
    }
}

TEST_F(dashboard_framing, closes_after_every_post_that_it_refuses) {
    start({.token = token, .max_body_bytes = 1'024});
    auto const length = [](std::size_t bytes) { return "Content-Length: " + std::to_string(bytes) + "\r\n"; };
    EXPECT_THAT(statuses_in(exchange(login(length(5'000), smuggled))), testing::ElementsAre("413"));
    EXPECT_THAT(statuses_in(exchange(login(length(2), "{}" + smuggled))), testing::ElementsAre("401"));
    EXPECT_THAT(statuses_in(exchange("POST /nowhere HTTP/1.1\r\nHost: localhost\r\n" + length(2) + "\r\n{}" + smuggled)), testing::ElementsAre("404"));
    EXPECT_THAT(statuses_in(exchange("POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n" + length(2) + "\r\n{}" + smuggled)),
                testing::ElementsAre("415"));
    EXPECT_THAT(statuses_in(exchange("POST /api/stream HTTP/1.1\r\nHost: localhost\r\n" + length(0) + "\r\n" + smuggled)), testing::ElementsAre("405"));
}

}  // namespace
}  // namespace lockstep::test
