#pragma once

// The depots of one client, so that they end when it is closed.

#include "core/core.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace lockstep::detail {

class depot;

class queue_house final : public core::extension {
public:
    /// This client's, from any thread.
    static queue_house& of(core& owner);
    void add(std::shared_ptr<depot> const& one);

private:
    void close(std::function<void()> done) noexcept override;

    std::mutex mutex_;
    std::vector<std::weak_ptr<depot>> depots_;
};

}  // namespace lockstep::detail
