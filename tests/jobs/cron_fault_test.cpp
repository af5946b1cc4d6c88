// Schedules of jobs under faults: leaders that are killed and paused, lost replies, clocks that are set.
#include "jobs_support.hpp"

#include "core/core.hpp"
#include "jobs/cron_scheduler.hpp"
#include "scripts/all.hpp"
#include "support/clock_file.hpp"

#include <lockstep/election.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <unistd.h>

namespace lockstep::test {
namespace {

using text = std::string;
using time = std::chrono::system_clock::time_point;

/// Who fires the schedules of the jobs "name".
struct scheduler_leader {
    explicit scheduler_leader(client& by) : where(detail::make_scheduler_venue(detail::core_access::of(by), "name", 10s)) {}
    std::optional<leader_info> leader() const { return sync_wait(where->leader()); }

    std::shared_ptr<detail::venue> where;
};

class cron_faults : public testing::Test {
protected:
    /// The due times of each schedule that have a job. One that has two is a failure.
    std::map<text, std::set<time>> fired() {
        std::map<text, std::set<time>> found;
        for (std::size_t from = 0;; from += 1'000) {
            auto const page = jobs.list("mail", job_state::waiting, from, 1'000);
            for (auto const& one : page) EXPECT_TRUE(found[one.cron].insert(one.due).second) << one.cron << " twice, as " << one.id;
            if (page.size() < 1'000) return found;
        }
    }
    /// Every second from the first to the last.
    static void expect_no_gap(std::map<text, std::set<time>> const& all) {
        for (auto const& [id, times] : all) EXPECT_EQ(*times.rbegin() - *times.begin(), (times.size() - 1) * 1s) << id << " was missed";
    }
    child_process runner(int takeover) { return child_process{{program_path("job_runner"), server.url(), "name", std::to_string(takeover), "fire"}}; }
    void put_every_second(int count) {
        for (int i = 0; i < count; ++i) jobs.cron("every-" + std::to_string(i), "mail", text{"x"}, {.expression = "* * * * * *"});
    }
    void drop_all() {
        for (auto const& one : jobs.crons()) jobs.drop_cron(one.id);
    }

    clock_file clock;
    redis_server server{{.clock = &clock}};
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    job_client jobs{near, "name"};
};

using slow_cron_faults = cron_faults;

TEST_F(slow_cron_faults, none_of_a_thousand_due_times_is_missed_or_doubled_though_leaders_are_killed_and_paused) {
    constexpr int takeover = 300;
    std::vector<child_process> runners;
    for (int i = 0; i < 3; ++i) runners.push_back(runner(takeover));
    put_every_second(100);
    scheduler_leader who{near};
    for (int round = 0; round < 12; ++round) {
        std::vector<child_process>::iterator leader;
        ASSERT_TRUE(eventually([&] {
            auto const leads = who.leader();
            if (!leads) return false;
            leader = std::find_if(runners.begin(), runners.end(), [&](child_process const& one) { return one.pid() == leads->pid; });
            return leader != runners.end();
        }));
        auto const count = jobs.counts("mail").ever_added;
        // In the middle of what is due in one second, as soon as the first of it came.
        ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added > count; }, 20s));
        if (round % 3 == 2) {
            leader->stop();
            auto const was = leader->pid();
            ASSERT_TRUE(eventually([&] {
                auto const leads = who.leader();
                return leads && leads->pid != was;
            }));
            leader->cont();
        } else {
            leader->kill();
            *leader = runner(takeover);
        }
    }
    auto const count = jobs.counts("mail").ever_added;
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= std::max<std::int64_t>(count + 100, 1'000); }, 20s));
    drop_all();
    auto const found = fired();
    EXPECT_EQ(found.size(), 100U);
    expect_no_gap(found);
}

TEST_F(cron_faults, a_due_time_is_fired_once_though_replies_are_lost) {
    put_every_second(20);
    job_worker worker{far, "name"};
    worker.start();
    for (int i = 0; i < 3; ++i) {
        proxy.delay(300ms, direction::to_client);
        auto const count = jobs.counts("mail").ever_added;
        ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added > count; }));
        proxy.cut();  // that was done, and its answer is on the way
        proxy.heal();
    }
    auto const count = jobs.counts("mail").ever_added;
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= count + 20; }));
    worker.stop();
    drop_all();
    expect_no_gap(fired());
}

