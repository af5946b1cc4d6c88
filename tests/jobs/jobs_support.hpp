// What the tests of jobs share.
#pragma once

#include <lockstep/job_client.hpp>
#include <lockstep/job_worker.hpp>

#include "integration/topology_support.hpp"
#include "support/child_process.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/program_path.hpp"
#include "support/redis_server.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::test {

using namespace std::chrono_literals;

inline std::string const mail_key = "lockstep:{name}:jobs:q:mail";

/// What handlers saw, in order.
class diary {
public:
    void add(std::string what) {
        std::lock_guard const guard{mutex_};
        all_.push_back(std::move(what));
    }
    std::vector<std::string> all() const {
        std::lock_guard const guard{mutex_};
        return all_;
    }
    std::size_t size() const { return all().size(); }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> all_;
};

}  // namespace lockstep::test
