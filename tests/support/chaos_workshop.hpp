// Runs the jobs of a chaos run, as each of them says (chaos_job.hpp), and reports what it does. A process of chaos_worker has one.
#pragma once

#include "chaos_actor.hpp"
#include "chaos_job.hpp"

#include <lockstep/client.hpp>
#include <lockstep/job_worker.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::chaos {

/// Until it is destroyed.
class workshop {
public:
    workshop(client& by, std::string const& referee, std::string const& who, std::uint64_t seed);

private:
    using colleague = std::unique_ptr<actor, std::function<void(actor*)>>;

    /// One that reports for one handler at a time.
    colleague borrow();
    void begin(actor& self, job_context const& job, std::string const& value);
    std::string end(actor& self, job_context const& job, std::string const& value);
    std::string work(job_context& job, std::string const& value);
    static task<std::string> think(workshop& shop, job_context& job, std::string value);
    void put_schedule(client& by);

    std::string referee_;
    std::string who_;
    std::uint64_t seed_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<actor>> idle_;
    unsigned made_ = 0;
    std::uint64_t results_ = 0;
    job_worker worker_;
};

}  // namespace lockstep::chaos
