// What the simulations of broadcast events, latches and barriers share: commands that arrive long after they were given up, replies that
// are lost, clients that pause, die or lose their connection, and a server whose clock steps.
#pragma once

#include "gate_script_support.hpp"
#include "support/eventually.hpp"
#include "support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <list>
#include <optional>
#include <random>

namespace lockstep::test {

// Chance, the network and time; and clients, of which one knows whether it was told something or has to look for itself.
class gate_chaos {
public:
    // Keys vanish when nobody uses them.
    static void expect_to_expire(gate_scripts& gate) {
        EXPECT_GT(gate.expires_in(), 0);
        gate.pass(4 * gate_scripts::hour);
        EXPECT_TRUE(eventually([&] { return gate.commands.must({"DBSIZE"}).integer == 0; }));
    }

    std::string complaint{};
    int late = 0, ghosts = 0;

    void complain(std::string const& what) {
        if (complaint.empty()) complaint = what;
    }

protected:
    struct client {
        std::string name;
        int paused = 0;
        bool connected = true;
        bool look = false;  // it was told, or its connection is new
        int numbers = 0;
        std::string hold() { return name + '.' + std::to_string(++numbers); }
    };
    using command = std::function<gate_answer()>;

    gate_chaos(gate_scripts& gate, std::uint64_t seed) : gate_{gate}, now_{gate.now()}, random_{seed} {}

    int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
    bool one_in(int n) { return pick(n) == 0; }

    client& born() {
        clients_.push_back({.name = "c" + std::to_string(++names_)});
        gate_.connect(clients_.back().name);
        return clients_.back();
    }
    void died(client& who) {
        if (one_in(2)) gate_.disconnect(who.name);  // else its connection is still open: it is only heard to be alive
        clients_.remove_if([name = who.name](auto const& one) { return one.name == name; });
    }

    // Runs a command as the network will have it: done and answered, done but not answered, or done much later. The client whose
    // connection that was looks for itself when it has another one.
    std::optional<gate_answer> send(client& from, command const& run) {
        auto const fate = quiet_ ? 99 : pick(100);
        if (fate < 14) from.look = true;
        if (fate < 6) {
            given_up_.push_back(run);
            return {};
        }
        auto const answer = seen(run());
        if (fate < 14) return {};
        return answer;
    }

    // Whether this client can do something now.
    bool awake(client& who) {
        if (who.paused > 0 && --who.paused > 0) return false;
        if (!who.connected) {
            gate_.connect(who.name);
            who.connected = who.look = true;
        }
        if (quiet_) return true;
        if (one_in(60)) who.paused = pick(40);
        if (one_in(150)) {
            gate_.disconnect(who.name);
            who.connected = false;
            who.paused = 1 + pick(20);
        }
        return who.paused == 0;
    }

    void world_moves() {
        std::int64_t by = one_in(3) ? 0 : pick(20);
        if (one_in(400)) by = 1000;
        if (one_in(400)) by = set_back_ != 0 ? set_back_ : -pick(static_cast<int>(gate_.hour));
        if (by < 0 || by == set_back_) set_back_ = std::max<std::int64_t>(0, -by);
        gate_.pass(by);
        if (by > 60'000) give_up_all();
        while (!given_up_.empty() && (quiet_ || one_in(100))) {
            auto const at = given_up_.begin() + pick(static_cast<int>(given_up_.size()));
            auto const run = *at;
            given_up_.erase(at);
            seen(run());
            ++ghosts;
        }
    }

    void give_up_all() {
        given_up_.clear();
        jumped();
    }

    // The clock went forward by more than a call is remembered. What is under way then may count twice: the server's clock must not jump
    // forward, so nobody is promised otherwise. Nothing stays under way.
    virtual void jumped() {}

    void hear() {
        for (auto const& name : gate_.told())
            for (auto& one : clients_)
                if (one.name == name) one.look = true;
    }

    // Nobody may wait for what has happened and neither be told nor look for itself.
    void must_know(client const& who, std::string const& what) {
        if (who.connected && !who.look) complain(who.name + " sleeps although " + what);
    }
    [[nodiscard]] std::int64_t deadline() const { return now_ + 2000; }

    gate_scripts& gate_;
    bool quiet_ = false;
    std::list<client> clients_{};
    std::int64_t now_;

private:
    gate_answer seen(gate_answer const& answer) {
        if (answer.now != 0) now_ = answer.now;
        late += answer.word == "late" ? 1 : 0;
        return answer;
    }

    std::mt19937_64 random_;
    std::vector<command> given_up_{};
    std::int64_t set_back_ = 0;
    int names_ = 0;
};

}  // namespace lockstep::test
