// Which reply belongs to which request, and what becomes of each when the connection breaks: without a connection.
#include "redis/request_queue.hpp"

#include "resp/encoder.hpp"
#include "resp/parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using lockstep::errc;
using lockstep::reply_view;
using lockstep::redis::operation;
using lockstep::redis::request_queue;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A request that writes down what becomes of it.
class probe final : public operation {
public:
    explicit probe(std::string name) : name_{std::move(name)} {}
    ~probe() = default;

    void encode(lockstep::resp::output& out) override { lockstep::resp::append_command(out, name_); }
    void complete(reply_view answer) noexcept override {
        heard.emplace_back(answer.text());
        if (on_end) on_end();
    }
    void fail(errc reason, std::string_view why) noexcept override {
        failed = reason;
        text = why;
        if (on_end) on_end();
    }
    void restart() noexcept override { heard.clear(); }

    [[nodiscard]] std::size_t size() {
        lockstep::resp::output bytes;
        encode(bytes);
        return bytes.size();
    }

    std::vector<std::string> heard;
    std::optional<errc> failed;
    std::string text;
    std::function<void()> on_end;

private:
    std::string name_;
};

class request_queue_test : public testing::Test, protected request_queue::owner {
protected:
    request_queue queue{*this, 100};
    lockstep::resp::output sent;
    int asked_to_send = 0;
    std::string refuses;  // a refusal that is reconsidered: the request waits again
    operation* reconsidered = nullptr;

    static std::vector<std::unique_ptr<probe>> make(std::size_t count) {
        std::vector<std::unique_ptr<probe>> made;
        for (std::size_t i = 0; i < count; ++i) made.push_back(std::make_unique<probe>("request" + std::to_string(i)));
        return made;
    }

    // Hands a whole reply to the queue.
    bool answer(std::string const& bytes) {
        lockstep::resp::parser parser;
        EXPECT_EQ(parser.parse(bytes), lockstep::resp::status::ready) << bytes;
        return queue.reply(parser.message());
    }
    bool answer_text(std::string const& text) { return answer("+" + text + "\r\n"); }
    void send_all() { queue.encode(sent, 1'000'000); }

private:
    void requests_waiting() noexcept override { ++asked_to_send; }
    std::string trouble() const override { return "trouble"; }
    bool reconsider(operation& request, std::string_view refusal) noexcept override {
        if (refuses.empty() || refusal != refuses) return false;
        reconsidered = &request;
        queue.push(request);
        return true;
    }
};

TEST_F(request_queue_test, gives_replies_in_the_order_of_the_requests) {
    auto const all = make(3);
    for (auto const& one : all) queue.push(*one);
    EXPECT_EQ(asked_to_send, 3);
    EXPECT_EQ(queue.encode(sent, 1'000'000), 3U);
    EXPECT_EQ(sent.size(), 3 * all[0]->size());
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(answer_text(std::to_string(i)));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(all[i]->heard, ElementsAre(std::to_string(i)));
    EXPECT_EQ(queue.pending(), 0U);
    EXPECT_FALSE(queue.has_sent());
}

TEST_F(request_queue_test, does_not_trust_a_reply_that_nobody_asked_for) {
    EXPECT_FALSE(answer_text("surprise"));
    auto const all = make(1);
    queue.push(*all[0]);
    EXPECT_FALSE(answer_text("before it was sent"));
    send_all();
    EXPECT_TRUE(answer_text("its own"));
    EXPECT_FALSE(answer_text("one more"));
}

// Every subset of five requests, abandoned at every moment: the others get their own replies.
TEST_F(request_queue_test, drops_the_replies_of_abandoned_requests_and_no_others) {
    constexpr std::size_t requests = 5;
    for (std::size_t subset = 0; subset < 1U << requests; ++subset) {
        for (std::size_t moment = 0; moment <= requests; ++moment) {  // 0: before sending; n: after n - 1 replies
            auto all = make(requests);
            std::vector<bool> abandoned(requests, false);
            auto const abandon = [&] {
                for (std::size_t i = 0; i < requests; ++i) {
                    if ((subset >> i & 1) == 0 || all[i]->where() == operation::place::idle) continue;
                    all[i].reset();
                    abandoned[i] = true;
                }
            };
            for (auto const& one : all) queue.push(*one);
            if (moment == 0) abandon();
            send_all();
            for (std::size_t i = 0; i < requests; ++i) {
                if (moment == i + 1) abandon();
                if (moment == 0 && abandoned[i]) continue;  // was not sent, so has no reply
                ASSERT_TRUE(answer_text(std::to_string(i)));
            }
            for (std::size_t i = 0; i < requests; ++i) {
                if (!all[i]) continue;
                ASSERT_THAT(all[i]->heard, ElementsAre(std::to_string(i))) << subset << " at " << moment;
            }
            ASSERT_EQ(queue.pending(), 0U);
            ASSERT_FALSE(queue.has_sent());
            ASSERT_FALSE(answer_text("too much"));
        }
    }
}

