// The scripts of locks and pools have short ways for what is usual. Here every call is also made, from the same state and at the same time,
// by the script without them: both must answer, tell and leave behind the same. What they may leave to the next call (a lease that is
// over, a bound of ends that is lower than it could be) is not compared. LOCKSTEP_SEED in the environment makes all happen again.
#include "lock_script_support.hpp"
#include "pool_script_support.hpp"
#include "support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lockstep::test {
namespace {

using fields = std::map<std::string, std::string>;

/// The text with each of these replaced.
std::string changed(std::string text, std::vector<std::pair<std::string, std::string>> const& by) {
    int changes = 0;
    for (auto const& [from, to] : by) {
        for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size()), ++changes) text.replace(at, from.size(), to);
    }
    EXPECT_GT(changes, 0) << "it has no short way";
    return text;
}

std::string without_short_ways(scripts::script const& script) {
    return changed(std::string{script.text}, {{"== '3'", "== 'off'"},
                                              {"== '4'", "== 'off'"},
                                              {"if not free[1] and", "if false and"},
                                              {"if short == hold and", "if false and"}});
}

std::string join(std::vector<std::string> const& words) {
    std::string line;
    for (auto const& word : words) line += word + ' ';
    return line;
}

std::int64_t number(fields const& all, std::string const& field) {
    auto const found = all.find(field);
    return found == all.end() ? 0 : std::stoll(found->second);
}

/// The same state in the same words: holds with their ends, in any order.
fields of_lock(fields all) {
    if (all.contains("o") && all["o"] != "*") {
        all["p"] = all["o"], all["o"] = "*", all["s"] = "held", all["d"] = all["t"];
        all["e"] = std::to_string(number(all, "f") / 1000 + number(all, "t"));
    } else if (!all.contains("o")) {
        for (auto const* const stale : {"p", "s", "e", "d", "r"}) all.erase(stale);
    }
    all.erase("t");
    return all;
}

fields of_pool(fields const& all) {
    fields same;
    for (auto const& [field, value] : all) {
        if (std::string_view{"boydejk"}.find(field[0]) != std::string_view::npos || (field == "u" && value == "0")) continue;
        if (field[0] != 'i') {
            same[field] = value;
            continue;
        }
        auto word = script_bench::words(value);
        if (word.size() == 4) word.insert(word.end(), {std::to_string(std::stoll(word[3]) / 1000 + std::stoll(word[2])), "held"});
        word[0] = "";                                                // its slot
        if (word[5] == "offered") word.erase(word.begin() + 6);  // its place among the offers
        same[field] = join(word);
    }
    return same;
}

/// When the first of all leases and offers is over.
std::int64_t first_end(fields const& all, bool is_pool) {
    if (!is_pool) return all.contains("o") ? number(of_lock(all), "e") : script_bench::ever;
    auto first = script_bench::ever;
    for (auto const& [field, value] : of_pool(all)) {
        if (field[0] == 'i') first = std::min<std::int64_t>(first, std::stoll(script_bench::words(value).at(3)));
    }
    return first;
}

/// What a call did: its answer, whom it told, and the state.
struct outcome {
    script_answer said;
    std::vector<std::string> told;
    fields left;
    std::int64_t expires = 0;
};

class twin_scripts : public pool_scripts {
public:
    twin_scripts() {
        keep_own_time();
        for (auto const* const client : {"a", "b", "c", "d"}) connect(client);
    }

