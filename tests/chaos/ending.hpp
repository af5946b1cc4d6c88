// The last client of a run: everything can be had once more, and whoever died leaves nothing behind for it.
#pragma once

#include "support/history.hpp"
#include "world.hpp"

#include <lockstep/client.hpp>
#include <lockstep/event.hpp>
#include <lockstep/leadership.hpp>
#include <lockstep/lease.hpp>

#include <functional>
#include <string>
#include <vector>

namespace lockstep::chaos {

struct possessions {
    std::vector<lease> leases{};
    std::vector<leadership> leaderships{};
};

/// Who may be in line.
enum class crowd { living, dead };

class ending {
public:
    ending(world& where, std::function<void(event)> report);

    /// All that can be held, whole.
    [[nodiscard]] possessions take_all(crowd others) const;
    /// Arrives at the barriers and goes away, which breaks up meetings with the dead.
    void meet_nobody() const;
    /// Those that nobody has taken; and as many more as the dead in the queues would have had, which they must not keep.
    void take_signals() const;

private:
    void say(std::string const& what, std::string const& name, std::string const& note = {}) const;
    void set_and_take(std::string const& name) const;
    void take_signal(std::string const& name) const;

    world& world_;
    std::function<void(event)> report_;
    mutable client by_;
};

/// Every redlock can be had once more, and nothing but fences and who led last is left at the nodes then.
void leave_nothing_at_the_nodes(world& where, std::function<void(event)> const& report);

/// The changes of elections that the servers still know, as "elected" in their order.
void tell_changes(world& where, std::function<void(event)> const& report);

}  // namespace lockstep::chaos
