// The demo as a script sees it: it ends in time, some workers died, nothing was violated, and nothing is left.
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/file_content.hpp"
#include "support/program_path.hpp"
#include "support/scratch_dir.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <filesystem>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

class demo : public testing::Test {
protected:
    child_process start(std::vector<std::string> more) {
        more.insert(more.begin(), "--json");
        return start_as_text(more);
    }
    child_process start_as_text(std::vector<std::string> const& more) {
        std::vector<std::string> words{program_path("lockstep"), "demo", "--no-dashboard"};
        words.insert(words.end(), more.begin(), more.end());
        return child_process{words, {.environment = {{"TMPDIR", folder.path().string()}}}};
    }
    // What it still writes, until it ends.
    static std::string rest_of(child_process& running) {
        std::string text;
        while (auto const line = running.read_line(60s)) text += *line + "\n";
        return text;
    }
    // All lines, up to the last one, which is the summary.
    boost::json::object summary_of(child_process& running) {
        boost::json::object last;
        while (auto const line = running.read_line(60s)) {
            last = boost::json::parse(*line).as_object();
            lines.push_back(last);
            if (last.at("what") == "summary") break;
        }
        return last;
    }
    // Processes that were started with this folder in their environment.
    int relatives() {
        int count = 0;
        for (auto const& entry : std::filesystem::directory_iterator{"/proc"}) {
            auto const text = file_content(entry.path() / "environ");
            count += text.find("TMPDIR=" + folder.path().string()) != std::string::npos ? 1 : 0;
        }
        return count;
    }

    scratch_dir folder;
    std::vector<boost::json::object> lines;
};

TEST_F(demo, shows_how_the_living_take_over_from_the_dead_and_leaves_nothing_behind) {
    auto running = start({"--seconds", "13"});
    auto const summary = summary_of(running);
    auto const end = running.wait(20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 0);
    ASSERT_TRUE(summary.contains("violations"));
    EXPECT_EQ(summary.at("violations").as_int64(), 0);
    EXPECT_EQ(summary.at("failed").as_int64(), 0);
    EXPECT_GE(summary.at("killed").as_int64(), 2);
    EXPECT_EQ(summary.at("names").as_array().size(), 4U);
    EXPECT_GT(lines.size(), 15U) << "each event is a line";
    EXPECT_TRUE(eventually([&] { return relatives() == 0; })) << "no process stays";
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nor a file";
}

TEST_F(demo, ends_at_once_and_in_order_when_it_is_told_to) {
    auto running = start({"--seconds", "600"});
    ASSERT_TRUE(running.read_line(60s));
    running.kill(SIGTERM);
    auto const summary = summary_of(running);
    EXPECT_EQ(summary.at("violations").as_int64(), 0);
    auto const end = running.wait(20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 0);
    EXPECT_TRUE(eventually([&] { return relatives() == 0; }));
}

TEST_F(demo, says_at_first_what_it_shows_and_at_the_end_what_to_try_next) {
    auto running = start_as_text({"--seconds", "2"});
    auto const text = rest_of(running);
    auto const end = running.wait(20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 0);
    auto const introduction = text.find("Distributed locks at work");
    auto const page = text.find("\nWeb page: ");
    auto const way_out = text.find("Ctrl-C ends it sooner");
    auto const first_event = text.find(" started, and uses ");
    auto const result = text.find("No lock had two holders at once;");
    auto const advice = text.find("\nTry it yourself:\n  " + program_path("lockstep") + " run report -- sleep 30");
    EXPECT_EQ(introduction, 0U) << text;
    ASSERT_NE(advice, std::string::npos) << text;
    EXPECT_LT(page, way_out) << text;
    EXPECT_LT(way_out, first_event) << text;
    EXPECT_LT(first_event, result) << text;
    EXPECT_LT(result, advice) << text;
}

TEST_F(demo, says_what_to_try_next_when_it_is_interrupted_too) {
    auto running = start_as_text({"--seconds", "600"});
    ASSERT_TRUE(running.read_line(60s));
    running.kill(SIGINT);
    EXPECT_NE(rest_of(running).find("\nTry it yourself:\n"), std::string::npos);
    auto const end = running.wait(20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 0);
}

TEST_F(demo, takes_its_workers_along_when_it_is_killed) {
    auto running = start({"--seconds", "600"});
    ASSERT_TRUE(running.read_line(60s));
    ASSERT_TRUE(eventually([&] { return relatives() > 3; }));
    running.kill(SIGKILL);
    EXPECT_TRUE(eventually([&] { return relatives() == 0; }, 30s));
}

TEST_F(demo, refuses_a_time_that_is_none) {
    auto running = start({"--seconds", "0"});
    auto const end = running.wait(20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 64);
}

}  // namespace
}  // namespace lockstep::test
