// The scripts of redlock, each rule by itself.
#include "script_support.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::test {
namespace {

class redlock_scripts : public testing::Test {
protected:
    reply run(scripts::script const& script, std::vector<std::string> const& keys, std::vector<std::string> const& arguments) {
        return run_script(server, script, keys, arguments);
    }
    reply acquire(std::vector<std::string> const& keys, std::string const& token, std::string const& fenced = "0") {
        return run(scripts::redlock_acquire, keys, {token, "60000", fenced, "", ""});
    }
    std::string value(std::string const& key) { return server.must({"GET", key}).text; }

    redis_server server;
};

TEST_F(redlock_scripts, acquire_takes_all_keys_or_none) {
    server.must({"SET", "b", "other", "PX", "50000"});
    auto const refused = acquire({"a", "b"}, "mine");
    EXPECT_EQ(refused.elements.at(0).integer, 0);
    EXPECT_GT(refused.elements.at(1).integer, 0);
    EXPECT_EQ(refused.elements.at(3).text, "other");
    EXPECT_EQ(server.must({"EXISTS", "a"}).integer, 0);
    server.must({"DEL", "b"});
    EXPECT_EQ(acquire({"a", "b"}, "mine").elements.at(0).integer, 1);
    EXPECT_EQ(value("a") + value("b"), "minemine");
    EXPECT_GT(server.must({"PTTL", "b"}).integer, 0);
}

TEST_F(redlock_scripts, acquire_sent_again_gives_the_same_answer) {
    EXPECT_EQ(acquire({"a", "b"}, "mine").elements.at(0).integer, 1);
    EXPECT_EQ(acquire({"a", "b"}, "mine").elements.at(0).integer, 1);
    EXPECT_EQ(acquire({"a"}, "another").elements.at(0).integer, 0);
}

TEST_F(redlock_scripts, acquire_is_refused_by_a_key_that_is_no_lock) {
    server.must({"RPUSH", "a", "x"});
    EXPECT_EQ(acquire({"a"}, "mine").elements.at(0).integer, 0);
    EXPECT_EQ(server.must({"TYPE", "a"}).text, "list");
}

TEST_F(redlock_scripts, acquire_tells_a_lockstep_holder_who_waits_and_nobody_else) {
    auto holder = server.connect();
    holder.must({"SUBSCRIBE", "c:process"});
    server.must({"SET", "a", "lockstep:process.0.secret"});
    auto const told = run(scripts::redlock_acquire, {"a"}, {"mine", "60000", "0", "c:", "me/1/x"});
    EXPECT_EQ(told.elements.at(2).integer, 1);
    EXPECT_EQ(holder.read().elements.at(2).text, "w lockstep:process.0.secret me/1/x");
    server.must({"SET", "a", "foreign"});
    EXPECT_EQ(run(scripts::redlock_acquire, {"a"}, {"mine", "60000", "0", "c:", "me/1/x"}).elements.at(2).integer, 0);
}

TEST_F(redlock_scripts, fences_are_read_with_the_grant_and_written_only_upwards_by_who_has_the_key) {
    server.must({"SET", "f", "1794756441140893"});
    auto const granted = acquire({"a", "f"}, "mine", "1");
    EXPECT_EQ(granted.elements.at(1).text, "1794756441140893") << "all digits";
    EXPECT_GT(std::stoull(granted.elements.at(2).text), 1'600'000'000'000'000U);
    auto const write = [&](std::string const& token, std::string const& fence) {
        return run(scripts::redlock_fence, {"a", "f"}, {token, fence}).elements.at(0).integer;
    };
    EXPECT_EQ(write("another", "1794756441140999"), 0);
    EXPECT_EQ(write("mine", "1794756441140892"), 0) << "smaller";
    EXPECT_EQ(value("f"), "1794756441140893");
    EXPECT_EQ(write("mine", "1794756441140894"), 1);
    EXPECT_EQ(write("mine", "1794756441140894"), 1) << "sent again";
    EXPECT_EQ(value("f"), "1794756441140894");
    EXPECT_EQ(run(scripts::redlock_fence, {"a", "f"}, {"mine", "5"}).elements.at(1).text, "1794756441140894");
    EXPECT_EQ(run(scripts::redlock_fence, {"a", "f"}, {"another", "1794756441140999"}).elements.at(1).text, "0") << "it does not have the key";
    EXPECT_EQ(server.must({"TTL", "f"}).integer, -1);
}

TEST_F(redlock_scripts, extend_needs_the_token_in_all_keys) {
    auto const extend = [&](std::string const& token, std::string const& again) {
        return run(scripts::compare_and_extend, {"a", "b"}, {token, "90000", again, ""}).integer;
    };
    acquire({"a", "b"}, "mine");
    EXPECT_EQ(extend("another", "1"), 0);
    EXPECT_EQ(extend("mine", "0"), 1);
    EXPECT_GT(server.must({"PTTL", "a"}).integer, 60'000);
    server.must({"DEL", "b"});
    EXPECT_EQ(extend("mine", "0"), -1);
    EXPECT_EQ(server.must({"EXISTS", "b"}).integer, 0);
    EXPECT_EQ(extend("another", "0"), 0) << "of two answers the one that ends it";
    EXPECT_EQ(extend("mine", "1"), 2);
    EXPECT_EQ(value("b"), "mine");
    server.must({"SET", "b", "other"});
    EXPECT_EQ(extend("mine", "1"), 0);
    EXPECT_EQ(value("b"), "other");
}

TEST_F(redlock_scripts, extend_makes_nothing_again_where_a_larger_fence_is_known) {
    auto const extend = [&](std::string const& fence) {
        return run(scripts::compare_and_extend, {"a", "b", "fa", "fb"}, {"mine", "90000", "1", fence}).integer;
    };
    server.must({"SET", "fa", "1794756441140893"});
    EXPECT_EQ(extend("1794756441140892"), 0);
    EXPECT_EQ(server.must({"EXISTS", "a", "b", "fb"}).integer, 0);
    EXPECT_EQ(extend("1794756441140893"), 2);
    EXPECT_EQ(value("a") + value("b"), "minemine");
    EXPECT_EQ(value("fb"), "1794756441140893") << "whoever comes later has to see it here, too";
    EXPECT_EQ(server.must({"TTL", "fb"}).integer, -1);
    server.must({"SET", "fb", "1794756441140894"});
    EXPECT_EQ(extend("1794756441140893"), 1) << "held all the time: fences do not matter";
}

TEST_F(redlock_scripts, release_deletes_only_what_has_the_token) {
    acquire({"a"}, "mine");
    server.must({"SET", "b", "other"});
    EXPECT_EQ(run(scripts::redlock_release, {"a", "b", "c"}, {"mine", "c:", "first"}).integer, 1);
    EXPECT_EQ(server.must({"EXISTS", "a"}).integer, 0);
    EXPECT_EQ(value("b"), "other");
}

TEST_F(redlock_scripts, release_wakes_the_first_that_is_connected_and_tells_it_of_the_rest) {
    auto second = server.connect();
    second.must({"SUBSCRIBE", "c:two"});
    acquire({"a"}, "mine");
    run(scripts::redlock_release, {"a"}, {"mine", "c:", "first", "dead/1/x", "two/7/x", "three/9/x"});
    EXPECT_EQ(second.read().elements.at(2).text, "f 7 mine three/9/x");
}

}  // namespace
}  // namespace lockstep::test
