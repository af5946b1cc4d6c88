// What each kind of reply becomes, and how replies follow each other.

#include "resp/parser.hpp"

#include "resp_support.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using resp::parse_error;
using resp::status;
using test::parse_in_pieces;

/// Parses one whole message and keeps what its view looks into.
struct parsed {
    explicit parsed(std::string text) : bytes(std::move(text)), state(parser.parse(bytes)) {}
    reply_view operator*() const { return parser.message(); }
    std::string bytes;
    resp::parser parser;
    status state;
};

#define EXPECT_MESSAGE(message)                                                 \
    ASSERT_EQ((message).state, status::ready) << (message).parser.error_text(); \
    EXPECT_EQ((message).parser.consumed(), (message).bytes.size())

TEST(resp_parser, reads_simple_strings) {
    parsed message("+OK\r\n");
    EXPECT_MESSAGE(message);
    EXPECT_EQ((*message).type(), reply_type::simple_string);
    EXPECT_EQ((*message).text(), "OK");
    parsed empty("+\r\n");
    EXPECT_MESSAGE(empty);
    EXPECT_EQ((*empty).text(), "");
}

TEST(resp_parser, reads_both_forms_of_errors) {
    for (auto const* text : {"-WRONGTYPE not a hash\r\n", "!20\r\nWRONGTYPE not a hash\r\n"}) {
        parsed message(text);
        EXPECT_MESSAGE(message);
        EXPECT_TRUE((*message).is_error());
        EXPECT_EQ((*message).text(), "WRONGTYPE not a hash");
        EXPECT_EQ((*message).error_prefix(), "WRONGTYPE");
    }
}

TEST(resp_parser, reads_integers_up_to_their_ends) {
    for (auto number : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{42}, INT64_MAX, INT64_MIN}) {
        parsed message(":" + std::to_string(number) + "\r\n");
        EXPECT_MESSAGE(message);
        EXPECT_EQ((*message).integer(), number);
    }
}

TEST(resp_parser, reads_bulk_strings_of_any_bytes) {
    using namespace std::string_literals;
    for (auto const& text : {""s, "hello"s, "a\r\nb"s, "\0\0"s, "\r\n"s, std::string(70000, 'x')}) {
        parsed message("$" + std::to_string(text.size()) + "\r\n" + text + "\r\n");
        EXPECT_MESSAGE(message);
        EXPECT_EQ((*message).type(), reply_type::bulk_string);
        EXPECT_EQ((*message).text(), text);
    }
}

TEST(resp_parser, reads_the_nulls_of_both_protocols) {
    for (auto const* text : {"_\r\n", "$-1\r\n", "*-1\r\n"}) {
        parsed message(text);
        EXPECT_MESSAGE(message);
        EXPECT_TRUE((*message).is_null());
    }
}

TEST(resp_parser, reads_doubles) {
    for (auto const& [text, number] : std::vector<std::pair<std::string, double>>{{"3.25", 3.25},
                                                                                  {"-0.5", -0.5},
                                                                                  {"10", 10},
                                                                                  {"1e+20", 1e20},
                                                                                  {"1.5E-7", 1.5e-7},
                                                                                  {"inf", INFINITY},
                                                                                  {"-inf", -INFINITY}}) {
        parsed message("," + text + "\r\n");
        EXPECT_MESSAGE(message);
        EXPECT_EQ((*message).real(), number);
    }
    for (auto const* text : {",nan\r\n", ",-nan\r\n"}) {
        parsed message(text);
        EXPECT_MESSAGE(message);
        EXPECT_TRUE(std::isnan((*message).real()));
    }
}

TEST(resp_parser, reads_booleans_big_numbers_and_verbatim_strings) {
    parsed yes("#t\r\n"), no("#f\r\n"), big("(-3492890328409238509324850943850943825024385\r\n"), verbatim("=8\r\nmkd:*hi*\r\n"),
        nothing("=4\r\ntxt:\r\n");
    EXPECT_MESSAGE(yes);
    EXPECT_MESSAGE(no);
    EXPECT_MESSAGE(big);
    EXPECT_MESSAGE(verbatim);
    EXPECT_MESSAGE(nothing);
    EXPECT_TRUE((*yes).boolean());
    EXPECT_FALSE((*no).boolean());
    EXPECT_EQ((*big).text(), "-3492890328409238509324850943850943825024385");
    EXPECT_EQ((*verbatim).text(), "*hi*");
    EXPECT_EQ((*verbatim).text_format(), "mkd");
    EXPECT_EQ((*nothing).text(), "");
}

TEST(resp_parser, reads_nested_aggregates) {
    parsed message("*3\r\n*2\r\n:1\r\n~1\r\n+a\r\n%2\r\n+k\r\n*0\r\n+l\r\n%0\r\n$1\r\nz\r\n");
    EXPECT_MESSAGE(message);
    auto const root = *message;
    ASSERT_EQ(root.size(), 3u);
    EXPECT_EQ(root[0][0].integer(), 1);
    EXPECT_EQ(root[0][1].type(), reply_type::set);
    EXPECT_EQ(root[0][1][0].text(), "a");
    EXPECT_EQ(root[1].type(), reply_type::map);
    EXPECT_EQ(root[1].size(), 4u);
    EXPECT_TRUE(root[1].find("k").empty());
    EXPECT_EQ(root[1].find("l").type(), reply_type::map);
    EXPECT_EQ(root[2].text(), "z");
}

