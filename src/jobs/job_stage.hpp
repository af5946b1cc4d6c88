#pragma once

// Flows that are too large for one short call. Their jobs are sent in parts that nobody sees, children before their parents. One short call then adds the
// flow, all of it or nothing; what was sent is entered by the calls that follow, ours or those of workers.

#include "jobs/job_office.hpp"

#include <lockstep/job_flow.hpp>

#include <memory>
#include <string>
#include <vector>

namespace lockstep::detail {

/// It is large, and has neither parents outside of it nor single names nor batches, which one call has to see together.
bool is_sent_in_parts(std::vector<job_flow::node> const& jobs) noexcept;

/// In the order of the jobs. Throws `unavailable_error` if it takes longer than a minute to send them: then none was added.
task<std::vector<scheduled>> send_in_parts(std::shared_ptr<job_office> office, std::shared_ptr<depot> at, std::vector<job_flow::node> jobs);

}  // namespace lockstep::detail
