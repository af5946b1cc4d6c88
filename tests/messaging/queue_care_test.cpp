// What queues leave behind, what goes on without memory, and copies of requests that come late.
#include "queue_support.hpp"

#include "messaging/queue_wire.hpp"
#include "scripts/all.hpp"

#include <lockstep/consumer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using texts = queue<std::string>;

task<bool> ended(task<void> work) {
    co_await std::move(work);
    co_return true;
}

class queue_care : public near_and_far {
protected:
    long long left_of(std::string const& part) { return server.must({"PTTL", queue_key + ":" + part}).integer; }
    void let_waiters_die(int count) {
        std::vector<std::unique_ptr<child_process>> dying;
        for (int i = 0; i < count; ++i) {
            dying.push_back(std::make_unique<child_process>(std::vector<std::string>{program_path("queue_consumer"), server.url(), "name", "wait"}));
        }
        ASSERT_TRUE(eventually([&] { return waiting(server) == std::to_string(count); }));
        for (auto const& one : dying) {
            one->kill();
            ASSERT_TRUE(one->wait());
        }
    }
    /// Keys of ours that would stay for ever.
    std::vector<std::string> lasting() {
        std::vector<std::string> found;
        for (auto const& key : server.must({"KEYS", "lockstep:{name}*"}).elements) {
            if (server.must({"PTTL", key.text}).integer == -1) found.push_back(key.text);
        }
        return found;
    }

    texts here{near, "name"};
    texts there{far, "name"};
};

TEST_F(queue_care, dead_waiters_in_front_make_nothing_late) {
    let_waiters_die(4);
    begun alive{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "5"; }));
    ASSERT_TRUE(is_silent(server)) << "it looks once more when it is subscribed";
    here.enqueue("x", {.delay = 300ms});
    EXPECT_EQ(waiting(server), "1") << "those whom nobody hears are forgotten";
    auto got = alive.get(15s);
    ASSERT_TRUE(got) << "long before the look of every 30 s";
    got->ack();
}

TEST_F(queue_care, dead_waiters_stay_while_nobody_behind_them_is_heard) {
    let_waiters_die(3);
    here.enqueue("x", {.delay = 1h});
    EXPECT_EQ(waiting(server), "3") << "while a slot moves nobody may be heard";
}

