// The dashboard's server over plain sockets, in front of a real Redis: what it serves, and above all what it does not.
#include "server_fixture.hpp"
#include "support/eventually.hpp"

#include <lockstep/error.hpp>

#include <gmock/gmock.h>

#include <memory>
#include <thread>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(dashboard_server, serves_the_page_with_headers_that_keep_it_to_itself) {
    if (!missing_page.empty()) GTEST_SKIP() << missing_page;
    start();
    auto const answer = get(port(), "/");
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.body, HasSubstr("<title>Lockstep</title>"));
    EXPECT_THAT(answer.body, Not(HasSubstr("style=")));
    EXPECT_THAT(
        answer.header("Content-Security-Policy"),
        AllOf(HasSubstr("default-src 'none'"), HasSubstr("script-src 'self'"), HasSubstr("frame-ancestors 'none'"),
              HasSubstr("base-uri 'none'"), HasSubstr("form-action 'none'"), HasSubstr("require-trusted-types-for 'script'; trusted-types 'none'"),
              Not(HasSubstr("unsafe"))));
    EXPECT_EQ(answer.header("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(answer.header("Referrer-Policy"), "no-referrer");
    EXPECT_EQ(answer.header("Access-Control-Allow-Origin"), "");
}

TEST_F(dashboard_server, serves_assets_that_may_be_kept_and_knows_when_they_are) {
    if (!missing_page.empty()) GTEST_SKIP() << missing_page;
    start();
    auto const body = get(port(), "/").body;
    auto const from = body.find("/assets/app-");
    auto const path = body.substr(from, body.find('"', from) - from);
    auto const answer = get(port(), path);
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.header("Cache-Control"), HasSubstr("immutable"));
    auto const etag = get(port(), "/").header("ETag");
    auto const again = get(port(), "/", "If-None-Match: " + etag + "\r\n");
    EXPECT_EQ(again.status, 304);
    EXPECT_EQ(again.body, "");
    EXPECT_EQ(get(port(), "/../etc/passwd").status, 404);
    EXPECT_EQ(get(port(), "/assets/").status, 404);
}

TEST_F(dashboard_server, tells_everything_there_is) {
    auto const held = mutex{worker, "report/\"<b>"}.acquire();
    start();
    ASSERT_TRUE(eventually([&] { return !json::parse(get(port(), "/api/snapshot").body).at("holds").as_array().empty(); }, 12s)) << "the server was told of it";
    auto const all = json::parse(get(port(), "/api/snapshot").body);
    EXPECT_EQ(all.at("holds").at(0).at("name").as_string(), "report/\"<b>");
    EXPECT_EQ(all.at("holds").at(0).at("kind").as_string(), "lock");
    EXPECT_EQ(get(port(), "/api/snapshot").header("Cache-Control"), "no-store");
    auto const why = json::parse(get(port(), "/api/why?name=report%2F%22%3Cb%3E").body);
    EXPECT_THAT(std::string{why.at("text").as_string()}, HasSubstr("report/\"<b>"));
    EXPECT_TRUE(json::parse(get(port(), "/api/statistics").body).is_array());
    EXPECT_TRUE(json::parse(get(port(), "/api/history?name=report").body).is_array());
    EXPECT_TRUE(json::parse(get(port(), "/api/audit").body).is_array());
    EXPECT_TRUE(json::parse(get(port(), "/api/samples").body).is_array());
    EXPECT_EQ(get(port(), "/api/why").status, 400);
    EXPECT_EQ(get(port(), "/api/nothing").status, 404);
}

TEST_F(dashboard_server, says_how_it_is_to_probes_and_to_prometheus) {
    start();
    auto const well = get(port(), "/healthz");
    EXPECT_EQ(well.status, 200) << well.body;
    auto const metrics = get(port(), "/metrics");
    EXPECT_EQ(metrics.status, 200);
    EXPECT_THAT(metrics.header("Content-Type"), StartsWith("text/plain; version=0.0.4"));
    EXPECT_THAT(metrics.body, HasSubstr("# TYPE lockstep_"));
    redis.kill9();
    EXPECT_TRUE(eventually([&] { return get(port(), "/healthz").status == 503; })) << "an answer lasts a second";
}

