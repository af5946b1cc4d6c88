#include "messaging/glob.hpp"

#include <gtest/gtest.h>

namespace lockstep::detail {
namespace {

TEST(globs, fit_as_those_of_the_server) {
    struct sample {
        char const* pattern;
        char const* text;
        bool fits;
    };
    for (auto const& [pattern, text, fits] : {sample{"orders", "orders", true}, sample{"orders", "order", false}, sample{"order", "orders", false},
                                              sample{"*", "", true}, sample{"*", "anything", true}, sample{"**", "x", true}, sample{"", "", true}, sample{"", "x", false},
                                              sample{"orders.*", "orders.", true}, sample{"orders.*", "orders.a.b", true}, sample{"orders.*", "orders", false},
                                              sample{"*.created", "a.b.created", true}, sample{"*.created", "created", false}, sample{"a*b*c", "a-b-b-c", true},
                                              sample{"a*b*c", "a-c-b", false}, sample{"h?llo", "hello", true}, sample{"h?llo", "hllo", false},
                                              sample{"h[ae]llo", "hallo", true}, sample{"h[ae]llo", "hillo", false}, sample{"h[^e]llo", "hello", false},
                                              sample{"h[^e]llo", "hallo", true}, sample{"h[a-c]llo", "hbllo", true}, sample{"h[c-a]llo", "hbllo", true},
                                              sample{"h[a-c]llo", "hdllo", false}, sample{"[A-]]", "Z", true}, sample{"[A-]", "Z", true}, sample{"[A-]b", "Zb", false},
                                              sample{"[\\a-z]", "b", false}, sample{"[\\a-z]", "z", true}, sample{"[ab", "a", true}, sample{"[ab", "ab", false}, sample{"\\*", "*", true}, sample{"\\*", "x", false}, sample{"[\\]]", "]", true},
                                              sample{"a?", "a", false}, sample{"?", "", false}}) {
        EXPECT_EQ(fits_glob(pattern, text), fits) << pattern << " and " << text;
    }
}

TEST(globs, a_quoted_text_fits_itself_only) {
    std::string const odd = "a*b?[c]^\\d";
    EXPECT_TRUE(fits_glob(quoted_glob(odd), odd));
    EXPECT_FALSE(fits_glob(quoted_glob("a*"), "ab"));
}

}  // namespace
}  // namespace lockstep::detail
