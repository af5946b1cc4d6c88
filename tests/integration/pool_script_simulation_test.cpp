// The pool's scripts under seeded chaos, once for each use of them: clients that are state machines, commands that arrive long after
// they were given up, replies that are lost and asked for again, timeouts and cancels, clients that pause or die, and a server whose
// clock steps. A referee sees every offer and every reply, also those the clients never get, and checks what is promised.
// LOCKSTEP_SEED in the environment makes all happen again.

#include "pool_script_support.hpp"
#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <iterator>
#include <optional>
#include <random>
#include <set>

namespace {

using lockstep::test::eventually;
using lockstep::test::pool_answer;
using lockstep::test::pool_scripts;
using std::int64_t;
using std::string;

string client_of(string const& hold) { return hold.substr(0, hold.find('.')); }

// What a hold asks for, always the same.
struct wish {
    int64_t amount = 1;
    string owner{};
    bool consumes = false;
};

// Knows what the server said, in order.
class referee {
public:
    // Clients that paused, died or were late since they last had nothing to wait for: order is not promised to them.
    std::set<string> unfit{};
    std::map<string, wish> wishes{};
    int64_t count = 0, added = 0, consumed = 0, cleared = 0;
    int grants = 0, handovers = 0, together = 0, repeats = 0, late = 0, lapsed = 0, changes = 0, turned_away = 0;
    string complaint{};

    // By a command of one that gets its own by asking, and is not told of that.
    void offered(string const& hold, string const& asking) {
        check_order(hold, asking);
        std::erase(waiting_, hold);
        offered_.insert(hold);
    }

    // Nobody loses what it has or was offered. Returns those who waited for more than there are now.
    std::set<string> resized(int64_t to, pool_answer const& answer) {
        time_passed(answer.now);
        count = to;
        kept_ = offered_;
        for (auto& [hold, one] : holds_) one.kept = true;
        std::set<string> away;
        for (auto const& hold : waiting_)
            if (wants_too_much(hold)) away.insert(hold);
        std::erase_if(waiting_, [&](auto const& hold) { return away.contains(hold); });
        away_.insert(away.begin(), away.end());
        turned_away += static_cast<int>(away.size());
        return away;
    }

    void see(string const& hold, pool_answer const& answer) {
        auto const now = answer.now;
        if (now != 0) time_passed(now);
        auto const found = holds_.find(hold);
        bool const mine = found != holds_.end();
        if (answer.word == "granted") {
            if (mine && answer.fence == found->second.fence)
                ++repeats;
            else
                granted(hold, answer);
            auto& one = holds_[hold];
            one.end = one.said = now + answer.left;
            if (std::exchange(one.over, false)) check_bound(hold, one);
        } else if (answer.word == "renewed") {
            if (!mine || found->second.said <= now) return complain(hold + " renewed what it did not have");
            found->second.end = found->second.said = now + answer.left;
            if (std::exchange(found->second.over, false)) check_bound(hold, found->second);
        } else if (answer.word == "queued") {
            offered_.erase(hold);
            away_.erase(hold);
            if (wants_too_much(hold)) complain(hold + " waits for more than there are");
            if (std::ranges::find(waiting_, hold) == waiting_.end()) waiting_.push_back(hold);
            if (answer.position < 1 || answer.left < 1) complain("position or when to look again");
        } else if (answer.word == "released") {
            holds_.erase(hold);
            forget(hold);  // it may have been offered only
        } else if (answer.word == "cancelled" || answer.word == "gone") {
            if (mine && !found->second.over) complain(hold + " lost a lease that had not ended");
            holds_.erase(hold);
            forget(hold);
        } else if (answer.word.starts_with("LOCKSTEP_ARGUMENT")) {
            if (!wants_too_much(hold)) complain(hold + ": " + answer.word);
            if (std::ranges::find(waiting_, hold) != waiting_.end())
                complain(hold + " was refused, but not when the count changed");
        } else if (answer.word == "late") {
            ++late;
        } else if (answer.word != "busy" && answer.word != "added" && answer.word != "cleared") {
            complain(answer.word);
        }
    }

