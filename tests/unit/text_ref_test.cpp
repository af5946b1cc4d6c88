// Options do not refer to strings that are gone: what would is refused by the compiler.
#include <lockstep/lockstep.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep {
namespace {

static_assert(!std::is_constructible_v<text_ref, std::string>);
static_assert(!std::is_constructible_v<text_ref, std::string const>);
static_assert(!std::is_convertible_v<std::string, text_ref>);
static_assert(!std::is_assignable_v<text_ref&, std::string>);
static_assert(!std::is_assignable_v<text_ref&, std::string&&>);
static_assert(!std::is_assignable_v<text_ref&, std::string const&&>);
static_assert(!std::is_constructible_v<text_ref, std::nullptr_t>);

static_assert(std::is_convertible_v<std::string&, text_ref>);
static_assert(std::is_convertible_v<std::string const&, text_ref>);
static_assert(std::is_convertible_v<char const (&)[3], text_ref>);
static_assert(std::is_convertible_v<std::string_view, text_ref>);
static_assert(std::is_convertible_v<text_ref, std::string_view>);

template <class Options, auto Member>
constexpr bool refuses_temporaries() {
    using member = std::remove_reference_t<decltype(std::declval<Options&>().*Member)>;
    return std::is_assignable_v<member&, std::string&> && std::is_assignable_v<member&, std::string_view> && !std::is_assignable_v<member&, std::string&&> &&
           !std::is_constructible_v<member, std::string&&>;
}
static_assert(refuses_temporaries<job_options, &job_options::key>());
static_assert(refuses_temporaries<job_options, &job_options::single>());
static_assert(refuses_temporaries<job_options, &job_options::batch>());
static_assert(refuses_temporaries<job_options, &job_options::tags>());
static_assert(refuses_temporaries<job_worker_options, &job_worker_options::name>());
static_assert(refuses_temporaries<cron_options, &cron_options::expression>());
static_assert(refuses_temporaries<cron_options, &cron_options::zone>());
static_assert(refuses_temporaries<enqueue_options, &enqueue_options::key>());
static_assert(refuses_temporaries<election_options, &election_options::id>());
static_assert(refuses_temporaries<observe_options, &observe_options::after>());
static_assert(refuses_temporaries<snapshot_options, &snapshot_options::name>());
static_assert(refuses_temporaries<snapshot_options, &snapshot_options::pattern>());
static_assert(refuses_temporaries<release_options, &release_options::by>());
static_assert(refuses_temporaries<release_options, &release_options::reason>());

template <class Text>
concept can_be_a_key = requires(Text&& text) { job_options{.key = std::forward<Text>(text)}; };
static_assert(can_be_a_key<std::string&> && can_be_a_key<std::string_view> && can_be_a_key<char const*>);
static_assert(!can_be_a_key<std::string>);

TEST(text_ref, shows_the_text_that_it_was_given) {
    EXPECT_TRUE(text_ref{}.empty());
    EXPECT_TRUE(text_ref{""}.empty());
    std::string const named = "order-7";
    job_options options{.key = named};
    EXPECT_EQ(options.key, "order-7");
    EXPECT_EQ(options.key.size(), 7U);
    EXPECT_EQ(options.key.view().data(), named.data()) << "it is not copied";
    options.key = "literal";
    EXPECT_EQ(options.key, std::string{"literal"});
    options.key = std::string_view{named}.substr(0, 5);
    EXPECT_EQ(std::string{options.key}, "order");
    EXPECT_EQ(options.key, options.key);
    EXPECT_NE(options.key, text_ref{});
    options.key = {};
    EXPECT_TRUE(options.key.empty());
}

}  // namespace
}  // namespace lockstep
