// The scripts of latches and broadcast events under seeded chaos. A referee sees every reply, also those that nobody gets, counts along,
// and checks that nobody sleeps through an opening.

#include "gate_script_chaos.hpp"

#include <iostream>
#include <set>

namespace {

using lockstep::test::broadcast_scripts;
using lockstep::test::chosen_seed;
using lockstep::test::gate_answer;
using lockstep::test::gate_chaos;
using lockstep::test::latch_scripts;
using std::int64_t;
using std::string;

// Sessions that count, each one call after the other, and what the referee knows of them.
struct session {
    string name{};
    int64_t sequence = 0;
    bool open = false;  // a call is on its way, or was
    int64_t amount = 0;
};

class latch_chaos : public gate_chaos {
public:
    int opened = 0, counted = 0, repeated = 0, refused = 0;

    latch_chaos(latch_scripts& gate, std::uint64_t seed) : gate_chaos{gate, seed}, latch{gate} {
        for (int i = 0; i < 4; ++i) born();
        for (int i = 0; i < 5; ++i) sessions_.push_back({.name = "s" + std::to_string(i)});
    }

    // Latch after latch, until each is open and all who wait know it.
    void run(int latches) {
        for (int i = 0; i < latches && complaint.empty(); ++i) {
            latch.key = "lockstep:{" + std::to_string(i) + "}:latch";
            total_ = left_ = 1 + pick(40);
            last_.clear();
            done_.clear();
            waiting_.clear();
            for (auto& one : sessions_) one.open = false;
            judge_create(latch.create(total_));
            while ((left_ > 0 || !waiting_.empty()) && complaint.empty()) step();
            quiet_ = true;
            world_moves();  // nothing is on its way any more
            quiet_ = false;
            ++opened;
        }
    }

private:
    void jumped() override {
        for (auto& one : sessions_) one.open = false;
    }

    void step() {
        world_moves();
        hear();
        if (one_in(10)) return count(sessions_[static_cast<std::size_t>(pick(5))]);
        if (one_in(100)) return judge_create(latch.create(total_));
        auto& who = *std::next(clients_.begin(), pick(4));
        if (one_in(500)) {
            waiting_.erase(who.name);
            died(who);
            born();
        } else if (awake(who)) {
            act(who);
        }
        hear();
        for (auto const& one : clients_)
            if (left_ == 0 && waiting_.contains(one.name)) must_know(one, "the latch is open");
    }

    void act(client& who) {
        if (!waiting_.contains(who.name) ? one_in(4) : who.look || one_in(30)) {
            who.look = false;
            auto const answer = send(
                who, [this, hold = who.hold(), until = deadline()] { return judge_wait(latch.wait(hold, until)); });
            if (answer && answer->word == "waiting") waiting_.insert(who.name);
            if (answer && answer->word == "open") waiting_.erase(who.name);
            if (answer && answer->word == "late") who.look = true;
        } else if (waiting_.contains(who.name) && one_in(20)) {
            waiting_.erase(who.name);
            send(who, [this, hold = who.hold()] { return latch.leave(hold); });
        }
    }

    void count(session& by) {
        if (!by.open) {
            ++by.sequence;
            by.amount = 1 + pick(3);
            by.open = true;
        }
        auto const answer =
            send(clients_.front(), [this, name = by.name, n = by.amount, at = by.sequence, until = deadline()] {
                return judge_count(name, n, at, latch.count_down(n, name, at, until));
            });
        if (!answer) {
            if (one_in(10)) by.open = false;  // gives up; the next call has another sequence
            return;
        }
        if (answer->word == "counted" && !done_.contains({by.name, by.sequence}))
            complain("told that it counted, but it did not");
        if (answer->word != "late") by.open = false;
    }

    gate_answer judge_count(string const& name, int64_t n, int64_t sequence, gate_answer const& answer) {
        bool const again = sequence <= last_[name];
        if (answer.word == "counted" && !again) {
            last_[name] = sequence;
            done_.insert({name, sequence});
            left_ -= n;
            ++counted;
        } else if (answer.word == "counted") {
            ++repeated;
        } else if (again) {
            complain(name + " sent again and was told " + answer.word);
        } else if (answer.word.starts_with("LOCKSTEP_ARGUMENT")) {
            ++refused;
            if (n <= left_) complain("refused though so much was left");
        } else if (answer.word != "late") {
            complain(answer.word);
        }
        if (answer.word == "counted" && answer.value != left_) complain("something was not counted once");
        return answer;
    }
    gate_answer judge_wait(gate_answer const& answer) {
        if (answer.word != "late" && (answer.value != left_ || (answer.word == "open") != (left_ == 0)))
            complain("waits at " + std::to_string(left_) + " and was told " + answer.word);
        return answer;
    }
    void judge_create(gate_answer const& answer) {
        if (answer.value != left_) complain("created anew");
    }

    latch_scripts& latch;
    std::vector<session> sessions_{};
    int64_t total_ = 0, left_ = 0;
    std::map<string, int64_t> last_{};
    std::set<std::pair<string, int64_t>> done_{};
    std::set<string> waiting_{};
};

class broadcast_chaos : public gate_chaos {
public:
    int sets = 0, clears = 0, repeated = 0, freed = 0, forgotten = 0;

    broadcast_chaos(broadcast_scripts& gate, std::uint64_t seed) : gate_chaos{gate, seed}, event{gate} {
        for (int i = 0; i < 4; ++i) born();
        for (int i = 0; i < 5; ++i) sessions_.push_back({.name = "s" + std::to_string(i)});
    }