    void changed(string const& hold, int64_t amount, pool_answer const& answer) {
        if (answer.now != 0) time_passed(answer.now);
        if (answer.word != "changed") return;
        auto const found = holds_.find(hold);
        if (found == holds_.end()) return complain(hold + " changed what it did not have");
        auto& one = found->second;
        if (amount > one.amount ? answer.fence <= fence_ : answer.fence != one.fence)
            complain(hold + " changed to a wrong fence");
        if (amount != one.amount) ++changes;
        one = {.amount = amount, .fence = answer.fence, .end = answer.now + answer.left};
        one.said = one.end;
        fence_ = std::max(fence_, one.fence);
        check_bound(hold, one);
    }

    void complain(string const& what) {
        if (complaint.empty()) complaint = what;
    }
    [[nodiscard]] bool has_waiting(string const& client) const {
        auto const theirs = [&](auto const& hold) { return client_of(hold) == client; };
        return std::ranges::any_of(waiting_, theirs) || std::ranges::any_of(offered_, theirs);
    }
    // It waits no longer, and has not asked again since.
    [[nodiscard]] bool was_turned_away(string const& hold) const { return away_.contains(hold); }

private:
    struct held {
        int64_t amount = 1, fence = 0, end = 0, said = 0;  // said: without regard to a clock that was set back since
        string owner{};
        bool over = false;
        bool kept = false;  // from before a resize
    };

    void time_passed(int64_t now) {
        for (auto& [hold, one] : holds_) {
            one.end = std::min(one.end, now + pool_scripts::ttl);  // the clock was set back
            one.over = one.over || one.end <= now;                 // and stays so when it is set back after that
        }
    }

    [[nodiscard]] bool wants_too_much(string const& hold) const {
        auto const& wished = wishes.at(hold);
        return count != 0 && !wished.consumes && wished.amount > count;
    }

    void granted(string const& hold, pool_answer const& answer) {
        away_.erase(hold);
        auto const& asked = wishes.at(hold);
        if (holds_.erase(hold) != 0) ++lapsed;
        auto const beside = std::ranges::find_if(holds_, [&](auto const& other) {
            return !other.second.over && !asked.owner.empty() && other.second.owner == asked.owner;
        });
        if (beside != holds_.end()) {
            if (answer.fence != beside->second.fence) complain(hold + " has not its owner's fence");
            ++together;
        } else {
            // An owner's hold may be over for us and not for the server, when the clock was set back.
            bool const old = std::ranges::any_of(holds_, [&](auto const& other) {
                return !asked.owner.empty() && other.second.owner == asked.owner && other.second.fence == answer.fence;
            });
            if (answer.fence <= fence_ && !old) complain(hold + " got a fence that is not larger");
            bool const invited = std::ranges::any_of(offered_, [&](auto const& other) {
                return other == hold || (!asked.owner.empty() && wishes.at(other).owner == asked.owner);
            });
            if (!invited && !old) check_order(hold, hold);
        }
        ++grants;
        fence_ = std::max(fence_, answer.fence);
        if (asked.consumes) consumed += asked.amount;
        held const one{.amount = asked.consumes ? 0 : asked.amount, .fence = answer.fence, .owner = asked.owner};
        if (!kept_.contains(hold)) check_bound(hold, one);
        if (forget(hold)) ++handovers;
        if (std::ranges::any_of(holds_, [](auto const& other) { return !other.second.over; })) ++together;
        holds_[hold] = one;
    }

    // No more than there are, and one owner at a time.
    void check_bound(string const& hold, held const& mine) {
        int64_t taken = mine.amount;
        for (auto const& [other, one] : holds_) {
            if (other == hold || one.over) continue;
            if (mine.owner.empty() || one.owner != mine.owner) taken += one.amount;
        }
        if (mine.amount != 0 && taken > count && !kept_.contains(hold) && !mine.kept)
            complain(hold + " has one of " + std::to_string(taken) + " permits that are taken");
    }

    void check_order(string const& hold, string const& asking) {
        for (auto const& other : waiting_) {
            if (other == hold) break;
            if (other != asking && !unfit.contains(client_of(other))) complain(hold + " overtook " + other);
        }
    }

    bool forget(string const& hold) {
        kept_.erase(hold);
        return std::erase(waiting_, hold) + offered_.erase(hold) != 0;
    }

    std::map<string, held> holds_;
    std::deque<string> waiting_;
    std::set<string> offered_, kept_, away_;
    int64_t fence_ = 0;
};

enum class use { semaphore, shared, recursive, event };

class simulation {
public:
    simulation(use what, std::uint64_t seed) : what_{what}, random_{seed} {
        pool.keep_own_time();
        for (int i = 0; i < 5; ++i) born();
        if (what == use::shared) judge.count = all;
        if (what == use::recursive) judge.count = 1;
    }

