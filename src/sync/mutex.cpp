#include <lockstep/mutex.hpp>

#include "sync/targets.hpp"

namespace lockstep {

mutex::mutex(client& by, std::string_view name, lease_options const& options)
    : lockable(detail::make_target(by, engine::lock_kind, name, options)) {}

}  // namespace lockstep
