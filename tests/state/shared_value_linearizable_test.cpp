// Histories of a shared value, of several processes with several threads, are linearizable; also when connections break and processes die.
#include <lockstep/shared_value.hpp>

#include "register_history.hpp"
#include "state_support.hpp"
#include "support/child_process.hpp"
#include "support/program_path.hpp"

#include <map>
#include <sstream>

namespace lockstep::test {
namespace {

using enum register_operation::kind;
using history = std::vector<register_operation>;

TEST(register_checker, accepts_what_is_in_order) {
    EXPECT_EQ(check_register({{read, 0, 1, 0, 0, ""},
                              {write, 2, 5, 10, 0, "a"},
                              {read, 3, 6, 0, 0, ""},
                              {read, 3, 4, 10, 0, "a"},
                              {swap, 6, 7, 20, 10, "b"},
                              {refused, 7, 9, 0, 10, "c"},
                              {unknown, 8, 0, 0, 0, "d"},
                              {read, 9, 10, 30, 0, "d"}}),
              "");
}

TEST(register_checker, refuses_what_is_not) {
    auto const bad = [](history const& what) { return !check_register(what).empty(); };
    EXPECT_TRUE(bad({{write, 0, 1, 10, 0, "a"}, {read, 2, 3, 0, 0, ""}})) << "a read that does not see what was answered";
    EXPECT_TRUE(bad({{write, 0, 1, 10, 0, "a"}, {write, 2, 3, 20, 0, "b"}, {read, 4, 5, 10, 0, "a"}})) << "a stale read";
    EXPECT_TRUE(bad({{write, 0, 9, 10, 0, "a"}, {read, 1, 2, 10, 0, "a"}, {read, 3, 4, 0, 0, ""}})) << "seen, and then not";
    EXPECT_TRUE(bad({{write, 0, 1, 20, 0, "a"}, {write, 2, 3, 10, 0, "b"}})) << "a later write with an earlier version";
    EXPECT_TRUE(bad({{write, 0, 1, 10, 0, "a"}, {write, 0, 1, 10, 0, "b"}})) << "two writes, one version";
    EXPECT_TRUE(bad({{read, 0, 1, 10, 0, "a"}, {write, 2, 3, 10, 0, "a"}})) << "seen before it was written";
    EXPECT_TRUE(bad({{read, 0, 1, 10, 0, "a"}})) << "out of nothing";
    EXPECT_TRUE(bad({{write, 0, 1, 10, 0, "a"}, {read, 2, 3, 10, 0, "b"}})) << "another value";
    EXPECT_TRUE(bad({{write, 0, 9, 10, 0, "a"}, {write, 0, 9, 20, 0, "b"}, {swap, 0, 9, 30, 10, "c"}})) << "a swap over a version between";
}

/// What it said, and whether it came to its end.
bool collect(child_process& from, history& all) {
    std::map<std::string, bool> tried;
    bool done = false;
    while (auto const said = from.read_line(30s)) {
        std::istringstream words{*said};
        std::string kind;
        words >> kind;
        if (kind == "done") {
            done = true;
            break;
        }
        register_operation one;
        if (kind == "try") {
            words >> one.value;
            tried[one.value] = false;
            continue;
        }
        words >> one.begin >> one.end >> one.version >> one.expected >> one.value;
        if (!words) break;  // cut off in the middle
        one.what = kind == "read" ? read : kind == "write" ? write : kind == "swap" ? swap : refused;
        if (one.what != read) tried[one.value] = true;
        all.push_back(one);
    }
    for (auto const& [value, answered] : tried) {
        if (!answered) all.push_back({unknown, 0, 0, 0, 0, value});
    }
    return done;
}

std::vector<std::string> load(std::string const& url, int operations, int seed) {
    return {program_path("shared_value_load"), url, "name", "3", std::to_string(operations), std::to_string(seed)};
}

TEST(slow_shared_value_history, is_linearizable_while_connections_break_and_processes_die) {
    redis_server server;
    fault_proxy proxy{server.address()};
    history all;
    std::vector<child_process> steady;
    for (int i = 0; i < 2; ++i) steady.emplace_back(load(server.url(), 300, 10 * i));
    child_process shaken{load(proxy.url(), 150, 100)};
    std::vector<child_process> doomed;
    for (int i = 0; i < 2; ++i) doomed.emplace_back(load(server.url(), 1'000'000, 200 + 10 * i));
    for (int i = 0; i < 5; ++i) {
        proxy.drop_replies(1);
        auto const struck = proxy.counters().struck;
        static_cast<void>(eventually([&] { return proxy.counters().struck > struck; }, 2s));
    }
    proxy.heal();
    for (auto& one : doomed) one.kill();
    for (auto& one : doomed) EXPECT_FALSE(collect(one, all));
    for (auto& one : steady) EXPECT_TRUE(collect(one, all));
    EXPECT_TRUE(collect(shaken, all));
    EXPECT_GT(proxy.counters().struck, 0U);
    EXPECT_GT(all.size(), 1'000U);
    auto const swaps = std::count_if(all.begin(), all.end(), [](auto const& one) { return one.what == swap; });
    EXPECT_GT(swaps, 10) << "otherwise little was tested";
    EXPECT_EQ(check_register(all), "");
}

}  // namespace
}  // namespace lockstep::test