// The same with three replies each: abandoned in the middle of its replies, the rest of them is dropped.
TEST_F(request_queue_test, drops_the_rest_of_the_replies_of_a_request_with_several) {
    constexpr std::size_t requests = 3;
    for (std::size_t who = 0; who < requests; ++who) {
        for (std::size_t after = 0; after < 3 * requests; ++after) {
            auto all = make(requests);
            for (auto const& one : all) {
                one->replies = 3;
                queue.push(*one);
            }
            send_all();
            for (std::size_t i = 0; i < 3 * requests; ++i) {
                if (i == after) all[who].reset();
                ASSERT_TRUE(answer_text(std::to_string(i)));
            }
            for (std::size_t i = 0; i < requests; ++i) {
                if (!all[i]) continue;
                auto const first = std::to_string(3 * i);
                ASSERT_THAT(all[i]->heard, ElementsAre(first, std::to_string(3 * i + 1), std::to_string(3 * i + 2)));
            }
            ASSERT_FALSE(queue.has_sent());
        }
    }
}

// Requests that come after an abandoned one was sent, with nothing else in flight.
TEST_F(request_queue_test, keeps_count_when_only_abandoned_requests_are_in_flight) {
    auto all = make(4);
    queue.push(*all[0]);
    queue.push(*all[1]);
    send_all();
    all[1].reset();
    all[0].reset();
    EXPECT_TRUE(queue.has_sent());
    queue.push(*all[2]);
    send_all();
    queue.push(*all[3]);
    EXPECT_TRUE(answer_text("0"));
    EXPECT_TRUE(answer_text("1"));
    EXPECT_TRUE(answer_text("2"));
    send_all();
    EXPECT_TRUE(answer_text("3"));
    EXPECT_THAT(all[2]->heard, ElementsAre("2"));
    EXPECT_THAT(all[3]->heard, ElementsAre("3"));
}

TEST_F(request_queue_test, refuses_more_than_it_may_hold_but_for_what_goes_first) {
    auto const all = make(101);
    probe urgent{"urgent"};
    for (auto const& one : all) queue.push(*one);
    EXPECT_EQ(queue.pending(), 100U);
    EXPECT_EQ(all[100]->failed, errc::unavailable);
    EXPECT_THAT(all[100]->text, HasSubstr("max_pending"));
    queue.push_first(urgent);
    send_all();
    EXPECT_TRUE(answer_text("first"));
    EXPECT_THAT(urgent.heard, ElementsAre("first"));
    EXPECT_TRUE(answer_text("0"));
    EXPECT_THAT(all[0]->heard, ElementsAre("0"));
}

TEST_F(request_queue_test, encodes_no_more_than_it_is_told) {
    auto const all = make(10);
    for (auto const& one : all) queue.push(*one);
    EXPECT_EQ(queue.encode(sent, 1), 1U) << "at least one";
    EXPECT_EQ(queue.encode(sent, 1), 0U) << "there is something to send already";
    EXPECT_EQ(queue.encode(sent, 3 * all[0]->size()), 2U);
    EXPECT_TRUE(queue.has_waiting());
}

TEST_F(request_queue_test, ends_as_indeterminate_what_was_sent_and_may_not_run_twice) {
    auto const all = make(4);
    all[1]->repeatable = true;
    for (auto const& one : all) queue.push(*one);
    queue.encode(sent, 3 * all[0]->size());
    queue.disconnected(0, "somebody tripped over it");
    EXPECT_EQ(all[0]->failed, errc::indeterminate);
    EXPECT_THAT(all[0]->text, HasSubstr("somebody tripped over it"));
    EXPECT_FALSE(all[1]->failed) << "may run twice";
    EXPECT_EQ(all[2]->failed, errc::indeterminate);
    EXPECT_FALSE(all[3]->failed) << "was not sent";
    EXPECT_EQ(queue.pending(), 2U);
    sent.clear();
    EXPECT_EQ(queue.encode(sent, 1'000'000), 2U);
    EXPECT_TRUE(answer_text("1"));
    EXPECT_TRUE(answer_text("3"));
    EXPECT_THAT(all[1]->heard, ElementsAre("1")) << "in the old order";
    EXPECT_THAT(all[3]->heard, ElementsAre("3"));
}

