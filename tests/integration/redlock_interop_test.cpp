// Redlock against the lock libraries of other languages on the same name: never two holders, and everybody gets his turn.
#include "redlock_support.hpp"

#include "support/child_process.hpp"
#include "support/file_content.hpp"

#include <atomic>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

bool works(std::vector<std::string> const& words) {
    try {
        child_process tool{words, {.output_file = "/dev/null"}};
        auto const end = tool.wait(50s);
        return end && end->code == 0;
    } catch (std::system_error const&) {
        return false;  // there is no such program
    }
}

fs::path peers_directory() { return fs::path{LOCKSTEP_TEST_BIN}.parent_path() / "peers"; }

/// Why the build could not install the libraries (cmake/npm_ci.cmake); empty: they are there.
std::string missing_npm_packages() {
    auto const directory = peers_directory();
    auto const reason = file_content(directory / "missing.txt");
    if (reason.empty() && !fs::exists(directory / "node_modules" / ".installed")) throw std::runtime_error{"build the target redlock_peers first"};
    return reason;
}

/// The interpreter that has redis-py; empty: none.
std::string python_with_redis() {
    for (char const* const one : {"/usr/bin/python3", "python3"}) {
        if (works({one, "-c", "import redis"})) return one;
    }
    return {};
}

std::string joined(std::vector<std::string> const& words) {
    std::string text;
    for (auto const& one : words) text += (text.empty() ? "" : ",") + one;
    return text;
}

class slow_redlock_interop : public testing::TestWithParam<std::size_t> {
protected:
    void contend(std::vector<std::string> command, std::string const& name) {
        std::vector<std::string> sockets;
        for (std::size_t i = 0; i != servers.size(); ++i) sockets.push_back(servers[i].socket_path());
        command.insert(command.end(), {joined(sockets), referee.socket_path(), name, "3"});
        // ioredis is resolved from where the packages are
        std::vector<std::string> whole{"env", "-C", peers_directory()};
        whole.insert(whole.end(), command.begin(), command.end());
        child_process theirs{whole, {.capture_stderr = true}};
        auto const ready = theirs.read_line(20s);
        ASSERT_EQ(ready.value_or("nothing"), "ready");

        redlock_nodes nodes{servers.urls()};
        connect(nodes);
        redlock lock{nodes, name, {.ttl = 10s, .retry_delay = 10ms, .retry_jitter = 8ms}};
        client judge{referee.url()};
        std::atomic<bool> over = false;
        std::atomic<int> holds = 0;
        std::vector<std::thread> ours;
        for (int i = 0; i != 3; ++i) {
            ours.emplace_back([&] {
                while (!over) {
                    auto held = lock.acquire();
                    if (judge.command<std::int64_t>("INCR", "inside") != 1) judge.command("INCR", "overlaps");
                    ++holds;
                    judge.command("DECR", "inside");
                    held.release();
                    std::this_thread::sleep_for(1ms);
                }
            });
        }
        // Some seconds, and until both sides had it a number of times.
        auto const begin = now_ms();
        EXPECT_TRUE(eventually([&] { return holds > 50 && now_ms() - begin > 4'000; }, 30s)) << holds << " holds of ours";
        theirs.close_input();
        auto const said = theirs.read_line(30s);
        over = true;
        for (auto& one : ours) one.join();
        ASSERT_TRUE(said);
        ASSERT_TRUE(said->starts_with("holds ")) << *said;
        EXPECT_GT(std::stoi(said->substr(6)), 10) << "they starve";
        EXPECT_EQ(referee.must({"GET", "overlaps"}).text, "") << "two held it at once";
        EXPECT_EQ(referee.must({"GET", "inside"}).text, "0");
        EXPECT_TRUE(eventually([&] { return servers.that_have(name) == 0; }, 15s));
    }

    std::string contender(std::string const& file) const { return std::string{LOCKSTEP_SOURCE_DIR} + "/tests/support/peers/" + file; }

    server_set servers{GetParam()};
    redis_server referee;
};

INSTANTIATE_TEST_SUITE_P(nodes, slow_redlock_interop, testing::Values(1, 5), testing::PrintToStringParamName{});

TEST_P(slow_redlock_interop, shares_its_locks_with_node_redlock) {
    if (auto const reason = missing_npm_packages(); !reason.empty()) GTEST_SKIP() << "no npm packages: " << reason;
    contend({"node", contender("contender.js"), "redlock"}, "shared");
}

TEST_P(slow_redlock_interop, shares_its_locks_with_redis_semaphore) {
    if (auto const reason = missing_npm_packages(); !reason.empty()) GTEST_SKIP() << "no npm packages: " << reason;
    contend({"node", contender("contender.js"), "redis-semaphore"}, "mutex:shared");
}

// redis-py's Lock has one node.
class slow_redlock_interop_of_one : public slow_redlock_interop {};
INSTANTIATE_TEST_SUITE_P(node, slow_redlock_interop_of_one, testing::Values(1), testing::PrintToStringParamName{});

TEST_P(slow_redlock_interop_of_one, shares_its_locks_with_redis_py) {
    auto const python = python_with_redis();
    ASSERT_FALSE(python.empty()) << "redis-py is not installed (Debian: python3-redis)";
    contend({python, contender("contender.py"), "lock"}, "shared");
}

}  // namespace
}  // namespace lockstep::test
