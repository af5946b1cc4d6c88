#pragma once

// How a primitive says what it holds.

#include "lease/hub.hpp"
#include "lease/kind.hpp"
#include "lease/target.hpp"

#include <lockstep/client.hpp>

#include <memory>
#include <string_view>

namespace lockstep::detail {

/// Throws in a child of fork(), and for a name or options that are not allowed.
inline engine::target target_of(client& by, engine::kind const& what, std::string_view name, lease_options const& options) {
    auto const& core = core_access::of(by);
    core->require_same_process();
    return engine::hub::of(*core).target_for(core, what, name, options);
}

inline std::shared_ptr<engine::target const> make_target(client& by, engine::kind const& what, std::string_view name,
                                                         lease_options const& options) {
    return std::make_shared<engine::target const>(target_of(by, what, name, options));
}

}  // namespace lockstep::detail
