// why() of names whose holders, waiters and records others made as many as they liked: it takes little memory and ends in time.
#include "support/redis_server.hpp"

#include <lockstep/client.hpp>
#include <lockstep/monitor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

long peak_mb() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss / 1'024;
}

class monitor_why_bounds : public testing::Test {
protected:
    /// `script` may use now (µs), add(client, fields...) and ARGV.
    void forge(std::string const& script, std::vector<std::string> const& words = {}) {
        std::vector<std::string> command{"EVAL",
                                         "local time = redis.call('TIME') local now = time[1] * 1000000 "
                                         "local function add(id, ...) "
                                         "redis.call('HSET', 'lockstep:{clients}:' .. id, 'name', 'forged', 'said', string.format('%.0f', now / 1000), ...) "
                                         "redis.call('ZADD', 'lockstep:{clients}:index', now / 1000, id) end " + script + " return 1",
                                         "0"};
        command.insert(command.end(), words.begin(), words.end());
        server.must(command);
    }
    /// As many hold all permits of 'big', and as many wait for one: h1, ..., and w1, ...
    void forge_a_semaphore(int clients) {
        forge("local key, fence = 'lockstep:{big}:semaphore', string.format('%.0f', now) "
              "redis.call('HSET', key, 'v', 4, 'c', ARGV[1], 'u', ARGV[1], 'n', ARGV[1], 'h', 1, 'l', ARGV[1]) "
              "for i = 1, ARGV[1] do redis.call('HSET', key, 'o' .. i, 'h' .. i .. '.1', 'ih' .. i .. '.1', i .. ' 1 3600000 ' .. fence, 'q' .. i, 'w' .. i .. '.1') end",
              {std::to_string(clients)});
    }
    /// These clients have a connection, and never answer.
    void listen_as(std::string const& begin, int count) {
        for (int i = 1; i <= count; ++i) deaf.push_back(ear.subscribe("lockstep:wake:" + begin + std::to_string(i), [](message const&) {}));
    }

    redis_server server;
    client ear{{.url = server.url()}};
    client eyes{{.url = server.url(), .command_timeout = 2s}};
    lockstep::monitor eye{eyes};
    std::vector<subscription> deaf;
};

TEST_F(monitor_why_bounds, a_thousand_holders_and_waiters_of_one_command_are_few_links) {
    forge_a_semaphore(1'000);
    forge("for i = 1, 1000 do add('w' .. i, 'parent', 'runner') end add('runner', 'holds', '')");
    auto const before = peak_mb();
    auto const said = eye.why("big");
    EXPECT_LT(peak_mb() - before, 200);
    EXPECT_THAT(said.holds, SizeIs(1'000));
    EXPECT_THAT(said.waits, SizeIs(1'000));
    EXPECT_THAT(said.notes, IsEmpty()) << "one command, which waits for each of the holders";
}

TEST_F(monitor_why_bounds, a_thousand_holders_and_commands_are_cut_and_that_is_said) {
    forge_a_semaphore(1'000);
    forge("for i = 1, 1000 do add('w' .. i, 'parent', 'r' .. i) add('r' .. i, 'holds', '') end");
    auto const before = peak_mb();
    auto const said = eye.why("big");
    EXPECT_LT(peak_mb() - before, 200);
    EXPECT_THAT(said.cycles, IsEmpty());
    EXPECT_THAT(said.notes, Contains(HasSubstr("only the first 5000 links")));
}

TEST_F(monitor_why_bounds, holders_that_wait_for_each_other_make_so_many_links_and_no_more) {
    forge_a_semaphore(1'000);
    forge("for i = 1, 1000 do add('h' .. i, 'waits', 'semaphore permits 1 1 0 big') end");
    auto const before = peak_mb();
    auto const said = eye.why("big");
    EXPECT_LT(peak_mb() - before, 200);
    EXPECT_THAT(said.chain, SizeIs(5'000));
    EXPECT_THAT(said.notes, Contains(HasSubstr("only the first 5000 links")));
}

TEST_F(monitor_why_bounds, what_a_client_calls_itself_is_cut) {
    std::string long_name;
    while (long_name.size() < 30'000) long_name += "\xC3\xA9";
    forge("add('evil', 'name', 'x' .. ARGV[1], 'host', ARGV[1], 'version', ARGV[1], 'parent', ARGV[1])", {long_name});
    auto const all = eye.clients();
    ASSERT_THAT(all, SizeIs(1));
    EXPECT_EQ(all[0].name, "x" + long_name.substr(0, 254)) << "before a character that would not be whole";
    EXPECT_EQ(all[0].host, long_name.substr(0, 256));
    EXPECT_EQ(all[0].version, long_name.substr(0, 256));
    EXPECT_EQ(all[0].parent, "");
}

TEST_F(monitor_why_bounds, a_long_chain_of_parents_is_asked_at_once_and_cut) {
    forge("redis.call('HSET', 'lockstep:{name}:lock', 'v', 3, 'o', 'holder.1', 'f', string.format('%.0f', now), 't', 3600000, 'h', 1, 'l', 1, 'q1', 'p1.1') "
          "for i = 1, 200 do add('p' .. i, 'parent', 'p' .. (i + 1)) end");
    listen_as("p", 200);
    auto const begin = std::chrono::steady_clock::now();
    auto const said = eye.why("name");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 1'500ms) << "300 ms for all of them";
    EXPECT_THAT(said.holds, SizeIs(1));
    EXPECT_THAT(said.notes, Contains(HasSubstr("16 parents")));
}

TEST_F(monitor_why_bounds, a_long_chain_of_clients_that_do_not_answer_ends_in_time_and_says_so) {
    forge("for i = 1, 100 do "
          "redis.call('HSET', 'lockstep:{n' .. i .. '}:lock', 'v', 3, 'o', 'c' .. i .. '.1', 'f', string.format('%.0f', now), 't', 3600000) "
          "add('c' .. i, 'waits', 'lock owner 1 1 0 n' .. (i + 1)) end");
    listen_as("c", 100);
    auto const begin = std::chrono::steady_clock::now();
    auto const said = eye.why("n1");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);
    EXPECT_THAT(said.holds, SizeIs(1));
    EXPECT_THAT(said.chain, Not(IsEmpty()));
    EXPECT_THAT(said.notes, Contains(HasSubstr("the time for a look is over")));
}

}  // namespace
}  // namespace lockstep::test
