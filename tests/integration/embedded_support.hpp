// What the tests of the embedded servers share.
#pragma once

#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/file_content.hpp"
#include "support/program_path.hpp"
#include "support/raw_client.hpp"
#include "support/scratch_dir.hpp"

#include <lockstep/embedded_server.hpp>
#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

inline std::string path_of(std::string const& url) { return url.substr(std::strlen("unix://")); }
inline std::string directory_of(std::string const& url) { return fs::path{path_of(url)}.parent_path(); }

// Sends a command of plain words on a connection of its own. Nothing when the server is not there or goes before it answers.
inline std::optional<std::string> ask(std::string const& url, std::string const& command) try {
    std::istringstream words{command};
    std::vector<std::string> const arguments{std::istream_iterator<std::string>{words}, {}};
    return describe(raw_client{endpoint{.unix_path = path_of(url)}}.command(arguments));
} catch (std::exception const&) {
    return std::nullopt;
}

// The targets of a process's descriptors: "socket:[123]", "/tmp/x" and so on.
inline std::set<std::string> open_files(pid_t pid) {
    std::set<std::string> targets;
    for (auto const& entry : fs::directory_iterator{"/proc/" + std::to_string(pid) + "/fd"}) {
        std::error_code closed;  // meanwhile
        auto const target = fs::read_symlink(entry.path(), closed);
        if (!closed) targets.insert(target.string());
    }
    return targets;
}

inline std::set<std::string> tcp_sockets() {
    std::set<std::string> sockets;
    for (auto const* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        std::ifstream file{table};
        std::string line;
        std::getline(file, line);
        while (std::getline(file, line)) {
            std::istringstream fields{line};
            std::string inode;
            for (int field = 0; field < 10; ++field) fields >> inode;
            sockets.insert("socket:[" + inode + "]");
        }
    }
    return sockets;
}

// How many server processes serve a socket in this directory: they have its path in their title.
inline int servers_in(std::string const& directory) {
    int count = 0;
    for (auto const& entry : fs::directory_iterator{"/proc"}) {
        auto const title = file_content(entry.path() / "cmdline");
        if (title.find("-server") != std::string::npos &&
            title.find("unixsocket:" + directory + "/") != std::string::npos)
            ++count;
    }
    return count;
}

// The message of the error that `call` throws.
template <class Error, class Call>
std::string thrown(Call const& call) {
    try {
        call();
    } catch (Error const& error) {
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

struct url_and_pid {
    std::string url;
    pid_t pid = 0;
};

inline url_and_pid read_server(child_process& program) {
    auto const line = program.read_line().value_or("");
    std::istringstream fields{line};
    url_and_pid server;
    fields >> server.url >> server.pid;
    EXPECT_TRUE(server.url.starts_with("unix://") && server.pid > 0) << line << '\n'
                                                                     << program.read_line(1s).value_or("");
    return server;
}

// Collects what is logged while it lives.
class log_capture {
public:
    log_capture() {
        before_ = set_log_hook([this](log_level level, std::string_view text) {
            std::lock_guard const guard{mutex_};
            if (level == log_level::warning) text_ += std::string{text} + "\n";
        });
    }
    ~log_capture() { set_log_hook(before_); }
    std::string text() {
        std::lock_guard const guard{mutex_};
        return text_;
    }

private:
    std::mutex mutex_;
    std::string text_;
    log_hook before_;
};

}  // namespace lockstep::test
