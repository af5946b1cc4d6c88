// What an object remembers of those that wrote to it (src/scripts/include/once.lua), so that each write counts once: in bytes, over time.
#include "integration/session_support.hpp"
#include "scripts/all.hpp"
#include "support/clock_file.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

class once_memory : public testing::Test {
protected:
    void TearDown() override { EXPECT_EQ(session_damage(fields()), ""); }

    reply run(scripts::script const& script, std::vector<std::string> const& words) {
        std::vector<std::string> line{"EVALSHA", std::string{script.sha1}, "1", key};
        line.insert(line.end(), words.begin(), words.end());
        auto said = client.command(line);
        if (!said.is_error() || !said.text.starts_with("NOSCRIPT")) return said;
        line[0] = "EVAL", line[1] = std::string{script.text};
        return client.must(line);
    }
    std::string value_set(std::string const& writer, std::int64_t sequence) {
        return run(scripts::value_change, {id_of(writer), std::to_string(sequence), ever, "86400000 PUBLISH", "set",
                                           std::string(20, 'x'), "0", "", "0"})
            .elements.at(1)
            .text;
    }
    std::string counter_add(std::string const& writer, std::int64_t sequence) {
        return run(scripts::counter_change,
                   {id_of(writer), std::to_string(sequence), ever, "86400000 PUBLISH", "add", "1", "0", "0"})
            .elements.at(4)
            .text;
    }
    static std::string id_of(std::string const& writer) { return "0123456789abcdefghij." + writer; }

    std::map<std::string, std::string> fields() {
        std::map<std::string, std::string> all;
        auto const said = client.must({"HGETALL", key}).elements;
        for (std::size_t i = 0; i + 1 < said.size(); i += 2) all[said[i].text] = said[i + 1].text;
        return all;
    }
    std::int64_t bytes() { return client.must({"MEMORY", "USAGE", key, "SAMPLES", "0"}).integer; }

    static constexpr char const* ever = "999999999999999";
    std::string key = "lockstep:{name}:value";
    clock_file clock{};
    redis_server server{{.clock = &clock}};
    raw_client client{server.address()};
};

TEST_F(once_memory, stays_small_with_a_new_writer_each_minute) {
    for (int i = 0; i < 1000; ++i) {
        value_set(std::to_string(i), 1);
        clock.step(60'001ms);
    }
    EXPECT_LT(bytes(), 1'000);
}

TEST_F(once_memory, is_given_back_after_a_thousand_writers_in_one_minute) {
    clock.stop();
    for (int i = 0; i < 1000; ++i) {
        counter_add(std::to_string(i), 1);
        clock.step(59ms);
    }
    EXPECT_EQ(sessions_in(fields()), 1000);
    EXPECT_LE(bytes(), 200'000);
    clock.step(60'001ms);
    for (int i = 1; i <= 1000; ++i) counter_add("last", i);
    EXPECT_EQ(counter_add("last", 1000), "2000") << "each counted once";
    EXPECT_LT(bytes(), 1'000);
}

// Those that go on writing stand in the way of nobody.
TEST_F(once_memory, is_bounded_by_who_wrote_in_the_last_two_minutes) {
    clock.stop();
    int most = 0;
    for (int i = 0; i < 10'000; ++i) {
        counter_add("new" + std::to_string(i), 1);
        counter_add("old" + std::to_string(i % 20), i / 20 + 1);
        clock.step(100ms);
        if (i % 100 == 0) most = std::max(most, sessions_in(fields()));
    }
    EXPECT_GE(most, 600);
    EXPECT_LE(most, 1'220);
}

TEST_F(once_memory, keeps_what_a_call_that_is_sent_again_needs) {
    for (auto const step : {std::chrono::microseconds{0}, std::chrono::microseconds{-1h}}) {
        client.must({"DEL", key});
        clock.stop();
        EXPECT_EQ(counter_add("mine", 1), "1");
        clock.step(step);
        for (int i = 0; i < 600; ++i) {  // for a minute
            counter_add("a" + std::to_string(i), 1);
            clock.step(100ms);
        }
        EXPECT_EQ(counter_add("mine", 1), "1") << "sent again";
        EXPECT_EQ(counter_add("last", 1), "602");
    }
}

// A call looks at two sessions at most, and seldom where all are in use.
TEST_F(once_memory, costs_a_call_the_same_however_many_write) {
    auto const commands = [this] {
        auto const text = client.must({"INFO", "commandstats"}).text;
        std::int64_t sum = 0;
        for (auto at = text.find("calls="); at != std::string::npos; at = text.find("calls=", at + 1))
            sum += std::stoll(text.substr(at + 6));
        return sum;
    };
    auto const cost = [&](int writers, std::int64_t sequence) {
        for (int i = 0; i < writers; ++i) counter_add(std::to_string(i), sequence);
        auto const before = commands();
        for (int i = 0; i < 1000; ++i) counter_add(std::to_string(i % writers), sequence + 1 + i / writers);
        return commands() - before;
    };
    clock.stop();
    auto const few = cost(2, 1);
    auto const many = cost(3000, 1000);
    EXPECT_LE(many, few + 1'000);
}

}  // namespace
}  // namespace lockstep::test
