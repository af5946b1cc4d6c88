// The build step that bundles the page (cmake/bundle_page.cmake), where npm can't reach its registry.
#include "support/child_process.hpp"
#include "support/file_content.hpp"
#include "support/scratch_dir.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace lockstep::test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using testing::HasSubstr;

struct page_build : testing::Test {
    bool has_npm() {
        try {
            auto const end = child_process{{"npm", "--version"}, {.output_file = folder.path() / "version"}}.wait();
            return end && end->code == 0;
        } catch (std::system_error const&) {
            return false;  // there is no such program
        }
    }
    // The step's exit code; -1 if it takes longer than that.
    int bundle(std::string const& mode, std::string const& node, int registry_port, std::chrono::milliseconds at_most) {
        auto const define = [](std::string const& name, std::string const& value) { return "-D" + name + "=" + value; };
        child_process step{{LOCKSTEP_CMAKE, define("MODE", mode), define("NODE", node), define("NPM", "npm"),
                            define("FROM", LOCKSTEP_SOURCE_DIR "/apps/dashboard/page"), define("INTO", into.string()),
                            define("ASSETS", assets.string()), "-P", LOCKSTEP_SOURCE_DIR "/cmake/bundle_page.cmake"},
                           {.environment = {{"npm_config_registry", "http://127.0.0.1:" + std::to_string(registry_port) + "/"},
                                            {"npm_config_cache", folder.file("cache")},
                                            {"npm_config_noproxy", "127.0.0.1"}},
                            .output_file = folder.path() / "output"}};
        auto const end = step.wait(at_most);
        return end ? end->code : -1;
    }
    void expect_no_page(std::string const& reason) {
        EXPECT_EQ(file_content(into / "missing.txt"), reason + "\n");
        EXPECT_THAT(file_content(assets), HasSubstr("assets() { return {}; }"));
        EXPECT_THAT(file_content(assets), HasSubstr("missing_page_reason() { return \"" + reason + "\"; }"));
        EXPECT_FALSE(std::filesystem::exists(into / ".bundled")) << "an output that is missing: the next build tries again";
    }

    scratch_dir folder;
    std::filesystem::path into = folder.path() / "page";
    std::filesystem::path assets = folder.path() / "assets.cpp";
    asio::io_context context;
    // A bound port that is not listened on refuses connections; one that is accepts them, and nobody answers.
    asio::ip::tcp::socket refusing{context, {asio::ip::address_v4::loopback(), 0}};
    asio::ip::tcp::acceptor silent{context, {asio::ip::address_v4::loopback(), 0}};
};

TEST_F(page_build, goes_on_without_a_page_if_the_registry_refuses) {
    if (!has_npm()) GTEST_SKIP() << "npm is not installed";
    ASSERT_EQ(bundle("AUTO", "node", refusing.local_endpoint().port(), 20s), 0) << file_content(folder.path() / "output");
    expect_no_page("npm could not install the packages (ECONNREFUSED)");
    EXPECT_THAT(file_content(into / "npm.log"), HasSubstr("ECONNREFUSED"));
}

TEST_F(page_build, stops_if_the_page_is_insisted_on) {
    if (!has_npm()) GTEST_SKIP() << "npm is not installed";
    EXPECT_GT(bundle("ON", "node", refusing.local_endpoint().port(), 20s), 0);
    EXPECT_THAT(file_content(folder.path() / "output"), HasSubstr("The dashboard's page can't be built: npm could not install the packages"));
    EXPECT_FALSE(std::filesystem::exists(assets));
}

TEST_F(page_build, does_not_wait_long_for_a_registry_that_never_answers) {
    if (!has_npm()) GTEST_SKIP() << "npm is not installed";
    std::filesystem::create_directories(into);
    std::ofstream{into / "missing.txt"} << "as after an earlier build\n";  // a first build waits for 18 s
    auto const port = silent.local_endpoint().port();
    ASSERT_EQ(bundle("AUTO", "node", port, 15s), 0) << file_content(folder.path() / "output");
    expect_no_page("npm could not install the packages (its registry does not answer)");
}

TEST_F(page_build, leaves_a_source_without_a_page_as_it_is_so_that_nothing_is_compiled_again) {
    ASSERT_EQ(bundle("AUTO", "", 1, 20s), 0);
    expect_no_page("Node.js 18 and npm are not installed");
    auto const written = std::filesystem::last_write_time(assets) - 1h;
    std::filesystem::last_write_time(assets, written);
    ASSERT_EQ(bundle("AUTO", "", 1, 20s), 0);
    EXPECT_EQ(std::filesystem::last_write_time(assets), written);
}

}  // namespace
}  // namespace lockstep::test