TEST_F(cron_faults, two_who_both_think_that_they_lead_fire_a_due_time_once) {
    auto const due = jobs.cron("nightly", "mail", text{"x"}, {.expression = "@daily"});
    auto const ms = [](time at) { return std::to_string(at.time_since_epoch() / 1ms); };
    auto const version = [&] {
        auto const spec = near.command("HGET", "lockstep:{name}:jobs:crons:specs", "nightly").as<text>();
        return spec.substr(0, spec.find(' '));
    };
    auto const fire = [&](text const& by_version) {
        auto const said = near.command("EVAL", text{scripts::cron_fire.text}, 5, "lockstep:{name}:jobs:crons", "lockstep:{name}:jobs:crons:specs",
                                       "lockstep:{name}:jobs:crons:last", "lockstep:{name}:jobs:types", "lockstep:{name}:jobs:absent", "PUBLISH 1000 lockstep:{name}:jobs:q:wake:", "100",
                                       "nightly", by_version + ' ' + ms(due) + ' ' + ms(due + 24h) + ' ' + ms(due));
        return said[2].integer();
    };
    auto const old = version();
    jobs.cron("nightly", "mail", text{"y"}, {.expression = "@daily"});
    EXPECT_EQ(fire(old), 0) << "it was replaced since";
    EXPECT_EQ(fire(version()), 1);
    EXPECT_EQ(fire(version()), 0) << "somebody has done that";
    EXPECT_EQ(jobs.counts("mail").ever_added, 1);
    EXPECT_EQ(*jobs.crons()[0].next, due + 24h);
    EXPECT_EQ(*jobs.crons()[0].last, due);
    jobs.drop_cron("nightly");
    EXPECT_EQ(fire(old), 0) << "there is none any more";
}

TEST_F(cron_faults, what_a_leader_had_on_the_way_when_it_fell_silent_comes_too_late) {
    put_every_second(20);
    job_worker first{far, "name", {.cron_takeover = 500ms}};
    first.start();
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= 20; }));
    job_worker second{near, "name", {.cron_takeover = 500ms}};
    second.start();
    for (int i = 0; i < 3; ++i) {
        proxy.hold(direction::to_server);
        auto const count = jobs.counts("mail").ever_added;
        ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= count + 20; }, 20s)) << "the other one goes on";
        proxy.heal();
    }
    auto const count = jobs.counts("mail").ever_added;
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= count + 20; }));
    first.stop();
    second.stop();
    drop_all();
    expect_no_gap(fired());
}

// ---- clocks that are set

TEST_F(cron_faults, a_clock_that_is_set_forward_makes_up_for_what_was_missed_as_each_schedule_says_and_for_no_more) {
    job_worker worker{near, "name"};
    worker.start();
    jobs.cron("skip", "mail", text{"x"}, {.expression = "* * * * *"});
    jobs.cron("once", "mail", text{"x"}, {.expression = "* * * * *", .missed = missed_runs::once});
    jobs.cron("all", "mail", text{"x"}, {.expression = "* * * * *", .missed = missed_runs::all});
    clock.step(1h);
    jobs.cron("other", "mail", text{"x"}, {.expression = "@yearly"});  // it looks then
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= 60; }));
    worker.stop();
    auto const found = fired();
    EXPECT_GE(found.at("all").size(), 59U);
    EXPECT_LE(found.at("all").size(), 61U) << "each minute once";
    EXPECT_LE(found.at("once").size(), 2U);
    EXPECT_GE(found.at("once").size(), 1U);
    EXPECT_LE(found.contains("skip") ? found.at("skip").size() : 0U, 2U) << "those of the last minute are just late";
}

