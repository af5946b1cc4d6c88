// The barrier's scripts under seeded chaos. A referee sees every reply, also those that nobody gets, and checks that each generation is
// decided once and for all, for a reason, and that nobody sleeps through it.

#include "gate_script_chaos.hpp"

#include <iostream>
#include <set>

namespace {

using lockstep::test::barrier_scripts;
using lockstep::test::chosen_seed;
using lockstep::test::gate_answer;
using lockstep::test::gate_chaos;
using std::int64_t;
using std::string;

class barrier_chaos : public gate_chaos {
public:
    static constexpr int64_t parties = 3, ttl = 1000;
    int complete = 0, broken = 0, learned = 0, repeated = 0, unknown = 0;

    barrier_chaos(barrier_scripts& gate, std::uint64_t seed, bool completion)
        : gate_chaos{gate, seed}, barrier{gate}, completion_{completion} {
        for (int i = 0; i < 2; ++i) settle_down(born());
        for (int i = 0; i < 2; ++i) settle_down(clients_.front());
    }

    void run(int generations) {
        while (complete + broken < generations && complaint.empty()) step();
    }
    // No more faults; who waits withdraws.
    void end() {
        quiet_ = true;
        for (int i = 0; i < 300 && complaint.empty(); ++i) {
            for (auto& one : people_) one.timeout = true;
            step();
            if (std::ranges::all_of(people_, [](auto const& one) { return one.at == place::away; })) return;
        }
        complain("somebody never learned how its generation ended");
    }

private:
    enum class place { away, arriving, waiting, running, withdrawing };
    struct person {
        client* of;
        place at = place::away;
        string hold{};
        int64_t generation = 0, next = 0, deadline = 0;
        int sent = 0;
        bool timeout = false;
        bool outside = false;  // all had arrived; waits to be told
    };
    struct generation {
        std::map<string, std::pair<int64_t, int64_t>> ends{};  // of each arrival, as early and as late as it can be
        string outcome{}, runner{};
        bool over = false, reason = false;  // a lease ran out for sure; something happened that may break it
        bool step_done = false;
    };

    void settle_down(client& home) { people_.push_back({.of = &home}); }

    void step() {
        world_moves();
        hear();
        auto const at = std::next(people_.begin(), pick(static_cast<int>(people_.size())));
        if (!quiet_ && one_in(400)) return die(*at->of);
        if (!awake(*at->of)) return;
        act(*at);
        hear();
        for (auto& one : people_)
            if ((one.at == place::waiting || one.outside) && !known_[one.generation].outcome.empty())
                must_know(*one.of, one.hold + "'s generation is " + known_[one.generation].outcome);
    }

    void die(client& who) {
        std::erase_if(people_, [&](auto const& one) { return one.of == &who; });
        died(who);
        auto& home = born();
        while (people_.size() < 4) settle_down(home);
    }

    void act(person& who) {
        auto const hold = who.hold;
        auto const of = who.generation;
        if (!quiet_ && who.at != place::away && one_in(60)) who.timeout = true;
        if (who.at == place::away) {
            if (quiet_) return;
            who.hold = who.of->hold();
            who.generation = who.next;
            who.sent = 0;
            who.timeout = who.outside = false;
            who.at = place::arriving;
            arrive(who);
        } else if (who.at == place::arriving) {
            if (who.of->look || who.timeout) ask_all(*who.of);
            if (!who.outside) arrive(who);
        } else if (who.at == place::withdrawing || who.timeout) {
            who.at = place::withdrawing;
            take(who, send(*who.of, [=, this] { return judge(hold, barrier.withdraw(hold, of), "withdraw"); }));
        } else if (who.at == place::running && one_in(4)) {
            bool const ok = !one_in(8);
            take(who, send(*who.of,
                           [=, this] { return judge(hold, barrier.finish(hold, of, ok), ok ? "done" : "failed"); }));
        } else if (who.of->look || one_in(20)) {
            who.of->look = false;
            ask_all(*who.of);
        } else if (one_in(4)) {
            take(who, send(*who.of, [=, this] { return judge(hold, barrier.renew(hold, ttl), "renew"); }));
        }
    }

    // A hint is for all who wait in that process.
    void ask_all(client& home) {
        for (auto& one : people_) {
            if (one.of != &home || one.at == place::away) continue;
            one.outside = false;
            if (one.at == place::waiting || one.at == place::running)
                take(one, send(home, [this, hold = one.hold, of = one.generation] {
                         return judge(hold, barrier.ask(hold, of), "ask");
                     }));
        }
    }

    void arrive(person& who) {
        // Who gave up asks once more whether it arrived, with the deadline that its first try had.
        if (!who.timeout || who.sent == 0) who.deadline = deadline();
        ++who.sent;
        barrier_scripts::options const how{parties, ttl, who.deadline, completion_, false};
        auto const answer = send(*who.of, [this, hold = who.hold, of = who.generation, how] {
            return judge(hold, barrier.arrive(hold, of, how), "arrive", of);
        });
        if (!answer) return;
        who.outside = answer->word == "full";
        bool const never = who.outside || answer->word == "behind" || (answer->word == "forgotten" && who.sent == 1);
        if (never) who.generation = who.next = answer->value, who.sent = 0;
        if ((never || answer->word == "late") && who.timeout) {
            who.at = place::away;
            who.outside = false;
        } else if (answer->word == "forgotten" && !never) {
            ++unknown;
            who.at = place::away;
        } else {
            take(who, answer);
        }
    }

