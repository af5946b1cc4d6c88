// Channels, patterns and shard channels on one server: delivery, the end of a subscription, and gaps.
#include <lockstep/client.hpp>

#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/fault_proxy.hpp"
#include "support/forms.hpp"
#include "support/log_lines.hpp"
#include "support/redis_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

// What a handler heard, as "channel:payload".
class ear {
public:
    message_handler handler() {
        return [this](message const& heard) {
            std::lock_guard const guard{mutex_};
            heard_.push_back(std::string{heard.channel} + ":" + std::string{heard.payload});
        };
    }
    std::vector<std::string> heard() {
        std::lock_guard const guard{mutex_};
        return heard_;
    }
    bool hears(std::size_t count) {
        return eventually([&] { return heard().size() >= count; });
    }

private:
    std::mutex mutex_;
    std::vector<std::string> heard_;
};

template <class Form>
class subscription_contract : public testing::Test {
protected:
    redis_server server;
    fault_proxy proxy{server.address()};
    ear mine;
    client to_server{proxy.url()};

    std::int64_t publish(std::string const& channel, std::string const& text) {
        return server.must({"PUBLISH", channel, text}).integer;
    }
};
TYPED_TEST_SUITE(subscription_contract, forms, form_names);

TYPED_TEST(subscription_contract, hears_its_channel_its_pattern_and_its_shard_channel) {
    ear of_pattern;
    ear of_shard;
    auto const news = TypeParam::subscribe(this->to_server, {.channel = "news", .handler = this->mine.handler()});
    auto const all = TypeParam::subscribe(
        this->to_server, {.channel = "n*", .handler = of_pattern.handler(), .kind = subscription_kind::pattern});
    auto const shard = TypeParam::subscribe(
        this->to_server, {.channel = "{a}shard", .handler = of_shard.handler(), .kind = subscription_kind::shard});
    EXPECT_TRUE(news);
    EXPECT_EQ(this->publish("news", "1"), 2) << "confirmed by the server before subscribe() returned";
    EXPECT_EQ(this->publish("noise", "2"), 1);
    EXPECT_EQ(this->server.must({"SPUBLISH", "{a}shard", "3"}).integer, 1);
    EXPECT_TRUE(this->mine.hears(1) && of_pattern.hears(2) && of_shard.hears(1));
    EXPECT_THAT(this->mine.heard(), ElementsAre("news:1"));
    EXPECT_THAT(of_pattern.heard(), ElementsAre("news:1", "noise:2"));
    EXPECT_THAT(of_shard.heard(), ElementsAre("{a}shard:3"));
    EXPECT_GE(this->to_server.statistics().pushes, 4U);
}

TYPED_TEST(subscription_contract, takes_binary_names_and_payloads) {
    std::string const name{"a\0b\r\n{c}", 8};
    std::string const payload{"\r\n\0$5", 5};
    auto const news = TypeParam::subscribe(this->to_server, {.channel = name, .handler = this->mine.handler()});
    this->publish(name, payload);
    this->publish(name, "");
    this->publish(name, std::string(1'000'000, 'x'));
    EXPECT_TRUE(this->mine.hears(3));
    EXPECT_THAT(this->mine.heard(),
                ElementsAre(name + ":" + payload, name + ":", name + ":" + std::string(1'000'000, 'x')));
}

TYPED_TEST(subscription_contract, shares_one_connection_and_one_subscription_of_the_server) {
    ear other;
    auto first = TypeParam::subscribe(this->to_server, {.channel = "news", .handler = this->mine.handler()});
    auto second = TypeParam::subscribe(this->to_server, {.channel = "news", .handler = other.handler()});
    TypeParam::command(this->to_server, "PING");
    EXPECT_EQ(this->server.connections(), 2) << "one for commands, one for all subscriptions";
    EXPECT_EQ(this->publish("news", "1"), 1);
    EXPECT_TRUE(this->mine.hears(1) && other.hears(1));
    first.unsubscribe();
    EXPECT_EQ(this->publish("news", "2"), 1) << "the other one still listens";
    EXPECT_TRUE(other.hears(2));
    second.unsubscribe();
    EXPECT_TRUE(eventually([&] { return this->publish("news", "3") == 0; }));
    EXPECT_THAT(this->mine.heard(), ElementsAre("news:1"));
}

TYPED_TEST(subscription_contract, is_silent_when_unsubscribe_has_returned) {
    std::atomic<bool> ended{false};
    std::atomic<int> late{0};
    auto news = TypeParam::subscribe(this->to_server, {.channel = "news", .handler = [&](message const&) {
                                                           if (ended) ++late;
                                                       }});
    std::atomic<bool> enough{false};
    std::thread speaker{[&] {
        auto loud = this->server.connect();
        while (!enough) loud.command({"PUBLISH", "news", "x"});
    }};
    EXPECT_TRUE(eventually([&] { return this->to_server.statistics().pushes > 100; }));
    news.unsubscribe();
    ended = true;
    EXPECT_TRUE(eventually([&] { return this->publish("news", "x") == 0; }));
    enough = true;
    speaker.join();
    EXPECT_EQ(late, 0);
    EXPECT_FALSE(news);
}

