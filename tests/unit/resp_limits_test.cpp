// What the parser refuses, and what it costs.

#include "resp/parser.hpp"

#include "resp_support.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using resp::limits;
using resp::parse_error;
using resp::status;

constexpr limits small{.max_bulk = 16, .max_elements = 8, .max_depth = 3, .max_message = 64, .max_line = 10};

/// The error of `bytes`, which must be the same in one piece and byte by byte.
parse_error error_of(std::string const& bytes, limits const& allowed = {}) {
    resp::parser parser(allowed), slow(allowed);
    auto const state = parser.parse(bytes);
    std::string buffer;
    EXPECT_EQ(test::parse_in_pieces(slow, bytes, {1}, buffer), state) << bytes;
    EXPECT_EQ(slow.error(), parser.error()) << bytes;
    EXPECT_EQ(state == status::failed, !parser.error_text().empty()) << bytes;
    return parser.error();
}

TEST(resp_errors, unknown_types_are_refused) {
    for (auto const* bytes : {"HTTP/1.1 400\r\n", "\r\n", " :1\r\n", "\x15\x03\x01", "*1\r\nx"})
        EXPECT_EQ(error_of(bytes), parse_error::unknown_type) << bytes;
}

TEST(resp_errors, missing_line_ends_are_refused) {
    for (auto const* bytes : {"+OK\n", "+O\rK\r\n", "-ERR\n", ":1\rx", "$2\r\nabc\r\n", "$2\r\nab\n", "$2\r\nab\rx", "_x\r\n",
                              "_\n", "#t\n", "#tt\r\n", "$2\rxab", "$?x", "*?\n", "*?\r\n.x", "$?\r\n;1\r\nab", ",1\n", "(1\n"})
        EXPECT_EQ(error_of(bytes), parse_error::bad_line_end) << bytes;
}

TEST(resp_errors, bad_lengths_are_refused) {
    for (auto const* bytes : {"$-2\r\n", "*-2\r\n", "%-1\r\n",       "~-1\r\n", ">-1\r\n", "|-1\r\n", "!-1\r\n",
                              "=-1\r\n", "$01\r\n", "$+1\r\n",       "$\r\n",   "$-\r\n",  "$-0\r\n", "$1 \r\n",
                              "*x\r\n",  "*00",     "$?\r\n;-1\r\n", "|?\r\n",  ">?\r\n",  "!?\r\n",  "$1\n"})
        EXPECT_EQ(error_of(bytes), parse_error::bad_length) << bytes;
}

TEST(resp_errors, bad_integers_are_refused) {
    for (auto const* bytes :
         {":\r\n", ":-\r\n", ":+1\r\n", ":01\r\n", ":-0\r\n", ":1.5\r\n", ":1a\r\n", ":9223372036854775808\r\n",
          ":-9223372036854775809\r\n", ":99999999999999999999\r\n", ":00000000000000000000000\r\n"})
        EXPECT_EQ(error_of(bytes), parse_error::bad_integer) << bytes;
}

TEST(resp_errors, bad_booleans_doubles_big_numbers_and_verbatim_strings_are_refused) {
    for (auto const* bytes : {"#x\r\n", "#1\r\n", "#\r\n", "#T\r\n"})
        EXPECT_EQ(error_of(bytes), parse_error::bad_boolean) << bytes;
    for (auto const* bytes : {",\r\n", ",x\r\n", ",1.\r\n", ",.5\r\n", ",+1\r\n", ",1e\r\n", ",0x10\r\n", ",infinity\r\n",
                              ",+inf\r\n", ",1.5 \r\n", ",nan(1)\r\n", ",1e999\r\n", ",--1\r\n", ",1-2\r\n"})
        EXPECT_EQ(error_of(bytes), parse_error::bad_double) << bytes;
    for (auto const* bytes : {"(\r\n", "(-\r\n", "(+1\r\n", "(01\r\n", "(-0\r\n", "(1.5\r\n", "(12a\r\n"})
        EXPECT_EQ(error_of(bytes), parse_error::bad_big_number) << bytes;
    for (auto const* bytes : {"=3\r\ntxt\r\n", "=0\r\n", "=5\r\ntxtxx\r\n"})
        EXPECT_EQ(error_of(bytes), parse_error::bad_verbatim) << bytes;
}

