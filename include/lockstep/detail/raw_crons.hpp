#pragma once

// What is under the schedules of `job_client`: the same for bytes, compiled once. Nothing here is for users.

#include <lockstep/client.hpp>
#include <lockstep/cron_options.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::detail {

class keyed;

class raw_crons {
public:
    raw_crons(client& by, std::string_view name);

    /// When it is due next; zero: it is paused.
    task<std::chrono::system_clock::time_point> async_put(std::string_view id, std::string_view type, std::string payload, cron_options const& how);
    /// drop, pause or resume. False: not in a state for that.
    task<bool> async_change(std::string_view what, std::string_view id);
    task<std::vector<cron_info>> async_list();

private:
    std::shared_ptr<keyed const> all_;
};

}  // namespace lockstep::detail
