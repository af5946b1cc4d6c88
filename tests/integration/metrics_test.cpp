// What Prometheus reads, as it reads it: the text exposition, parsed.
#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "topology_support.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/job_client.hpp>
#include <lockstep/job_worker.hpp>
#include <lockstep/metrics.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/queue.hpp>
#include <lockstep/stream.hpp>
#include <lockstep/work_stealing_queue.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <cmath>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

/// One scrape: samples by their name and labels as they stand, types and helps by family.
struct scrape {
    explicit scrape(lockstep::metrics const& of) : text{prometheus::TextSerializer{}.Serialize(of.Collect())} {
        std::istringstream in{text};
        for (std::string line; std::getline(in, line);) {
            std::smatch parts;
            if (std::regex_match(line, parts, std::regex{R"(# (HELP|TYPE) (\S+) (.+))"})) {
                (parts[1] == "HELP" ? helps : types)[parts[2]] = parts[3];
            } else if (std::regex_match(line, parts, std::regex{R"(([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^}]*\})?) (\S+))"})) {
                EXPECT_TRUE(samples.emplace(parts[1], std::stod(parts[2])).second) << "twice: " << line;
            } else {
                ADD_FAILURE() << "no line of the text format: " << line;
            }
        }
    }
    double value(std::string const& name) const {
        auto const found = samples.find(name);
        return found == samples.end() ? std::nan("") : found->second;
    }

    std::string text;
    std::map<std::string, std::string> helps, types;
    std::map<std::string, double> samples;
};

class metrics_of_a_client : public testing::Test {
protected:
    redis_server server;
    client by{server.url()};
};

TEST_F(metrics_of_a_client, are_named_and_explained_as_prometheus_wants_it) {
    lockstep::metrics const metrics{by, {.fleet = true}};
    mutex(by, "name").acquire().release();
    scrape const seen{metrics};
    EXPECT_GT(seen.types.size(), 15U);
    for (auto const& [name, type] : seen.types) {
        EXPECT_TRUE(name.starts_with("lockstep_")) << name;
        EXPECT_EQ(name.ends_with("_total"), type == "counter") << name << " is a " << type;
        EXPECT_TRUE(seen.helps.contains(name) && seen.helps.at(name).ends_with('.')) << name << " is not explained";
        EXPECT_TRUE(type != "histogram" || name.ends_with("_seconds")) << name;
    }
    EXPECT_EQ(seen.types.size(), seen.helps.size());
    EXPECT_EQ(seen.text.find("nan"), std::string::npos) << seen.text;
}

TEST_F(metrics_of_a_client, count_what_it_did) {
    lockstep::metrics const metrics{by};
    scrape const before{metrics};
    EXPECT_EQ(before.value("lockstep_acquisitions_total{kind=\"lock\"}"), 0) << before.text;
    client other{server.url()};
    mutex mine{by, "name"};
    for (int i = 0; i < 3; ++i) mine.acquire().release();
    {
        auto const taken = mutex(other, "name").acquire();
        EXPECT_FALSE(mine.try_acquire_for(20ms));
    }
    auto permits = counting_semaphore::create(by, "permits", 2);
    permits.acquire().release();
    scrape const after{metrics};
    EXPECT_EQ(after.value("lockstep_acquisitions_total{kind=\"lock\"}"), 3) << after.text;
    EXPECT_EQ(after.value("lockstep_acquisitions_total{kind=\"semaphore\"}"), 1);
    EXPECT_EQ(after.value("lockstep_timeouts_total{kind=\"lock\"}"), 1);
    EXPECT_EQ(after.value("lockstep_losses_total{kind=\"lock\"}"), 0);
    EXPECT_EQ(after.value("lockstep_hold_seconds_count{kind=\"lock\"}"), 3);
    EXPECT_EQ(after.value("lockstep_wait_seconds_count{kind=\"lock\"}"), 3);
    EXPECT_GT(after.value("lockstep_wait_seconds_sum{kind=\"lock\"}"), 0);
    EXPECT_GT(after.value("lockstep_requests_total"), before.value("lockstep_requests_total"));
    EXPECT_EQ(after.value("lockstep_connects_total"), 1);
    EXPECT_EQ(after.value("lockstep_connections"), 1);
    EXPECT_TRUE(std::isnan(after.value("lockstep_fleet_up"))) << "nobody asked for it";
}

