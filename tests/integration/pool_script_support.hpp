// The pool's scripts, called one at a time on a server of the test's own, whose clock the test moves.
#pragma once

#include "script_support.hpp"
#include "session_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace lockstep::test {

using pool_answer = script_answer;

class pool_scripts : public script_bench {
public:
    struct options {
        std::int64_t ttl = pool_scripts::ttl;
        std::int64_t deadline = ever;
        std::int64_t amount = 1;
        std::int64_t waiters = 100'000;
        std::string count{};
        std::string mode{};
    };
    struct look {
        std::int64_t count = 0, available = 0, holders = 0, waiting = 0;
        bool operator==(look const&) const = default;
    };

    pool_answer acquire(std::string const& hold) { return acquire(hold, options{}); }
    pool_answer acquire(std::string const& hold, std::int64_t amount) { return acquire(hold, {.amount = amount}); }
    pool_answer acquire(std::string const& hold, options const& o) {
        return parse(run(scripts::pool_acquire, {hold, text(o.ttl), text(o.deadline), text(o.amount), text(o.waiters),
                                                 rules, o.count, o.mode}),
                     o.ttl);
    }
    pool_answer try_acquire(std::string const& hold, std::int64_t amount = 1) {
        return acquire(hold, {.amount = amount, .waiters = 0});
    }
    // A recursive mutex.
    pool_answer enter(std::string const& hold, std::string const& owner) {
        return acquire(hold, {.count = "1", .mode = "group " + owner});
    }
    // An event.
    pool_answer wait(std::string const& hold) { return acquire(hold, {.mode = "consume"}); }
    pool_answer add(std::int64_t amount, std::string const& session, std::int64_t sequence, std::int64_t deadline = ever) {
        return parse(run(scripts::pool_add, {session, text(sequence), text(amount), rules, text(deadline)}));
    }
    pool_answer clear(std::int64_t deadline = ever, std::int64_t sequence = 0) {
        return parse(run(scripts::pool_clear, {"clearing", number(sequence), rules, text(deadline)}));
    }

    pool_answer claim(std::string const& hold, std::int64_t length = ttl) {
        return parse(run(scripts::pool_claim, {hold, text(length), "1", rules}));
    }
    pool_answer renew(std::string const& hold, std::int64_t length = ttl, std::int64_t with_number = 0, std::int64_t deadline = ever) {
        return parse(run(scripts::pool_renew, {hold, text(length), rules, number(with_number), text(deadline)}));
    }
    pool_answer release(std::string const& hold) { return parse(run(scripts::pool_release, {hold, rules})); }
    pool_answer release_unused(std::string const& hold, std::int64_t amount) {
        return parse(run(scripts::pool_release, {hold, rules, "", text(amount)}));
    }
    pool_answer release_leaving(std::string const& hold) {
        return parse(run(scripts::pool_release, {hold, rules, "1"}));
    }
    pool_answer adopt(std::string const& token, std::string const& hold, std::int64_t deadline = ever) {
        return parse(run(scripts::pool_adopt, {token, hold, text(ttl), rules, text(deadline)}));
    }
    pool_answer change(std::string const& hold, std::int64_t amount, std::int64_t with_number = 0, std::int64_t deadline = ever) {
        return parse(run(scripts::pool_change, {hold, text(amount), text(ttl), rules, number(with_number), text(deadline)}));
    }
    pool_answer create(std::int64_t count) {
        return in_steps([&](std::string const& from) { return run(scripts::pool_create, {text(count), rules, from}); });
    }
    pool_answer resize(std::int64_t count, std::int64_t deadline = ever) {
        return in_steps([&](std::string const& from) { return resize_once(count, from, 0, deadline); });
    }
    reply resize_once(std::int64_t count, std::string const& from, std::int64_t sequence = 0, std::int64_t deadline = ever) {
        return run(scripts::pool_resize, {"resizing", number(sequence), text(count), from, rules, text(deadline)});
    }
    look read() {
        auto const said = run(scripts::pool_read, {}).elements;
        return {said.at(0).integer, said.at(1).integer, said.at(2).integer, said.at(3).integer};
    }
    std::string read_error() { return run(scripts::pool_read, {}).text; }

