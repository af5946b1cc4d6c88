// The servers of a run, and what the nemesis can do to them.
#pragma once

#include "plan.hpp"
#include "support/redis_server.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lockstep::chaos {

class world {
public:
    virtual ~world() = default;
    /// Each worker has a way of its own.
    [[nodiscard]] virtual std::string url_for(std::size_t worker) const = 0;
    /// All deeds but those to processes of workers. Returns when it is done.
    virtual void commit(step const& what) = 0;
    /// Everything works from here on.
    virtual void calm_down() = 0;
    /// Those that have data.
    [[nodiscard]] virtual std::vector<test::redis_server*> masters() = 0;
};

std::unique_ptr<world> make_world(topology where, std::size_t workers);

}  // namespace lockstep::chaos
