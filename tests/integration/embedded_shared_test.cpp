// The shared embedded server: one for all programs of a user, whoever starts it and whenever it ends.
#include "embedded_support.hpp"

#include "embedded/files.hpp"
#include "redis/channel.hpp"

#include <boost/asio/io_context.hpp>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <thread>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using embedded::lock_kind;

// Whether a process waits in flock(1) with this file open.
bool has_waiter(std::string const& file) {
    for (auto const& entry : fs::directory_iterator{"/proc"}) {
        std::ifstream name{entry.path() / "comm"};
        std::string command;
        std::error_code gone;
        if (name >> command && command == "flock" && fs::read_symlink(entry.path() / "fd/9", gone) == file) return true;
    }
    return false;
}

class shared_server : public ::testing::Test {
protected:
    ~shared_server() override {
        stop_shared_server(options());
        EXPECT_TRUE(eventually([this] { return servers_in(directory()) == 0; }));
    }

    std::string directory() const { return scratch_.file("run"); }
    shared_server_options options() const { return {.directory = directory(), .announce = false}; }
    std::string ensure() const { return ensure_shared_server(options()); }
    pid_t pid() const { return shared_server_status(options()).pid; }
    child_process program(std::string const& idle = "600") const {
        return child_process{
            {program_path("embedded_owner"), "shared"},
            {.environment = {{"LOCKSTEP_EMBEDDED_DIR", directory()}, {"LOCKSTEP_EMBEDDED_IDLE", idle}}}};
    }

    // Starts so many programs, lets them go at the same instant, and expects one server.
    void expect_one_server_for(int programs) {
        std::vector<child_process> all;
        for (int i = 0; i < programs; ++i) all.push_back(program());
        for (auto& one : all) ASSERT_EQ(one.read_line(), "ready");
        for (auto& one : all) one.write_line("go");
        std::set<pid_t> pids;
        for (auto& one : all) pids.insert(read_server(one).pid);
        EXPECT_EQ(pids.size(), 1U);
        EXPECT_EQ(servers_in(directory()), 1);
    }

    scratch_dir scratch_;
};

TEST_F(shared_server, is_one_for_two_programs_that_start_at_the_same_instant) { expect_one_server_for(2); }

TEST_F(shared_server, is_one_for_eight_programs_that_start_at_the_same_instant) { expect_one_server_for(8); }

TEST_F(shared_server, is_one_for_many_threads) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) threads.emplace_back([this] { EXPECT_EQ(ask(ensure(), "PING"), "PONG"); });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(servers_in(directory()), 1);
}

TEST_F(shared_server, outlives_the_program_that_started_it) {
    auto first = program();
    first.write_line("go");
    EXPECT_EQ(first.read_line(), "ready");
    auto const server = read_server(first);
    EXPECT_EQ(ask(server.url, "SET answer 42"), "OK");
    first.close_input();
    ASSERT_TRUE(first.wait());
    EXPECT_EQ(ask(ensure(), "GET answer"), "\"42\"");
    EXPECT_EQ(pid(), server.pid);
    EXPECT_NE(::getsid(server.pid), ::getsid(0));
}

TEST_F(shared_server, outlives_a_kill_of_the_program_that_started_it) {
    auto first = program();
    first.write_line("go");
    EXPECT_EQ(first.read_line(), "ready");
    auto const server = read_server(first);
    first.kill();
    ASSERT_TRUE(first.wait());
    EXPECT_EQ(ask(ensure(), "PING"), "PONG");
    EXPECT_EQ(pid(), server.pid);
}