TYPED_TEST(subscription_contract, may_end_itself_and_send_requests_from_its_handler) {
    subscription news;
    std::promise<std::string> answered;
    std::atomic<bool> ready{false};
    news = TypeParam::subscribe(this->to_server,
                                {.channel = "news", .handler = [&](message const&) {
                                     if (!ready) return;
                                     news.unsubscribe();
                                     start(this->to_server.template async_command<std::string>("ECHO", "x"),
                                           [&](std::exception_ptr, std::optional<std::string> text) {
                                               answered.set_value(text.value_or("failed"));
                                           });
                                 }});
    ready = true;
    EXPECT_EQ(this->publish("news", "1"), 1);
    EXPECT_EQ(answered.get_future().get(), "x");
    EXPECT_TRUE(eventually([&] { return this->publish("news", "2") == 0; }));
}

TYPED_TEST(subscription_contract, logs_what_a_handler_throws_and_goes_on) {
    log_lines const log;
    subscription news;
    news = TypeParam::subscribe(this->to_server, {.channel = "news", .handler = [&](message const& heard) {
                                                      if (heard.payload == "last") news.unsubscribe();
                                                      throw std::runtime_error{"oh no"};
                                                  }});
    this->publish("news", "first");
    this->publish("news", "last");
    EXPECT_TRUE(eventually([&] { return log.count(log_level::error, "oh no") == 2; }));
    EXPECT_TRUE(eventually([&] { return this->publish("news", "more") == 0; }));
    EXPECT_EQ(this->to_server.statistics().reconnects, 0U);
}

TYPED_TEST(subscription_contract, subscribes_again_after_a_cut_and_tells_of_the_gap) {
    std::atomic<int> gaps{0};
    auto const news = TypeParam::subscribe(
        this->to_server, {.channel = "news", .handler = this->mine.handler(), .on_gap = [&] { ++gaps; }});
    auto const all = TypeParam::subscribe(
        this->to_server, {.channel = "n?ws", .handler = this->mine.handler(), .kind = subscription_kind::pattern});
    this->publish("news", "before");
    EXPECT_TRUE(this->mine.hears(2));
    EXPECT_EQ(gaps, 0);
    this->proxy.cut();
    EXPECT_TRUE(eventually([&] { return gaps == 1; }));
    EXPECT_TRUE(eventually([&] { return this->publish("news", "after") == 2; }));
    EXPECT_TRUE(eventually([&] { return this->mine.heard().size() >= 4; }));
    EXPECT_EQ(this->mine.heard().back(), "news:after");
    this->server.restart();
    EXPECT_TRUE(eventually([&] { return gaps >= 2 && this->publish("news", "again") == 2; }));
}

// An UNSUBSCRIBE that did not leave before the cut must not end what was subscribed after it.
TYPED_TEST(subscription_contract, listens_again_to_a_channel_that_it_left_just_before_a_cut) {
    client client{{.url = this->proxy.url(), .reconnect_max = 20ms, .batch_delay = 300ms}};
    auto const other = TypeParam::subscribe(client, {.channel = "other", .handler = [](message const&) {}});
    auto news = TypeParam::subscribe(client, {.channel = "news", .handler = this->mine.handler()});
    this->proxy.refuse();
    news.unsubscribe();
    this->proxy.cut();
    auto again = std::async(std::launch::async, [&] {
        return TypeParam::subscribe(client, {.channel = "news", .handler = this->mine.handler()});
    });
    EXPECT_TRUE(eventually([&] { return client.statistics().reconnects == 1; }));
    this->proxy.heal();
    auto const second = again.get();
    auto const third = TypeParam::subscribe(client, {.channel = "third", .handler = [](message const&) {}});
    EXPECT_EQ(this->publish("news", "x"), 1) << "what was sent before the third has been carried out";
}

TYPED_TEST(subscription_contract, fails_when_the_server_refuses_it) {
    redis_server strict{{.users = {"narrow on >secret ~* resetchannels &allowed +@all"}}};
    client client{strict.url("narrow", "secret")};
    auto const refused = failure<server_error>([&] {
        auto const never = TypeParam::subscribe(client, {.channel = "secret", .handler = this->mine.handler()});
    });
    EXPECT_THAT(refused, HasSubstr("NOPERM"));
    auto const allowed = TypeParam::subscribe(client, {.channel = "allowed", .handler = this->mine.handler()});
    strict.must({"PUBLISH", "allowed", "x"});
    EXPECT_TRUE(this->mine.hears(1));
    auto const wrong = failure<authentication_error>([&] {
        lockstep::client stranger{strict.url("narrow", "wrong")};
        auto const never = TypeParam::subscribe(stranger, {.channel = "allowed", .handler = this->mine.handler()});
    });
    EXPECT_THAT(wrong, HasSubstr("WRONGPASS"));
}

