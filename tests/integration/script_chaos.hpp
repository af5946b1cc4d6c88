// What the simulations of locks and pools share: clients that are state machines, commands that arrive long after they were given up,
// replies that are lost and asked for again, timeouts and cancels, clients that pause or die, and a server whose clock steps. A referee
// sees every reply, also those the clients never get, and checks what is promised. LOCKSTEP_SEED in the environment makes all happen
// again.
#pragma once

#include "script_beliefs.hpp"
#include "script_support.hpp"
#include "support/eventually.hpp"
#include "support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <random>
#include <set>

namespace lockstep::test {

inline std::string client_of(std::string const& hold) { return hold.substr(0, hold.find('.')); }

// Knows what the server said, in order.
class script_referee {
public:
    virtual ~script_referee() = default;
    // What a hold was told.
    virtual void see(std::string const& hold, script_answer const& answer) = 0;
    [[nodiscard]] virtual bool has_waiting(std::string const& client) const = 0;

    void complain(std::string const& what) {
        if (complaint.empty()) complaint = what;
    }

    // Clients that paused, died or were late since they last had nothing to wait for: order is not promised to them.
    std::set<std::string> unfit{};
    int grants = 0, handovers = 0, repeats = 0, late = 0, lapsed = 0, overtaken = 0;
    std::string complaint{};
};

class script_chaos {
public:
    virtual ~script_chaos() = default;

    // Until something was granted so many times.
    void run(int grants) {
        for (int step = 0; judge_.grants < grants && judge_.complaint.empty(); ++step) {
            crowded_ = step % 1500 < 500;
            time_passes();
            send_what_was_given_up(one_in(4) ? 1 : 0);
            act(somebody());
            supply(step);
            if (step % 100 == 0) check_state();
        }
    }

    // Everybody gives back what it has; the dead cannot, and what they left must run out by itself.
    void end() {
        for (int i = 0; i < 1000 && judge_.complaint.empty(); ++i) {
            send_what_was_given_up(1000);
            for (auto& one : clients_) {
                one.paused = 0;
                for (auto& [hold, what] : one.holds) tell(hold, release(hold));
                one.holds.clear();
                one.pushes.clear();
            }
            bench_.pass(bench_.window);
            if (i % 20 == 0) bench_.pass(bench_.ttl);
            if (i % 20 == 10) supply_last();
            tell("z.0", release("z.0"));
            if (residue().empty() && ghosts_.empty()) break;
        }
        check_state();
        EXPECT_EQ(judge_.complaint, "");
        EXPECT_EQ(residue(), "");
        EXPECT_GT(bench_.commands.must({"PTTL", bench_.key}).integer, 0);
        bench_.pass(4 * bench_.hour);
        EXPECT_TRUE(eventually([&] { return bench_.commands.must({"EXISTS", bench_.key}).integer == 0; }));
    }

protected:
    using command = std::function<script_answer()>;
    enum class place { unknown, waiting, held };
    struct hold_state {
        place at = place::unknown;
        std::int64_t deadline = 0, commands = 0;
    };
    struct client {
        std::string name;
        std::map<std::string, hold_state> holds{};
        std::set<std::string> pushes{};
        std::vector<std::pair<std::int64_t, std::string>> owed{};  // cancels, to be sent after this time
        int paused = 0;
        std::int64_t sequence = 1;
    };

    // One client in so many sleeps over what it was told.
    script_chaos(script_bench& bench, script_referee& judge, std::uint64_t seed, int sleeps_one_in)
        : bench_{bench}, judge_{judge}, random_{seed}, sleeps_one_in_{sleeps_one_in} {
        bench.keep_own_time();
        for (int i = 0; i < 5; ++i) born();
    }

    // The commands, each for one hold.
    virtual command asking(std::string const& hold, std::int64_t deadline, std::int64_t waiters) = 0;
    virtual script_answer claim(std::string const& hold) = 0;
    virtual script_answer renew(std::string const& hold, std::int64_t length, std::int64_t number) = 0;  // "not held" for gone: it may wait
    virtual bool is_exclusive() const { return false; }  // one that is held excludes all others
    virtual script_answer release(std::string const& hold) = 0;
    virtual std::string residue() = 0;
    virtual void check_state() = 0;