// Programs are killed at arbitrary moments of the start; the next one gets a server all the same.
TEST_F(shared_server, starts_although_starters_are_killed_on_the_way) {
    std::minstd_rand random{7};
    for (int i = 0; i < 10; ++i) {
        auto victim = program();
        ASSERT_EQ(victim.read_line(), "ready");
        victim.write_line("go");
        std::this_thread::sleep_for(std::chrono::microseconds{random() % 12'000});
        victim.kill();
        EXPECT_EQ(ask(ensure(), "PING"), "PONG");
        EXPECT_EQ(servers_in(directory()), 1);
        EXPECT_TRUE(stop_shared_server(options()));
    }
}

TEST_F(shared_server, keeps_no_descriptor_and_no_environment_of_the_program_that_started_it) {
    ::setenv("LOCKSTEP_TEST_SECRET", "hunter2", 1);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);  // without O_CLOEXEC
    embedded::descriptor const read_end{ends[0]};
    embedded::descriptor write_end{ends[1]};
    ensure();
    write_end.close();
    char byte = 0;
    EXPECT_EQ(::read(read_end.get(), &byte, 1), 0) << "someone else has the write end";
    auto const environment = file_content("/proc/" + std::to_string(pid()) + "/environ");
    EXPECT_EQ(environment.find("hunter2"), std::string::npos);
    ::unsetenv("LOCKSTEP_TEST_SECRET");
}

TEST_F(shared_server, is_started_again_with_its_data_after_a_stop_and_after_a_kill) {
    EXPECT_EQ(ask(ensure(), "SET answer 42"), "OK");
    EXPECT_TRUE(stop_shared_server(options()));
    EXPECT_FALSE(stop_shared_server(options()));
    EXPECT_EQ(ask(ensure(), "INCR answer"), "43");
    ::kill(pid(), SIGKILL);
    EXPECT_EQ(ask(ensure(), "GET answer"), "\"43\"");
}

TEST_F(shared_server, says_where_it_is) {
    auto const before = shared_server_status(options());
    EXPECT_FALSE(before.running);
    EXPECT_FALSE(fs::exists(directory()));
    auto const url = ensure();
    auto const now = shared_server_status(options());
    EXPECT_TRUE(now.running);
    EXPECT_TRUE(process_alive(now.pid));
    EXPECT_EQ(now.socket, path_of(url));
    EXPECT_EQ(now.data_directory, directory() + "/data");
    EXPECT_LT(std::chrono::system_clock::now() - now.since, 1min);
}

TEST_F(shared_server, ends_by_itself_when_unused_and_not_while_someone_is_connected) {
    auto user = program("0.2");
    user.write_line("go");
    EXPECT_EQ(user.read_line(), "ready");
    auto const server = read_server(user);
    {
        raw_client const connected{endpoint{.unix_path = path_of(server.url)}};
        EXPECT_FALSE(eventually([&] { return !process_alive(server.pid); }, 1s)) << "five times the idle time";
    }
    EXPECT_TRUE(eventually([&] { return !process_alive(server.pid); }));
    EXPECT_TRUE(eventually([&] { return !fs::exists(path_of(server.url)); }));
}

TEST_F(shared_server, ends_when_its_directory_is_gone) {
    auto settings = options();
    settings.idle = 20s;
    ensure_shared_server(settings);
    auto const server = pid();
    fs::remove_all(directory());
    EXPECT_TRUE(eventually([&] { return !process_alive(server); })) << "it waited for the idle time";
}

// The supervisor has found the server unused and wants the lock to end it; before it gets it, a program comes.
TEST_F(shared_server, stays_when_a_program_comes_while_the_supervisor_waits_for_the_lock) {
    auto settings = options();
    settings.idle = 2s;
    ensure_shared_server(settings);
    auto const server = pid();
    auto const file = directory() + "/lock";
    auto lock = embedded::lock_until(file, lock_kind::shared, std::chrono::steady_clock::now() + 5s);
    ASSERT_TRUE(lock);
    ASSERT_TRUE(eventually([&] { return has_waiter(file); }));
    lock.touch();
    lock.unlock();
    EXPECT_FALSE(eventually([&] { return !process_alive(server); }, 300ms)) << "it had 2 s from the touch on";
}

using slow_shared_server = shared_server;

// Comes at the worst moments: while the supervisor ends the server, right after, and around that time.
TEST_F(slow_shared_server, loses_nothing_and_never_fails_when_a_start_meets_the_idle_end) {
    auto const seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::minstd_rand random{seed};
    auto const idle = 60ms;
    auto settings = options();
    settings.idle = idle;
    int acknowledged = 0;
    std::set<pid_t> servers;
    for (int round = 0; round < 50; ++round) {
        std::optional<std::string> reply;
        for (int attempt = 0; attempt < 10 && !reply; ++attempt) {
            auto const before = now_ms();
            reply = ask(ensure_shared_server(settings), "INCR counter");
            EXPECT_TRUE(reply || now_ms() - before >= idle.count()) << "it ended although a program had just come";
        }
        ASSERT_TRUE(reply);
        ASSERT_EQ(*reply, std::to_string(++acknowledged));
        auto const server = pid();
        servers.insert(server);
        auto const gone = [&] { return !process_alive(server); };
        auto const ending = [&] { return !embedded::try_lock(directory() + "/lock", lock_kind::shared) || gone(); };
        if (round % 3 == 0) {
            ASSERT_TRUE(eventually(ending));
        } else if (round % 3 == 1) {
            ASSERT_TRUE(eventually(gone));
        } else {
            std::this_thread::sleep_for(idle + std::chrono::milliseconds{random() % 200});
        }
    }
    EXPECT_GT(servers.size(), 20U) << "it hardly ever ended: the race was not run";
}

TEST_F(shared_server, is_found_by_programs_that_look_in_another_directory_but_have_the_same_home) {
    auto const user = [this](std::string const& runtime) {
        fs::create_directories(scratch_.path() / runtime);
        fs::permissions(scratch_.path() / runtime, fs::perms::owner_all);
        return child_process{{program_path("embedded_owner"), "shared"},
                             {.environment = {{"LOCKSTEP_EMBEDDED_DIR", ""},
                                              {"XDG_RUNTIME_DIR", scratch_.file(runtime)},
                                              {"XDG_STATE_HOME", scratch_.file("state")}}}};
    };
    auto in_a_session = user("a");
    auto in_a_service = user("b");
    in_a_session.write_line("go");
    in_a_service.write_line("go");
    EXPECT_EQ(in_a_session.read_line(), "ready");
    EXPECT_EQ(in_a_service.read_line(), "ready");
    auto const first = read_server(in_a_session);
    auto const second = read_server(in_a_service);
    EXPECT_EQ(first.url, second.url);
    EXPECT_EQ(first.pid, second.pid);
    EXPECT_TRUE(stop_shared_server({.directory = directory_of(first.url)}));
}

// Others could exchange the socket between a look at it and the connection.
TEST_F(shared_server, is_not_looked_for_in_a_runtime_directory_that_others_can_write_to) {
    auto const runtime = scratch_.file("runtime");
    fs::create_directory(runtime);
    ::unsetenv("LOCKSTEP_EMBEDDED_DIR");
    ::setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1);
    ::setenv("XDG_STATE_HOME", scratch_.file("state").c_str(), 1);
    fs::permissions(runtime, fs::perms{0755});
    EXPECT_EQ(shared_server_status().socket, runtime + "/lockstep/redis.sock");
    for (int const mode : {0770, 0702, 0777}) {
        fs::permissions(runtime, static_cast<fs::perms>(mode));
        EXPECT_FALSE(shared_server_status().socket.starts_with(runtime)) << std::oct << mode;
    }
}

