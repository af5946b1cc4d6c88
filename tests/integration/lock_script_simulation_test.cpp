// The lock's scripts under seeded chaos: clients that are state machines, commands that arrive long after they were given up, replies
// that are lost and asked for again, timeouts and cancels, clients that pause or die, and a server whose clock steps. A referee sees
// every reply, also those the clients never get, and checks what is promised. LOCKSTEP_SEED in the environment makes all
// happen again.

#include "lock_script_support.hpp"
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
using lockstep::test::lock_answer;
using lockstep::test::lock_scripts;
using std::int64_t;
using std::string;

string client_of(string const& hold) { return hold.substr(0, hold.find('.')); }

// Knows what the server said, in order.
class referee {
public:
    // Clients that paused, died or were late since they last had nothing to wait for: order is not promised to them.
    std::set<string> unfit{};
    int grants = 0, handovers = 0, repeats = 0, late = 0, lapsed = 0;
    string complaint{};

    void see(string const& hold, lock_answer const& answer) {
        auto const now = answer.now;
        if (owner_ && now != 0) end_ = std::min(end_, now + lock_scripts::ttl);  // the clock was set back
        over_ = over_ || (now != 0 && end_ <= now);  // and stays so when the clock is set back after that
        bool const mine = owner_ == hold;
        if (answer.word == "granted") {
            if (mine && answer.fence == fence_) {
                ++repeats;
                return;
            }
            if (owner_ && !over_) complain(hold + " was granted while " + *owner_ + " held it");
            if (answer.fence <= fence_) complain(hold + " got a fence that is not larger");
            if (owner_) ++lapsed;
            for (auto const& other : waiting_) {
                if (other == hold) break;
                if (!unfit.contains(client_of(other))) complain(hold + " overtook " + other);
            }
            ++grants;
            if (forget(hold)) ++handovers;
            owner_ = hold;
            fence_ = answer.fence + answer.fences - 1;
            end_ = latest_ = now + answer.left;
            over_ = false;
        } else if (answer.word == "renewed") {
            // Of a clock that was set back a server takes note when it next writes, so a lease may last until its first end; and that counts
            // from its last reserved fence, which may be in the next ms.
            if (!mine || latest_ + 1 <= now) complain(hold + " renewed what it did not have");
            end_ = latest_ = now + answer.left;
            over_ = false;
        } else if (answer.word == "queued") {
            if (std::ranges::find(waiting_, hold) == waiting_.end()) waiting_.push_back(hold);
            if (answer.position < 1) complain("position");
        } else if (answer.word == "released") {
            if (mine) owner_.reset();
            forget(hold);  // it may have been offered only
        } else if (answer.word == "cancelled" || answer.word == "gone") {
            forget(hold);
            if (mine && answer.word == "gone" && !over_) complain(hold + " lost a lease that had not ended");
        } else if (answer.word == "late") {
            ++late;
        } else if (answer.word != "busy") {
            complain(answer.word);
        }
    }

    void complain(string const& what) {
        if (complaint.empty()) complaint = what;
    }
    [[nodiscard]] bool has_waiting(string const& client) const {
        return std::ranges::any_of(waiting_, [&](auto const& hold) { return client_of(hold) == client; });
    }

private:
    bool forget(string const& hold) { return std::erase(waiting_, hold) != 0; }

    std::optional<string> owner_;
    int64_t fence_ = 0, end_ = 0, latest_ = 0;
    bool over_ = false;
    std::deque<string> waiting_;
};

class simulation {
public:
    explicit simulation(std::uint64_t seed) : random_{seed} {
        lock.keep_own_time();
        for (int i = 0; i < 5; ++i) born();
    }

    // Until the lock was granted so many times.
    void run(int grants) {
        for (int step = 0; judge.grants < grants && judge.complaint.empty(); ++step) {
            time_passes();
            send_what_was_given_up(one_in(4) ? 1 : 0);
            hear();
            act(clients_[static_cast<std::size_t>(pick(static_cast<int>(clients_.size())))]);
            if (step % 100 == 0) check_queue();
        }
    }

