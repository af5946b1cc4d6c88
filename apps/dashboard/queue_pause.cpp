#include "dashboard/audited.hpp"
#include "dashboard/backend.hpp"

#include <lockstep/queue.hpp>

namespace lockstep::dashboard {

bool monitor_backend::set_queue_paused(std::string const& name, bool paused, std::string const& by, std::string const& reason) {
    queue<std::string> of{client_, name};
    observe::audit_fields fields{{"action", paused ? "pause-queue" : "resume-queue"}, {"name", name}, {"kind", "queue"}, {"hold", ""}, {"fence", "0"}, {"owner", ""}, {"by", by}};
    return audited(client_, std::move(fields), reason, [&] { return paused ? of.pause() : of.resume(); });
}

}  // namespace lockstep::dashboard