TYPED_TEST(subscription_contract, gives_up_when_there_is_no_server_in_the_time_of_a_command) {
    this->proxy.refuse();
    client client{{.url = this->proxy.url(), .command_timeout = 100ms, .reconnect_max = 20ms}};
    auto const subscribe = [&] {
        return TypeParam::subscribe(client, {.channel = "news", .handler = this->mine.handler()});
    };
    EXPECT_THROW(static_cast<void>(subscribe()), unavailable_error);
    this->proxy.heal();
    subscription news;
    EXPECT_TRUE(eventually([&] { return !outcome([&] { news = subscribe(); }); }));
    EXPECT_EQ(this->publish("news", "x"), 1);
}

TYPED_TEST(subscription_contract, goes_on_when_its_password_is_right_again) {
    log_lines const quiet;
    redis_server strict{{.password = "old"}};
    scratch_dir directory;
    auto const write = [&](char const* password) { std::ofstream{directory.file("password")} << password << "\n"; };
    write("old");
    std::atomic<int> gaps{0};
    client client{{.url = strict.url(), .password_file = directory.file("password"), .reconnect_max = 50ms}};
    auto const news =
        TypeParam::subscribe(client, {.channel = "news", .handler = this->mine.handler(), .on_gap = [&] { ++gaps; }});
    strict.must({"CONFIG", "SET", "requirepass", "new"});
    strict.must({"CLIENT", "KILL", "TYPE", "pubsub"});
    EXPECT_TRUE(eventually([&] { return quiet.count("WRONGPASS") >= 1; }));
    write("new");
    EXPECT_TRUE(eventually([&] { return gaps == 1; }));
    EXPECT_EQ(strict.must({"PUBLISH", "news", "x"}).integer, 1);
}

TYPED_TEST(subscription_contract, can_outlive_its_client) {
    std::optional<client> client{this->proxy.url()};
    auto news = TypeParam::subscribe(*client, {.channel = "news", .handler = this->mine.handler()});
    client.reset();
    EXPECT_TRUE(eventually([&] { return this->publish("news", "x") == 0; }));
    news.unsubscribe();
    EXPECT_THAT(this->mine.heard(), ElementsAre());
}

TYPED_TEST(subscription_contract, refuses_what_can_not_be_heard) {
    EXPECT_THROW(
        static_cast<void>(TypeParam::subscribe(this->to_server, {.channel = "", .handler = this->mine.handler()})),
        invalid_argument_error);
    EXPECT_THROW(static_cast<void>(TypeParam::subscribe(this->to_server, {.channel = "news", .handler = {}})),
                 invalid_argument_error);
}

// More messages than the reader can hand on at once, while replies are awaited: neither holds the other up.
TYPED_TEST(subscription_contract, keeps_up_with_a_flood) {
    std::atomic<int> heard{0};
    auto const news =
        TypeParam::subscribe(this->to_server, {.channel = "news", .handler = [&](message const&) { ++heard; }});
    constexpr int messages = 20'000;
    TypeParam::command(this->to_server, "EVAL", "for i = 1, ARGV[1] do redis.call('PUBLISH', 'news', i) end", 0,
                       messages);
    EXPECT_TRUE(eventually([&] { return heard == messages; }));
}

// SUBSCRIBE, UNSUBSCRIBE and SUBSCRIBE are under way at once: the first confirmation is not the one that counts.
TEST(client_subscription, that_is_taken_up_again_is_confirmed_by_its_own_confirmation) {
    redis_server server;
    client client{server.url()};
    auto const warm = client.subscribe("other", [](message const&) {});
    auto const before = client.statistics().pushes;
    server.stop();
    std::atomic<bool> cancelled{false};
    std::atomic<std::uint64_t> confirmed_after{0};
    std::stop_source stop;
    auto first = client.async_subscribe({.channel = "news", .handler = [](message const&) {}});
    start(with_stop_token(std::move(first), stop.get_token()), [&](std::exception_ptr problem, auto&&) { cancelled = problem != nullptr; });
    EXPECT_TRUE(eventually([&] { return client.statistics().pending == 1; }));
    stop.request_stop();
    EXPECT_TRUE(eventually([&] { return cancelled.load(); }));
    start(client.async_subscribe({.channel = "news", .handler = [](message const&) {}}), [&](std::exception_ptr, auto&&) {
        confirmed_after = client.statistics().pushes - before;
    });
    EXPECT_TRUE(eventually([&] { return client.statistics().pending == 3; }));
    server.cont();
    EXPECT_TRUE(eventually([&] { return confirmed_after != 0; }));
    EXPECT_EQ(confirmed_after, 3U) << "subscribe, unsubscribe, subscribe";
}

}  // namespace
}  // namespace lockstep::test
