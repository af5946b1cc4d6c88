#include "dashboard/backend.hpp"

#include <lockstep/error.hpp>

#ifdef LOCKSTEP_HAS_METRICS
#include <lockstep/metrics.hpp>

#include <prometheus/text_serializer.h>
#endif

namespace lockstep::dashboard {

std::vector<std::string> monitor_backend::unread_keys::all() const {
    std::lock_guard const guard{mutex};
    std::vector<std::string> notes;
    for (auto const& [call, of_it] : of_calls) notes.insert(notes.end(), of_it.begin(), of_it.end());
    return notes;
}

snapshot monitor_backend::snapshot() { return monitor_.snapshot(); }
template <class F>
auto monitor_backend::with_notes(char const* call, F read) {
    lockstep::monitor from{client_};  // its notes are of this call only
    auto made = read(from);
    auto notes = from.notes();
    std::lock_guard const guard{unread_->mutex};
    unread_->of_calls[call] = std::move(notes);
    return made;
}

std::vector<name_statistics> monitor_backend::statistics(std::string_view name) {
    return with_notes("statistics", [&](auto& from) { return from.statistics(name); });
}
explanation monitor_backend::why(std::string_view name) { return monitor_.why(name); }
std::vector<history_entry> monitor_backend::history(std::string_view name, std::size_t most) {
    return with_notes("history", [&](auto& from) { return from.history(name, most); });
}
std::vector<leader_change> monitor_backend::changes(std::string_view name, std::size_t most) {
    return with_notes("changes", [&](auto& from) { return from.changes(name, most); });
}
std::vector<audit_entry> monitor_backend::audit(std::size_t most) {
    return with_notes("audit", [&](auto& from) { return from.audit(most); });
}
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
    auto told = [handler = std::move(handler), unread = unread_](lockstep::snapshot const& now) {
        auto const others = unread->all();
        if (others.empty()) return handler(now);
        auto complete = now;
        complete.notes.insert(complete.notes.end(), others.begin(), others.end());
        handler(complete);
    };
    return std::make_shared<lockstep::watch>(monitor_.watch(std::move(told)));
}

std::string monitor_backend::description() { return client_.description(); }

}  // namespace lockstep::dashboard
