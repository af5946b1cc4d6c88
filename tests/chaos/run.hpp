// One chaos run: the servers, the workers, the nemesis that follows its plan, and the looking around in the end.
#pragma once

#include "plan.hpp"
#include "referee.hpp"
#include "support/child_process.hpp"
#include "world.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::chaos {

class run {
public:
    run(topology where, std::uint64_t seed, std::string const& history_file);

    [[nodiscard]] bool fails_over() const {
        return where_ == topology::sentinel || where_ == topology::cluster_failover;
    }
    void torment(std::chrono::milliseconds length);
    /// Ends the workers in order, and looks at what is left: of those who live, and then of those who did.
    history finish();

private:
    test::child_process begin_worker(std::size_t which);

    void commit(step const& next);
    std::size_t user_of(std::string const& name, std::uint64_t otherwise);
    void replace(std::size_t which);
    void put_to_sleep(std::uint64_t number, std::size_t which);

    void rest();
    void part();
    void expect_nothing(std::function<std::vector<std::string>()> const& look);
    void note(std::string const& what, std::string const& text, std::int64_t n = 0);

    topology where_;
    std::uint64_t seed_;
    std::unique_ptr<world> world_;
    referee referee_;
    std::map<std::size_t, unsigned> incarnations_;
    std::map<std::size_t, std::string> names_;     // of those who are at work
    std::map<std::uint64_t, std::size_t> asleep_;  // by the plan's number
    std::vector<test::child_process> workers_;
};

}  // namespace lockstep::chaos
