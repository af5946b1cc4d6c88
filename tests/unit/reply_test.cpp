// What users see of replies: owning and viewing, and every conversion.

#include <lockstep/reply.hpp>

#include "resp/parser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace lockstep {
namespace {

/// An owning copy of what `bytes` say; parser and bytes are gone when it returns.
reply made(std::string bytes) {
    resp::parser parser;
    EXPECT_EQ(parser.parse(bytes), resp::status::ready) << parser.error_text();
    reply copy(parser.message());
    std::fill(bytes.begin(), bytes.end(), '!');
    return copy;
}

template <typename T> std::string refusal(std::string const& bytes) {
    auto const given = made(bytes);
    try {
        static_cast<void>(given.as<T>());
    } catch (conversion_error const& error) {
        std::string const text = error.what();
        return text.substr(0, text.rfind(": "));  // std::system_error appends the words of the code
    }
    return "accepted";
}

struct point {
    int x, y;
};

}  // namespace

template <> struct reply_converter<point> {
    static point convert(reply_view source) {
        auto const [x, y] = source.as<std::pair<int, int>>();
        return {x, y};
    }
};

namespace {

static_assert(std::is_trivially_copyable_v<reply_view> && sizeof(reply_view) == 16 && sizeof(reply) == 16);
static_assert(std::forward_iterator<reply_view::iterator>);
static_assert(std::is_nothrow_move_constructible_v<reply> && std::is_nothrow_move_assignable_v<reply>);
static_assert(detail::borrows<std::string_view> && detail::borrows<std::vector<std::string_view>> &&
              detail::borrows<std::map<std::string, std::optional<reply_view>>>);
static_assert(!detail::borrows<std::string> && !detail::borrows<std::vector<reply>> && !detail::borrows<int>);

TEST(reply, is_null_when_nothing_was_put_into_it) {
    reply const nothing;
    EXPECT_TRUE(nothing.is_null());
    EXPECT_TRUE(nothing.empty());
    EXPECT_EQ(nothing.begin(), nothing.end());
    EXPECT_TRUE(reply_view{}.is_null());
    EXPECT_TRUE(reply(reply_view{}).is_null());
    EXPECT_EQ(nothing.as<std::optional<int>>(), std::nullopt);
}

TEST(reply, owns_what_it_was_copied_from) {
    auto const tree = made("*3\r\n$5\r\nhello\r\n*2\r\n+a\r\n=5\r\nmkd:b\r\n:4\r\n");
    EXPECT_EQ(tree[0].text(), "hello");
    EXPECT_EQ(tree[1][0].text(), "a");
    EXPECT_EQ(tree[1][1].text(), "b");
    EXPECT_EQ(tree[1][1].text_format(), "mkd");
    EXPECT_EQ(tree[2].integer(), 4);
    reply const part(tree[1]);
    EXPECT_TRUE(part == tree[1]);
    EXPECT_EQ(part[1].text(), "b");
}

TEST(reply, copies_and_moves_like_a_value) {
    auto first = made("*2\r\n+a\r\n+b\r\n");
    auto second = first;
    EXPECT_TRUE(first == second);
    EXPECT_NE(first[0].text().data(), second[0].text().data());
    auto third = std::move(second);
    EXPECT_TRUE(second.is_null());  // NOLINT(bugprone-use-after-move): it is documented to be null
    EXPECT_TRUE(third == first);
    third = made(":1\r\n");
    EXPECT_EQ(third.integer(), 1);
    third = reply();
    EXPECT_TRUE(third.is_null());
}

TEST(reply, compares_by_type_and_value) {
    auto const same = [](char const* left, char const* right) { return made(left) == made(right); };
    EXPECT_TRUE(same("$1\r\na\r\n", "$?\r\n;1\r\na\r\n;0\r\n"));
    EXPECT_TRUE(same(",nan\r\n", ",nan\r\n"));
    EXPECT_TRUE(same("*2\r\n:1\r\n_\r\n", "*?\r\n:1\r\n$-1\r\n.\r\n"));
    EXPECT_FALSE(same("$1\r\na\r\n", "+a\r\n"));
    EXPECT_FALSE(same("$1\r\na\r\n", "$1\r\nb\r\n"));
    EXPECT_FALSE(same(":1\r\n", ":2\r\n"));
    EXPECT_FALSE(same("*2\r\n*1\r\n:1\r\n:1\r\n", "*2\r\n:1\r\n*1\r\n:1\r\n"));
    EXPECT_FALSE(same("*1\r\n:1\r\n", "~1\r\n:1\r\n"));
}

TEST(reply, lets_children_be_walked_indexed_and_found) {
    auto const map = made("%2\r\n+role\r\n+master\r\n+n\r\n*2\r\n:1\r\n:2\r\n");
    EXPECT_EQ(map.size(), 4u);
    EXPECT_EQ(map.find("role").text(), "master");
    EXPECT_EQ(map.find("n")[1].integer(), 2);
    EXPECT_TRUE(map.find("none").is_null());
    EXPECT_EQ(made("*2\r\n+k\r\n+v\r\n").find("k").as<std::string>(), "v");
    EXPECT_TRUE(made("*1\r\n+k\r\n").find("k").is_null());
    EXPECT_EQ(std::distance(map.begin(), map.end()), 4);
    EXPECT_THROW(map[4], conversion_error);
    EXPECT_THROW(made(":1\r\n")[0], conversion_error);
    std::int64_t sum = 0;
    for (auto element : made("*3\r\n:1\r\n:2\r\n:3\r\n")) sum += element.integer();
    EXPECT_EQ(sum, 6);
}

TEST(reply, accessors_refuse_other_types) {
    EXPECT_THROW(made(":1\r\n").text(), conversion_error);
    EXPECT_THROW(made("+1\r\n").integer(), conversion_error);
    EXPECT_THROW(made(":1\r\n").real(), conversion_error);
    EXPECT_THROW(made(":1\r\n").boolean(), conversion_error);
    EXPECT_EQ(made("-ERR x\r\n").text(), "ERR x");
    EXPECT_EQ(made("-ERR\r\n").error_prefix(), "ERR");
    EXPECT_EQ(made("+OK\r\n").error_prefix(), "");
    EXPECT_EQ(made("+OK\r\n").text_format(), "");
}

TEST(reply_convert, texts) {
    auto const text = made("$3\r\na\r\n\r\n");
    EXPECT_EQ(text.as<std::string>(), "a\r\n");
    EXPECT_EQ(text.as<std::string_view>(), "a\r\n");
    EXPECT_EQ(text.as<std::vector<std::byte>>(), (std::vector{std::byte{'a'}, std::byte{'\r'}, std::byte{'\n'}}));
    EXPECT_EQ(made("=5\r\ntxt:x\r\n").as<std::string>(), "x");
    EXPECT_EQ(made("(123\r\n").as<std::string>(), "123");
    EXPECT_EQ(refusal<std::string>("*3\r\n:1\r\n:2\r\n:3\r\n"), "the reply is an array of 3, not a string");
    EXPECT_EQ(refusal<std::string>(":5\r\n"), "the reply is the integer 5, not a string");
    EXPECT_EQ(refusal<std::string>("_\r\n"), "the reply is null, not a string");
}

TEST(reply_convert, integers_within_their_range) {
    EXPECT_EQ(made(":-128\r\n").as<std::int8_t>(), -128);
    EXPECT_EQ(made("$3\r\n255\r\n").as<std::uint8_t>(), 255);
    EXPECT_EQ(made("(18446744073709551615\r\n").as<std::uint64_t>(), UINT64_MAX);
    EXPECT_EQ(made("+-42\r\n").as<long>(), -42);
    EXPECT_EQ(refusal<int>("*3\r\n:1\r\n:2\r\n:3\r\n"), "the reply is an array of 3, not an integer");
    EXPECT_EQ(refusal<std::int8_t>(":128\r\n"), "the reply is the integer 128, not an integer from -128 to 127");
    EXPECT_EQ(refusal<std::uint16_t>(":-1\r\n"), "the reply is the integer -1, not an integer from 0 to 65535");
    EXPECT_EQ(refusal<std::uint16_t>("$5\r\n65536\r\n"), "the reply is a string of 5 bytes, not an integer from 0 to 65535");
    for (auto const* bytes :
         {"$2\r\n1 \r\n", "$0\r\n\r\n", "$3\r\n1.5\r\n", "$2\r\n+1\r\n", "(9223372036854775808\r\n", "#t\r\n", ",1\r\n", "_\r\n"})
        EXPECT_NE(refusal<std::int64_t>(bytes), "accepted") << bytes;
}

TEST(reply_convert, reals) {
    EXPECT_EQ(made(",1.5\r\n").as<double>(), 1.5);
    EXPECT_EQ(made(":3\r\n").as<double>(), 3.0);
    EXPECT_EQ(made("$4\r\n-inf\r\n").as<double>(), -INFINITY);
    EXPECT_TRUE(std::isnan(made("$3\r\nnan\r\n").as<float>()));
    EXPECT_EQ(made("$6\r\n1.5e+1\r\n").as<float>(), 15.0f);
    EXPECT_EQ(refusal<double>("$1\r\nx\r\n"), "the reply is a string of 1 bytes, not a number");
    EXPECT_NE(refusal<double>("#t\r\n"), "accepted");
}

TEST(reply_convert, booleans) {
    EXPECT_TRUE(made("#t\r\n").as<bool>());
    EXPECT_FALSE(made(":0\r\n").as<bool>());
    EXPECT_TRUE(made(":1\r\n").as<bool>());
    EXPECT_EQ(refusal<bool>("+OK\r\n"), "the reply is a string of 2 bytes, not a boolean, 0 or 1");
    EXPECT_NE(refusal<bool>(":2\r\n"), "accepted");
}

TEST(reply_convert, containers) {
    using strings = std::vector<std::string>;
    EXPECT_EQ(made("*2\r\n+a\r\n$1\r\nb\r\n").as<strings>(), (strings{"a", "b"}));
    EXPECT_EQ(made("~2\r\n+b\r\n+a\r\n").as<std::set<std::string>>(), (std::set<std::string>{"a", "b"}));
    EXPECT_EQ(made("~2\r\n:1\r\n:2\r\n").as<std::unordered_set<int>>(), (std::unordered_set<int>{1, 2}));
    EXPECT_EQ(made(">1\r\n:1\r\n").as<std::list<int>>(), std::list<int>{1});
    EXPECT_EQ(made("*2\r\n:1\r\n_\r\n").as<std::vector<std::optional<int>>>(),
              (std::vector<std::optional<int>>{1, std::nullopt}));
    EXPECT_EQ(refusal<strings>("%0\r\n"), "the reply is a map of 0, not an array");
    EXPECT_EQ(refusal<strings>("+x\r\n"), "the reply is a string of 1 bytes, not an array");

    using numbers = std::map<std::string, int>;
    numbers const expected{{"a", 1}, {"b", 2}};
    EXPECT_EQ(made("%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n").as<numbers>(), expected);
    EXPECT_EQ(made("*4\r\n+a\r\n:1\r\n+b\r\n$1\r\n2\r\n").as<numbers>(), expected) << "as RESP2 sends it";
    EXPECT_EQ((made("%1\r\n+a\r\n*1\r\n:1\r\n").as<std::unordered_map<std::string, std::vector<int>>>().at("a")),
              std::vector<int>{1});
    EXPECT_EQ(refusal<numbers>("*1\r\n:1\r\n"), "the reply is an array of 1, not a map");
    EXPECT_EQ(refusal<numbers>("~0\r\n"), "the reply is a set of 0, not a map");
}

TEST(reply_convert, tuples_of_exactly_that_size) {
    auto const grant = made("*3\r\n$7\r\ngranted\r\n:17\r\n:30000\r\n");
    EXPECT_EQ((grant.as<std::tuple<std::string, std::uint64_t, int>>()),
              (std::tuple<std::string, std::uint64_t, int>{"granted", 17, 30000}));
    EXPECT_EQ((made("*2\r\n+a\r\n:1\r\n").as<std::pair<std::string, int>>()), (std::pair<std::string, int>{"a", 1}));
    EXPECT_EQ((refusal<std::pair<int, int>>("*3\r\n:1\r\n:2\r\n:3\r\n")), "the reply is an array of 3, not an array of 2");
    EXPECT_NE((refusal<std::tuple<int>>("%0\r\n")), "accepted");
    EXPECT_EQ(made("*0\r\n").as<std::tuple<>>(), std::tuple<>{});
}

TEST(reply_convert, errors_are_thrown_with_the_servers_text) {
    auto const refused = made("-NOPERM no right\r\n");
    EXPECT_THROW(refused.as<int>(), server_error);
    EXPECT_THROW(refused.as<void>(), server_error);
    EXPECT_THROW(refused.as<std::optional<int>>(), server_error);
    EXPECT_THROW(refused.throw_if_error(), server_error);
    try {
        refused.as<std::string>();
        FAIL();
    } catch (server_error const& error) {
        EXPECT_EQ(error.text(), "NOPERM no right");
        EXPECT_EQ(error.prefix(), "NOPERM");
    }
    EXPECT_TRUE(refused.as<reply>().is_error());
    EXPECT_TRUE(refused.as<reply_view>().is_error());
    EXPECT_TRUE(refused.as<std::optional<reply>>()->is_error());
    made("+OK\r\n").as<void>();
}

TEST(reply_convert, errors_inside_aggregates_are_kept_only_where_asked_for) {
    auto const results = made("*2\r\n:1\r\n-ERR second\r\n");
    EXPECT_THROW(results.as<std::vector<int>>(), server_error);
    EXPECT_TRUE(results.as<std::vector<reply>>()[1].is_error());
    EXPECT_TRUE((results.as<std::pair<int, reply_view>>().second.is_error()));
}

TEST(reply_convert, takes_types_of_the_user) {
    auto const points = made("*2\r\n*2\r\n:1\r\n:2\r\n*2\r\n:3\r\n:4\r\n").as<std::vector<point>>();
    ASSERT_EQ(points.size(), 2u);
    EXPECT_EQ(points[1].x, 3);
    EXPECT_EQ(points[1].y, 4);
}

TEST(reply_convert, a_temporary_reply_gives_itself_away) {
    auto source = made("*1\r\n+a\r\n");
    auto const* const text = source[0].text().data();
    auto const taken = std::move(source).as<reply>();
    EXPECT_EQ(taken[0].text().data(), text) << "moved, not copied";
}

}  // namespace
}  // namespace lockstep