TEST_F(metrics_of_a_client, count_what_it_did_with_queues) {
    lockstep::metrics const metrics{by};
    EXPECT_EQ(scrape(metrics).value("lockstep_queue_enqueued_total{kind=\"queue\"}"), 0);
    {
        queue<std::string> mine{by, "jobs", {.visibility = 2s}};
        mine.enqueue_many(std::vector<std::string>{"a", "b", "c"});
        mine.enqueue("d", {.key = "once"});
        EXPECT_FALSE(mine.enqueue("e", {.key = "once"}).is_new);
        mine.dequeue().ack();
        mine.dequeue().nack(1h);
        { auto const dropped = mine.dequeue(); }
        auto late = mine.dequeue();
        server.stop();
        EXPECT_TRUE(eventually([&] { return !late.is_valid(); }));
        server.cont();
        client thief{server.url()};
        queue<std::string> theirs{thief, "jobs"};
        for (int i = 0; i < 2; ++i) theirs.dequeue().ack();  // the dropped one and this one
        EXPECT_THROW(late.ack(), lease_lost_error);
        work_stealing_queue<std::string>{by, "steal", "me"}.push("x");
    }
    {
        queue<std::string> other{by, "others"};
        other.enqueue_many(std::vector<std::string>{"good", "bad"});
        std::atomic<int> seen{0};
        auto worker = other.consume({}, [&](queue<std::string>::item& one) {
            ++seen;
            if (one.value() == "bad") throw std::runtime_error("bad");
        });
        EXPECT_TRUE(eventually([&] { return seen >= 2; }));
        worker.stop();
    }
    scrape const after{metrics};
    auto const of = [&](std::string const& what, std::string const& kind = "queue") { return after.value("lockstep_queue_" + what + "_total{kind=\"" + kind + "\"}"); };
    EXPECT_EQ(of("enqueued"), 6) << after.text;
    EXPECT_EQ(of("enqueued", "lanes"), 1);
    EXPECT_EQ(of("taken"), 6);
    EXPECT_EQ(of("taken", "lanes"), 0);
    EXPECT_EQ(of("acknowledged"), 2);
    EXPECT_EQ(of("returned"), 3) << "by nack, dropped, and by a handler that threw";
    EXPECT_EQ(of("lost"), 1);
    EXPECT_EQ(of("handled"), 1);
    EXPECT_EQ(of("failed"), 1);
}

TEST_F(metrics_of_a_client, count_what_it_did_with_jobs) {
    lockstep::metrics const metrics{by};
    job_client jobs{by, "name"};
    jobs.schedule("mail", std::string{"good"});
    EXPECT_FALSE((jobs.schedule("mail", std::string{"key"}, {.key = "k"}), jobs.schedule("mail", std::string{"left out"}, {.key = "k"})).is_new);
    jobs.schedule("mail", std::string{"bad"}, {.attempts = 3, .backoff = 0ms});
    job_flow flow;
    flow.add("a", "mail", std::string{"good"}).add("b", "mail", std::string{"good"}).after("b", "a");
    jobs.add_flow(flow);
    {
        job_worker worker{by, "name"};
        worker.handle<std::string>("mail", [](std::string const& what) { if (what == "bad") throw std::runtime_error{what}; });
        worker.start();
        EXPECT_TRUE(eventually([&] { return jobs.counts("mail").completed == 4 && jobs.counts("mail").failed == 1; }));
    }
    scrape const after{metrics};
    auto const of = [&](std::string const& what) { return after.value("lockstep_jobs_" + what + "_total"); };
    EXPECT_EQ(of("scheduled"), 5) << after.text;
    EXPECT_EQ(of("begun"), 7);
    EXPECT_EQ(of("completed"), 4);
    EXPECT_EQ(of("retried"), 2);
    EXPECT_EQ(of("failed"), 1);
    EXPECT_EQ(of("lost"), 0);
}

