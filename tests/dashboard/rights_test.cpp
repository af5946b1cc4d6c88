// What a dashboard shows and does as a user with the rights that `lockstep acl --for look` and `--for act` print.
#include "dashboard/server.hpp"

#include "http_client.hpp"
#include "observe/acl.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <lockstep/election.hpp>
#include <lockstep/error.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/queue.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using observe::acl_use;
using testing::HasSubstr;
using text = std::string;

class dashboard_rights : public testing::Test {
protected:
    void make_user(acl_use use) {
        std::vector<text> words{"ACL", "SETUSER", "viewer"};
        for (auto const& rule : observe::acl_rules({.uses = {use}})) words.push_back(rule);
        words.insert(words.end(), {"on", ">secret"});
        redis.must(words);
    }
    client_options login() const { return {.url = redis.url(), .user = "viewer", .password = "secret", .name = "dashboard"}; }
    // Commands and keys that the server refused, but for two that it does without.
    std::vector<text> refused() {
        std::vector<text> objects;
        for (auto const& entry : redis.must({"ACL", "LOG"}).elements) {
            for (std::size_t i = 0; i + 1 < entry.elements.size(); i += 2) {
                auto const& object = entry.elements[i + 1].text;
                if (entry.elements[i].text == "object" && object != "publish" && object != "pubsub|channels") objects.push_back(object);
            }
        }
        return objects;
    }

    redis_server redis;
    client worker{{.url = redis.url(), .name = "worker", .record = true}};
    job_client jobs{worker, "shop"};
};

TEST_F(dashboard_rights, to_look_suffice_to_show_everything) {
    auto held = mutex{worker, "x"}.acquire();
    auto const leading = election{worker, "el"}.campaign();
    auto const one = jobs.schedule("mail", text{"a"});
    jobs.cron("nightly", "mail", text{"all"}, {.expression = "@daily"});
    make_user(acl_use::look);
    client by{login()};
    dashboard::monitor_backend shown{by};
    std::atomic<int> pictures{0};
    auto watching = shown.watch([&](snapshot const& now) { pictures += now.trouble.empty() ? 1 : -1'000; });
    EXPECT_TRUE(eventually([&] { return pictures > 0; }, 20s));
    EXPECT_TRUE(eventually([&] { return shown.snapshot().holds.size() == 2 && !shown.statistics("x").empty() && !shown.history("x", 10).empty(); }, 30s));
    EXPECT_EQ(shown.active("x").size(), 1U);
    EXPECT_EQ(shown.why("x").holds.size(), 1U);
    EXPECT_EQ(shown.changes("el", 10).size(), 1U);
    EXPECT_TRUE(shown.audit(10).empty());
#ifdef LOCKSTEP_HAS_METRICS
    EXPECT_THAT(shown.metrics(), HasSubstr("lockstep_"));
#endif
    EXPECT_TRUE(eventually([&] { return shown.jobs().look()->queues.size() == 1; }, 30s));
    EXPECT_EQ(shown.jobs().list({}, job_state::waiting, 0, 10).jobs.size(), 1U);
    EXPECT_EQ(shown.jobs().find("shop", one.id)->state, job_state::waiting);
    EXPECT_EQ(shown.jobs().flow_of("shop", one.id, 10).jobs.size(), 1U);
    EXPECT_EQ(shown.jobs().crons("shop").crons.size(), 1U);
    EXPECT_THAT(refused(), testing::IsEmpty());
    EXPECT_THROW(shown.release(shown.active("x").at(0), {.force = true}), server_error);
    EXPECT_THROW(shown.set_queue_paused("mails", true, "tester", ""), server_error);
    EXPECT_FALSE((queue<text>{worker, "mails"}.counts().paused));
    EXPECT_THROW(shown.jobs().act(dashboard::job_deed::cancel, "shop", *shown.jobs().find("shop", one.id), "tester", ""), server_error);
    EXPECT_TRUE(held.valid());
    EXPECT_EQ(jobs.find(one.id)->state, job_state::waiting);
}

TEST_F(dashboard_rights, to_write_are_not_needed_by_probes) {
    redis.must({"ACL", "SETUSER", "viewer", "on", ">secret", "~*", "&*", "+@all", "-@write"});
    client by{login()};
    dashboard::monitor_backend shown{by};
    dashboard::server const page{shown, {.port = 0}};
    auto const answer = get(page.port(), "/healthz");
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(shown.health().state, health_state::unhealthy) << "as it is where a lock is tried";
}

TEST_F(dashboard_rights, to_act_suffice_for_every_action_and_are_noted) {
    auto const held = mutex{worker, "x"}.acquire();
    auto const one = jobs.schedule("mail", text{"a"}, {.delay = 1h});
    auto const other = jobs.schedule("mail", text{"b"});
    make_user(acl_use::act);
    client by{login()};
    dashboard::monitor_backend shown{by};
    EXPECT_TRUE(shown.ask(shown.active("x").at(0), {}));
    EXPECT_TRUE(shown.release(shown.active("x").at(0), {.force = true}));
    auto& desk = shown.jobs();
    EXPECT_TRUE(desk.act(dashboard::job_deed::cancel, "shop", *desk.find("shop", one.id), "tester", "a test"));
    EXPECT_TRUE(desk.act(dashboard::job_deed::retry, "shop", *desk.find("shop", one.id), "tester", "a test"));
    EXPECT_EQ(desk.act(dashboard::queue_deed::pause, {"shop", "mail"}, job_state::unknown, "tester", ""), 1);
    EXPECT_EQ(desk.act(dashboard::queue_deed::resume, {"shop", "mail"}, job_state::unknown, "tester", ""), 1);
    EXPECT_EQ(desk.act(dashboard::queue_deed::cancel, {"shop", "mail"}, job_state::waiting, "tester", ""), 2);
    EXPECT_EQ(desk.act(dashboard::queue_deed::retry, {"shop", "mail"}, job_state::cancelled, "tester", ""), 2);
    EXPECT_EQ(jobs.find(other.id)->state, job_state::waiting);
    queue<text>{worker, "mails"}.enqueue("one");
    EXPECT_TRUE(shown.set_queue_paused("mails", true, "tester", ""));
    EXPECT_TRUE(shown.set_queue_paused("mails", false, "tester", ""));
    auto const log = shown.audit(20);
    ASSERT_EQ(log.size(), 10U);
    for (auto const& entry : log) EXPECT_EQ(entry.outcome, "done") << entry.action;
    by.close();
    EXPECT_THAT(refused(), testing::IsEmpty());
}

}  // namespace
}  // namespace lockstep::test