    // Until permits were granted so many times.
    void run(int grants) {
        for (int step = 0; judge.grants < grants && judge.complaint.empty(); ++step) {
            time_passes();
            send_what_was_given_up(one_in(4) ? 1 : 0);
            act(clients_[static_cast<std::size_t>(pick(static_cast<int>(clients_.size())))]);
            supply(step);
            if (step % 100 == 0) check_state();
        }
    }

    // Everybody gives back what it has; the dead cannot, and what they left must run out by itself.
    void end() {
        for (int i = 0; i < 1000 && judge.complaint.empty(); ++i) {
            send_what_was_given_up(1000);
            for (auto& one : clients_) {
                one.paused = 0;
                for (auto& [hold, what] : one.holds) tell(hold, pool.release(hold));
                one.holds.clear();
                one.pushes.clear();
            }
            pool.pass(pool.window);
            if (i % 20 == 0) pool.pass(pool.ttl);
            if (what_ == use::event && i % 20 == 10)
                signal(clients_.front(), 4);  // the dead wait until something is offered to them
            tell("z.0", pool.release("z.0"));
            if (pool.residue().empty() && ghosts_.empty()) break;
        }
        check_state();
    }

    pool_scripts pool{};
    referee judge{};

private:
    static constexpr int64_t all = 1 << 30;
    enum class place { unknown, waiting, held };
    struct hold_state {
        place at = place::unknown;
        int64_t deadline = 0;
    };
    struct client {
        string name;
        std::map<string, hold_state> holds{};
        std::set<string> pushes{};
        std::vector<std::pair<int64_t, string>> owed{};  // cancels, to be sent after this time
        int paused = 0;
        int64_t sequence = 1;
    };

    int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
    bool one_in(int n) { return pick(n) == 0; }

    void born() {
        clients_.push_back({.name = "c" + std::to_string(++names_)});
        pool.connect(clients_.back().name);
    }

    void tell(string const& hold, pool_answer const& answer) {
        // What a command offers comes before what it takes, and after what it gives back.
        bool const gives = answer.word == "released" || answer.word == "cancelled" || answer.word == "gone";
        if (gives) judge.see(hold, answer);
        if (!answer.short_way) hear(answer.word == "granted" ? hold : "");
        if (!gives) judge.see(hold, answer);
        if (answer.now != 0) now_ = answer.now;
    }

    // Sends a command as the network will have it: done and answered, done but not answered, or done much later.
    std::optional<pool_answer> send(client& from, string const& hold, std::function<pool_answer()> const& command) {
        auto const fate = pick(100);
        if (fate < 6) {
            ghosts_.emplace_back(hold, command);
            return {};
        }
        auto const answer = command();
        tell(hold, answer);
        if (fate < 14) return {};
        if (answer.word == "gone" || answer.word == "busy" || answer.word == "late" ||
            answer.word.starts_with("LOCKSTEP"))
            forget(from, hold);
        return answer;
    }

    void forget(client& who, string const& hold) { who.holds.erase(hold); }

    void act(client& who) {
        if (who.paused > 0) {
            --who.paused;
            return;
        }
        if (!judge.has_waiting(who.name) && who.pushes.empty()) judge.unfit.erase(who.name);
        auto const owed = std::ranges::find_if(who.owed, [&](auto const& one) { return one.first < now_; });
        if (owed != who.owed.end()) {
            auto const hold = owed->second;
            who.owed.erase(owed);
            tell(hold, pool.release(hold));
        }
        if (!who.pushes.empty()) return answer_push(who);
        if (one_in(60)) {
            judge.unfit.insert(who.name);
            who.paused = pick(60);
            return;
        }
        if (one_in(400)) return die(who);
        if (who.holds.size() < 4 && one_in(3)) return ask(who, wish_for(who.name + '.' + std::to_string(++holds_)));
        if (who.holds.empty()) return;
        auto const& [name, state] = *std::next(who.holds.begin(), pick(static_cast<int>(who.holds.size())));
        auto const hold = name;
        if (state.at == place::held && what_ == use::shared && one_in(5))
            change(hold);
        else if (state.at == place::held)
            one_in(4) ? renew(who, hold) : give_back(who, hold);
        else if (state.at == place::unknown)
            one_in(4) ? give_up(who, hold) : ask(who, hold);
        else if (one_in(25))
            give_up(who, hold);
        else if (one_in(10))
            ask(who, hold);  // looks again
    }