    // A command was run, and this is its answer.
    virtual void tell(std::string const& hold, script_answer const& answer) = 0;
    // What comes from outside, in each step; and in the end, for those who would wait for it for ever.
    virtual void supply(int) {}
    virtual void supply_last() {}
    virtual void choose_wish(std::string const&) {}
    virtual void use(client& who, std::string const& hold) { one_in(4) ? prolong(who, hold) : give_back(who, hold); }
    // Whether there is a reason why it was refused what it was told of; it may then ask again.
    virtual bool refused_rightly(client&, std::string const&) { return false; }

    int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
    bool one_in(int n) { return pick(n) == 0; }
    client& somebody() { return clients_[static_cast<std::size_t>(pick(static_cast<int>(clients_.size())))]; }
    [[nodiscard]] bool lives(std::string const& name) const {
        return std::ranges::any_of(clients_, [&](auto const& one) { return one.name == name; });
    }

    void ask(client& who, std::string const& hold) {
        auto const deadline = now_ == 0 ? bench_.ever : now_ + 2000;
        bool const tries = !who.holds.contains(hold) && one_in(5);
        auto& state = who.holds[hold];
        state.deadline = std::max(state.deadline, deadline);
        take(who, hold, send(who, hold, asking(hold, deadline, tries ? 0 : 100'000)));
    }

    void learn(std::int64_t now) { now_ = now != 0 ? now : now_; }

    std::vector<std::string> hear() {
        auto const told = bench_.told();
        for (auto const& hold : told)
            for (auto& one : clients_)
                if (one.name == client_of(hold)) one.pushes.insert(hold);
        return told;
    }

private:
    void born() {
        clients_.push_back({.name = "c" + std::to_string(++names_)});
        bench_.connect(clients_.back().name);
    }

    // Sends a command as the network will have it: done and answered, done but not answered, or done much later.
    std::optional<script_answer> send(client& from, std::string const& hold, command const& run) {
        auto const fate = pick(100);
        if (fate < 6) {
            ghosts_.emplace_back(hold, run);
            return {};
        }
        auto const answer = run();
        tell(hold, answer);
        if (fate < 14) return {};
        bool const refused = answer.word.starts_with("LOCKSTEP");
        if (answer.word == "gone" || answer.word == "not held" || answer.word == "busy" || answer.word == "late" || refused) from.holds.erase(hold);
        return answer;
    }

    void act(client& who) {
        if (who.paused > 0) {
            --who.paused;
            return;
        }
        if (!judge_.has_waiting(who.name) && who.pushes.empty()) judge_.unfit.erase(who.name);
        auto const owed = std::ranges::find_if(who.owed, [&](auto const& one) { return one.first < now_; });
        if (owed != who.owed.end()) {
            auto const hold = owed->second;
            who.owed.erase(owed);
            tell(hold, release(hold));
        }
        if (!who.pushes.empty()) return answer_push(who);
        if (one_in(60)) {
            judge_.unfit.insert(who.name);
            who.paused = pick(60);
            return;
        }
        if (one_in(400)) return die(who);
        if (crowded_ ? who.holds.size() < 4 && one_in(3) : who.holds.empty() && one_in(15)) {
            auto const hold = who.name + '.' + std::to_string(++holds_);
            choose_wish(hold);
            return ask(who, hold);
        }
        if (who.holds.empty()) return;
        auto const& [name, state] = *std::next(who.holds.begin(), pick(static_cast<int>(who.holds.size())));
        auto const hold = name;  // it may be forgotten before its name was used for the last time
        if (state.at == place::held)
            use(who, hold);
        else if (state.at == place::unknown)
            one_in(4) ? give_up(who, hold) : ask(who, hold);
        else if (one_in(25))
            give_up(who, hold);
        else if (one_in(10))
            ask(who, hold);  // looks again
    }

    void take(client& who, std::string const& hold, std::optional<script_answer> const& answer) {
        if (!answer || !who.holds.contains(hold)) return;
        if (answer->word == "granted") who.holds[hold].at = place::held, believes(hold, *answer);
        if (answer->word == "queued") who.holds[hold].at = place::waiting;
    }

    void answer_push(client& who) {
        auto const hold = *who.pushes.begin();
        who.pushes.erase(hold);
        if (!who.holds.contains(hold)) return tell(hold, release(hold));  // nobody here waits for that
        auto const known = who.holds[hold];
        auto const answer = send(who, hold, [this, hold] { return claim(hold); });
        if (!answer) judge_.unfit.insert(who.name);  // it will look again, perhaps too late
        take(who, hold, answer);
        if (!answer || answer->word != "gone" || refused_rightly(who, hold)) return;
        if (known.at == place::waiting && !judge_.unfit.contains(who.name))
            judge_.complain(hold + " claimed in time and was refused");
    }

    void prolong(client& who, std::string const& hold) {
        auto const length = script_bench::ttl / 20 * (1 + pick(60)), number = ++who.holds[hold].commands;
        beliefs_.ends_by(hold, now_ + length);
        auto const run = [this, hold, length, number] { return renew(hold, length, number); };
        if (one_in(2)) return ghosts_.emplace_back(hold, run), prolong(who, hold);  // no answer came in time: another is sent
        auto const answer = send(who, hold, run);
        if (answer && answer->word == "renewed") beliefs_.holds_until(hold, answer->now + answer->left);
        if (answer && answer->word == "not held") beliefs_.has_ended(hold);
    }

    void believes(std::string const& hold, script_answer const& granted) {
        beliefs_.holds_until(hold, granted.now + granted.left);
        auto const other = is_exclusive() ? beliefs_.holder_besides(hold, granted.now) : "";
        if (!other.empty()) judge_.complain(hold + " has it, and " + other + " believes so too");
    }

    void give_back(client& who, std::string const& hold) {
        beliefs_.has_ended(hold);
        if (send(who, hold, [this, hold] { return release(hold); })) who.holds.erase(hold);
    }

    // A timeout: the local decision stands. What may still be on its way is cancelled again after its deadline.
    void give_up(client& who, std::string const& hold) {
        beliefs_.has_ended(hold);
        who.owed.emplace_back(who.holds[hold].deadline, hold);
        who.holds.erase(hold);
        send(who, hold, [this, hold] { return release(hold); });
    }

    void die(client& who) {
        judge_.unfit.insert(who.name);
        for (auto const& [hold, state] : who.holds) beliefs_.has_ended(hold);
        if (one_in(2)) bench_.disconnect(who.name);  // else its connection is still open: it is only heard to be alive
        std::erase_if(clients_, [name = who.name](auto const& one) { return one.name == name; });
        born();
    }

    void time_passes() {
        if (one_in(3)) return;
        std::int64_t by = pick(20);
        if (one_in(80)) by = bench_.window;
        if (one_in(300)) by = bench_.ttl;
        if (one_in(400)) by = set_back_ != 0 ? set_back_ : -pick(static_cast<int>(bench_.hour));
        if (by < 0 || by == set_back_) beliefs_.clock_stepped(by), set_back_ = std::max<std::int64_t>(0, -by);
        if (by > 20 || by < 0)
            for (auto& one : clients_) judge_.unfit.insert(one.name);
        for (auto& one : clients_)
            if (!one.pushes.empty() && one.paused == 0 && one_in(sleeps_one_in_))
                judge_.unfit.insert(one.name), one.paused = 20;
        bench_.pass(by);
    }

    void send_what_was_given_up(int most) {
        for (; most > 0 && !ghosts_.empty(); --most) {
            auto const at = ghosts_.begin() + pick(static_cast<int>(ghosts_.size()));
            auto const [hold, run] = *at;
            ghosts_.erase(at);
            tell(hold, run());
        }
    }

    script_bench& bench_;
    script_referee& judge_;
    script_beliefs beliefs_;
    std::mt19937_64 random_;
    int sleeps_one_in_;
    std::vector<client> clients_;
    std::vector<std::pair<std::string, command>> ghosts_;
    std::int64_t now_ = 0, set_back_ = 0;
    int names_ = 0, holds_ = 0;
    bool crowded_ = true;  // or nobody waits most of the time
};

}  // namespace lockstep::test