    // What is there of holds and of waiters. A pool that nobody uses has none.
    std::string residue() { return fields_with("nuoihlzgmqweyjk"); }
    // Whether holds, their numbers, the permits taken and the bound of their ends agree, and nobody waits for more than there are; what
    // is wrong with them, with the sessions or with the queue, or "".
    std::string damage() {
        auto fields = hash();
        auto const number = [&](std::string const& field) {
            return fields.contains(field) ? std::stoll(fields[field]) : 0;
        };
        std::int64_t slots = 0, holds = 0, taken = 0;
        std::int64_t offers = 0;
        std::map<std::string, std::int64_t> owners;
        for (auto const& [field, value] : std::map{fields}) {
            slots += field[0] == 'o' ? 1 : 0;
            if (field[0] == 'q' && fields.contains("c") && wanted(words(value)) > number("c"))
                return field + " waits in vain";
            if (field[0] != 'i') continue;
            ++holds;
            auto const word = words(value);
            if (fields["o" + word.at(0)] != field.substr(1)) return field + " is not where it should be";
            auto const end = word.size() > 4 ? std::stoll(word[4]) : std::stoll(word[3]) / 1000 + std::stoll(word[2]);
            bool const offered = word.size() > 5 && word[5] == "offered";
            if (!offered && end < number("b")) return field + " ends before the bound";
            if (offered && fields["y" + word.at(6)] != field.substr(1)) return field + " is not among the offers";
            if (offered && (end < std::stoll(words(fields["e"]).at(1)) || std::stoll(word[6]) < number("e") || std::stoll(word[6]) > number("j"))) return field + " is not looked at";
            offers += offered ? 1 : 0;
            bool const grouped = word.size() > 4 && word.back()[0] == 'g';
            if (!grouped || !owners.contains(word.back())) taken += std::stoll(word[1]);
            if (grouped) ++owners[word.back()];
        }
        if (slots != number("n") || holds != number("n")) return text(holds) + " holds, " + text(number("n")) + " said";
        for (auto const& [owner, count] : owners) {
            if (!fields.contains(owner) || words(fields[owner]).at(0) != text(count)) return owner + " is not counted";
        }
        if (auto const listed = std::ranges::count_if(fields, [](auto const& one) { return one.first[0] == 'y'; }); listed != offers)
            return text(offers) + " offers, " + text(listed) + " in the list";
        if (taken != number("u")) return text(taken) + " permits are taken, " + text(number("u")) + " said";
        if (auto const wrong = session_damage(fields); !wrong.empty()) return wrong;
        return queue_damage();
    }

private:
    // '<hold>[ <before> <after>][ [<window>@]<permits>[<mode>]]'; who uses them up may want any number.
    static std::int64_t wanted(std::vector<std::string> const& waiter) {
        if (waiter.size() % 2 == 1) return 1;
        auto const want = waiter.back().substr(waiter.back().find('@') + 1);
        return want.empty() ? 1 : want.ends_with('c') ? 0 : std::stoll(want);
    }

    // Until nobody is left to be turned away; what the first answer was.
    template <class Call>
    static pool_answer in_steps(Call call) {
        auto const first = parse(call(""));
        for (auto next = first.go_on_at; next != 0;) next = parse(call(text(next))).go_on_at;
        return first;
    }
};

// A pool that clients a, b, c and d listen for; nothing may be wrong with it in the end.
class pool_script_fixture : public testing::Test {
protected:
    static constexpr std::int64_t all = 1 << 30;  // of a shared mutex

    pool_script_fixture() {
        for (auto const* const client : {"a", "b", "c", "d"}) pool.connect(client);
    }
    ~pool_script_fixture() override { EXPECT_EQ(pool.damage(), ""); }

    // A pool of so many permits, all of them held by a.1; then these wait for one each, in order.
    void held_by_a_and_wanted_by(std::vector<std::string> const& holds, std::int64_t count = 1) {
        ASSERT_EQ(pool.acquire("a.1", {.amount = count, .count = pool.text(count)}).word, "granted");
        for (auto const& hold : holds) ASSERT_EQ(pool.acquire(hold).word, "queued") << hold;
    }
    pool_scripts::options reader() { return {.amount = 1, .count = pool.text(all)}; }
    pool_scripts::options writer() { return {.amount = all, .count = pool.text(all)}; }

    pool_scripts pool;
};

}  // namespace lockstep::test
