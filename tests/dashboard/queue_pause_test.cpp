// Pausing a queue that is not one of jobs, by the dashboard.
#include "server_fixture.hpp"

#include <lockstep/queue.hpp>

#include <gmock/gmock.h>

namespace lockstep::test {
namespace {

using testing::HasSubstr;

struct dashboard_queues : dashboard_server {
    http_answer act(std::string const& action, std::string const& name = "mails", std::string const& extra = bearer_line) {
        return post(port(), "/api/queues/" + action, json::serialize(json::object{{"name", name}, {"reason", "a test"}}), extra);
    }
    queue<std::string> mails{worker, "mails"};
};

TEST_F(dashboard_queues, are_paused_and_resumed_and_it_is_written_down_who_did) {
    mails.enqueue("one");
    start_acting("tester");
    EXPECT_THAT(act("pause").body, HasSubstr("\"done\":true"));
    EXPECT_TRUE(mails.counts().paused);
    EXPECT_THAT(act("pause").body, HasSubstr("\"done\":false"));
    EXPECT_THAT(act("resume").body, HasSubstr("\"done\":true"));
    EXPECT_FALSE(mails.counts().paused);
    auto const all = eye.audit();
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0].action, "resume-queue");
    EXPECT_EQ(all[1].action, "pause-queue");
    EXPECT_EQ(all[1].outcome, "gone") << "it was so already";
    EXPECT_EQ(all[2].outcome, "done");
    EXPECT_EQ(all[2].name, "mails");
    EXPECT_EQ(all[2].kind, "queue");
    EXPECT_EQ(all[2].reason, "a test");
    EXPECT_THAT(all[2].by, HasSubstr("tester (dashboard, 127.0.0.1)"));
}

TEST_F(dashboard_queues, are_paused_by_nobody_who_may_not_act) {
    start({.token = token});
    EXPECT_EQ(act("pause").status, 403) << "it only shows";
    page.reset();
    start_acting();
    EXPECT_EQ(act("pause", "mails", "").status, 401);
    EXPECT_EQ(act("pause", "mails", bearer_line + "Origin: http://evil.example\r\n").status, 403);
    EXPECT_EQ(get(port(), "/api/queues/pause", bearer_line).status, 404);
    EXPECT_FALSE(mails.counts().paused);
    EXPECT_TRUE(eye.audit().empty());
}

TEST_F(dashboard_queues, must_be_named) {
    start_acting();
    EXPECT_EQ(act("pause", "").status, 400);
    EXPECT_EQ(post(port(), "/api/queues/pause", "nonsense", bearer_line).status, 400);
    EXPECT_EQ(act("drop").status, 404);
    EXPECT_TRUE(eye.audit().empty());
}

}  // namespace
}  // namespace lockstep::test