TEST_F(queue_care, only_the_first_few_who_wait_look_when_a_lease_ends) {
    here.enqueue("x");
    texts brief{near, "name", {.visibility = 10s}};
    auto held = brief.dequeue(10s);
    ASSERT_TRUE(held);
    std::vector<std::unique_ptr<client>> clients;
    std::vector<std::unique_ptr<texts>> queues;
    std::vector<begun<std::optional<texts::item>>> all;
    for (int i = 0; i < 8; ++i) {
        clients.push_back(std::make_unique<client>(server.url()));
        queues.push_back(std::make_unique<texts>(*clients.back(), "name"));
        all.emplace_back(queues.back()->async_dequeue(60s));
        ASSERT_TRUE(eventually([&] { return waiting(server) == std::to_string(i + 1); }));
    }
    ASSERT_TRUE(is_silent(server));
    int soon = 0;
    int late = 0;
    for (auto const& key : server.must({"KEYS", queue_key + ":call:*"}).elements) {
        std::istringstream record{server.must({"GET", key.text}).text};
        long long sequence = 0;
        long long now = 0;
        long long look = 0;
        int waits = 0;
        if (!(record >> sequence >> now >> look >> waits) || waits != 1) continue;
        ++(look < 11'000 ? soon : late);
    }
    EXPECT_EQ(soon, 3);
    EXPECT_EQ(late, 5);
    held->ack();
}

TEST_F(queue_care, a_purge_that_is_sent_again_does_not_remove_what_came_since) {
    here.enqueue("old");
    EXPECT_EQ(there.counts().ready, 1);
    EXPECT_EQ((texts{far, "other"}.purge()), 0);  // the server knows the script
    proxy.hold(direction::to_client);
    begun purging{there.async_purge()};
    ASSERT_TRUE(eventually([&] { return here.counts().ready == 0; }));
    here.enqueue("new");
    proxy.cut();
    proxy.heal();
    EXPECT_EQ(purging.get(), 1);
    EXPECT_THAT(drain(here), ElementsAre("new"));
}

TEST_F(queue_care, dead_letters_that_are_put_back_twice_are_put_back_once) {
    texts strict{near, "name", {.max_deliveries = 1}};
    auto const die = [&](std::string const& what) {
        strict.enqueue(what);
        auto one = strict.dequeue(10s);
        ASSERT_TRUE(one);
        one->nack();
    };
    die("x");
    EXPECT_EQ((texts{far, "other"}.requeue_dead("1-1")), 0);
    auto const id = here.dead_letters()[0].id;
    proxy.hold(direction::to_client);
    begun reviving{there.async_requeue_dead(id)};
    ASSERT_TRUE(eventually([&] { return here.counts().ready == 1; }));
    proxy.cut();
    proxy.heal();
    EXPECT_EQ(reviving.get(), 1) << "and not none, as the letter is gone";
    EXPECT_THAT(drain(here), ElementsAre("x"));
}

task<void> fail_always(std::string) {
    throw reject("no");  // one that throws something else would slow the worker down
    co_return;
}

TEST_F(queue_care, putting_all_dead_letters_back_ends_although_they_die_again) {
    texts strict{near, "name", {.max_deliveries = 1, .max_dead = 10'000}};
    std::vector<std::string> const many(3000, "x");
    strict.enqueue_many(many);
    auto const worker = strict.consume({.concurrency = 200}, [](std::string const& what) { return fail_always(what); });
    ASSERT_TRUE(eventually([&] { return strict.counts().dead == 3000; }));
    EXPECT_EQ(there.requeue_dead(), 3000);
    ASSERT_TRUE(eventually([&] { return strict.counts().dead == 3000; }));
}

// Its lease had ended, and under what it knows of the item there is another one by now.
TEST_F(queue_care, who_had_an_item_before_it_died_can_say_nothing_of_it_when_it_was_put_back) {
    texts brief{near, "name", {.visibility = 20ms, .renew = false, .max_deliveries = 1}};
    texts strict{far, "name", {.max_deliveries = 1}};
    here.enqueue("x");
    std::optional first{brief.dequeue()};
    ASSERT_TRUE(eventually([&] { return !strict.try_dequeue() && strict.counts().dead == 1; }));
    EXPECT_EQ(strict.requeue_dead(), 1);
    auto second = strict.dequeue();
    EXPECT_EQ(second.value(), "x");
    EXPECT_EQ(second.deliveries(), 1);
    EXPECT_EQ(ending_of([&] { first->extend(1min); }).reason, errc::lease_lost);
    EXPECT_EQ(ending_of([&] { first->ack(); }).reason, errc::lease_lost);
    first.reset();
    EXPECT_EQ(brief.counts().held, 1);
    second.ack();
    EXPECT_EQ(strict.counts().dead, 0);
}

// A call brings 4,000 items at most: who does not wait for room is not in one while more than that wait for it.
TEST_F(queue_care, who_does_not_wait_for_room_does_not_wait_behind_thousands_who_do) {
    texts bounded{near, "name", {.max_length = 5000}};
    std::vector<std::string> const many(5000, "y");
    bounded.enqueue_many(many);
    begun waits{bounded.async_enqueue_many(many)};
    ASSERT_TRUE(eventually([&] { return waiting(server, "room") == "1"; }));
    begun tries{bounded.async_try_enqueue("z")};
    EXPECT_FALSE(tries.get(20s));
    EXPECT_FALSE(waits.done());
    near.close();
    EXPECT_EQ(ending_of([&] { waits.get(); }).reason, errc::cancelled);
}

TEST_F(queue_care, an_item_that_was_dropped_while_it_was_acknowledged_in_vain_is_not_renewed) {
    texts mine{far, "name", {.visibility = 2s}};
    here.enqueue("x");
    std::optional taken{mine.dequeue()};
    server.must({"ACL", "SETUSER", "default", "-evalsha", "-eval"});
    proxy.hold(direction::both);
    begun acknowledging{ended(taken->async_ack())};
    run_turn(far);
    taken.reset();
    proxy.heal();
    EXPECT_EQ(ending_of([&] { acknowledging.get(); }).reason, errc::server);
    server.must({"ACL", "SETUSER", "default", "+@all"});
    auto again = here.dequeue(20s);
    ASSERT_TRUE(again);
    again->ack();
}

// Scripts do not roll back: what is wrong with the last word must be found before the first is written.
TEST_F(queue_care, a_word_that_is_not_known_changes_nothing) {
    for (int i = 0; i < 3; ++i) here.enqueue(std::to_string(i));
    std::vector<texts::item> taken;
    for (int i = 0; i < 3; ++i) taken.push_back(there.dequeue());
    auto const tokens = server.must({"ZRANGE", queue_key + ":held", "0", "-1"}).elements;
    ASSERT_EQ(tokens.size(), 3U);
    auto const rules = detail::write_rules({}, false, "lockstep:{name}:wake:");
    for (std::string const word : {"later -2", "later", "extend", "unused 5", "done", "retry 5", "fail 5", "postpone", "nothing 1", ""}) {
        auto const said = server.command({"EVAL", std::string{scripts::queue_pull.text}, "3", queue_key, queue_key + ":absent", queue_key + ":call:test", rules, "1",
                                          "99999999999999", "0 0 1000000 1000000", "", "1", tokens[0].text, tokens[1].text, "unused", "why", tokens[2].text, word, "why"});
        EXPECT_THAT(said.text, testing::StartsWith("LOCKSTEP_ARGUMENT")) << word;
    }
    EXPECT_EQ(here.counts().held, 3);
    for (auto& one : taken) one.ack();
}

TEST_F(queue_care, the_answer_to_an_extension_does_not_end_an_acknowledgement) {
    here.enqueue("x");
    auto item = there.dequeue(10s);
    ASSERT_TRUE(item);
    auto const held = queue_key + ":held";
    auto const end = [&] { return server.must({"ZRANGE", held, "0", "0", "WITHSCORES"}).elements.at(1).text; };
    auto const before = end();
    proxy.hold(direction::to_client);
    std::stop_source stop;
    begun extending{with_stop_token(ended(item->async_extend(1h)), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return end() != before; }));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { extending.get(); }).reason, errc::cancelled);
    begun acknowledging{ended(item->async_ack())};
    server.must({"DEL", held});
    proxy.heal();
    EXPECT_EQ(ending_of([&] { acknowledging.get(); }).reason, errc::lease_lost) << "as its own answer says";
}

