// What is answered of jobs. Rights were checked before.
//
//   GET  /api/jobs                   the queues: {"queues": [{"name", "type", counts}], "left_out"}
//   GET  /api/jobs/samples           ?name=NAME&type=TYPE; of all without them
//   GET  /api/jobs/list              ?state=STATE&name=NAME&type=TYPE&from=N&count=N: {"jobs": [...], "total"}
//   GET  /api/jobs/job               ?name=NAME&id=ID: all that is known of it
//   GET  /api/jobs/flow              ?name=NAME&id=ID: {"jobs": [{"id", "state", "since_ms", "parents"}], "whole"}
//   GET  /api/jobs/crons             ?name=NAME; of all without it: {"crons": [...], "total", "left_out": names}
//   POST /api/jobs/retry /api/jobs/cancel    {"name", "id", "state": as it was seen, "reason"}
//   POST /api/jobs/pause /api/jobs/resume    {"name", "type", "reason"}: {"done": whether it was not so already}
//   POST /api/jobs/retry-all /api/jobs/cancel-all    {"name", "type", "state": of those that are meant, "reason"}: {"done", "count"}
//
// Names that are not UTF-8 have "raw", percent-encoded, besides. Payloads and results are cut; "payload_bytes" of a job that is shown alone says how long its payload is.
#pragma once

#include "dashboard/http.hpp"
#include "dashboard/job_desk.hpp"

#include <string>
#include <string_view>

namespace lockstep::dashboard {

[[nodiscard]] bool is_job_page(std::string_view path);
[[nodiscard]] bool is_job_deed(std::string_view path);
// Throws as the desk does, and invalid_argument_error for a question that makes no sense.
[[nodiscard]] response job_page_of(job_desk& desk, std::string const& path, std::string const& query);
// `by`: who did it, for the audit.
[[nodiscard]] response job_deed_of(job_desk& desk, std::string const& path, std::string const& body, std::string const& by);

}  // namespace lockstep::dashboard