TEST_F(cron_faults, a_clock_that_is_set_back_and_forth_fires_each_due_time_once_and_the_next_leader_goes_on) {
    put_every_second(3);
    auto first = runner(500);
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= 3; }));
    clock.step(-1h);
    auto const count = jobs.counts("mail").ever_added;
    first.kill();
    job_worker second{near, "name", {.cron_takeover = 500ms}};
    second.start();
    EXPECT_FALSE(eventually([&] { return jobs.counts("mail").ever_added > count + 3; }, 300ms)) << "that hour was fired already";
    scheduler_leader who{near};
    ASSERT_TRUE(eventually([&] {
        auto const leads = who.leader();
        return leads && leads->pid == ::getpid();
    })) << "the seat of the dead one is free in time";
    // One that is put now has an hour of its own; and when the clock is right again, all go on.
    jobs.cron("new", "mail", text{"x"}, {.expression = "* * * * * *"});
    ASSERT_TRUE(eventually([&] { return fired()["new"].size() >= 2; }));
    clock.step(1h);
    jobs.drop_cron("new");
    ASSERT_TRUE(eventually([&] { return fired()["every-0"].size() >= static_cast<std::size_t>(count) / 3 + 2; }, 20s));
    second.stop();
    drop_all();
    auto found = fired();
    found.erase("new");  // of what was due when the clock was set forward, all but the last minute was missed
    expect_no_gap(found);
}

TEST_F(cron_faults, another_worker_goes_on_at_once_when_the_one_that_fires_schedules_stops) {
    put_every_second(1);
    auto first = std::make_unique<job_worker>(near, "name", job_worker_options{.cron_takeover = 1h});
    first->start();
    scheduler_leader who{near};
    ASSERT_TRUE(eventually([&] { return who.leader().has_value(); }));
    job_worker second{far, "name", {.cron_takeover = 1h}};
    second.start();
    first.reset();
    auto const count = jobs.counts("mail").ever_added;
    EXPECT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= count + 2; }));
    second.stop();
    drop_all();
    expect_no_gap(fired());
}

TEST_F(cron_faults, who_fires_schedules_goes_on_leading) {
    put_every_second(1);
    job_worker worker{near, "name"};
    worker.start();
    scheduler_leader who{near};
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= 1; }));
    auto const before = who.leader();
    ASSERT_TRUE(before);
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= 4; }));
    auto const after = who.leader();
    ASSERT_TRUE(after);
    EXPECT_EQ(after->term, before->term);
    worker.stop();
}

TEST_F(cron_faults, schedules_go_on_after_the_server_was_away) {
    put_every_second(1);
    job_worker worker{far, "name", {.cron_takeover = 500ms}};
    worker.start();
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= 1; }));
    proxy.refuse();
    proxy.cut();
    auto const count = jobs.counts("mail").ever_added;
    EXPECT_FALSE(eventually([&] { return jobs.counts("mail").ever_added >= count + 2; }, 1500ms));
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= count + 2; }, 20s));
    worker.stop();
    drop_all();
    expect_no_gap(fired());
}

TEST_F(cron_faults, nobody_stands_for_election_while_there_is_no_schedule) {
    job_worker worker{near, "name"};
    worker.handle<text>("mail", [](text const&) {});
    worker.start();
    ASSERT_TRUE(jobs.wait(jobs.schedule("mail", text{"x"}).id, 10s));
    scheduler_leader who{near};
    EXPECT_FALSE(who.leader());
    jobs.cron("nightly", "mail", text{"x"}, {.expression = "@daily"});
    EXPECT_TRUE(eventually([&] { return who.leader().has_value(); })) << "it was told";
    jobs.drop_cron("nightly");
    EXPECT_TRUE(eventually([&] { return !who.leader(); }));
}

TEST_F(cron_faults, an_election_of_the_users_is_never_in_the_way_of_schedules) {
    std::vector<election> elections;
    for (text const name : {"jobs:name", "name", "name:scheduler", "scheduler"}) elections.emplace_back(far, name);
    std::vector<leadership> led;
    for (auto& one : elections) led.push_back(one.campaign());
    put_every_second(1);
    job_worker worker{near, "name"};
    worker.start();
    EXPECT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= 2; }));
}

TEST_F(cron_faults, schedules_of_two_long_names_that_begin_alike_are_fired_both) {
    for (char const last : {'1', '2'}) {
        auto const name = text(511, 'n') + last;
        job_client long_named{near, name};
        long_named.cron("every", "mail", text{"x"}, {.expression = "* * * * * *"});
    }
    client others[]{client{server.url()}, client{server.url()}};
    job_worker first{others[0], text(511, 'n') + '1'};
    job_worker second{others[1], text(511, 'n') + '2'};
    first.start();
    second.start();
    for (char const last : {'1', '2'}) {
        EXPECT_TRUE(eventually([&] { return job_client(near, text(511, 'n') + last).counts("mail").ever_added >= 1; })) << last;
    }
}

