// The private embedded server: nobody else's, and gone with its owner.
#include "embedded_support.hpp"

#include "embedded/binary.hpp"
#include "embedded/files.hpp"
#include "embedded/probe.hpp"
#include "support/redis_server.hpp"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

namespace lockstep::test {
namespace {

TEST(embedded_server, answers_on_a_private_socket_and_never_on_tcp) {
    embedded_server const server;
    EXPECT_TRUE(server.running());
    EXPECT_EQ(ask(server.url(), "PING"), "PONG");
    struct stat info {};
    ASSERT_EQ(::stat(directory_of(server.url()).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    ASSERT_EQ(::stat(path_of(server.url()).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    auto const tcp = tcp_sockets();
    for (auto const& file : open_files(server.pid())) EXPECT_FALSE(tcp.contains(file)) << file;
    EXPECT_NE(ask(server.url(), "CONFIG GET maxmemory-policy")->find("noeviction"), std::string::npos);
    EXPECT_NE(::getpgid(server.pid()), ::getpgrp()) << "Ctrl-C would reach the server before the program";
}

TEST(embedded_server, goes_with_the_object_and_leaves_nothing) {
    std::string directory;
    pid_t pid = 0;
    {
        embedded_server first;
        embedded_server server = std::move(first);
        directory = directory_of(server.url());
        pid = server.pid();
        EXPECT_TRUE(fs::exists(directory));
        EXPECT_FALSE(first.running());  // NOLINT(bugprone-use-after-move): promised
    }
    EXPECT_FALSE(process_alive(pid));
    EXPECT_FALSE(fs::exists(directory));
}

TEST(embedded_server, stops_once_and_keeps_its_url) {
    embedded_server server;
    auto const url = server.url();
    std::thread other{[&server] { server.stop(); }};
    server.stop();
    other.join();
    EXPECT_FALSE(server.running());
    EXPECT_EQ(server.url(), url);
    EXPECT_FALSE(fs::exists(directory_of(url)));
}

TEST(embedded_server, inherits_no_descriptor_of_the_program) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);  // without O_CLOEXEC
    embedded::descriptor const read_end{ends[0]};
    embedded::descriptor const write_end{ends[1]};
    embedded_server const server;
    EXPECT_FALSE(
        open_files(server.pid()).contains(fs::read_symlink("/proc/self/fd/" + std::to_string(ends[0])).string()));
}

TEST(embedded_server, survives_the_thread_that_made_it_and_dies_with_a_killed_owner) {
    child_process owner{{program_path("embedded_owner"), "private"}};
    auto const server = read_server(owner);
    EXPECT_EQ(ask(server.url, "PING"), "PONG");
    owner.kill();
    EXPECT_TRUE(eventually([&] { return !process_alive(server.pid); }));
}

TEST(embedded_server, removes_what_killed_owners_left_and_nothing_else) {
    scratch_dir const tmp;
    child_options const options{.environment = {{"TMPDIR", tmp.path()}}};
    child_process killed{{program_path("embedded_owner"), "private"}, options};
    child_process living{{program_path("embedded_owner"), "private"}, options};
    auto const stale = read_server(killed);
    auto const used = read_server(living);
    fs::create_directory(tmp.path() / "lockstep-server-halfway");  // being made: has no lock yet
    killed.kill();
    // Free when the last thread of both is gone, which can be a moment after the process looks dead.
    auto const lock = directory_of(stale.url) + "/lock";
    ASSERT_TRUE(eventually([&] { return bool{embedded::try_lock(lock, embedded::lock_kind::exclusive)}; }));

    child_process next{{program_path("embedded_owner"), "private"}, options};
    static_cast<void>(read_server(next));
    EXPECT_FALSE(fs::exists(directory_of(stale.url)));
    EXPECT_EQ(ask(used.url, "PING"), "PONG");
    EXPECT_TRUE(fs::exists(tmp.path() / "lockstep-server-halfway"));
}

TEST(embedded_server, takes_a_shorter_place_when_tmpdir_is_too_long_for_a_socket) {
    scratch_dir const tmp;
    auto const deep = tmp.path() / std::string(90, 'x');
    fs::create_directory(deep);
    child_process owner{{program_path("embedded_owner"), "private"}, {.environment = {{"TMPDIR", deep}}}};
    EXPECT_TRUE(read_server(owner).url.starts_with("unix:///tmp/"));
    owner.kill();
    ASSERT_TRUE(owner.wait());
    embedded_server const sweeps_what_that_left;
}

TEST(embedded_server, keeps_its_data_in_a_data_directory) {
    scratch_dir const scratch;
    embedded_server_options const options{.data_directory = scratch.file("of mine \"here\""),
                                          .sync = sync_policy::always};
    {
        embedded_server const server{options};
        EXPECT_EQ(ask(server.url(), "SET answer 42"), "OK");
        EXPECT_NE(ask(server.url(), "CONFIG GET appendfsync")->find("always"), std::string::npos);
    }
    embedded_server const again{options};
    EXPECT_EQ(ask(again.url(), "GET answer"), "\"42\"");
}

TEST(embedded_server, keeps_its_data_when_the_owner_is_killed_and_frees_the_directory) {
    scratch_dir const scratch;
    child_process owner{{program_path("embedded_owner"), "private", scratch.file("data")}};
    EXPECT_EQ(ask(read_server(owner).url, "SET answer 42"), "OK");
    owner.kill();
    embedded_server const next{{.data_directory = scratch.file("data")}};  // at once
    EXPECT_EQ(ask(next.url(), "GET answer"), "\"42\"");
}

TEST(embedded_server, refuses_a_second_owner_of_a_data_directory) {
    scratch_dir const scratch;
    embedded_server const first{{.data_directory = scratch.file("data")}};
    auto const message = thrown<unavailable_error>([&] { embedded_server{{.data_directory = scratch.file("data")}}; });
    EXPECT_NE(message.find("in use by another embedded server"), std::string::npos) << message;
}

TEST(embedded_server, says_what_the_server_said_when_it_does_not_start) {
    scratch_dir const scratch;
    auto const data = scratch.path() / "data";
    { embedded_server const writes_a_manifest{{.data_directory = data}}; }
    for (auto const& file : fs::directory_iterator{data / "appendonlydir"})
        std::ofstream{file.path()} << "nonsense\r\n";
    auto const message = thrown<unavailable_error>([&] { embedded_server{{.data_directory = data}}; });
    EXPECT_NE(message.find("exited with status"), std::string::npos) << message;
    EXPECT_NE(message.find("AOF"), std::string::npos) << message;
}

TEST(embedded_server, notices_and_says_that_the_server_died) {
    log_capture capture;
    embedded_server const server;
    ::kill(server.pid(), SIGKILL);
    EXPECT_TRUE(eventually([&] { return !server.running(); }));
    EXPECT_TRUE(eventually([&] { return capture.text().find("was ended by signal 9") != std::string::npos; }))
        << capture.text();
}

TEST(embedded_server, is_left_alone_by_a_forked_copy_of_its_owner) {
    auto server = std::make_unique<embedded_server>();
    auto const child = ::fork();
    if (child == 0) {
        server.reset();
        ::_exit(0);
    }
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_EQ(ask(server->url(), "PING"), "PONG");
}

TEST(embedded_server, works_in_a_program_that_lets_the_kernel_reap_its_children) {
    auto* const before = ::signal(SIGCHLD, SIG_IGN);
    {
        embedded_server server;
        EXPECT_EQ(ask(server.url(), "PING"), "PONG");
        server.stop();
        EXPECT_FALSE(server.running());
    }
    ::signal(SIGCHLD, before);
}

TEST(embedded_server, names_the_packages_where_no_server_is_found) {
    scratch_dir const empty;
    auto const message = thrown<unavailable_error>([&] { embedded::find_server_binary_in({empty.path().string()}); });
    EXPECT_NE(message.find("apt-get install redis-server"), std::string::npos) << message;
    EXPECT_NE(message.find("valkey-server"), std::string::npos) << message;
}

TEST(embedded_server, refuses_a_binary_that_is_none) {
    EXPECT_THROW(embedded_server({.binary = "/nowhere/redis-server"}), invalid_argument_error);
    EXPECT_THROW(embedded_server({.binary = "no-such-server"}), invalid_argument_error);
    auto const message = thrown<unavailable_error>([] { embedded_server{{.binary = "false"}}; });
    EXPECT_NE(message.find("exited with status 1"), std::string::npos) << message;
}

TEST(embedded_server, refuses_writes_beyond_maxmemory_instead_of_evicting) {
    embedded_server const server{{.maxmemory = 1}};
    EXPECT_TRUE(ask(server.url(), "SET key value")->starts_with("error OOM"));
}

TEST(embedded_probe, is_not_ended_by_a_signal) {
    redis_server server;
    server.stop();
    auto const before = std::signal(SIGUSR1, [](int) {});
    std::atomic<bool> done{false};
    std::atomic<pthread_t> asker{};
    embedded::answer seen{};
    std::thread thread{[&] {
        asker = ::pthread_self();
        seen = embedded::probe(server.socket_path(), 20s).state;
        done = true;
    }};
    EXPECT_TRUE(eventually([&] { return asker != pthread_t{}; }));
    for (int i = 0; i < 100 && !done; ++i) {
        ::pthread_kill(thread.native_handle(), SIGUSR1);
        std::this_thread::yield();
    }
    EXPECT_FALSE(done);
    server.cont();
    thread.join();
    EXPECT_EQ(seen, embedded::answer::alive);
    std::signal(SIGUSR1, before);
}

}  // namespace
}  // namespace lockstep::test