    void run(int times) {
        for (int i = 0; i < 1000; ++i) stranger();
        while (sets < times && complaint.empty()) step();
        for (int round = 0; round < 2; ++round) {  // where the clock was set back, the minute of some begins anew in the first
            gate_.pass(61'000);
            give_up_all();
            for (int i = 0; i < 1000; ++i) stranger();
        }
        forgotten = strangers_ - event.entries('a');
        quiet_ = true;
        world_moves();
        event.set("last", 1);
        generation_ = event.wait("").value;
        set_ = true;
        for (int i = 0; i < 300 && !seen_.empty(); ++i) step();
        if (!seen_.empty()) complain("somebody never learned of the last set");
    }

private:
    void jumped() override {
        for (auto& one : sessions_) one.open = false;
    }

    void step() {
        world_moves();
        hear();
        if (!quiet_ && !set_ && one_in(8)) stranger();
        if (!quiet_ && one_in(8)) return change(sessions_[static_cast<std::size_t>(pick(5))]);
        auto& who = *std::next(clients_.begin(), pick(4));
        if (!quiet_ && one_in(500)) {
            seen_.erase(who.name);
            died(who);
            born();
        } else if (awake(who)) {
            act(who);
        }
        hear();
        for (auto const& one : clients_)
            if (seen_.contains(one.name) && seen_[one.name] < generation_) must_know(one, "the event was set");
    }

    // Counts once, and never comes again. Where nothing is set this changes nothing.
    void stranger() {
        auto const name = "x" + std::to_string(++strangers_);
        judge_change(name, false, 1, event.clear(name, 1));
    }

    void act(client& who) {
        auto const began = seen_.find(who.name);
        if (began == seen_.end() ? !quiet_ && one_in(4) : who.look || one_in(30)) {
            auto const since = began == seen_.end() ? -1 : began->second;
            who.look = false;
            auto const answer = send(who, [this, since, hold = who.hold(), until = deadline()] {
                return judge_wait(since, since < 0 ? event.wait(hold, until) : event.wait_again(hold, since, until));
            });
            if (answer && answer->word == "waiting") seen_.emplace(who.name, answer->value);
            if (answer && answer->word == "open") freed += static_cast<int>(seen_.erase(who.name));
            if (answer && answer->word == "late") who.look = true;
        } else if (began != seen_.end() && one_in(20)) {
            seen_.erase(began);
            send(who, [this, hold = who.hold()] { return event.leave(hold); });
        }
    }

    void change(session& by) {
        if (!by.open) ++by.sequence, by.amount = pick(2), by.open = true;
        auto const answer =
            send(clients_.front(), [this, name = by.name, set = by.amount == 1, at = by.sequence, until = deadline()] {
                return judge_change(name, set, at, set ? event.set(name, at, until) : event.clear(name, at, until));
            });
        if (!answer && one_in(10)) by.open = false;
        if (answer && answer->word != "late") by.open = false;
    }

    gate_answer judge_change(string const& name, bool set, int64_t sequence, gate_answer const& answer) {
        if (sequence <= last_[name]) {
            ++repeated;
            if (answer.word == "late" || answer.value != generation_) complain("sent again, it counted again");
        } else if (answer.word == "set" || answer.word == "cleared") {
            last_[name] = sequence;
            ++(set ? sets : clears);
            if (set ? answer.value <= generation_ : answer.value != generation_)
                complain("a generation that does not grow");
            generation_ = answer.value;
            set_ = set;
        } else if (answer.word != "late") {
            complain(answer.word);
        }
        return answer;
    }
    gate_answer judge_wait(int64_t since, gate_answer const& answer) {
        bool const open = set_ || (since >= 0 && generation_ > since);
        if (answer.word != "late" && (answer.value != generation_ || answer.word != (open ? "open" : "waiting")))
            complain("told " + answer.word + " of generation " + std::to_string(answer.value));
        return answer;
    }

    broadcast_scripts& event;
    std::vector<session> sessions_{};
    int64_t generation_ = 0;
    bool set_ = false;
    int strangers_ = 0;
    std::map<string, int64_t> last_{}, seen_{};
};

TEST(gate_script_simulation, opens_a_latch_exactly_when_its_count_was_counted_once) {
    auto const seed = chosen_seed();
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    latch_scripts latch;
    latch_chaos run{latch, seed};
    run.run(40);
    std::cout << "seed " << seed << ": " << run.opened << " opened, " << run.counted << " counted, " << run.repeated
              << " repeated, " << run.refused << " refused, " << run.late << " late, " << run.ghosts << " ghosts\n";
    EXPECT_EQ(run.complaint, "");
    EXPECT_EQ(latch.entries('c'), 0);
    EXPECT_EQ(lockstep::test::session_damage(latch.hash()), "");
    gate_chaos::expect_to_expire(latch);
}

TEST(gate_script_simulation, frees_all_who_waited_when_an_event_is_set) {
    auto const seed = chosen_seed();
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    broadcast_scripts event;
    broadcast_chaos run{event, seed};
    run.run(500);
    std::cout << "seed " << seed << ": " << run.sets << " sets, " << run.clears << " clears, " << run.repeated
              << " repeated, " << run.freed << " freed, " << run.late << " late, " << run.ghosts << " ghosts\n";
    EXPECT_EQ(run.complaint, "");
    EXPECT_GT(run.freed, 50);
    EXPECT_EQ(event.entries('c'), 0);
    EXPECT_GT(run.forgotten, 1000) << "those that came but once, and have been idle for a minute";
    EXPECT_EQ(lockstep::test::session_damage(event.hash()), "");
    gate_chaos::expect_to_expire(event);
}

}  // namespace
