// Finding the server may take long and can't be hurried: a name server that is silent, an embedded server that starts. Nobody has to
// wait for that longer than he wants.
#include "embedded/files.hpp"
#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/redis_server.hpp"
#include "support/scratch_dir.hpp"

#include <lockstep/asio.hpp>
#include <lockstep/client.hpp>
#include <lockstep/embedded_server.hpp>
#include <lockstep/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <thread>

namespace {

std::atomic<int> looking{0};
std::atomic<bool> answers{false};

}  // namespace

// In the place of libc's: the name "silent.test" is not answered before the test says so.
extern "C" int getaddrinfo(char const* host, char const* service, addrinfo const* hints, addrinfo** found) {
    using function = int (*)(char const*, char const*, addrinfo const*, addrinfo**);
    static auto const real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    if (host == nullptr || std::strcmp(host, "silent.test") != 0) return real(host, service, hints, found);
    ++looking;
    answers.wait(false);
    auto const result = real("127.0.0.1", service, hints, found);
    --looking;
    return result;
}

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class transport_lookup : public testing::Test {
protected:
    transport_lookup() { answers = false; }
    ~transport_lookup() override {
        answers = true;
        answers.notify_all();
        EXPECT_TRUE(eventually([] { return looking == 0; }));
    }
    static constexpr auto const* url = "redis://silent.test:1";
};

TEST_F(transport_lookup, of_a_name_keeps_to_the_time_of_the_attempt) {
    client client{{.url = url, .connect_timeout = 50ms, .command_timeout = 300ms}};
    EXPECT_THAT(failure<unavailable_error>([&] { client.command("PING"); }), HasSubstr("not resolved in time"));
    EXPECT_GE(looking, 2) << "it was tried again";
}

TEST_F(transport_lookup, of_a_name_does_not_hold_up_the_end_of_a_client) {
    auto ended = std::async(std::launch::async, [] {
        client client{{.url = url, .connect_timeout = 60s}};
        start(client.async_command("PING"), [](std::exception_ptr, auto&&) {});
        return eventually([] { return looking == 1; });
    });
    EXPECT_EQ(ended.wait_for(20s), std::future_status::ready);
    answers = true;
    answers.notify_all();
    EXPECT_TRUE(ended.get());
}

TEST_F(transport_lookup, of_a_name_may_end_after_its_context) {
    std::optional<boost::asio::io_context> context{std::in_place};
    auto client = make_client(context->get_executor(), {.url = url});
    std::optional<std::exception_ptr> end;
    start(client.async_command("PING"), [&](std::exception_ptr error, auto&&) { end = std::move(error); });
    EXPECT_TRUE(eventually([&] { return context->poll(), looking == 1; }));
    context.reset();
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(outcome([&] { std::rethrow_exception(*end); }), errc::cancelled);
}

TEST_F(transport_lookup, of_a_name_leads_to_the_server) {
    redis_server server{{.tcp = true}};
    boost::asio::io_context context;
    auto client = make_client(context.get_executor(), {.url = "redis://silent.test:" + std::to_string(server.port())});
    std::string answer;
    start(client.async_command<std::string>("PING"), [&](std::exception_ptr, std::optional<std::string> said) {
        answer = said.value_or("");
        client.close();
    });
    EXPECT_TRUE(eventually([&] { return context.poll(), looking == 1; }));
    answers = true;
    answers.notify_all();
    context.run();  // what is looked for is work, too
    EXPECT_EQ(answer, "PONG");
}

// The same for the embedded server, which is found by the program that holds the lock.
class embedded_lookup : public testing::Test {
protected:
    embedded_lookup() {
        std::filesystem::create_directory(directory_);
        std::filesystem::permissions(directory_, std::filesystem::perms::owner_all);
        ::setenv("LOCKSTEP_EMBEDDED_DIR", directory_.c_str(), 1);
        for (auto const* const name : {"LOCKSTEP_URL", "REDIS_URL"}) ::unsetenv(name);
        lock_ = embedded::lock_until(directory_ + "/lock", embedded::lock_kind::exclusive, std::chrono::steady_clock::now() + 5s);
        std::thread{[] {}}.join();  // a sanitizer starts a thread of its own with the first
        threads_before_ = threads();
    }
    ~embedded_lookup() override {
        unlock();
        EXPECT_TRUE(eventually([this] { return threads() == threads_before_; })) << "the one that looked has ended";
        stop_shared_server();
    }
    void unlock() {
        if (lock_) lock_.unlock();
    }
    static std::ptrdiff_t threads() {
        return std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, std::filesystem::directory_iterator{});
    }
    bool looks() const { return threads() > threads_before_; }

    scratch_dir scratch_;
    std::string directory_ = scratch_.file("run");
    embedded::file_lock lock_;
    std::ptrdiff_t threads_before_ = 0;
};

TEST_F(embedded_lookup, may_end_after_the_context_of_its_client) {
    std::optional<boost::asio::io_context> context{std::in_place};
    auto client = make_client(context->get_executor());
    std::optional<std::exception_ptr> end;
    start(client.async_command("PING"), [&](std::exception_ptr error, auto&&) { end = std::move(error); });
    EXPECT_TRUE(eventually([&] { return context->poll(), looks(); }));
    context.reset();
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(outcome([&] { std::rethrow_exception(*end); }), errc::cancelled);
}

TEST_F(embedded_lookup, does_not_hold_up_the_end_of_a_client) {
    auto ended = std::async(std::launch::async, [this] {
        client client;
        start(client.async_command("PING"), [](std::exception_ptr, auto&&) {});
        return eventually([&] { return threads() == threads_before_ + 3; });  // this one, the client's, and the one that looks
    });
    EXPECT_EQ(ended.wait_for(5s), std::future_status::ready) << "half the time that the one which looks waits for the lock";
    unlock();
    EXPECT_TRUE(ended.get());
}

}  // namespace
}  // namespace lockstep::test