    /// Both ways, and goes on from what the usual one left.
    void call(scripts::script const& script, std::vector<std::string> const& arguments, bool is_pool) {
        told();
        auto const before = hash();
        auto const kept = commands.must({"DUMP", key});
        auto const lives = std::max<std::int64_t>(0, commands.must({"PTTL", key}).integer);
        auto const restore = [&] {
            commands.must({"DEL", key});
            if (!kept.text.empty()) commands.must({"RESTORE", key, text(lives), kept.text});
        };
        auto const whole = run_text(without_short_ways(script), arguments);
        restore();
        auto const usual = run_text(std::string{script.text}, arguments);
        if (usual.said.short_way) ++quick;
        if (first_end(before, is_pool) <= now()) return;  // what is over may be left to the next call
        ++compared;
        auto const line = std::string{script.name} + ' ' + join(arguments);
        EXPECT_EQ(usual.said.word, whole.said.word) << line;
        EXPECT_EQ(usual.said.fence, whole.said.fence) << line;
        EXPECT_EQ(usual.said.fences, whole.said.fences) << line;
        EXPECT_EQ(usual.said.offered_to, whole.said.offered_to) << line;
        EXPECT_EQ(usual.said.position, whole.said.position) << line;
        EXPECT_EQ(usual.said.place_is_new, whole.said.place_is_new) << line;
        if (!usual.said.short_way || usual.said.word == "granted") {
            EXPECT_LE(usual.said.left, whole.said.left) << line;
        }
        EXPECT_EQ(usual.told, whole.told) << line;
        EXPECT_EQ(is_pool ? of_pool(usual.left) : of_lock(usual.left), is_pool ? of_pool(whole.left) : of_lock(whole.left)) << line;
        EXPECT_NEAR(static_cast<double>(usual.expires), static_cast<double>(whole.expires), 5'000) << line;
        EXPECT_EQ(is_pool ? damage() : queue_damage(), "") << line;
    }
    std::int64_t now() {
        auto const time = commands.must({"TIME"}).elements;
        return std::stoll(time.at(0).text) * 1000 + std::stoll(time.at(1).text) / 1000;
    }

    int compared = 0, quick = 0;

private:
    outcome run_text(std::string const& script, std::vector<std::string> const& arguments) {
        std::vector<std::string> line{"EVAL", script, "1", key};
        line.insert(line.end(), arguments.begin(), arguments.end());
        outcome done;
        auto const ttl_asked = arguments.size() > 1 && arguments[1].find_first_not_of("0123456789") == std::string::npos ? std::stoll(arguments[1]) : ttl;
        done.said = parse(commands.command(line), ttl_asked, script.find("--[[ lock_acquire") == 0 ? std::stoll(arguments[3]) : 1);
        done.told = told();
        done.left = hash();
        done.expires = commands.must({"PTTL", key}).integer;
        return done;
    }
};

enum class sort { lock, semaphore, recursive, event };

std::string name_of(sort what) {
    switch (what) {
        case sort::lock: return "lock";
        case sort::semaphore: return "semaphore";
        case sort::recursive: return "recursive";
        default: return "event";
    }
}

class short_way : public testing::TestWithParam<sort> {
protected:
    int pick(int below) { return static_cast<int>(random() % static_cast<std::uint64_t>(below)); }
    bool one_in(int count) { return pick(count) == 0; }
    std::string some_hold() { return std::string{"abcd"[pick(calm ? 2 : 4)]} + '.' + std::to_string(pick(calm ? 1 : 3)); }
    std::string some_rules() {
        auto const& usual = twin.rules;
        return one_in(4) ? "700" + usual.substr(usual.find(' ')) : usual;
    }
    void acquire(std::string const& hold) {
        auto const length = twin.text(one_in(3) ? twin.ttl / 2 : twin.ttl);
        auto const waiters = one_in(4) || (calm && !one_in(8)) ? "0" : "100";
        if (!pool()) return twin.call(scripts::lock_acquire, {hold, length, twin.text(twin.ever), one_in(2) ? "4" : "1", waiters, some_rules()}, false);
        bool const grouped = GetParam() == sort::recursive;
        auto const amount = GetParam() == sort::semaphore && one_in(3) ? "2" : "1";
        auto const mode = grouped ? "group " + hold.substr(0, 1) : GetParam() == sort::event ? "consume" : "";
        auto const count = grouped ? "1" : GetParam() == sort::semaphore ? "3" : "";
        twin.call(scripts::pool_acquire, {hold, length, twin.text(twin.ever), amount, waiters, some_rules(), count, mode}, true);
    }
    bool pool() const { return GetParam() != sort::lock; }
    void step() {
        calm = ++steps / 250 % 2 == 0;
        auto const hold = some_hold();
        switch (pick(8)) {
            case 0:
            case 1:
            case 2: return acquire(hold);
            case 3:
            case 4: return twin.call(pool() ? scripts::pool_release : scripts::lock_release, {hold, some_rules()}, pool());
            case 5:
            case 6: return twin.call(pool() ? scripts::pool_claim : scripts::lock_claim, {hold, twin.text(twin.ttl), "1", some_rules()}, pool());
            default: break;
        }
        if (GetParam() == sort::event) twin.add(1, "s", ++sequence);
        if (one_in(20)) twin.pass(twin.window);
        if (one_in(60)) twin.pass(twin.ttl);
        if (one_in(30)) one_in(2) ? twin.connect("d") : twin.disconnect("d");
        if (pool()) return static_cast<void>(twin.renew(hold));
    }

    std::uint64_t const seed = chosen_seed();
    std::mt19937_64 random{seed};
    twin_scripts twin;
    std::int64_t sequence = 0;
    int steps = 0;
    bool calm = true;  // few ask, and often nobody waits
};
INSTANTIATE_TEST_SUITE_P(of, short_way, testing::Values(sort::lock, sort::semaphore, sort::recursive, sort::event),
                         [](auto const& of) { return name_of(of.param); });

TEST_P(short_way, does_what_the_whole_script_does) {
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    for (int i = 0; (i < 2'500 || (twin.quick <= 10 && i < 10'000)) && !HasFailure(); ++i) step();
    EXPECT_GT(twin.compared, 1'000);
    EXPECT_GT(twin.quick, 10) << "calls that were answered with a number";
}

}  // namespace
}  // namespace lockstep::test