    string wish_for(string const& hold) {
        auto& one = judge.wishes[hold];
        if (what_ == use::semaphore) one.amount = one_in(3) ? 1 + pick(4) : 1;
        if (what_ == use::shared) one.amount = one_in(4) ? all : 1;
        if (what_ == use::recursive) one.owner = "o" + std::to_string(pick(3));
        if (what_ == use::event) one.consumes = true;
        return hold;
    }

    void ask(client& who, string const& hold) {
        auto const& wished = judge.wishes[hold];
        pool_scripts::options how{.deadline = now_ == 0 ? pool.ever : now_ + 2000, .amount = wished.amount};
        if (what_ == use::shared) how.count = std::to_string(all);
        if (what_ == use::recursive) how.count = "1", how.mode = "group " + wished.owner;
        if (what_ == use::event) how.mode = "consume";
        if (!who.holds.contains(hold) && one_in(5)) how.waiters = 0;
        auto& state = who.holds[hold];
        state.deadline = std::max(state.deadline, how.deadline);
        auto const answer = send(who, hold, [this, hold, how] { return pool.acquire(hold, how); });
        take(who, hold, answer);
    }

    void take(client& who, string const& hold, std::optional<pool_answer> const& answer) {
        if (!answer || !who.holds.contains(hold)) return;
        if (answer->word == "granted") who.holds[hold].at = place::held;
        if (answer->word == "queued") who.holds[hold].at = place::waiting;
    }

    void answer_push(client& who) {
        auto const hold = *who.pushes.begin();
        who.pushes.erase(hold);
        if (!who.holds.contains(hold)) return tell(hold, pool.release(hold));  // nobody here waits for that
        auto const known = who.holds[hold];
        auto const answer = send(who, hold, [this, hold] { return pool.claim(hold); });
        if (!answer) judge.unfit.insert(who.name);  // it will look again, perhaps too late
        take(who, hold, answer);
        if (!answer || answer->word != "gone") return;
        if (judge.was_turned_away(hold)) return ask(who, hold);
        if (known.at == place::waiting && !judge.unfit.contains(who.name))
            judge.complain(hold + " claimed in time and was refused");
    }

    // Up or down; the reply may be lost, what was done is known to the referee.
    void change(string const& hold) {
        auto const amount = one_in(2) ? all : 1;
        auto const answer = pool.change(hold, amount);
        hear();
        judge.changed(hold, amount, answer);
    }

    void renew(client& who, string const& hold) {
        auto const answer = send(who, hold, [this, hold] { return pool.renew(hold); });
        if (answer && answer->word == "gone") forget(who, hold);
    }

    void give_back(client& who, string const& hold) {
        if (send(who, hold, [this, hold] { return pool.release(hold); })) forget(who, hold);
    }

    // A timeout: the local decision stands. What may still be on its way is cancelled again after its deadline.
    void give_up(client& who, string const& hold) {
        who.owed.emplace_back(who.holds[hold].deadline, hold);
        forget(who, hold);
        send(who, hold, [this, hold] { return pool.release(hold); });
    }

    void die(client& who) {
        judge.unfit.insert(who.name);
        if (one_in(2)) pool.disconnect(who.name);  // else its connection is still open: it is only heard to be alive
        std::erase_if(clients_, [name = who.name](auto const& one) { return one.name == name; });
        born();
    }

    // What comes from outside: the count of a semaphore, the signals of an event.
    void supply(int step) {
        if (what_ == use::semaphore && step == 50) {
            resized(3, pool.create(3));
        } else if (what_ == use::semaphore && step > 50 && one_in(100)) {
            auto const to = 1 + pick(6);
            do resized(to, pool.resize(to));
            while (one_in(5));  // the reply was lost
        } else if (what_ == use::event && one_in(14)) {
            auto& who = clients_[static_cast<std::size_t>(pick(static_cast<int>(clients_.size())))];
            signal(who, 1 + pick(2));
        } else if (what_ == use::event && one_in(200)) {
            auto const answer = pool.clear();
            judge.cleared += answer.old;
            judge.see("", answer);
            hear();
        }
    }

    void signal(client& who, int64_t amount) {
        for (bool lost = true; lost; lost = one_in(5)) {  // sent again when the reply was lost, and again
            if (std::exchange(counted_[who.name], who.sequence) != who.sequence) judge.added += amount;
            judge.see(who.name, pool.add(amount, who.name, who.sequence));
            hear();
        }
        ++who.sequence;
    }