TEST_F(queue_care, what_is_held_can_be_acknowledged_and_renewed_when_the_server_is_out_of_memory) {
    texts brief{near, "name", {.visibility = 600ms}};
    for (auto const* const one : {"x", "y", "z"}) here.enqueue(one, {.key = one, .key_window = 1h});
    auto x = here.dequeue(10s);
    auto y = brief.dequeue(10s);
    ASSERT_TRUE(x && y);
    server.must({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_EQ(ending_of([&] { here.enqueue("more"); }).reason, errc::server);
    x->ack();
    EXPECT_EQ(here.counts().held, 1);
    auto const end = [&] { return server.must({"ZRANGE", queue_key + ":held", "0", "0", "WITHSCORES"}).elements.at(1).text; };
    auto const before = end();
    EXPECT_TRUE(eventually([&] { return end() != before; })) << "renewed";
    EXPECT_TRUE(y->is_valid());
    server.must({"DEL", queue_key});  // as if it had expired
    y->ack();
    EXPECT_EQ(here.counts().held, 0);
    EXPECT_THAT(drain(here), ElementsAre("z")) << "so that memory becomes free";
    server.must({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_FALSE(here.enqueue("again", {.key = "x"}).is_new);
}

TEST_F(queue_care, nothing_stays_for_ever_when_all_use_has_ended) {
    let_waiters_die(2);
    EXPECT_THAT(lasting(), IsEmpty()) << "who waits";
    texts bounded{far, "name", {.max_length = 1}};
    bounded.enqueue("x", {.key = "x", .key_window = 1h});
    {
        std::stop_source stop;
        begun waiting_one{with_stop_token(bounded.async_enqueue("y"), stop.get_token())};
        ASSERT_TRUE(eventually([&] { return waiting(server, "room") == "1"; }));
        proxy.refuse();
        proxy.cut();
        stop.request_stop();
        EXPECT_EQ(ending_of([&] { waiting_one.get(); }).reason, errc::cancelled);
        EXPECT_GT(left_of("room"), 0);
    }
    EXPECT_THAT(drain(here), ElementsAre("x"));
    EXPECT_THAT(lasting(), IsEmpty()) << "keys of what is done";
}

TEST_F(queue_care, keys_stay_while_an_item_has_one_and_go_with_the_last_window) {
    here.enqueue("a", {.key = "a", .key_window = 1h});
    here.enqueue("b", {.key = "b"});
    EXPECT_EQ(left_of("dedup"), -1);
    auto a = here.dequeue(10s);
    ASSERT_TRUE(a);
    a->ack();
    EXPECT_EQ(left_of("dedup"), -1) << "b has one";
    EXPECT_THAT(drain(here), ElementsAre("b"));
    EXPECT_GT(left_of("dedup"), 3'500'000);
    EXPECT_LE(left_of("dedup"), 3'600'000);
    EXPECT_EQ(left_of("dedup") > 0, left_of("recent") > 0);
    here.enqueue("c", {.key = "c"});
    EXPECT_EQ(left_of("dedup"), -1);
    EXPECT_EQ(left_of("recent"), -1) << "or a's key would be taken for one of an item that is there";
    EXPECT_EQ(here.purge(), 1);
    EXPECT_GT(left_of("dedup"), 0);
    EXPECT_FALSE(here.enqueue("a", {.key = "a"}).is_new);
    EXPECT_TRUE(here.enqueue("c", {.key = "c"}).is_new);
}

TEST_F(queue_care, keys_are_forgotten_in_time_although_the_queue_was_forgotten_meanwhile) {
    here.enqueue("a", {.key = "a", .key_window = 50ms});
    here.enqueue("b", {.delay = 1h, .key = "b"});
    EXPECT_THAT(drain(here), ElementsAre("a"));
    server.must({"DEL", queue_key});  // as if it had expired
    EXPECT_TRUE(eventually([&] {
        static_cast<void>(here.try_dequeue());
        return server.must({"HLEN", queue_key + ":dedup"}).integer == 1;
    }));
    EXPECT_EQ(server.must({"EXISTS", queue_key + ":recent"}).integer, 0);
}

// Both expire at a time, but a clock that is set back can bring back one of them.
TEST_F(queue_care, a_key_does_not_count_for_ever_because_the_list_of_those_that_are_done_is_gone) {
    here.enqueue("a", {.key = "a", .key_window = 200ms});
    here.enqueue("b", {.delay = 1h, .key = "b"});
    EXPECT_THAT(drain(here), ElementsAre("a"));
    EXPECT_FALSE(here.enqueue("c", {.key = "a"}).is_new);
    server.must({"DEL", queue_key + ":recent"});
    EXPECT_TRUE(eventually([&] { return here.enqueue("d", {.key = "a"}).is_new; }));
    EXPECT_FALSE(here.enqueue("e", {.key = "a"}).is_new) << "while that one is there";
}

TEST_F(queue_care, who_waits_for_room_hears_of_it_however_short_the_retention_is) {
    texts bounded{near, "name", {.max_length = 1, .retention = 1s}};
    bounded.enqueue("x");
    begun waiting_one{bounded.async_enqueue("y")};
    ASSERT_TRUE(eventually([&] { return waiting(server, "room") == "1"; }));
    EXPECT_GE(server.must({"PTTL", queue_key}).integer, left_of("room") - 1000) << "the hash says that somebody waits";
    EXPECT_GT(left_of("room"), 60'000);
    auto x = there.dequeue(10s);
    ASSERT_TRUE(x);
    x->ack();
    EXPECT_TRUE(waiting_one.get(10s).is_new);
}

TEST_F(queue_care, an_acknowledgement_under_way_when_the_client_closes_ends_and_keeps_nothing) {
    here.enqueue("x");
    auto item = there.dequeue(10s);
    ASSERT_TRUE(item);
    proxy.hold();
    begun acknowledging{ended(item->async_ack())};
    far.close();
    EXPECT_NE(ending_of([&] { acknowledging.get(); }).reason, errc{});  // what it would keep, a sanitizer sees
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(queue_care, workers_without_threads_for_all_end_those_that_they_have) {
    EXPECT_FALSE(here.try_dequeue());
    rlimit space{};
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &space), 0);
    std::ifstream statm{"/proc/self/statm"};
    rlim_t pages = 0;
    statm >> pages;
    rlimit little = space;
    little.rlim_cur = pages * 4096 + (rlim_t{400} << 20);
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &little), 0);
    bool refused = false;
    try {
        auto const worker = here.consume({.concurrency = 1000}, [](std::string const&) {});
    } catch (std::system_error const&) {
        refused = true;
    }
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &space), 0);
    EXPECT_TRUE(refused);
    EXPECT_TRUE(eventually([&] { return waiting(server) == "0"; }));
    there.enqueue("x");
    EXPECT_THAT(drain(here), ElementsAre("x")) << "nobody takes it";
}
#endif

}  // namespace
}  // namespace lockstep::test
