// The pool's scripts under seeded chaos (script_chaos.hpp), once for each use of them.

#include "pool_script_support.hpp"
#include "script_chaos.hpp"

#include <deque>
#include <iostream>

namespace {

using lockstep::test::chosen_seed;
using lockstep::test::client_of;
using lockstep::test::pool_answer;
using lockstep::test::pool_scripts;
using lockstep::test::script_chaos;
using lockstep::test::script_referee;
using std::int64_t;
using std::string;

// What a hold asks for, always the same.
struct wish {
    int64_t amount = 1;
    string owner{};
    bool consumes = false;
};

class referee final : public script_referee {
public:
    std::map<string, wish> wishes{};
    int64_t count = 0, added = 0, consumed = 0, cleared = 0;
    int together = 0, changes = 0, turned_away = 0;

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

    void see(string const& hold, pool_answer const& answer) override {
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
        } else if (answer.word == "older") {
            ++overtaken;
            if (!mine) complain(hold + " has what it does not have");
        } else if (answer.word == "renewed") {
            if (!mine || found->second.said <= now) return complain(hold + " renewed what it did not have");
            found->second.span = answer.left;
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
        } else if (answer.word == "cancelled" || answer.word == "gone" || answer.word == "not held") {
            if (mine && !found->second.over) complain(hold + " lost a lease that had not ended");
            holds_.erase(hold);
            if (answer.word != "not held") forget(hold);
        } else if (answer.word.starts_with("LOCKSTEP_ARGUMENT")) {
            if (!wants_too_much(hold)) complain(hold + ": " + answer.word);
            if (std::ranges::find(waiting_, hold) != waiting_.end())
                complain(hold + " was refused, but not when the count changed");
        } else if (answer.word.starts_with("LOCKSTEP_NOT_FOUND")) {
            if (count != 0 || wishes.at(hold).consumes) complain(hold + ": " + answer.word);
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

    [[nodiscard]] bool has_waiting(string const& client) const override {
        auto const theirs = [&](auto const& hold) { return client_of(hold) == client; };
        return std::ranges::any_of(waiting_, theirs) || std::ranges::any_of(offered_, theirs);
    }
    // It waits no longer, and has not asked again since.
    [[nodiscard]] bool was_turned_away(string const& hold) const { return away_.contains(hold); }

private:
    struct held {
        int64_t amount = 1, fence = 0, span = pool_scripts::ttl, end = 0, said = 0;  // said: without regard to a clock that was set back since
        string owner{};
        bool over = false;
        bool kept = false;  // from before a resize
    };

    void time_passed(int64_t now) {
        for (auto& [hold, one] : holds_) {
            one.end = std::min(one.end, now + one.span);  // the clock was set back
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

enum class purpose { semaphore, shared, recursive, event };

class simulation final : public script_chaos {
public:
    simulation(purpose what, pool_scripts& pool, referee& judge, std::uint64_t seed)
        : script_chaos{pool, judge, seed, 30}, what_{what}, pool_{pool}, judge_{judge} {
        if (what == purpose::shared) judge.count = all;
        if (what == purpose::recursive) judge.count = 1;
    }

private:
    static constexpr int64_t all = 1 << 30;

    void choose_wish(string const& hold) override {
        auto& one = judge_.wishes[hold];
        if (what_ == purpose::semaphore) one.amount = one_in(3) ? 1 + pick(4) : 1;
        if (what_ == purpose::shared) one.amount = one_in(4) ? all : 1;
        if (what_ == purpose::recursive) one.owner = "o" + std::to_string(pick(3));
        if (what_ == purpose::event) one.consumes = true;
    }

    command asking(string const& hold, int64_t deadline, int64_t waiters) override {
        auto const& wished = judge_.wishes[hold];
        pool_scripts::options how{.deadline = deadline, .amount = wished.amount, .waiters = waiters};
        if (what_ == purpose::shared) how.count = std::to_string(all);
        if (what_ == purpose::recursive) how.count = "1", how.mode = "group " + wished.owner;
        if (what_ == purpose::event) how.mode = "consume";
        return [this, hold, how] { return pool_.acquire(hold, how); };
    }
    pool_answer claim(string const& hold) override { return pool_.claim(hold); }
    pool_answer renew(string const& hold, std::int64_t length, std::int64_t number) override {
        auto answer = pool_.renew(hold, length, number);
        if (answer.word == "gone") answer.word = "not held";
        return answer;
    }
    pool_answer release(string const& hold) override { return pool_.release(hold); }
    string residue() override { return pool_.residue(); }

    void tell(string const& hold, pool_answer const& answer) override {
        // What a command offers comes before what it takes, and after what it gives back.
        bool const gives = answer.word == "released" || answer.word == "cancelled" || answer.word == "gone" || answer.word == "not held";
        if (gives) judge_.see(hold, answer);
        if (!answer.short_way) see_offers(answer.word == "granted" ? hold : "");
        if (!gives) judge_.see(hold, answer);
        learn(answer.now);
    }

    std::vector<string> see_offers(string const& asking = "") {
        auto const told = hear();
        for (auto const& hold : told)
            if (!judge_.was_turned_away(hold)) judge_.offered(hold, asking);
        return told;
    }

    bool refused_rightly(client& who, string const& hold) override {
        if (!judge_.was_turned_away(hold)) return false;
        ask(who, hold);
        return true;
    }

    // Up or down; the reply may be lost, what was done is known to the referee.
    void use(client& who, string const& hold) override {
        if (what_ != purpose::shared || !one_in(5)) return script_chaos::use(who, hold);
        auto const amount = one_in(2) ? all : 1;
        auto const answer = pool_.change(hold, amount);
        see_offers();
        judge_.changed(hold, amount, answer);
    }

    // The count of a semaphore, the signals of an event.
    void supply(int step) override {
        if (what_ == purpose::semaphore && step == 50) {
            resized(3, pool_.create(3));
        } else if (what_ == purpose::semaphore && step > 50 && one_in(100)) {
            auto const to = 1 + pick(6);
            do resized(to, pool_.resize(to));
            while (one_in(5));  // the reply was lost
        } else if (what_ == purpose::event && one_in(14)) {
            auto& who = somebody();
            signal(who, 1 + pick(2));
        } else if (what_ == purpose::event && one_in(200)) {
            auto const answer = pool_.clear();
            judge_.cleared += answer.old;
            judge_.see("", answer);
            see_offers();
        }
    }
    // Those who died while they waited for signals are there until something is offered to them.
    void supply_last() override {
        if (what_ == purpose::event) signal(somebody(), 4);
    }

    void signal(client& who, int64_t amount) {
        for (int i = 0; i < 20; ++i) {  // so many sessions that it has to look which to forget
            judge_.see("", pool_.add(0, "x" + std::to_string(++strangers_), 1));
            see_offers();
        }
        for (bool lost = true; lost; lost = one_in(5)) {  // sent again when the reply was lost, and again
            if (std::exchange(counted_[who.name], who.sequence) != who.sequence) judge_.added += amount;
            judge_.see(who.name, pool_.add(amount, who.name, who.sequence));
            see_offers();
        }
        ++who.sequence;
    }

    void resized(int64_t to, pool_answer const& answer) {
        auto untold = judge_.resized(to, answer);
        for (auto const& hold : see_offers()) untold.erase(hold);
        for (auto const& hold : untold)
            if (lives(client_of(hold)) && !judge_.unfit.contains(client_of(hold))) judge_.complain(hold + " waits in vain and was not told");
    }

    void check_state() override {
        auto const damage = pool_.damage();
        if (!damage.empty()) judge_.complain(damage);
        auto const there = std::max<int64_t>(0, pool_.read().count);
        if (what_ == purpose::event && there + judge_.consumed + judge_.cleared != judge_.added)
            judge_.complain(std::to_string(judge_.added) + " signals, " + std::to_string(judge_.consumed) +
                            " consumed, " + std::to_string(judge_.cleared) + " cleared, " + std::to_string(there) +
                            " there");
    }

    purpose what_;
    pool_scripts& pool_;
    referee& judge_;
    std::map<string, int64_t> counted_;
    int strangers_ = 0;
};

void keeps_every_promise(purpose what) {
    auto const seed = chosen_seed();
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    pool_scripts pool;
    referee judge;
    simulation chaos{what, pool, judge, seed};
    chaos.run(1500);
    chaos.end();
    std::cout << "seed " << seed << ": " << judge.grants << " grants, " << judge.handovers << " of them handed over, "
              << judge.together << " beside others, " << judge.lapsed << " after a lapse, " << judge.repeats
              << " repeated, " << judge.changes << " changed, " << judge.turned_away << " turned away, " << judge.late
              << " late, " << judge.overtaken << " overtaken\n";
    EXPECT_GT(judge.handovers, 150);
    EXPECT_GT(judge.turned_away, what == purpose::semaphore ? 10 : -1);
}

TEST(pool_script_simulation, a_semaphore_keeps_every_promise_under_chaos) { keeps_every_promise(purpose::semaphore); }
TEST(pool_script_simulation, a_shared_mutex_keeps_every_promise_under_chaos) { keeps_every_promise(purpose::shared); }
TEST(pool_script_simulation, a_recursive_mutex_keeps_every_promise_under_chaos) {
    keeps_every_promise(purpose::recursive);
}
TEST(pool_script_simulation, an_event_keeps_every_promise_under_chaos) { keeps_every_promise(purpose::event); }

}  // namespace
