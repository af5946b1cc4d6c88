#include "observe/acl.hpp"

#include "scripts/all.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <string>

namespace lockstep::observe {
namespace {

using testing::Contains;
using testing::Not;

TEST(acl, allows_all_that_scripts_call) {
    std::set<std::string> const no_commands{"byscore", "consumers", "count", "delconsumer", "entriesread", "groups", "idle", "justid", "keepttl",
                                            "limit", "maxlen", "minid", "numsub", "rank", "retrycount", "rev", "setid", "shardnumsub", "stream", "usage", "withscores", "withvalues"};
    static std::regex const word{"['\"]([A-Z]{3,})['\"]"};
    auto const rules = acl_rules({});
    int seen = 0;
    for (auto const* const script : scripts::all()) {
        std::string const text{script->text};
        for (std::sregex_iterator it{text.begin(), text.end(), word}, end; it != end; ++it) {
            std::string name = (*it)[1];
            std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
            if (no_commands.contains(name)) continue;
            if (name == "pubsub") name = "pubsub|numsub";
            if (name == "memory") name = "memory|usage";
            ++seen;
            EXPECT_THAT(rules, Contains("+" + name)) << script->name;
        }
    }
    EXPECT_GT(seen, 50);
}

TEST(acl, starts_from_nothing) {
    auto const rules = acl_rules({});
    EXPECT_LT(std::find(rules.begin(), rules.end(), "-@all"), std::find_if(rules.begin(), rules.end(), [](auto const& one) { return one[0] == '+'; }));
    EXPECT_THAT(rules, Contains("resetkeys"));
    EXPECT_THAT(rules, Contains("resetchannels"));
    EXPECT_THAT(rules, Not(Contains("+scan")));
    EXPECT_THAT(acl_rules({.looks = true}), Contains("+scan"));
    EXPECT_THAT(acl_rules({.cluster = true}), Contains("+cluster|slots"));
}

TEST(acl, takes_a_prefix_as_it_is_and_not_as_a_pattern) {
    EXPECT_THAT(acl_rules({.prefix = "a*b[c]?\\"}), Contains("~a\\*b\\[c\\]\\?\\\\:{*}:*"));
}

}  // namespace
}  // namespace lockstep::observe
