// Which reply belongs to which request where subscriptions are among them: they are answered by pushes, which nobody can count,
// as the server sends some on its own. The reply to a HELLO behind each shows where it ends.
#include "redis/request_queue.hpp"
#include "resp/parser.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::test {
namespace {

class silent_owner final : public redis::request_queue::owner {
    void requests_waiting() noexcept override {}
    std::string trouble() const override { return {}; }
    bool reconsider(redis::operation&, std::string_view) noexcept override { return false; }
};

class noted_operation final : public redis::operation {
public:
    explicit noted_operation(bool subscribes) {
        fenced = subscribes;
        replies = subscribes ? 2 : 1;
    }
    void encode(resp::output& out) override { out.append("x"); }
    void complete(reply_view answer) noexcept override {
        heard.push_back(answer.is_aggregate() ? "greeting" : std::string{answer.text()});
    }
    void fail(errc, std::string_view) noexcept override { heard.emplace_back("failed"); }

    std::vector<std::string> heard;
};

using texts = std::vector<std::string>;

class subscription_fence : public testing::Test {
protected:
    subscription_fence() {
        for (auto* const one : {&first, &subscribe, &unsubscribe, &last}) queue.push(*one);
        resp::output out;
        EXPECT_EQ(queue.encode(out, 1000), 4U);
    }
    bool reply(std::string const& bytes) {
        resp::parser parser{resp::limits{}};
        EXPECT_EQ(parser.parse(bytes), resp::status::ready);
        return queue.reply(parser.message());
    }

    std::string const greeting = "%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n";
    silent_owner owner;
    redis::request_queue queue{owner, 100};
    noted_operation first{false};
    noted_operation subscribe{true};
    noted_operation unsubscribe{true};
    noted_operation last{false};
};

TEST_F(subscription_fence, ends_calls_that_were_answered_by_pushes) {
    for (auto const& bytes : {std::string{"+1\r\n"}, greeting, greeting, std::string{"+2\r\n"}})
        EXPECT_TRUE(reply(bytes));
    EXPECT_EQ(first.heard, texts{"1"});
    EXPECT_EQ(subscribe.heard, texts{"greeting"});
    EXPECT_EQ(unsubscribe.heard, texts{"greeting"});
    EXPECT_EQ(last.heard, texts{"2"});
    EXPECT_EQ(queue.pending(), 0U);
}

// SUNSUBSCRIBE of a channel whose slot has just moved: a push says that it is ended, and an error that it is not there.
TEST_F(subscription_fence, keeps_the_error_of_a_call_from_the_next_request) {
    for (auto const& bytes :
         {std::string{"+1\r\n"}, greeting, std::string{"-MOVED 1 h:1\r\n"}, greeting, std::string{"+2\r\n"}}) {
        EXPECT_TRUE(reply(bytes));
    }
    EXPECT_EQ(unsubscribe.heard, (texts{"MOVED 1 h:1", "greeting"}));
    EXPECT_EQ(last.heard, texts{"2"});
}

TEST_F(subscription_fence, distrusts_a_stream_that_lacks_it) {
    EXPECT_TRUE(reply("+1\r\n"));
    EXPECT_FALSE(reply("+2\r\n"));
    EXPECT_FALSE(reply("%1\r\n+field\r\n+value\r\n")) << "a map, but no greeting";
    EXPECT_TRUE(reply("-NOPERM\r\n"));
    EXPECT_FALSE(reply("-NOPERM\r\n")) << "the HELLO was refused too";
    EXPECT_TRUE(last.heard.empty());
}

}  // namespace
}  // namespace lockstep::test
