// The lock's scripts under seeded chaos (script_chaos.hpp).

#include "lock_script_support.hpp"
#include "script_chaos.hpp"

#include <deque>
#include <iostream>

namespace {

using lockstep::test::chosen_seed;
using lockstep::test::client_of;
using lockstep::test::lock_answer;
using lockstep::test::lock_scripts;
using lockstep::test::script_chaos;
using lockstep::test::script_referee;
using std::int64_t;
using std::string;

class referee final : public script_referee {
public:
    void see(string const& hold, lock_answer const& answer) override {
        auto const now = answer.now;
        if (owner_ && now != 0) end_ = std::min(end_, now + span_);  // the clock was set back
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
            span_ = lock_scripts::ttl;
            over_ = false;
        } else if (answer.word == "older") {
            ++overtaken;
            if (!mine) complain(hold + " has what it does not have");
        } else if (answer.word == "renewed") {
            // Of a clock that was set back a server takes note when it next writes, so a lease may last until its first end; and that counts
            // from its last reserved fence, which may be in the next ms.
            if (!mine || latest_ + 1 <= now) complain(hold + " renewed what it did not have");
            span_ = answer.left;
            end_ = latest_ = now + answer.left;
            over_ = false;
        } else if (answer.word == "queued") {
            if (std::ranges::find(waiting_, hold) == waiting_.end()) waiting_.push_back(hold);
            if (answer.position < 1) complain("position");
        } else if (answer.word == "released") {
            if (mine) owner_.reset();
            forget(hold);  // it may have been offered only
        } else if (answer.word == "cancelled" || answer.word == "gone" || answer.word == "not held") {
            if (answer.word != "not held") forget(hold);
            if (mine && answer.word != "cancelled" && !over_) complain(hold + " lost a lease that had not ended");
        } else if (answer.word == "late") {
            ++late;
        } else if (answer.word != "busy") {
            complain(answer.word);
        }
    }
    [[nodiscard]] bool has_waiting(string const& client) const override {
        return std::ranges::any_of(waiting_, [&](auto const& hold) { return client_of(hold) == client; });
    }

private:
    bool forget(string const& hold) { return std::erase(waiting_, hold) != 0; }

    std::optional<string> owner_;
    int64_t fence_ = 0, end_ = 0, latest_ = 0, span_ = 0;
    bool over_ = false;
    std::deque<string> waiting_;
};

class simulation final : public script_chaos {
public:
    simulation(lock_scripts& lock, referee& judge, std::uint64_t seed)
        : script_chaos{lock, judge, seed, 8}, lock_{lock}, judge_{judge} {}

private:
    command asking(string const& hold, int64_t deadline, int64_t waiters) override {
        lock_scripts::options const how{.deadline = deadline, .fences = one_in(3) ? 16 : 1, .waiters = waiters};
        return [this, hold, how] { return lock_.acquire(hold, how); };
    }
    lock_answer claim(string const& hold) override { return lock_.claim(hold); }
    lock_answer renew(string const& hold, std::int64_t length, std::int64_t number) override {
        auto answer = lock_.renew(hold, length, number);
        if (answer.word == "gone") answer.word = "not held";
        return answer;
    }
    [[nodiscard]] bool is_exclusive() const override { return true; }
    lock_answer release(string const& hold) override { return lock_.release(hold); }
    string residue() override { return lock_.residue(); }

    void tell(string const& hold, lock_answer const& answer) override {
        judge_.see(hold, answer);
        learn(answer.now);
        if (!answer.short_way && answer.word != "granted" && answer.word != "renewed") hear();
    }

    void check_state() override {
        auto const damage = lock_.queue_damage();
        if (!damage.empty()) judge_.complain(damage);
    }

    lock_scripts& lock_;
    referee& judge_;
};

TEST(lock_script_simulation, keeps_every_promise_under_chaos) {
    auto const seed = chosen_seed();
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    lock_scripts lock;
    referee judge;
    simulation chaos{lock, judge, seed};
    chaos.run(2000);
    chaos.end();
    std::cout << "seed " << seed << ": " << judge.grants << " grants, " << judge.handovers << " of them handed over, "
              << judge.lapsed << " after a lapse, " << judge.repeats << " repeated, " << judge.late << " late, " << judge.overtaken << " overtaken\n";
    EXPECT_GT(judge.handovers, 500);
}

}  // namespace