// For every number of bytes that did not leave: a request without its last byte can't have run and waits again.
TEST_F(request_queue_test, knows_which_requests_never_left) {
    auto const size = make(1)[0]->size();
    for (std::size_t unsent = 0; unsent <= 3 * size; ++unsent) {
        auto const all = make(3);
        for (auto const& one : all) queue.push(*one);
        send_all();
        queue.disconnected(unsent, "why");
        auto const kept = (unsent + size - 1) / size;
        for (std::size_t i = 0; i < 3; ++i)
            ASSERT_EQ(all[i]->failed == errc::indeterminate, i < 3 - kept) << unsent << " " << i;
        ASSERT_EQ(queue.pending(), kept);
        queue.fail_all(errc::cancelled, "done");
    }
}

TEST_F(request_queue_test, assumes_the_worst_of_what_stands_before_an_abandoned_request) {
    auto all = make(3);
    auto const size = all[0]->size();
    for (auto const& one : all) queue.push(*one);
    send_all();
    all[1].reset();
    queue.disconnected(3 * size, "why");
    EXPECT_EQ(all[0]->failed, errc::indeterminate) << "how long the abandoned one was nobody knows any more";
    EXPECT_FALSE(all[2]->failed);
    EXPECT_EQ(queue.pending(), 1U);
}

TEST_F(request_queue_test, begins_with_a_clean_count_on_the_next_connection) {
    auto all = make(3);
    all[2]->repeatable = true;
    all[2]->replies = 2;
    for (auto const& one : all) queue.push(*one);
    send_all();
    all[0].reset();
    EXPECT_TRUE(answer_text("0"));
    EXPECT_TRUE(answer_text("1"));
    EXPECT_TRUE(answer_text("2a"));
    queue.disconnected(0, "why");
    send_all();
    EXPECT_TRUE(answer_text("2A"));
    EXPECT_TRUE(answer_text("2B"));
    EXPECT_THAT(all[2]->heard, ElementsAre("2A", "2B")) << "the first half does not count";
    EXPECT_FALSE(queue.has_sent());
}

TEST_F(request_queue_test, lets_a_request_that_ends_abandon_the_others) {
    for (bool const by_disconnect : {true, false}) {
        auto all = make(4);
        for (auto const& one : all) queue.push(*one);
        queue.encode(sent, 3 * all[0]->size());
        all[0]->on_end = [&] {
            all[1].reset();
            all[3].reset();
        };
        if (by_disconnect) {
            queue.disconnected(0, "why");
        } else {
            queue.fail_all(errc::cancelled, "closed");
        }
        EXPECT_EQ(all[2]->failed, by_disconnect ? errc::indeterminate : errc::cancelled);
        EXPECT_EQ(queue.pending(), 0U);
        sent.clear();
    }
}

TEST_F(request_queue_test, says_asking_once_and_drops_its_reply) {
    auto all = make(3);
    all[1]->asking = true;
    all[1]->repeatable = true;
    for (auto const& one : all) queue.push(*one);
    send_all();
    EXPECT_THAT(std::string{sent.view()}, HasSubstr("request0\r\n*1\r\n$6\r\nASKING\r\n*1\r\n$8\r\nrequest1"));
    EXPECT_TRUE(answer_text("0"));
    EXPECT_TRUE(answer_text("OK"));
    EXPECT_TRUE(answer_text("1"));
    EXPECT_TRUE(answer_text("2"));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(all[i]->heard, ElementsAre(std::to_string(i)));

    auto const first = make(1);
    first[0]->asking = true;
    queue.push(*first[0]);
    sent.clear();
    send_all();
    EXPECT_TRUE(answer_text("OK"));
    EXPECT_THAT(first[0]->heard, IsEmpty());
    EXPECT_TRUE(answer_text("0"));
    EXPECT_THAT(first[0]->heard, ElementsAre("0"));
}

