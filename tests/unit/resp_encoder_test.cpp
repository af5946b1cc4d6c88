#include "resp/encoder.hpp"

#include "resp/parser.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using namespace std::string_literals;

template <typename... T> std::string encoded(T const&... arguments) {
    resp::output out;
    resp::append_command(out, arguments...);
    return std::string(out.view());
}

TEST(resp_encoder, writes_a_command_as_an_array_of_counted_strings) {
    EXPECT_EQ(encoded("PING"), "*1\r\n$4\r\nPING\r\n");
    EXPECT_EQ(encoded("SET", "k"s, std::string_view("v"), "PX", 30000),
              "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nPX\r\n$5\r\n30000\r\n");
}

TEST(resp_encoder, is_binary_safe) {
    EXPECT_EQ(encoded("SET", "a\r\n\0b"s, ""), "*3\r\n$3\r\nSET\r\n$5\r\na\r\n\0b\r\n$0\r\n\r\n"s);
    std::vector<std::byte> const bytes{std::byte{0}, std::byte{255}};
    EXPECT_EQ(encoded("SET", bytes, std::string_view{}), "*3\r\n$3\r\nSET\r\n$2\r\n\0\xff\r\n$0\r\n\r\n"s);
}

TEST(resp_encoder, writes_integers_up_to_their_ends) {
    EXPECT_EQ(encoded(std::numeric_limits<std::int64_t>::min()), "*1\r\n$20\r\n-9223372036854775808\r\n");
    EXPECT_EQ(encoded(std::numeric_limits<std::uint64_t>::max()), "*1\r\n$20\r\n18446744073709551615\r\n");
    EXPECT_EQ(encoded(std::uint8_t{7}, 0, -1), "*3\r\n$1\r\n7\r\n$1\r\n0\r\n$2\r\n-1\r\n");
}

TEST(resp_encoder, writes_doubles_in_the_shortest_form_that_reads_back) {
    EXPECT_EQ(encoded(0.1, 1e300, 2.0f), "*3\r\n$3\r\n0.1\r\n$6\r\n1e+300\r\n$1\r\n2\r\n");
    EXPECT_EQ(encoded(-std::numeric_limits<double>::infinity()), "*1\r\n$4\r\n-inf\r\n");
    EXPECT_EQ(encoded(-2.2250738585072014e-308), "*1\r\n$24\r\n-2.2250738585072014e-308\r\n");
    EXPECT_EQ(encoded(1.5L), "*1\r\n$3\r\n1.5\r\n");
}

TEST(resp_encoder, writes_piece_by_piece_what_it_writes_at_once) {
    resp::output out;
    resp::command_header(out, 3);
    resp::bulk(out, "SET");
    resp::bulk(out, "k"s);
    resp::bulk(out, 42);
    EXPECT_EQ(out.view(), encoded("SET", "k", 42));
    std::vector<std::string_view> const arguments{"SET", "k", "42"};
    out.clear();
    resp::append_command(out, arguments);
    EXPECT_EQ(out.view(), encoded("SET", "k", 42));
}

TEST(resp_encoder, appends_commands_behind_each_other) {
    resp::output out;
    std::string expected;
    for (int i = 0; i != 2000; ++i) {
        resp::append_command(out, "INCRBY", "counter", i);
        expected += encoded("INCRBY", "counter", i);
    }
    EXPECT_EQ(out.view(), expected);
    auto const size = out.size();
    resp::append_command(out, "DEL", "x");
    out.truncate(size);
    EXPECT_EQ(out.view(), expected);
    resp::output taken = std::move(out);
    EXPECT_EQ(taken.view(), expected);
    taken.release();
    EXPECT_EQ(taken.capacity(), 0u);
}

TEST(resp_encoder, is_read_back_by_the_parser) {
    std::mt19937_64 random(20240501);
    resp::parser parser;
    for (int round = 0; round != 500; ++round) {
        std::vector<std::string> arguments(1 + random() % 12);
        resp::output out;
        resp::command_header(out, arguments.size());
        for (auto& argument : arguments) {
            argument.resize(random() % (random() % 20 == 0 ? 5000 : 30));
            for (auto& byte : argument) byte = static_cast<char>(random());
            resp::bulk(out, argument);
        }
        ASSERT_EQ(parser.parse(out.view()), resp::status::ready) << "round " << round;
        ASSERT_EQ(parser.consumed(), out.size());
        ASSERT_EQ(parser.message().as<std::vector<std::string>>(), arguments);
    }
}

static_assert(!resp::argument<bool> && !resp::argument<char>, "both could be meant in two ways");
static_assert(resp::argument<char const*> && resp::argument<std::string> && resp::argument<char[4]> && resp::argument<long>);

}  // namespace
}  // namespace lockstep
