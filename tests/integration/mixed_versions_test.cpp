// A fleet in the middle of an upgrade: clients of version 0.1 (scripts_0_1, as they were released) and of today use one name. They exclude
// each other, or the older is refused by LOCKSTEP_FORMAT and writes nothing.
#include "lock_script_support.hpp"
#include "pool_script_support.hpp"
#include "support/file_content.hpp"
#include "support/seed.hpp"

#include <gtest/gtest.h>

#include <random>

namespace lockstep::test {
namespace {

/// One permit, or one lock, by the scripts of either version.
class two_versions : public pool_scripts {
public:
    explicit two_versions(bool is_pool) : is_pool_{is_pool} {
        keep_own_time();
        for (auto const* const client : {"old", "new", "older", "newer"}) connect(client);
    }
    script_answer acquire(std::string const& hold, bool waits) {
        std::vector<std::string> words{hold, text(ttl), text(ever), "1", waits ? "100" : "0", rules};
        if (is_pool_) words.insert(words.end(), {"1", ""});
        return call(hold, is_pool_ ? scripts::pool_acquire : scripts::lock_acquire, words);
    }
    script_answer claim(std::string const& hold) {
        return call(hold, is_pool_ ? scripts::pool_claim : scripts::lock_claim, {hold, text(ttl), "1", rules});
    }
    script_answer renew(std::string const& hold) {
        std::vector<std::string> words{hold, text(ttl), rules};
        if (!is_old(hold)) words.insert(words.end(), {number(0), text(ever)});
        return call(hold, is_pool_ ? scripts::pool_renew : scripts::lock_renew, words);
    }
    script_answer release(std::string const& hold) {
        return call(hold, is_pool_ ? scripts::pool_release : scripts::lock_release, {hold, rules});
    }
    static bool is_old(std::string const& hold) { return hold.starts_with("old"); }

private:
    script_answer call(std::string const& hold, scripts::script const& script, std::vector<std::string> const& words) {
        if (!is_old(hold)) return parse(run(script, words));
        pass(1);
        std::vector<std::string> line{
            "EVAL", file_content(std::string{LOCKSTEP_SOURCE_DIR} + "/tests/integration/scripts_0_1/" + std::string{script.name} + ".lua"), "1", key};
        line.insert(line.end(), words.begin(), words.end());
        auto said = commands.command(line);
        // It said less of who queues.
        if (said.type == reply::kind::array && said.elements.at(0).text == "queued") said.elements.push_back(said.elements.at(1));
        return parse(said);
    }

    bool is_pool_;
};

class mixed_versions : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(of, mixed_versions, testing::Bool(), [](auto const& of) { return std::string{of.param ? "pool" : "lock"}; });

TEST_P(mixed_versions, exclude_each_other_or_the_older_is_refused) {
    auto const seed = chosen_seed();
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    std::mt19937_64 random{seed};
    auto const pick = [&](int below) { return static_cast<int>(random() % static_cast<std::uint64_t>(below)); };
    two_versions name{GetParam()};
    std::map<std::string, std::int64_t> ends;  // of what is held
    std::int64_t now = 0;
    int to_old = 0, to_new = 0, refused = 0;
    std::vector<std::string> const holds{"old.1", "new.1", "older.1", "newer.1"};
    for (int i = 0; i < 4'000 && !testing::Test::HasFailure(); ++i) {
        auto const hold = holds[static_cast<std::size_t>(pick(4))];
        if (pick(40) == 0) name.pass(name.window);
        if (pick(30) == 0) {  // a new name
            name.commands.must({"DEL", name.key});
            ends.clear();
        }
        auto const before = name.hash();
        auto const turn = pick(8);
        auto const said = turn < 3   ? name.acquire(hold, pick(2) == 0)
                          : turn < 5 ? name.release(hold)
                          : turn < 7 ? name.claim(hold)
                                     : name.renew(hold);
        if (said.now != 0) now = said.now;
        if (said.word.starts_with("LOCKSTEP_FORMAT")) {
            ASSERT_TRUE(two_versions::is_old(hold)) << said.word;
            EXPECT_EQ(name.hash(), before) << "a refusal writes nothing";
            ++refused;
        } else if (said.word == "granted") {
            for (auto const& [other, end] : ends) EXPECT_TRUE(other == hold || end <= now) << hold << " beside " << other;
            ends[hold] = now + said.left;
            ++(two_versions::is_old(hold) ? to_old : to_new);
        } else if (said.word == "renewed") {
            ends[hold] = now + said.left;
        } else if (said.word == "released" || said.word == "gone") {
            ends.erase(hold);
        } else {
            EXPECT_TRUE(said.word == "queued" || said.word == "busy" || said.word == "cancelled") << said.word;
        }
    }
    EXPECT_GT(to_old, 20);
    EXPECT_GT(to_new, 200);
    EXPECT_GT(refused, 20);
}

// What 0.1 has written is taken over whole: owners' holds, offers, those who wait.
TEST_P(mixed_versions, takes_over_what_the_older_has_written) {
    two_versions name{GetParam()};
    EXPECT_EQ(name.acquire("old.1", true).word, "granted");
    EXPECT_EQ(name.acquire("older.1", true).word, "queued");
    EXPECT_EQ(name.release("old.1").offered_to, "older.1");
    EXPECT_EQ(name.acquire("new.1", true).word, "queued") << "behind an offer";
    name.pass(name.window);
    EXPECT_EQ(name.acquire("new.1", true).word, "granted") << "the offer lapsed";
    EXPECT_EQ(name.claim("older.1").word.substr(0, 15), "LOCKSTEP_FORMAT");
    EXPECT_EQ(name.renew("new.1").word, "renewed");
    EXPECT_EQ(name.release("new.1").word, "released");
}

TEST(mixed_versions_of_a_recursive_mutex, counts_the_holds_of_an_owner) {
    two_versions name{true};
    auto const enter = [&](std::string const& hold) {
        std::vector<std::string> line{
            "EVAL", file_content(std::string{LOCKSTEP_SOURCE_DIR} + "/tests/integration/scripts_0_1/pool_acquire.lua"), "1", name.key, hold,
            name.text(name.ttl), name.text(name.ever), "1", "100", name.rules, "1", "group me"};
        return name.commands.must(line);
    };
    for (auto const* const hold : {"old.1", "old.2", "old.3"}) enter(hold);
    EXPECT_EQ(name.enter("new.1", "me").word, "granted");
    EXPECT_EQ(name.damage(), "");
    for (auto const* const hold : {"old.1", "old.2", "old.3"}) {
        EXPECT_EQ(name.enter("new.2", "another").word, "queued");
        EXPECT_EQ(static_cast<pool_scripts&>(name).release(hold).word, "released");
    }
    EXPECT_EQ(static_cast<pool_scripts&>(name).release("new.1").offered_to, "new.2");
    EXPECT_EQ(name.damage(), "");
}

}  // namespace
}  // namespace lockstep::test