TEST_F(request_queue_test, says_something_before_a_request_that_yields_unless_another_one_is_before_it) {
    auto all = make(3);
    for (auto const& one : all) one->yields = one->repeatable = true;
    queue.push(*all[0]);
    queue.push(*all[1]);
    send_all();
    EXPECT_EQ(std::string{sent.view()}, "*1\r\n$4\r\nPING\r\n*1\r\n$8\r\nrequest0\r\n*1\r\n$8\r\nrequest1\r\n");
    EXPECT_TRUE(answer_text("PONG"));
    EXPECT_TRUE(answer_text("0"));
    EXPECT_THAT(all[0]->heard, ElementsAre("0"));

    // Behind one whose reply is still to come, in a write of its own; and once more when the connection broke.
    queue.push(*all[2]);
    sent.clear();
    send_all();
    queue.disconnected(0, "cut");
    sent.clear();
    send_all();
    EXPECT_EQ(std::string{sent.view()}, "*1\r\n$4\r\nPING\r\n*1\r\n$8\r\nrequest1\r\n*1\r\n$8\r\nrequest2\r\n");
    EXPECT_TRUE(answer("-NOPERM no permissions to run PING\r\n"));
    EXPECT_TRUE(answer_text("1"));
    EXPECT_TRUE(answer_text("2"));
    for (std::size_t i = 1; i < 3; ++i) EXPECT_THAT(all[i]->heard, ElementsAre(std::to_string(i)));
    EXPECT_FALSE(answer_text("one more"));
}

TEST_F(request_queue_test, sends_a_refused_request_again_without_telling_its_owner) {
    refuses = "LOADING wait";
    auto const all = make(2);
    for (auto const& one : all) queue.push(*one);
    send_all();
    EXPECT_TRUE(answer("-LOADING wait\r\n"));
    EXPECT_EQ(reconsidered, all[0].get());
    EXPECT_THAT(all[0]->heard, IsEmpty());
    EXPECT_TRUE(answer_text("1"));
    send_all();
    EXPECT_TRUE(answer("-ERR no\r\n"));
    EXPECT_THAT(all[0]->heard, ElementsAre("ERR no"));
    EXPECT_THAT(all[1]->heard, ElementsAre("1"));
}

TEST_F(request_queue_test, fails_the_one_whose_reply_can_not_be_read) {
    auto all = make(3);
    for (auto const& one : all) queue.push(*one);
    send_all();
    all[0].reset();
    EXPECT_TRUE(queue.fail_first(errc::protocol, "too large"));
    EXPECT_FALSE(all[1]->failed) << "it is the abandoned one's";
    EXPECT_TRUE(queue.fail_first(errc::protocol, "too large"));
    EXPECT_EQ(all[1]->failed, errc::protocol);
    EXPECT_FALSE(all[2]->failed);
    EXPECT_TRUE(answer_text("2"));
    EXPECT_THAT(all[2]->heard, ElementsAre("2")) << "its own, as the replies before it are accounted for";
    EXPECT_FALSE(queue.fail_first(errc::protocol, "too large")) << "nobody asked for it";
}

TEST_F(request_queue_test, keeps_what_belongs_to_the_connection_when_the_rest_is_taken) {
    auto const all = make(2);
    for (auto const& one : all) queue.push(*one);
    lockstep::redis::operation_list taken;
    queue.take_waiting(taken);
    EXPECT_TRUE(taken.empty()) << "these have no router";
    EXPECT_EQ(queue.pending(), 2U);
    queue.fail_all(errc::cancelled, "closed");
    for (auto const& one : all) EXPECT_EQ(one->failed, errc::cancelled);
}

// SUBSCRIBE: pushes, maybe an error in-band, and behind it the reply to a HELLO that shows where it ends.
TEST_F(request_queue_test, ends_a_fenced_request_at_its_fence) {
    std::string const greeting = "%1\r\n$5\r\nproto\r\n:3\r\n";
    struct quiet final : lockstep::redis::operation {
        void encode(lockstep::resp::output& out) override { lockstep::resp::append_command(out, "SUBSCRIBE"); }
        void complete(reply_view answer) noexcept override { ++(answer.is_error() ? errors : ends); }
        void fail(errc, std::string_view) noexcept override {}
        ~quiet() = default;
        int errors = 0;
        int ends = 0;
    };
    for (bool const refused : {false, true}) {
        quiet call;
        call.fenced = true;
        call.replies = 2;
        auto const behind = make(1);
        queue.push(call);
        queue.push(*behind[0]);
        send_all();
        EXPECT_TRUE(!refused || answer("-NOPERM no\r\n"));
        EXPECT_EQ(call.ends, 0);
        EXPECT_TRUE(answer(greeting));
        EXPECT_EQ(call.ends, 1);
        EXPECT_EQ(call.errors, refused ? 1 : 0);
        EXPECT_TRUE(answer_text("0"));
        EXPECT_THAT(behind[0]->heard, ElementsAre("0"));
    }
    quiet call;
    call.fenced = true;
    call.replies = 2;
    queue.push(call);
    send_all();
    EXPECT_FALSE(answer_text("no greeting")) << "the stream is out of step";
    queue.fail_all(errc::cancelled, "done");
}

}  // namespace