TEST(resp_parser, reads_pushes_at_the_top) {
    parsed message(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
    EXPECT_MESSAGE(message);
    EXPECT_EQ((*message).type(), reply_type::push);
    EXPECT_EQ((*message)[2].text(), "m");
}

TEST(resp_parser, joins_the_chunks_of_streamed_strings_beside_ordinary_ones) {
    parsed message("*3\r\n+before\r\n$?\r\n;4\r\nHell\r\n;2\r\no \r\n;5\r\nworld\r\n;0\r\n=8\r\ntxt:last\r\n");
    EXPECT_MESSAGE(message);
    EXPECT_EQ((*message)[0].text(), "before");
    EXPECT_EQ((*message)[1].text(), "Hello world");
    EXPECT_EQ((*message)[2].text(), "last");
    parsed empty("$?\r\n;0\r\n");
    EXPECT_MESSAGE(empty);
    EXPECT_EQ((*empty).text(), "");
}

TEST(resp_parser, reads_streamed_aggregates) {
    parsed message("*?\r\n:1\r\n%?\r\n+k\r\n~?\r\n.\r\n.\r\n:2\r\n.\r\n");
    EXPECT_MESSAGE(message);
    auto const root = *message;
    ASSERT_EQ(root.size(), 3u);
    EXPECT_EQ(root[1].type(), reply_type::map);
    EXPECT_EQ(root[1].find("k").type(), reply_type::set);
    EXPECT_EQ(root[2].integer(), 2);
}

TEST(resp_parser, drops_attributes_wherever_they_stand) {
    parsed message("|1\r\n+ttl\r\n:5\r\n*2\r\n|1\r\n|0\r\n+x\r\n*2\r\n:8\r\n$?\r\n;1\r\nc\r\n;0\r\n:1\r\n|0\r\n:2\r\n");
    EXPECT_MESSAGE(message);
    ASSERT_EQ((*message).size(), 2u);
    EXPECT_EQ((*message)[0].integer(), 1);
    EXPECT_EQ((*message)[1].integer(), 2);
}

TEST(resp_parser, takes_one_message_at_a_time_from_a_pipeline) {
    std::string const bytes = "+OK\r\n:7\r\n>1\r\n+p\r\n$2\r\nab\r\n*2\r\n:1\r\n:2\r\n-ERR x\r\n+par";
    std::string_view unread = bytes;
    resp::parser parser;
    std::vector<reply_type> types;
    while (parser.parse(unread) == status::ready) {
        types.push_back(parser.message().type());
        unread.remove_prefix(parser.consumed());
    }
    EXPECT_EQ(types, (std::vector{reply_type::simple_string, reply_type::integer, reply_type::push, reply_type::bulk_string,
                                  reply_type::array, reply_type::error}));
    EXPECT_EQ(unread, "+par");
    EXPECT_EQ(parser.error(), parse_error::none);
}

std::string const mixed =
    "|1\r\n+a\r\n,1.5\r\n*9\r\n+OK\r\n$5\r\nhe\r\no\r\n:-12\r\n_\r\n%1\r\n#t\r\n(123\r\n$?\r\n;2\r\nab\r\n;1\r\nc\r\n;"
    "0\r\n"
    "~?\r\n=5\r\ntxt:x\r\n.\r\n!5\r\nERR e\r\n*2\r\n,-inf\r\n*-1\r\n";

TEST(resp_parser, gives_the_same_for_every_split_into_two) {
    parsed whole(mixed);
    EXPECT_MESSAGE(whole);
    for (std::size_t at = 1; at < mixed.size(); ++at) {
        resp::parser parser;
        std::string buffer;
        ASSERT_EQ(parse_in_pieces(parser, mixed, {at, mixed.size()}, buffer), status::ready) << "split at " << at;
        EXPECT_TRUE(parser.message() == *whole) << "split at " << at;
        EXPECT_EQ(parser.consumed(), mixed.size()) << "split at " << at;
    }
}

TEST(resp_parser, gives_the_same_byte_by_byte) {
    parsed whole(mixed);
    resp::parser parser;
    std::string buffer;
    ASSERT_EQ(parse_in_pieces(parser, mixed, {1}, buffer), status::ready);
    EXPECT_TRUE(parser.message() == *whole);
}

TEST(resp_parser, reads_back_random_messages_in_random_pieces) {
    for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        test::server server(seed);
        resp::parser parser;  // one for several messages, as on a connection
        for (int i = 0; i != 3; ++i) {
            auto const made = server.make();
            auto const bytes = server.encode(made);
            std::string buffer;
            std::vector<std::size_t> pieces;
            for (int p = 0; p != 20; ++p) pieces.push_back(1 + server.below(30));
            ASSERT_EQ(parse_in_pieces(parser, bytes + "+next", pieces, buffer), status::ready) << parser.error_text();
            ASSERT_EQ(parser.consumed(), bytes.size());
            ASSERT_TRUE(test::equal(made, parser.message()));
            ASSERT_TRUE(reply(parser.message()) == parser.message());
        }
    }
}

}  // namespace
}  // namespace lockstep
