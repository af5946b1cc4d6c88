// Large items: what one call brings is bounded in bytes, and what a client cannot receive stops nothing else.
#include "queue_support.hpp"

#include "support/log_lines.hpp"

#include <lockstep/mutex.hpp>
#include <lockstep/work_stealing_queue.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using texts = queue<std::string>;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

class queue_size : public testing::Test {
protected:
    redis_server server;
    client ample{server.url()};
    client modest{{.url = server.url(), .max_reply_bytes = 2 * mebibyte}};
    texts sent{ample, "name"};
};

TEST_F(queue_size, items_of_more_bytes_than_fit_into_a_reply_are_all_handled) {
    for (int i = 0; i < 50; ++i) sent.enqueue(std::string(mebibyte / 2, 'x'));
    texts received{modest, "name", {.visibility = 10s}};
    std::atomic<int> handled{0};
    auto const worker = received.consume({.concurrency = 50}, [&](std::string const&) -> task<void> {
        ++handled;
        co_return;
    });
    EXPECT_TRUE(eventually([&] { return handled == 50; })) << handled;
    EXPECT_TRUE(eventually([&] { return sent.counts().held == 0; }));
    EXPECT_EQ(sent.counts().dead, 0);
    EXPECT_EQ(modest.statistics().connects, 1U) << "no reply was too large";
}

TEST_F(queue_size, small_items_come_many_at_once_although_replies_are_bounded) {
    std::vector<std::string> const values(1000, std::string(100, 'x'));
    sent.enqueue_many(values);
    auto const before = calls(server);
    texts received{modest, "name"};
    std::vector<begun<texts::item>> taking;
    sync_wait(in_turn_of(modest, [&] {
        for (int i = 0; i < 200; ++i) taking.emplace_back(received.async_dequeue());
        return true;
    }));
    std::vector<texts::item> taken;  // what is dropped is given back, with calls of its own
    for (auto& one : taking) taken.push_back(one.get());
    EXPECT_LE(calls(server) - before, 10);
}

TEST_F(queue_size, items_of_all_priorities_keep_their_order_when_they_do_not_fit) {
    auto const value = [](char first) { return first + std::string(mebibyte * 3 / 4, 'x'); };
    for (char const first : {'d', 'e'}) sent.enqueue(value(first));
    for (char const first : {'f', 'g'}) sent.enqueue(value(first), {.priority = -1});
    for (char const first : {'a', 'b', 'c'}) sent.enqueue(value(first), {.priority = 1});
    texts received{modest, "name"};
    std::vector<begun<texts::item>> taking;
    for (int i = 0; i < 7; ++i) taking.emplace_back(received.async_dequeue());
    std::string order;
    for (auto& one : taking) {
        auto item = one.get();
        order += item.bytes().front();
        item.ack();
    }
    EXPECT_EQ(order, "abcdefg");
}

TEST_F(queue_size, items_of_low_priority_do_not_pass_others_behind_one_that_can_not_be_received) {
    log_lines log;
    sent.enqueue(std::string(3 * mebibyte, 'x'));
    for (auto const* const value : {"a", "b", "c"}) sent.enqueue(value);
    sent.enqueue("z", {.priority = -1});
    texts received{modest, "name"};
    std::vector<begun<texts::item>> taking;
    sync_wait(in_turn_of(modest, [&] {
        for (int i = 0; i < 4; ++i) taking.emplace_back(received.async_dequeue());
        return true;
    }));
    std::string order;
    for (auto& one : taking) {
        auto item = one.get();
        order += item.bytes();
        item.ack();
    }
    EXPECT_EQ(order, "abcz");
}

TEST_F(queue_size, who_does_not_wait_gets_what_did_not_fit_with_the_others) {
    for (int i = 0; i < 6; ++i) sent.enqueue(std::string(mebibyte * 3 / 4, 'x'));
    texts received{modest, "name"};
    std::vector<begun<std::optional<texts::item>>> taking;
    for (int i = 0; i < 6; ++i) taking.emplace_back(received.async_try_dequeue());
    for (auto& one : taking) EXPECT_TRUE(one.get());
}

