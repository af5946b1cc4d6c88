// Values as bytes: what is kept of them, and what is refused.
#include <lockstep/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

struct order {
    int id = 0;
    std::string customer;
    std::optional<double> discount;
    bool operator==(order const&) const = default;
};
BOOST_DESCRIBE_STRUCT(order, (), (id, customer, discount))

template <class T>
T there_and_back(T const& value) {
    static_assert(codec_for<codec<T>, T>);
    return codec<T>::decode(codec<T>::encode(value));
}

TEST(codec, keeps_strings_and_bytes_as_they_are) {
    std::string const text{"a\0b\xff", 4};
    EXPECT_EQ(codec<std::string>::encode(text), text);
    EXPECT_EQ(there_and_back(text), text);
    std::vector<std::byte> const bytes{std::byte{0}, std::byte{255}};
    EXPECT_EQ(there_and_back(bytes), bytes);
    EXPECT_EQ(there_and_back(std::vector<std::byte>{}).size(), 0U);
}

TEST(codec, keeps_numbers_as_text_that_redis_counts_with) {
    EXPECT_EQ(codec<int>::encode(-42), "-42");
    EXPECT_EQ(there_and_back(INT64_MIN), INT64_MIN);
    EXPECT_EQ(there_and_back(UINT64_MAX), UINT64_MAX);
    EXPECT_EQ(there_and_back(0.1), 0.1);
    EXPECT_TRUE(there_and_back(true));
    EXPECT_FALSE(there_and_back(false));
}

TEST(codec, refuses_what_is_no_such_value) {
    EXPECT_THROW(codec<int>::decode("4 2"), conversion_error);
    EXPECT_THROW(codec<int>::decode(""), conversion_error);
    EXPECT_THROW(codec<std::int8_t>::decode("128"), conversion_error);
    EXPECT_THROW(codec<bool>::decode("1"), conversion_error);
    EXPECT_THROW(codec<order>::decode("{"), conversion_error);
    EXPECT_THROW(codec<order>::decode(R"({"id":"x","customer":""})"), conversion_error);
    try {
        codec<int>::decode(std::string(50, 'x') + '\n');
        FAIL();
    } catch (conversion_error const& problem) {
        EXPECT_STREQ(problem.what(), "a value of 51 bytes is not a number that fits");
    }
}

TEST(codec, never_shows_a_value_that_it_refuses) {
    auto const text = [](auto decode) {
        try {
            decode();
        } catch (conversion_error const& problem) {
            return std::string{problem.what()};
        }
        return std::string{"nothing was refused"};
    };
    EXPECT_EQ(text([] { codec<bool>::decode("s3cret"); }), "a value of 6 bytes is not true or false");
    EXPECT_THAT(text([] { codec<order>::decode("{\"id\":\"s3cret"); }), testing::Not(testing::HasSubstr("s3cret")));
    EXPECT_THAT(text([] { codec<order>::decode(R"({"id":"s3cret","customer":""})"); }), testing::Not(testing::HasSubstr("s3cret")));
}

TEST(codec, keeps_described_structs_and_containers_as_json) {
    order const one{7, "Ada \"the first\"", 0.5};
    EXPECT_EQ(codec<order>::encode({7, "Ada", {}}), R"({"id":7,"customer":"Ada","discount":null})");
    EXPECT_EQ(there_and_back(one), one);
    std::map<std::string, std::vector<int>> const many{{"a", {1, 2}}, {"b", {}}};
    EXPECT_EQ(there_and_back(many), many);
}

struct reversed {
    static std::string encode(std::string const& value) { return {value.rbegin(), value.rend()}; }
    static std::string decode(std::string_view bytes) { return {bytes.rbegin(), bytes.rend()}; }
};
static_assert(codec_for<reversed, std::string>);
static_assert(!codec_for<reversed, order>);

}  // namespace
}  // namespace lockstep::test