    // Everybody gives back what it has; the dead cannot, and what they left must run out by itself.
    void end() {
        for (int i = 0; i < 1000 && judge.complaint.empty(); ++i) {
            send_what_was_given_up(1000);
            hear();
            for (auto& one : clients_) {
                one.paused = 0;
                for (auto& [hold, what] : one.holds) tell(hold, lock.release(hold));
                one.holds.clear();
                one.pushes.clear();
            }
            lock.pass(lock.window);
            if (i % 20 == 0) lock.pass(lock.ttl);
            tell("z.0", lock.release("z.0"));
            if (lock.residue().empty() && ghosts_.empty()) return;
        }
    }

    lock_scripts lock{};
    referee judge{};

private:
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
    };

    int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
    bool one_in(int n) { return pick(n) == 0; }

    void born() {
        clients_.push_back({.name = "c" + std::to_string(++names_)});
        lock.connect(clients_.back().name);
    }

    void tell(string const& hold, lock_answer const& answer) {
        judge.see(hold, answer);
        if (answer.now != 0) now_ = answer.now;
        somebody_told_ = somebody_told_ || (!answer.short_way && answer.word != "granted" && answer.word != "renewed");
    }

    // Sends a command as the network will have it: done and answered, done but not answered, or done much later.
    std::optional<lock_answer> send(client& from, string const& hold, std::function<lock_answer()> const& command) {
        auto const fate = pick(100);
        if (fate < 6) {
            ghosts_.emplace_back(hold, command);
            return {};
        }
        auto const answer = command();
        tell(hold, answer);
        if (fate < 14) return {};
        if (answer.word == "gone" || answer.word == "busy" || answer.word == "late") forget(from, hold);
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
            tell(hold, lock.release(hold));
        }
        if (!who.pushes.empty()) return answer_push(who);
        if (one_in(60)) {
            judge.unfit.insert(who.name);
            who.paused = pick(60);
            return;
        }
        if (one_in(400)) return die(who);
        if (who.holds.size() < 4 && one_in(3)) return ask(who, who.name + '.' + std::to_string(++holds_));
        if (who.holds.empty()) return;
        auto const& [hold, state] = *std::next(who.holds.begin(), pick(static_cast<int>(who.holds.size())));
        if (state.at == place::held)
            one_in(4) ? renew(who, string{hold}) : give_back(who, string{hold});
        else if (state.at == place::unknown)
            one_in(4) ? give_up(who, string{hold}) : ask(who, string{hold});
        else if (one_in(25))
            give_up(who, string{hold});
        else if (one_in(10))
            ask(who, string{hold});  // looks again
    }

    void ask(client& who, string const& hold) {
        lock_scripts::options how{.deadline = now_ == 0 ? lock.ever : now_ + 2000, .fences = one_in(3) ? 16 : 1};
        if (!who.holds.contains(hold) && one_in(5)) how.waiters = 0;
        auto& state = who.holds[hold];
        state.deadline = std::max(state.deadline, how.deadline);
        auto const answer = send(who, hold, [this, hold, how] { return lock.acquire(hold, how); });
        take(who, hold, answer);
    }

    void take(client& who, string const& hold, std::optional<lock_answer> const& answer) {
        if (!answer || !who.holds.contains(hold)) return;
        if (answer->word == "granted") who.holds[hold].at = place::held;
        if (answer->word == "queued") who.holds[hold].at = place::waiting;
    }

    void answer_push(client& who) {
        auto const hold = *who.pushes.begin();
        who.pushes.erase(hold);
        if (!who.holds.contains(hold)) return tell(hold, lock.release(hold));  // nobody here waits for that
        auto const known = who.holds[hold];
        auto const answer = send(who, hold, [this, hold] { return lock.claim(hold); });
        if (!answer) judge.unfit.insert(who.name);  // it will look again, perhaps too late
        take(who, hold, answer);
        if (answer && answer->word == "gone" && known.at == place::waiting && !judge.unfit.contains(who.name))
            judge.complain(hold + " claimed in time and was refused");
    }

    void renew(client& who, string const& hold) {
        auto const answer = send(who, hold, [this, hold = hold] { return lock.renew(hold); });
        if (answer && answer->word == "gone") forget(who, string{hold});
    }

    void give_back(client& who, string const& hold) {
        if (send(who, hold, [this, hold] { return lock.release(hold); })) forget(who, hold);
    }

    // A timeout: the local decision stands. What may still be on its way is cancelled again after its deadline.
    void give_up(client& who, string const& hold) {
        who.owed.emplace_back(who.holds[hold].deadline, hold);
        forget(who, hold);
        send(who, hold, [this, hold] { return lock.release(hold); });
    }

    void die(client& who) {
        judge.unfit.insert(who.name);
        if (one_in(2)) lock.disconnect(who.name);  // else its connection is still open: it is only heard to be alive
        std::erase_if(clients_, [name = who.name](auto const& one) { return one.name == name; });
        born();
    }

    void time_passes() {
        if (one_in(3)) return;
        int64_t by = pick(20);
        if (one_in(80)) by = lock.window;
        if (one_in(300)) by = lock.ttl;
        if (one_in(400)) by = set_back_ != 0 ? set_back_ : -pick(static_cast<int>(lock.hour));
        if (by < 0 || by == set_back_) set_back_ = std::max<int64_t>(0, -by);
        if (by > 20 || by < 0)
            for (auto& one : clients_) judge.unfit.insert(one.name);
        for (auto& one : clients_)
            if (!one.pushes.empty() && one_in(8)) judge.unfit.insert(one.name), one.paused = 20;
        lock.pass(by);
    }

    void send_what_was_given_up(int most) {
        for (; most > 0 && !ghosts_.empty(); --most) {
            auto const at = ghosts_.begin() + pick(static_cast<int>(ghosts_.size()));
            auto const [hold, command] = *at;
            ghosts_.erase(at);
            tell(hold, command());
        }
    }

    void hear() {
        if (!std::exchange(somebody_told_, false)) return;
        for (auto const& hold : lock.told())
            for (auto& one : clients_)
                if (one.name == client_of(hold)) one.pushes.insert(hold);
    }

    void check_queue() {
        auto const damage = lock.queue_damage();
        if (!damage.empty()) judge.complain(damage);
    }

    std::mt19937_64 random_;
    std::vector<client> clients_;
    std::vector<std::pair<string, std::function<lock_answer()>>> ghosts_;
    int64_t now_ = 0, set_back_ = 0;
    int names_ = 0, holds_ = 0;
    bool somebody_told_ = false;
};

TEST(lock_script_simulation, keeps_every_promise_under_chaos) {
    auto const* const given = std::getenv("LOCKSTEP_SEED");
    auto const seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::uint64_t{std::random_device{}()};
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    simulation chaos{seed};
    chaos.run(2000);
    chaos.end();
    auto& judge = chaos.judge;
    std::cout << "seed " << seed << ": " << judge.grants << " grants, " << judge.handovers << " of them handed over, "
              << judge.lapsed << " after a lapse, " << judge.repeats << " repeated, " << judge.late << " late\n";
    EXPECT_EQ(judge.complaint, "");
    EXPECT_GT(judge.handovers, 500);
    EXPECT_EQ(chaos.lock.residue(), "");
    EXPECT_GT(chaos.lock.commands.must({"PTTL", chaos.lock.key}).integer, 0);
    chaos.lock.pass(4 * lock_scripts::hour);
    EXPECT_TRUE(eventually([&] { return chaos.lock.commands.must({"EXISTS", chaos.lock.key}).integer == 0; }));
}

}  // namespace