    void resized(int64_t to, pool_answer const& answer) {
        auto untold = judge.resized(to, answer);
        for (auto const& hold : hear()) untold.erase(hold);
        for (auto const& hold : untold)
            if (std::ranges::any_of(clients_, [&](auto const& one) { return one.name == client_of(hold); }))
                judge.complain(hold + " waits in vain and was not told");
    }

    void time_passes() {
        if (one_in(3)) return;
        int64_t by = pick(20);
        if (one_in(80)) by = pool.window;
        if (one_in(300)) by = pool.ttl;
        if (one_in(400)) by = set_back_ != 0 ? set_back_ : -pick(static_cast<int>(pool.hour));
        if (by < 0 || by == set_back_) set_back_ = std::max<int64_t>(0, -by);
        if (by > 20 || by < 0)
            for (auto& one : clients_) judge.unfit.insert(one.name);
        for (auto& one : clients_)
            if (!one.pushes.empty() && one.paused == 0 && one_in(30)) judge.unfit.insert(one.name), one.paused = 20;
        pool.pass(by);
    }

    void send_what_was_given_up(int most) {
        for (; most > 0 && !ghosts_.empty(); --most) {
            auto const at = ghosts_.begin() + pick(static_cast<int>(ghosts_.size()));
            auto const [hold, command] = *at;
            ghosts_.erase(at);
            tell(hold, command());
        }
    }

    std::vector<string> hear(string const& asking = "") {
        auto const told = pool.told();
        for (auto const& hold : told) {
            if (!judge.was_turned_away(hold)) judge.offered(hold, asking);
            for (auto& one : clients_)
                if (one.name == client_of(hold)) one.pushes.insert(hold);
        }
        return told;
    }

    void check_state() {
        auto const damage = pool.damage();
        if (!damage.empty()) judge.complain(damage);
        auto const there = std::max<int64_t>(0, pool.read().count);
        if (what_ == use::event && there + judge.consumed + judge.cleared != judge.added)
            judge.complain(std::to_string(judge.added) + " signals, " + std::to_string(judge.consumed) + " consumed, " +
                           std::to_string(judge.cleared) + " cleared, " + std::to_string(there) + " there");
    }

    use what_;
    std::mt19937_64 random_;
    std::vector<client> clients_;
    std::vector<std::pair<string, std::function<pool_answer()>>> ghosts_;
    std::map<string, int64_t> counted_;
    int64_t now_ = 0, set_back_ = 0;
    int names_ = 0, holds_ = 0;
};

void keeps_every_promise(use what) {
    auto const* const given = std::getenv("LOCKSTEP_SEED");
    auto const seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::uint64_t{std::random_device{}()};
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    simulation chaos{what, seed};
    chaos.run(1500);
    chaos.end();
    auto& judge = chaos.judge;
    std::cout << "seed " << seed << ": " << judge.grants << " grants, " << judge.handovers << " of them handed over, "
              << judge.together << " beside others, " << judge.lapsed << " after a lapse, " << judge.repeats
              << " repeated, " << judge.changes << " changed, " << judge.turned_away << " turned away, " << judge.late
              << " late\n";
    EXPECT_EQ(judge.complaint, "");
    EXPECT_GT(judge.handovers, 150);
    EXPECT_GT(judge.turned_away, what == use::semaphore ? 10 : -1);
    EXPECT_EQ(chaos.pool.residue(), "");
    EXPECT_GT(chaos.pool.commands.must({"PTTL", chaos.pool.key}).integer, 0);
    chaos.pool.pass(4 * pool_scripts::hour);
    EXPECT_TRUE(eventually([&] { return chaos.pool.commands.must({"EXISTS", chaos.pool.key}).integer == 0; }));
}

TEST(pool_script_simulation, a_semaphore_keeps_every_promise_under_chaos) { keeps_every_promise(use::semaphore); }
TEST(pool_script_simulation, a_shared_mutex_keeps_every_promise_under_chaos) { keeps_every_promise(use::shared); }
TEST(pool_script_simulation, a_recursive_mutex_keeps_every_promise_under_chaos) { keeps_every_promise(use::recursive); }
TEST(pool_script_simulation, an_event_keeps_every_promise_under_chaos) { keeps_every_promise(use::event); }

}  // namespace