TEST(resp_errors, values_in_impossible_places_are_refused) {
    for (auto const* bytes : {"*1\r\n>1\r\n+x\r\n", "|1\r\n>0\r\n", ".\r\n", "*1\r\n.\r\n", ";1\r\na\r\n", "%?\r\n+k\r\n.\r\n",
                              "*?\r\n|0\r\n.\r\n", "$?\r\n$1\r\na\r\n", "*?\r\n|1\r\n+a\r\n.\r\n"})
        EXPECT_EQ(error_of(bytes), parse_error::bad_nesting) << bytes;
}

TEST(resp_errors, a_failed_parser_stays_failed_until_reset) {
    resp::parser parser;
    EXPECT_EQ(parser.parse("?"), status::failed);
    EXPECT_EQ(parser.parse("+OK\r\n"), status::failed);
    parser.reset();
    EXPECT_EQ(parser.parse("+OK\r\n"), status::ready);
    EXPECT_EQ(parser.error(), parse_error::none);
}

TEST(resp_errors, the_text_names_the_limit_and_the_place) {
    resp::parser parser(small);
    parser.parse("*2\r\n$17\r\n");
    EXPECT_EQ(parser.error_text(), "a string over the limit of 16 bytes (at byte 4 of the message)");
}

TEST(resp_limits, hold_at_their_value_and_fail_one_above_it) {
    EXPECT_EQ(error_of("$16\r\n", small), parse_error::none);
    EXPECT_EQ(error_of("$17\r\n", small), parse_error::bulk_too_long);
    EXPECT_EQ(error_of("!17\r\n", small), parse_error::bulk_too_long);
    EXPECT_EQ(error_of("$?\r\n;10\r\n0123456789\r\n;6\r\n", small), parse_error::none);
    EXPECT_EQ(error_of("$?\r\n;10\r\n0123456789\r\n;7\r\n", small), parse_error::bulk_too_long);

    EXPECT_EQ(error_of("*8\r\n", small), parse_error::none);
    EXPECT_EQ(error_of("*9\r\n", small), parse_error::too_many_elements);
    EXPECT_EQ(error_of("%4\r\n", small), parse_error::none);
    EXPECT_EQ(error_of("%5\r\n", small), parse_error::too_many_elements);
    EXPECT_EQ(error_of("*4\r\n*4\r\n", small), parse_error::none);
    EXPECT_EQ(error_of("*4\r\n*5\r\n", small), parse_error::too_many_elements);
    EXPECT_EQ(error_of("|4\r\n", small), parse_error::none);
    EXPECT_EQ(error_of("|5\r\n", small), parse_error::too_many_elements);
    EXPECT_EQ(error_of("*?\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n", small), parse_error::none);
    EXPECT_EQ(error_of("*?\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n", small), parse_error::too_many_elements);

    EXPECT_EQ(error_of("*1\r\n*1\r\n|1\r\n", small), parse_error::none);
    EXPECT_EQ(error_of("*1\r\n*1\r\n*1\r\n*1\r\n", small), parse_error::too_deep);
    EXPECT_EQ(error_of("*?\r\n*?\r\n*?\r\n*?\r\n", small), parse_error::too_deep);
    EXPECT_EQ(error_of("|1\r\n|1\r\n|1\r\n|1\r\n", small), parse_error::too_deep);

    EXPECT_EQ(error_of("+0123456789\r\n", small), parse_error::none);
    EXPECT_EQ(error_of("+0123456789x", small), parse_error::line_too_long);
    EXPECT_EQ(error_of("(01234567890", small), parse_error::line_too_long);
}

TEST(resp_limits, a_message_may_be_as_long_as_its_limit) {
    std::string const exact = "*4\r\n$10\r\n0123456789\r\n$10\r\n0123456789\r\n$10\r\n0123456789\r\n+234567\r\n";
    static_assert(small.max_message == 64);
    ASSERT_EQ(exact.size(), 64u);
    EXPECT_EQ(error_of(exact, small), parse_error::none);
    EXPECT_EQ(error_of("*4\r\n$10\r\n0123456789\r\n$10\r\n0123456789\r\n$10\r\n0123456789\r\n+2345678\r\n", small),
              parse_error::message_too_long);
    EXPECT_EQ(error_of("*4\r\n$10\r\n0123456789\r\n$10\r\n0123456789\r\n+123\r\n$16\r\n", small), parse_error::message_too_long)
        << "before it comes";
    std::string attributes;
    while (attributes.size() < 100) attributes += "|0\r\n";
    EXPECT_EQ(error_of(attributes, small), parse_error::message_too_long);
}

