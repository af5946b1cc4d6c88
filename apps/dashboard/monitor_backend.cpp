#include "dashboard/backend.hpp"

#include <lockstep/error.hpp>

#ifdef LOCKSTEP_HAS_METRICS
#include <lockstep/metrics.hpp>

#include <prometheus/text_serializer.h>
#endif

namespace lockstep::dashboard {

snapshot monitor_backend::snapshot() { return monitor_.snapshot(); }
std::vector<name_statistics> monitor_backend::statistics(std::string_view name) { return monitor_.statistics(name); }
explanation monitor_backend::why(std::string_view name) { return monitor_.why(name); }
std::vector<history_entry> monitor_backend::history(std::string_view name, std::size_t most) {
    return monitor_.history(name, most);
}
std::vector<leader_change> monitor_backend::changes(std::string_view name, std::size_t most) { return monitor_.changes(name, most); }
std::vector<audit_entry> monitor_backend::audit(std::size_t most) { return monitor_.audit(most); }
std::vector<hold_info> monitor_backend::active(std::string_view name) { return monitor_.active(name); }
bool monitor_backend::ask(hold_info const& which, release_options options) { return monitor_.ask(which, options); }
bool monitor_backend::release(hold_info const& which, release_options options) {
    return monitor_.release(which, options);
}
health_report monitor_backend::health() { return check_health(client_); }
health_state monitor_backend::probe() { return check_health(client_, {.probe_lock = false}).state; }

std::string monitor_backend::metrics() {
#ifdef LOCKSTEP_HAS_METRICS
    lockstep::metrics const of{client_, {.fleet = true}};
    return prometheus::TextSerializer{}.Serialize(of.Collect());
#else
    throw unavailable_error{"this program was built without prometheus-cpp, so it has no metrics"};
#endif
}

std::shared_ptr<void> monitor_backend::watch(std::function<void(lockstep::snapshot const&)> handler) {
    return std::make_shared<lockstep::watch>(monitor_.watch(std::move(handler)));
}

std::string monitor_backend::description() { return client_.description(); }

}  // namespace lockstep::dashboard