TEST_F(queue_size, what_a_client_cannot_receive_is_named_and_left_to_others) {
    log_lines log;
    mutex lock{modest, "lock", {.ttl = 2s}};
    auto const lease = lock.acquire();
    sent.enqueue(std::string(3 * mebibyte, 'x'));
    sent.enqueue("small");
    texts received{modest, "name"};
    auto item = received.dequeue(10s);
    ASSERT_TRUE(item);
    EXPECT_EQ(item->value(), "small");
    item->ack();
    EXPECT_TRUE(eventually([&] { return log.count("max_reply_bytes is 2097152") == 1U; }));
    EXPECT_EQ(modest.statistics().connects, 1U);
    EXPECT_TRUE(lease.valid());
    EXPECT_TRUE(eventually([&] { return sent.counts().delayed == 1; }));
    auto large = sent.dequeue(30s);
    ASSERT_TRUE(large);
    EXPECT_EQ(large->bytes().size(), 3 * mebibyte);
    EXPECT_EQ(large->deliveries(), 2);
}

TEST_F(queue_size, what_nobody_can_receive_is_a_dead_letter_that_says_why) {
    auto const id = sent.enqueue(std::string(3 * mebibyte, 'x')).id;
    sent.enqueue("small");
    texts received{modest, "name", {.max_deliveries = 1}};
    auto const item = received.dequeue(10s);
    ASSERT_TRUE(item);
    EXPECT_EQ(item->value(), "small");
    ASSERT_TRUE(eventually([&] { return sent.counts().dead == 1; }));
    auto const letters = received.dead_letters();
    ASSERT_THAT(letters, SizeIs(1));
    EXPECT_EQ(letters[0].item, id);
    EXPECT_THAT(letters[0].reason, HasSubstr("max_reply_bytes"));
    EXPECT_EQ(letters[0].size, 3 * mebibyte);
    EXPECT_EQ(letters[0].bytes, "") << "nor can it receive the letter";
    EXPECT_EQ(sent.dead_letters().at(0).bytes.size(), 3 * mebibyte);
}

TEST_F(queue_size, an_unreliable_take_of_what_cannot_be_received_keeps_it_as_a_dead_letter) {
    sent.enqueue(std::string(3 * mebibyte, 'x'));
    texts received{modest, "name", {.reliable = false}};
    EXPECT_FALSE(received.try_dequeue());
    EXPECT_EQ(sent.counts().dead, 1);
}

TEST_F(queue_size, lanes_of_large_items_are_emptied) {
    work_stealing_queue<std::string> other{ample, "lanes", "one"};
    for (int i = 0; i < 12; ++i) other.push(std::string(mebibyte * 3 / 4, 'x'));
    work_stealing_queue<std::string> thief{modest, "lanes", "two"};
    for (int i = 0; i < 12; ++i) {
        auto item = thief.dequeue(10s);
        ASSERT_TRUE(item) << i;
        item->ack();
    }
    EXPECT_FALSE(thief.try_dequeue());
}

TEST_F(queue_size, a_payload_that_is_too_large_is_refused_before_it_is_sent) {
    texts small{modest, "name"};
    try {
        small.enqueue(std::string(mebibyte + 1, 'x'));
        FAIL() << "it was accepted";
    } catch (invalid_argument_error const& refusal) {
        EXPECT_THAT(refusal.what(), HasSubstr("1048576 bytes at most, not 1048577"));
    }
    small.enqueue(std::string(mebibyte, 'x'));
    EXPECT_EQ(small.dequeue().bytes().size(), mebibyte) << "what it may send it can receive";
}

TEST_F(queue_size, dead_letters_are_listed_in_pages_of_bounded_size) {
    texts strict{ample, "name", {.max_deliveries = 1}};
    for (int i = 0; i < 9; ++i) {
        strict.enqueue(std::to_string(i) + std::string(mebibyte / 2, 'x'));
        strict.dequeue().nack(0ms, std::to_string(i));
    }
    texts received{modest, "name"};
    std::string reasons;
    std::size_t pages = 0;
    for (auto page = received.dead_letters(100); !page.empty(); page = received.dead_letters(100, page.back().id)) {
        ++pages;
        for (auto const& letter : page) reasons += letter.reason;
    }
    EXPECT_EQ(reasons, "012345678");
    EXPECT_GE(pages, 3U);
    EXPECT_THAT(received.dead_letters(1), SizeIs(1));
    EXPECT_THAT(strict.dead_letters(100), SizeIs(9)) << "4.5 MiB fit";
    EXPECT_EQ(modest.statistics().connects, 1U);
}

}  // namespace
}  // namespace lockstep::test