// ---- the stream ----

TEST_F(dashboard_server, streams_everything_first_and_then_what_changes) {
    auto const first = mutex{worker, "first"}.acquire();
    ASSERT_TRUE(eventually([&] { return eye.active().size() == 1; }, 12s)) << "the server was told of it";
    start();
    follower page_of{port()};
    auto const whole = page_of.next();
    ASSERT_FALSE(whole.is_null());
    EXPECT_TRUE(whole.at("whole").as_bool());
    EXPECT_EQ(whole.at("set").at("holds").at(0).at("name").as_string(), "first");

    auto second = mutex{worker, "second"}.acquire();
    EXPECT_TRUE(
        page_of.hears([](json::value const& said) { return !said.at("whole").as_bool() && has_hold(said, "second"); }));
    second.release();
    EXPECT_TRUE(
        page_of.hears([](json::value const& said) { return said.at("gone").at("holds").as_array().size() == 1; }));
}

TEST_F(dashboard_server, sends_only_what_is_new_to_a_page_that_comes_back) {
    auto const held = mutex{worker, "first"}.acquire();
    start();
    std::string seen;
    {
        follower page_of{port()};
        seen = page_of.next().at("version").as_string();
    }
    auto const second = mutex{worker, "second"}.acquire();
    follower again{port(), seen};
    EXPECT_TRUE(again.hears([](json::value const& said) {
        EXPECT_FALSE(said.at("whole").as_bool());
        return has_hold(said, "second");
    }));
}

