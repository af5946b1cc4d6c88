#pragma once

#include "core/core.hpp"

#include <lockstep/election.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace lockstep::detail {

/// Behind an `observation`: the handler, and its end.
class observation_state {
public:
    using handler = std::function<void(leader_change const&)>;

    explicit observation_state(handler told) noexcept : handler_(std::move(told)) {}
    virtual ~observation_state() = default;
    bool is_stopped() const noexcept { return stopped_; }
    void stop() noexcept;

protected:
    void tell(leader_change const& what) noexcept;
    virtual void end() noexcept {}  ///< nothing will be told any more

private:
    handler handler_;
    std::mutex running_;
    std::atomic<std::thread::id> runs_on_{};
    std::atomic<bool> stopped_{false};
};

/// An entry of the stream of changes.
leader_change read_change(std::string_view id, reply_view fields);

/// In force when it ends. `after`: as in `observe_options`.
task<observation> begin_observation(std::shared_ptr<core> owner, std::string key, std::function<void(leader_change const&)> handler, std::string after);

}  // namespace lockstep::detail