TEST(resp_limits, nothing_is_allocated_for_what_is_only_declared) {
    for (auto const* bytes :
         {"$1000000\r\n", "*1000\r\n", "$?\r\n;1000000\r\n", "*16777216\r\n", "%8388608\r\n", "$536870912\r\n", "=536870912\r\n",
          "$?\r\n;536870912\r\n", "*8000000\r\n*8000000\r\n", "|8388608\r\n", "~16777216\r\n", ">16777216\r\n"}) {
        resp::parser parser;
        EXPECT_EQ(parser.parse(bytes), status::need_more) << bytes;
        EXPECT_LE(parser.memory(), 256u) << bytes;
        EXPECT_LE(parser.bytes_missing(), std::size_t{64} << 10) << bytes;
    }
}

TEST(resp_limits, memory_stays_as_it_is_over_messages_of_one_kind) {
    resp::parser parser;
    std::string const bytes = "*4\r\n$7\r\ngranted\r\n:17\r\n*1\r\n+OK\r\n$?\r\n;3\r\nabc\r\n;0\r\n";
    ASSERT_EQ(parser.parse(bytes), status::ready);
    auto const first = parser.memory();
    for (int i = 0; i != 1000; ++i) ASSERT_EQ(parser.parse(bytes), status::ready);
    EXPECT_EQ(parser.memory(), first);
}

TEST(resp_limits, memory_of_a_giant_message_is_given_back) {
    resp::parser parser;
    std::string bytes = "*200000\r\n";
    for (int i = 0; i != 200000; ++i) bytes += ":1\r\n";
    ASSERT_EQ(parser.parse(bytes), status::ready);
    EXPECT_GT(parser.memory(), std::size_t{1} << 20);
    for (int i = 0; i != 2; ++i) ASSERT_EQ(parser.parse("+OK\r\n"), status::ready);
    EXPECT_LT(parser.memory(), std::size_t{200} << 10);
}

// Bytes that were seen are spoiled before the next call: reading them again would be noticed. So the work is linear.
void expect_no_second_look(std::string const& bytes, std::size_t piece) {
    // Read again while a value is unfinished: its type, and its digits. The only unfinished line here is the first value.
    constexpr std::size_t longest_number = 24;
    resp::parser parser;
    std::string buffer;
    auto state = status::need_more;
    while (buffer.size() < bytes.size()) {
        if (buffer.size() > longest_number) std::fill(buffer.begin() + 1, buffer.end() - longest_number, '\n');
        buffer.append(bytes, buffer.size(), piece);
        state = parser.parse(buffer);
        ASSERT_NE(state, status::failed) << parser.error_text();
    }
    EXPECT_EQ(state, status::ready);
    EXPECT_EQ(parser.consumed(), bytes.size());
}

TEST(resp_limits, no_byte_of_a_large_message_is_looked_at_twice) {
    std::size_t const size = 10'000'000;
    expect_no_second_look("$" + std::to_string(size) + "\r\n" + std::string(size, 'x') + "\r\n", 16384);
    expect_no_second_look("+" + std::string(60000, 'x') + "\r\n", 7);
    std::string many = "*3000\r\n";
    for (int i = 0; i != 1000; ++i) many += "$5\r\nhello\r\n:123456\r\n*2\r\n+OK\r\n_\r\n";
    expect_no_second_look(many, 1);
    expect_no_second_look(many, 100);
}

TEST(resp_limits, missing_bytes_are_told_as_far_as_bytes_have_come) {
    resp::parser parser;
    EXPECT_EQ(parser.parse("$10\r\nabc"), status::need_more);
    EXPECT_EQ(parser.bytes_missing(), 9u);
    EXPECT_EQ(parser.parse("$10\r\nabcdefghij\r"), status::need_more);
    EXPECT_EQ(parser.bytes_missing(), 1u);
    parser.reset();
    std::string bytes = "$10000000\r\n";
    EXPECT_EQ(parser.parse(bytes), status::need_more);
    EXPECT_EQ(parser.bytes_missing(), std::size_t{64} << 10);
    bytes.append(1'000'000, 'x');
    EXPECT_EQ(parser.parse(bytes), status::need_more);
    EXPECT_EQ(parser.bytes_missing(), bytes.size()) << "at most twice what has come";
}

}  // namespace
}  // namespace lockstep
