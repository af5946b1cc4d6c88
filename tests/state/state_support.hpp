// What the tests of shared state have in common.
#pragma once

#include "integration/topology_support.hpp"
#include "support/cluster.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis_server.hpp"
#include "support/sentinel_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

/// What a handler on the I/O thread was told, for the test's thread.
template <class T>
class told {
public:
    void add(T what) {
        std::lock_guard const guard{mutex_};
        all_.push_back(std::move(what));
    }
    std::vector<T> all() const {
        std::lock_guard const guard{mutex_};
        return all_;
    }
    T last() const {
        std::lock_guard const guard{mutex_};
        return all_.empty() ? T{} : all_.back();
    }
    std::size_t size() const {
        std::lock_guard const guard{mutex_};
        return all_.size();
    }

private:
    mutable std::mutex mutex_;
    std::vector<T> all_;
};

}  // namespace lockstep::test
