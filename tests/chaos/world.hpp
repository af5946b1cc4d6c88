// The servers of a run, and what the nemesis can do to them.
#pragma once

#include "plan.hpp"
#include "support/redis_server.hpp"

#include <memory>
#include <string>
#include <string_view>
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

/// The names that workers use.
constexpr std::size_t mutex_names = 3;
std::string mutex_name(std::uint64_t index);

/// What is there at the servers of clients that are connected, in fields of these kinds: o and p name who holds, w who waits.
std::vector<std::string> left_by_the_living(world& where, std::string_view fields);
/// What is there that should not be when no client is connected any more.
std::vector<std::string> leftovers(world& where);

}  // namespace lockstep::chaos