TEST_F(metrics_of_a_client, count_what_its_consumers_did_when_these_are_gone_too) {
    lockstep::metrics const metrics{by};
    stream orders{by, "orders"};
    for (int i = 0; i < 3; ++i) orders.add_value(std::string{"good"});
    orders.add_value(std::string{"bad"});
    {
        consumer worker{by, "orders", [](delivery const& what) { if (what.as<std::string>() == "bad") throw reject("bad"); }, {.group = "g"}};
        EXPECT_TRUE(eventually([&] { return worker.statistics().acknowledged == 3 && worker.statistics().dead == 1; }));
    }
    scrape const after{metrics};
    EXPECT_EQ(after.value("lockstep_consumer_received_total"), 4) << after.text;
    EXPECT_EQ(after.value("lockstep_consumer_acknowledged_total"), 3);
    EXPECT_EQ(after.value("lockstep_consumer_failed_total"), 1);
    EXPECT_EQ(after.value("lockstep_consumer_dead_total"), 1);
    EXPECT_EQ(after.value("lockstep_consumer_retried_total"), 0);
    EXPECT_EQ(after.value("lockstep_consumer_recovered_total"), 0);
}

TEST_F(metrics_of_a_client, have_histograms_that_add_up) {
    lockstep::metrics const metrics{by};
    mutex mine{by, "name"};
    for (int i = 0; i < 50; ++i) mine.acquire().release();
    scrape const seen{metrics};
    for (std::string const name : {"lockstep_hold_seconds", "lockstep_wait_seconds"}) {
        std::map<double, double> buckets;
        for (auto const& [sample, value] : seen.samples) {
            std::smatch parts;
            std::regex const bucket{name + R"re(_bucket\{kind="lock",le="([^"]+)"\})re"};
            if (std::regex_match(sample, parts, bucket)) buckets[std::stod(parts[1])] = value;
        }
        ASSERT_EQ(buckets.size(), 15U) << seen.text;
        double last = 0;
        for (auto const& [bound, count] : buckets) {
            EXPECT_GE(count, last) << bound;
            last = count;
        }
        EXPECT_EQ(last, 50) << "the last is +Inf";
        EXPECT_TRUE(std::isinf(buckets.rbegin()->first));
        auto const sum = seen.value(name + "_sum{kind=\"lock\"}");
        double most = 0;
        double before = 0;
        for (auto const& [bound, count] : buckets) {
            if (!std::isinf(bound)) most += bound * (count - before);
            before = count;
        }
        EXPECT_LE(sum, most + 1e-9) << "no more than all at the upper bounds of their buckets";
    }
}

TEST_F(metrics_of_a_client, never_fall) {
    lockstep::metrics const metrics{by};
    {
        auto session = by.open_session();
        for (int i = 0; i < 100; ++i) session.command("PING");
        EXPECT_GE(scrape(metrics).value("lockstep_requests_total"), 100);
    }
    EXPECT_GE(scrape(metrics).value("lockstep_requests_total"), 100) << "although that connection is gone";
}

TEST_F(metrics_of_a_client, see_the_fleet) {
    lockstep::metrics const metrics{by, {.fleet = true}};
    client other{{.url = server.url(), .name = "other"}};
    auto const held = mutex(other, "a").acquire();
    auto const more = mutex(other, "b").acquire();
    begun waiting{mutex(by, "a").async_acquire()};
    ASSERT_TRUE(eventually([&] { return scrape(metrics).value("lockstep_fleet_objects{kind=\"lock\"}") == 2; }, 12s)) << "the server was told of them";
    ASSERT_TRUE(eventually([&] { return scrape(metrics).value("lockstep_fleet_waiters{kind=\"lock\"}") == 1; }));
    scrape const seen{metrics};
    EXPECT_EQ(seen.value("lockstep_fleet_up"), 1);
    EXPECT_EQ(seen.value("lockstep_fleet_holds{kind=\"lock\"}"), 2) << seen.text;
    EXPECT_EQ(seen.value("lockstep_fleet_holds{kind=\"semaphore\"}"), 0);
    EXPECT_EQ(seen.value("lockstep_fleet_objects{kind=\"lock\"}"), 2);
    EXPECT_EQ(seen.value("lockstep_fleet_stale_holds{kind=\"lock\"}"), 0);
    EXPECT_TRUE(eventually([&] { return scrape(metrics).value("lockstep_fleet_clients") >= 2; }, 20s));
}

TEST_F(metrics_of_a_client, count_keys_that_can_not_be_read_without_naming_them) {
    for (int i = 0; i < 3; ++i) server.must({"SET", "lockstep:{evil" + std::to_string(i) + "}:lock", "x"});
    for (int i = 0; i < 3; ++i) {
        for (int shard = 0; shard < 16; ++shard) server.must({"ZADD", "lockstep:{objects/" + std::to_string(shard) + "}:index", "9999999999999", "{evil" + std::to_string(i) + "}:lock"});
    }
    for (bool const names : {false, true}) {
        lockstep::metrics const metrics{by, {.fleet = true, .names = names}};
        EXPECT_EQ(scrape(metrics).value("lockstep_fleet_unreadable_keys"), 3) << scrape(metrics).text;
    }
}

TEST_F(metrics_of_a_client, see_what_waits_in_queues_and_streams) {
    lockstep::metrics const sums{by, {.fleet = true}};
    lockstep::metrics const single{by, {.fleet = true, .names = true}};
    EXPECT_EQ(scrape(sums).value("lockstep_fleet_queue_items{kind=\"queue\",state=\"ready\"}"), 0) << "none is known";
    EXPECT_EQ(scrape(sums).value("lockstep_fleet_stream_lag"), 0);
    queue<std::string> one{by, "one"};
    queue<std::string> two{by, "two", {.max_deliveries = 1}};
    one.enqueue_many(std::vector<std::string>{"a", "b"});
    one.enqueue("later", {.delay = 1h});
    two.enqueue_many(std::vector<std::string>{"a", "b", "c"});
    two.dequeue().nack();
    auto const held = two.dequeue();
    stream log{by, "log"};
    log.create_group("slow");
    log.create_group("\xFF odd");
    for (int i = 0; i < 5; ++i) log.add({{"a", "b"}});
    log.read_group("slow", "me", 2);
    auto const of = [](std::string const& labels) { return "lockstep_fleet_queue_items{kind=\"queue\"," + labels + "}"; };
    ASSERT_TRUE(eventually([&] {
        scrape const now{sums};
        return now.value("lockstep_fleet_stream_entries") == 5 && now.value(of("state=\"ready\"")) == 3;
    }, 12s)) << "the server was told of them";
    scrape const all{sums};
    EXPECT_EQ(all.value(of("state=\"ready\"")), 3) << all.text;
    EXPECT_EQ(all.value(of("state=\"delayed\"")), 1);
    EXPECT_EQ(all.value(of("state=\"held\"")), 1);
    EXPECT_EQ(all.value(of("state=\"dead\"")), 1);
    EXPECT_EQ(all.value("lockstep_fleet_stream_entries"), 5);
    EXPECT_EQ(all.value("lockstep_fleet_stream_lag"), 3 + 5);
    EXPECT_EQ(all.value("lockstep_fleet_stream_pending"), 2);
    scrape const each{single};
    EXPECT_EQ(each.value(of("state=\"ready\",name=\"one\"")), 2) << each.text;
    EXPECT_EQ(each.value(of("state=\"dead\",name=\"two\"")), 1);
    EXPECT_EQ(each.value("lockstep_fleet_stream_lag{name=\"log\",group=\"slow\"}"), 3);
    EXPECT_EQ(each.value("lockstep_fleet_stream_pending{name=\"log\",group=\"slow\"}"), 2);
    EXPECT_EQ(each.value("lockstep_fleet_stream_lag{name=\"log\",group=\"\xEF\xBF\xBD odd\"}"), 5) << "what is no text is shown as such";
}

TEST_F(metrics_of_a_client, are_there_when_the_server_is_not) {
    lockstep::metrics const metrics{by, {.fleet = true, .within = 300ms}};
    mutex(by, "name").acquire().release();
    ASSERT_EQ(scrape(metrics).value("lockstep_fleet_up"), 1);
    server.stop();
    auto const begin = now_ms();
    scrape const seen{metrics};
    EXPECT_LE(now_ms() - begin, 300 + 2'000);
    EXPECT_EQ(seen.value("lockstep_fleet_up"), 0) << seen.text;
    EXPECT_EQ(seen.value("lockstep_acquisitions_total{kind=\"lock\"}"), 1);
    EXPECT_TRUE(std::isnan(seen.value("lockstep_fleet_holds{kind=\"lock\"}"))) << "not known is not none";
    server.cont();
    EXPECT_EQ(scrape(metrics).value("lockstep_fleet_up"), 1);
}

TEST_F(metrics_of_a_client, of_a_closed_one_do_not_throw) {
    lockstep::metrics const metrics{by, {.fleet = true}};
    mutex(by, "name").acquire().release();
    by.close();
    scrape const seen{metrics};
    EXPECT_EQ(seen.value("lockstep_fleet_up"), 0);
    EXPECT_EQ(seen.value("lockstep_connections"), 0);
}

}  // namespace
}  // namespace lockstep::test
