// A large reply is in memory once.
#include <lockstep/client.hpp>

#include "support/forms.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

std::int64_t from_status(std::string const& field) {
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1'024;
    }
    ADD_FAILURE() << "no " << field;
    return 0;
}

/// Bytes that this process has had in memory at most since this was made, more than then.
class peak {
public:
    peak() {
        std::ofstream{"/proc/self/clear_refs"} << "5";
        before_ = from_status("VmRSS");
    }
    std::int64_t bytes() const { return from_status("VmHWM") - before_; }

private:
    std::int64_t before_;
};

template <class Form>
class transport_memory : public testing::Test {
protected:
    redis_server server{{.config = {"proto-max-bulk-len 1gb"}}};
    client by{{.url = server.url(), .command_timeout = 60s}};
};
TYPED_TEST_SUITE(transport_memory, forms, form_names);

TYPED_TEST(transport_memory, a_reply_of_many_megabytes_takes_at_most_half_as_much_again) {
    constexpr std::int64_t size = 192 << 20;
    this->server.must({"SETRANGE", "large", std::to_string(size - 1), "x"});
    TypeParam::command(this->by, "PING");
    peak const most;
    auto const answer = TypeParam::command(this->by, "GET", "large");
    EXPECT_EQ(answer.text().size(), static_cast<std::size_t>(size));
    EXPECT_LE(most.bytes(), size + size / 2);
    EXPECT_EQ(TypeParam::command(this->by, "PING").text(), "PONG");
}

TYPED_TEST(transport_memory, a_reply_of_many_megabytes_is_whole_and_stays_so_while_others_come) {
    constexpr int half = 6 << 20;
    this->server.must({"SET", "one", std::string(half, 'a') + std::string(half, 'b')});
    this->server.must({"SET", "two", std::string(half, 'c')});
    auto const first = TypeParam::command(this->by, "GET", "one");
    for (int i = 0; i < 20; ++i) {
        auto const second = TypeParam::command(this->by, "GET", "two");
        ASSERT_TRUE(second.text() == std::string(half, 'c'));
        ASSERT_EQ(TypeParam::command(this->by, "ECHO", "small").text(), "small");
    }
    EXPECT_TRUE(first.text() == std::string(half, 'a') + std::string(half, 'b'));
    auto const list = TypeParam::command(this->by, "MGET", "two", "one", "none");
    EXPECT_TRUE(list[0].text() == std::string(half, 'c'));
    EXPECT_TRUE(list[1] == first);
    EXPECT_TRUE(list[2].is_null());
}

}  // namespace
}  // namespace lockstep::test
