// Jobs against BullMQ. docs/bench.md says how to read it.

#include "jobs/cases.hpp"

namespace lockstep::bench {
namespace {

void measure(settings const& chosen) {
    measure_cases(chosen, "jobs", {{"schedule, 64 at once", schedule_one_by_one},
                                  {"schedule, 100 together", schedule_in_bulk},
                                  {"process, 1 at a time", process_one_at_a_time},
                                  {"process, 50 at a time", process_many_at_a_time},
                                  {"add flows of 1 and 5", add_flows},
                                  {"process flows of 1 and 5", process_flows},
                                  {"add to start", add_to_start},
                                  {"a waiting job", waiting_jobs},
                                  {"10,000 schedules over the hour", schedules_over_the_hour},
                                  {"10,000 schedules in one second", schedules_in_one_second}});
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { return lockstep::bench::run_bench(argc, argv, "Jobs against BullMQ", lockstep::bench::measure); }
