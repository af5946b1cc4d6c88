#pragma once

// What watches something that tells of its changes on the channel called like its key. Messages are hints or carry the change; after a gap,
// and rarely anyway, it looks.

#include "messaging/doorbell.hpp"
#include "state/state_object.hpp"

#include <lockstep/subscription.hpp>
#include <lockstep/task.hpp>
#include <lockstep/watching.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>

namespace lockstep::detail {

class watch_state : public std::enable_shared_from_this<watch_state> {
public:
    explicit watch_state(std::shared_ptr<state_object const> what) noexcept : what_(std::move(what)) {}
    virtual ~watch_state() = default;

    bool is_stopped() const noexcept { return over_.stop_requested(); }
    void stop() noexcept;

    /// Listens, looks, and goes on with both.
    static task<watching> begin(std::shared_ptr<watch_state> self);

protected:
    state_object const& what() const noexcept { return *what_; }
    /// Calls the user's code, one at a time and not after `stop`.
    void guarded(std::function<void()> const& call) noexcept;
    // In turns:
    virtual void heard(std::string_view payload) noexcept = 0;
    virtual task<void> look_once() = 0;
    /// Messages may have been lost.
    virtual void missed() noexcept { look(); }
    /// Looks soon; once more if it is looking now, as that may have seen what was before.
    void look() noexcept;
    bool is_looking() const noexcept { return looking_; }

private:
    task<subscription> listen();
    static task<void> look_until_done(std::shared_ptr<watch_state> self);
    static task<void> look_now_and_then(std::shared_ptr<core> owner, std::weak_ptr<watch_state> which);

    std::shared_ptr<state_object const> what_;
    subscription ear_;
    bool looking_ = false;
    doorbell bell_;  // rung when a look is asked for that has to wait for one under way
    bool again_ = false;
    std::recursive_mutex running_;
    std::stop_source over_;  ///< also ends the pause between looks
};

}  // namespace lockstep::detail