TEST_F(dashboard_server, is_not_held_up_by_a_page_that_reads_nothing) {
    start({.token = token, .max_streams = 2, .write_timeout = 2s});
    std::vector<lease> held;
    for (int i = 0; i < 1'500; ++i) held.push_back(mutex{worker, std::string(400, 'x') + std::to_string(i)}.acquire());
    http_client lazy{port(), 4'096};  // about 2 MB, more than the sockets take, and never read
    lazy.send("GET /api/stream HTTP/1.1\r\nHost: localhost\r\n" + bearer_line + "\r\n");
    follower quick{port(), "", bearer_line};
    ASSERT_FALSE(quick.next().is_null());
    auto const another = mutex{worker, "another"}.acquire();
    EXPECT_TRUE(quick.hears([](json::value const& said) { return has_hold(said, "another"); }));
    EXPECT_TRUE(eventually([&] { return get(port(), "/api/stream", bearer_line).status == 200; })) << "its place is free again";
}

TEST_F(dashboard_server, reads_nothing_from_redis_while_nobody_looks) {
    start();
    // A watch listens for news for as long as it looks.
    auto const watches = [&] { return redis.must({"PUBSUB", "NUMSUB", "lockstep:news"}).elements.at(1).integer; };
    EXPECT_EQ(get(port(), "/").status, page_status);
    EXPECT_EQ(get(port(), "/api/session").status, 200);
    EXPECT_EQ(watches(), 0);
    {
        follower somebody{port()};
        ASSERT_FALSE(somebody.next().is_null());
        EXPECT_EQ(watches(), 1);
    }
    EXPECT_TRUE(eventually([&] { return watches() == 0; }, 30s)) << "the page is gone";
}

TEST_F(dashboard_server, follows_only_so_many_pages) {
    start({.token = token, .max_streams = 2});
    follower one{port(), "", bearer_line}, two{port(), "", bearer_line};
    ASSERT_FALSE(one.next().is_null());
    ASSERT_FALSE(two.next().is_null());
    EXPECT_EQ(get(port(), "/api/stream", bearer_line).status, 503);
}

// ---- names ----

TEST_F(dashboard_server, says_which_port_is_taken) {
    start();
    try {
        dashboard::server const second{backend, {.port = port()}};
        FAIL() << "it started";
    } catch (unavailable_error const& refused) {
        EXPECT_THAT(refused.what(), HasSubstr(std::to_string(port())));
    }
}

TEST_F(dashboard_server, refuses_names_that_are_not_its_own) {
    start({.allowed_hosts = {"locks.example"}});
    EXPECT_EQ(get(port(), "/", "Host: evil.example\r\n").status, 421);
    EXPECT_EQ(get(port(), "/api/snapshot", "Host: evil.example\r\n").status, 421);
    EXPECT_EQ(get(port(), "/api/stream", "Host: evil.example\r\n").status, 421);
    EXPECT_EQ(get(port(), "/metrics", "Host: localhost.evil.example\r\n").status, 421);
    EXPECT_EQ(get(port(), "/", "Host: LOCKS.example:80\r\n").status, page_status);
    EXPECT_EQ(get(port(), "/", "Host: 127.0.0.1:" + std::to_string(port()) + "\r\n").status, page_status);
    http_client none{port()};
    none.send("GET /api/snapshot HTTP/1.0\r\n\r\n");
    EXPECT_EQ(none.read().status, 400);
}

TEST_F(dashboard_server, lets_no_page_of_another_site_read) {
    start();
    for (auto const* path : {"/api/session", "/api/snapshot", "/api/stream", "/metrics"}) {
        EXPECT_EQ(get(port(), path, "Sec-Fetch-Site: cross-site\r\n").status, 403) << path;
        EXPECT_EQ(get(port(), path, "Origin: http://evil.example\r\n").status, 403) << path;
    }
    if (missing_page.empty()) {
        EXPECT_EQ(get(port(), "/", "Sec-Fetch-Site: cross-site\r\n").status, 200) << "a link to the page is fine";
    }
}

// ---- what may be done ----

TEST_F(dashboard_server, only_shows_unless_it_may_act) {
    auto const held = mutex{worker, "report"}.acquire();
    start();
    auto const refused = post(port(), "/api/release", order("report", true), bearer_line);
    EXPECT_EQ(refused.status, 403);
    EXPECT_THAT(refused.body, HasSubstr("--allow-actions"));
    EXPECT_TRUE(held.valid());
    EXPECT_TRUE(eye.audit().empty());
}

TEST_F(dashboard_server, does_not_act_for_a_page_of_another_site) {
    auto const held = mutex{worker, "report"}.acquire();
    start_acting();
    auto const what = order("report", true);
    auto const session_of_page = log_in();
    EXPECT_EQ(post(port(), "/api/release", what).status, 401);
    EXPECT_EQ(post(port(), "/api/release", what, "X-Lockstep-Session: 0\r\n").status, 401);
    EXPECT_EQ(post(port(), "/api/release", what, session_of_page + "Origin: http://evil.example\r\n").status, 403);
    EXPECT_EQ(post(port(), "/api/release", what, session_of_page + "Sec-Fetch-Site: cross-site\r\n").status, 403);
    http_client preflight{port()};
    preflight.send("OPTIONS /api/release HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n"
                   "Access-Control-Request-Headers: x-lockstep-session\r\n\r\n");
    auto const refused = preflight.read();
    EXPECT_EQ(refused.status, 405);
    EXPECT_EQ(refused.header("Access-Control-Allow-Origin"), "") << "so another origin's page can't send the header";
    EXPECT_EQ(get(port(), "/api/release").status, 404) << "not by a link either";
    EXPECT_EQ(eye.active("report").size(), 1U);
    EXPECT_TRUE(held.valid());
}

TEST_F(dashboard_server, ends_a_hold_by_force_and_writes_down_who_did) {
    auto const held = mutex{worker, "report"}.acquire();
    start_acting("tester");
    auto const without = post(port(), "/api/release", order("report", false), bearer_line);
    EXPECT_EQ(without.status, 400) << without.body;
    EXPECT_EQ(eye.active("report").size(), 1U) << "its owner is there";
    auto const done = post(port(), "/api/release", order("report", true), bearer_line + "Origin: http://localhost\r\n");
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_TRUE(eventually([&] { return eye.active("report").empty(); }));
    auto const all = eye.audit();
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all[0].action, "force-release");
    EXPECT_THAT(all[0].by, AllOf(HasSubstr("tester"), HasSubstr("dashboard"), HasSubstr("127.0.0.1")));
    EXPECT_EQ(all[0].reason, "a test");
    EXPECT_EQ(json::parse(get(port(), "/api/audit", bearer_line).body).at(0).at("action").as_string(), "force-release");
}

TEST_F(dashboard_server, leaves_the_next_holder_alone_when_the_hold_that_was_meant_is_over) {
    auto first = mutex{worker, "report"}.acquire();
    start_acting();
    auto const what = order("report", true);
    first.release();
    client another{{.url = redis.url(), .name = "another"}};
    auto const second = mutex{another, "report"}.acquire();
    auto const refused = post(port(), "/api/release", what, bearer_line);
    EXPECT_EQ(refused.status, 409) << refused.body;
    EXPECT_EQ(eye.active("report").size(), 1U);
    EXPECT_TRUE(second.valid());
}

TEST_F(dashboard_server, asks_a_holder_to_let_go) {
    auto const held = mutex{worker, "report"}.acquire();
    start_acting();
    auto const done = post(port(), "/api/ask", order("report", false), bearer_line);
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_TRUE(eventually([&] { return held.at_risk_token().stop_requested(); }));
    EXPECT_EQ(eye.active("report").size(), 1U) << "nothing was taken from it";
}

// ---- bad manners ----

TEST_F(dashboard_server, bounds_what_it_reads) {
    start({.max_header_bytes = 4'096, .max_body_bytes = 1'024});
    EXPECT_EQ(get(port(), "/", "X-Large: " + std::string(8'000, 'x') + "\r\n").status, 431);
    EXPECT_EQ(post(port(), "/api/login", std::string(2'000, 'x')).status, 413);
    http_client odd{port()};
    odd.send("\x16\x03\x01\x02 this is not HTTP\r\n\r\n");
    EXPECT_EQ(odd.read().status, 400);
    http_client other{port()};
    other.send("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(other.read().status, 405);
    EXPECT_EQ(get(port(), "/").status, page_status) << "and goes on";
}

TEST_F(dashboard_server, drops_whoever_takes_for_ever_to_ask) {
    start({.request_timeout = 300ms});
    http_client slow{port()};
    slow.send("GET / HTTP/1.1\r\nHost: loc");
    http_client silent{port()};
    EXPECT_TRUE(slow.closed(5s));
    EXPECT_TRUE(silent.closed(5s));
}

TEST_F(dashboard_server, answers_several_requests_of_a_connection_in_order) {
    start();
    http_client peer{port()};
    peer.send("GET /api/session HTTP/1.1\r\nHost: localhost\r\n\r\nHEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    auto const first = peer.read();
    EXPECT_EQ(first.status, 200);
    EXPECT_THAT(first.body, HasSubstr("known"));
    ASSERT_TRUE(peer.read_until("\r\n\r\n"));
    EXPECT_THAT(peer.received(), AllOf(HasSubstr(missing_page.empty() ? "200 OK" : "404 Not Found"), Not(HasSubstr("<html"))));
}

TEST_F(dashboard_server, says_what_is_wrong_when_redis_is_away) {
    start();
    follower page_of{port()};
    ASSERT_FALSE(page_of.next().is_null());
    redis.kill9();
    EXPECT_TRUE(page_of.peer.read_until(R"({"trouble":")", 30s));
    page_of.peer.forget_until(page_of.peer.received().find(R"({"trouble":")"));
    redis.restart();
    EXPECT_TRUE(page_of.peer.read_until(R"({"trouble":null})", 30s));
}

TEST_F(dashboard_server, ends_at_once_with_pages_that_follow) {
    start();
    follower page_of{port()};
    ASSERT_FALSE(page_of.next().is_null());
    page->stop();
    EXPECT_TRUE(page_of.peer.closed()) << "before it is gone";
}

}  // namespace
}  // namespace lockstep::test