// Without time zones, as on a machine that has no tzdata.
class cron_zones : public cron_faults {
protected:
    void SetUp() override {
        ASSERT_EQ(poor.read_line(), "ready");
        put_every_second(1);
        ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= 1; })) << "it leads";
    }
    time put_far() { return jobs.cron("far", "mail", text{"x"}, {.expression = "* * * * * *", .zone = "Europe/Berlin", .missed = missed_runs::all, .late = 1min}); }

    scheduler_leader who{near};
    child_process poor{{"/usr/bin/env", "TZDIR=/nowhere", program_path("job_runner"), server.url(), "name", "1000", "fire"}};
};

TEST_F(cron_zones, that_a_leader_does_not_know_are_left_to_a_worker_that_does) {
    auto rich = runner(1'000);
    ASSERT_TRUE(eventually([&] {
        auto const is = who.leader();
        return is && is->candidates >= 1 && is->pid == poor.pid();
    }));
    auto const due = put_far();
    EXPECT_TRUE(eventually([&] { return fired()["far"].size() >= 2; }));
    EXPECT_EQ(who.leader()->pid, rich.pid());
    rich.close_input();
    EXPECT_TRUE(rich.wait());
    drop_all();
    auto const found = fired();
    EXPECT_EQ(*found.at("far").begin(), due) << "the due time that the first one saw is not lost";
    expect_no_gap(found);
}

TEST_F(cron_zones, that_nobody_knows_do_not_keep_other_schedules_from_being_fired) {
    auto const due = put_far();
    auto const count = jobs.counts("mail").ever_added;
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added >= count + 4; }, 20s));
    for (auto const& one : jobs.crons()) {
        if (one.id == "far") {
            EXPECT_EQ(*one.next, due);
        }
    }
    drop_all();
    auto const found = fired();
    EXPECT_FALSE(found.contains("far"));
    expect_no_gap(found);
}

TEST_F(cron_faults, due_times_are_those_of_the_servers_clock) {
    clock.set_offset(-5h);
    auto const due = jobs.cron("hourly", "mail", text{"x"}, {.expression = "@hourly"});
    EXPECT_LT(due, std::chrono::system_clock::now() - 3h);
    job_worker worker{near, "name"};
    worker.start();
    auto const left = due - (std::chrono::system_clock::now() - 5h);
    clock.step(std::chrono::duration_cast<std::chrono::microseconds>(left + 1s));
    jobs.cron("other", "mail", text{"x"}, {.expression = "@yearly"});  // it looks then
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added == 1; }));
    EXPECT_EQ(fired().at("hourly"), std::set<time>{due});
    clock.step(-2h);
    jobs.cron("other", "mail", text{"y"}, {.expression = "@yearly"});
    EXPECT_FALSE(eventually([&] { return jobs.counts("mail").ever_added != 1; }, 100ms)) << "a clock that is set back fires nothing again";
}

TEST_F(cron_faults, ten_thousand_that_are_due_in_the_same_second_all_have_their_jobs) {
    std::vector<task<time>> putting;
    for (int i = 0; i < 10'000; ++i) putting.push_back(jobs.async_cron("n" + std::to_string(i), "mail", text{"x"}, {.expression = "@yearly", .late = 24h * 30}));
    auto const dues = sync_wait(when_all(std::move(putting)));
    auto const until = dues.front() - std::chrono::system_clock::now();
    clock.step(std::chrono::duration_cast<std::chrono::microseconds>(until + 1s));
    job_worker worker{near, "name"};
    auto const begun = std::chrono::steady_clock::now();
    worker.start();
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_added == 10'000; }, 30s));
    RecordProperty("took_ms", static_cast<int>((std::chrono::steady_clock::now() - begun) / 1ms));
    std::cout << "took " << (std::chrono::steady_clock::now() - begun) / 1ms << " ms\n";
    EXPECT_EQ(fired().size(), 10'000U);
}

}  // namespace
}  // namespace lockstep::test