TEST_F(shared_server, says_once_that_it_is_for_this_machine_only) {
    child_process user{{program_path("embedded_owner"), "shared_twice"},
                       {.environment = {{"LOCKSTEP_EMBEDDED_DIR", directory()}}}};
    auto const first = user.read_line().value_or("");
    EXPECT_NE(first.find(directory() + "/redis.sock: this machine only; set LOCKSTEP_URL"), std::string::npos) << first;
    EXPECT_EQ(user.read_line(), "done");
}

TEST_F(shared_server, refuses_a_directory_that_another_could_have_made) {
    fs::create_directory(scratch_.path() / "real");
    fs::create_directory_symlink(scratch_.path() / "real", scratch_.path() / "link");
    auto const refusal = [](std::string const& place) {
        return thrown<invalid_argument_error>([&] { ensure_shared_server({.directory = place}); });
    };
    EXPECT_NE(refusal(scratch_.file("link")).find("symbolic link"), std::string::npos);
    EXPECT_NE(refusal(scratch_.file("link/")).find("symbolic link"), std::string::npos);

    std::string foreign = "/usr";  // root's
    if (::geteuid() == 0) {
        foreign = scratch_.file("foreign");
        fs::create_directory(foreign);
        ASSERT_EQ(::chown(foreign.c_str(), 65'534, 65'534), 0);
    }
    EXPECT_NE(refusal(foreign).find("belongs to user"), std::string::npos);

    fs::create_directory(scratch_.path() / "open");
    fs::permissions(scratch_.path() / "open", fs::perms::all);
    EXPECT_NE(refusal(scratch_.file("open")).find("chmod 700"), std::string::npos);

    EXPECT_NE(refusal("relative").find("absolute"), std::string::npos);
    EXPECT_NE(refusal(scratch_.file(std::string(100, 'x'))).find("too long"), std::string::npos);
}

// Why a connection to a socket on which this user listens, or another one, can't be used.
std::string refusal_of_connection(uid_t listening) {
    scratch_dir const directory;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    directory.file("s").copy(address.sun_path, sizeof address.sun_path - 1);
    embedded::descriptor const socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address), 0);
    auto const self = ::geteuid();
    EXPECT_EQ(::seteuid(listening), 0);
    EXPECT_EQ(::listen(socket.get(), 1), 0);  // this is when the kernel notes whose it is
    EXPECT_EQ(::seteuid(self), 0);

    struct : redis::channel::user {
        void received() noexcept override {}
        void writable() noexcept override {}
        void broken(std::string_view) noexcept override {}
    } listener;
    boost::asio::io_context io;
    auto const home = std::make_shared<redis::reactor>(io.get_executor());
    auto const channel = std::make_shared<redis::channel>(home, listener);
    std::string problem;
    home->post([&] {
        redis::endpoint const where{.host = {}, .port = 0, .path = address.sun_path, .same_user = true};
        start(channel->open(where, nullptr, "", 0), [&](std::exception_ptr failure) {
            try {
                if (failure) std::rethrow_exception(failure);
            } catch (unavailable_error const& error) {
                problem = error.what();
            }
        });
    });
    io.run();
    return problem;
}

TEST(shared_server_connection, is_given_up_where_a_process_of_another_user_answers) {
    EXPECT_EQ(refusal_of_connection(::geteuid()), "");
    if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
    EXPECT_NE(refusal_of_connection(65'534).find("served by a process of user 65534, not of user 0"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::test