    void take(person& who, std::optional<gate_answer> const& answer) {
        if (!answer) return;
        auto const& word = answer->word;
        if (word == "waiting" || word == "run") {
            if (who.at != place::withdrawing)
                who.at = word == "run" || who.at == place::running ? place::running : place::waiting;
            who.generation = answer->value;
        } else if (word == "complete" || word == "broken") {
            ++learned;
            who.at = place::away;
            who.next = answer->value + 1;
        } else if (word == "gone") {
            who.of->look = true;  // a renewal may have come after it was forgotten
        }
    }

    // The referee. Sees all replies in the order in which the server gave them.
    gate_answer judge(string const& hold, gate_answer const& answer, string const& what, int64_t meant = 0) {
        auto const now = answer.now;
        for (auto& [number, one] : known_) {
            if (!one.outcome.empty()) continue;
            for (auto& [id, end] : one.ends) {
                end.first = std::min(end.first, now + ttl);  // the clock may have been set back
                one.reason = one.reason || end.first <= now;
                one.over = one.over || end.second <= now;
            }
        }
        auto const& word = answer.word;
        if (word == "late" || word == "behind" || word == "full" || word == "forgotten") {
            if (word != "forgotten" && meant_.contains({hold, meant}))
                complain(hold + " had arrived and was told " + word);
            return answer;
        }
        if (word == "renewed") {
            auto& one = known_[where_[hold]];
            if (!one.outcome.empty() || one.over) complain(hold + " renewed what was over");
            one.ends[hold] = {now + ttl, now + ttl};
            return answer;
        }
        if (word == "gone") {
            if (where_.contains(hold) && what == "ask" && known_.rbegin()->first - where_[hold] < 100)
                complain(hold + " was forgotten");
            return answer;
        }
        if (word.starts_with("LOCKSTEP") || word.starts_with("ERR")) complain(word);
        auto const found = where_.find(hold);
        if (found != where_.end() && found->second != answer.value) complain(hold + " is in two generations");
        auto& one = known_[answer.value];
        if (found == where_.end()) {
            if (what != "arrive" || !one.outcome.empty()) complain(hold + " is in a generation without having arrived");
            where_[hold] = answer.value;
            meant_.insert({hold, meant});
            one.ends[hold] = {now + ttl, now + ttl};
        } else if (what == "arrive") {
            ++repeated;
        }
        if (word == "waiting" && answer.arrived != static_cast<int64_t>(one.ends.size()))
            complain("arrivals are miscounted");
        if (word == "waiting" && (answer.look_again <= 0 || one.over)) complain(hold + " waits though a lease ran out");
        if ((word == "waiting" || word == "run") && what == "withdraw") complain(hold + " withdrew and still waits");
        if (word == "run" && !std::exchange(one.runner, hold).empty() && one.runner != hold)
            complain("two run the step");
        one.reason = one.reason || what == "withdraw" || what == "failed";
        one.step_done = one.step_done || (what == "done" && one.runner == hold);
        if (word == "complete" || word == "broken") decide(one, word, hold);
        return answer;
    }

    void decide(generation& one, string const& word, string const& hold) {
        if (!one.outcome.empty()) {
            if (one.outcome != word) complain(hold + " learned " + word + ", others " + one.outcome);
            return;
        }
        one.outcome = word;
        ++(word == "complete" ? complete : broken);
        if (word == "broken") {
            if (!one.reason) complain("broken for no reason, as " + hold + " says");
            return;
        }
        if (static_cast<int64_t>(one.ends.size()) != parties)
            complain("complete with " + std::to_string(one.ends.size()));
        if (one.over) complain("complete although a lease had run out");
        if (completion_ && !one.step_done) complain("complete before the step was done");
    }

    barrier_scripts& barrier;
    bool completion_;
    std::list<person> people_{};
    std::map<int64_t, generation> known_{};
    std::map<string, int64_t> where_{};             // the generation in which a hold arrived
    std::set<std::pair<string, int64_t>> meant_{};  // and the one it was sent for, which may have been 0
};

TEST(barrier_script_simulation, decides_each_generation_of_a_barrier_for_all_or_none) {
    auto const seed = chosen_seed();
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    for (bool const completion : {false, true}) {
        barrier_scripts barrier;
        barrier_chaos run{barrier, seed, completion};
        run.run(1000);
        run.end();
        std::cout << "seed " << seed << ": " << run.complete << " complete, " << run.broken << " broken, "
                  << run.learned << " learned it, " << run.repeated << " arrived again, " << run.unknown << " unknown, "
                  << run.late << " late, " << run.ghosts << " ghosts\n";
        EXPECT_EQ(run.complaint, "");
        EXPECT_GT(run.complete, 200);
        EXPECT_GT(run.broken, 30);
        EXPECT_LE(barrier.entries('h'), 3 * barrier_chaos::parties + 3);
        gate_chaos::expect_to_expire(barrier);
    }
}

}  // namespace
