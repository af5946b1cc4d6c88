#include <lockstep/health.hpp>

#include "observe/examination.hpp"

#include <fmt/format.h>

namespace lockstep {

std::string_view to_string(health_state state) noexcept {
    switch (state) {
        case health_state::healthy: return "healthy";
        case health_state::degraded: return "degraded";
        case health_state::unhealthy: return "unhealthy";
    }
    return "unknown";
}

std::string health_report::text() const {
    auto text = fmt::format("{}{}\n", to_string(state), server.empty() ? "" : ": " + server);
    std::size_t width = 0;
    for (auto const& one : findings) width = std::max(width, one.check.size());
    for (auto const& one : findings) {
        text += fmt::format("  {:<9}  {:<{}}  {}\n", one.state == health_state::healthy ? "ok" : to_string(one.state),
                            one.check, width, one.found);
        if (!one.advice.empty()) text += fmt::format("  {:<9}  {:<{}}  -> {}\n", "", "", width, one.advice);
    }
    return text;
}

task<health_report> async_check_health(client& by, health_options options) {
    return observe::examine(detail::core_access::of(by), options, false);
}
task<health_report> async_diagnose(client& by, health_options options) {
    return observe::examine(detail::core_access::of(by), options, true);
}

health_report check_health(client& by, health_options options) {
    detail::core_access::of(by)->require_blocking_is_allowed();
    return sync_wait(async_check_health(by, options));
}

health_report diagnose(client& by, health_options options) {
    detail::core_access::of(by)->require_blocking_is_allowed();
    return sync_wait(async_diagnose(by, options));
}

}  // namespace lockstep
