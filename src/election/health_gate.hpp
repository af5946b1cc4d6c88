#pragma once

// Asks a candidate's health gate, on a thread of its own: the check may block, and that must not hold up anything.

#include <lockstep/election.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace lockstep::detail {

/// What was found last. From any thread.
class health_verdict {
public:
    explicit health_verdict(std::chrono::milliseconds patience) noexcept : patience_(patience) {}
    void begin() noexcept;
    void end(bool healthy) noexcept;
    /// Not before the first answer, and not while one takes longer than the patience.
    bool is_healthy() const noexcept;
    bool has_spoken() const noexcept;

private:
    using clock = std::chrono::steady_clock;
    std::chrono::milliseconds const patience_;
    mutable std::mutex mutex_;
    bool healthy_ = false;
    bool spoke_ = false;
    bool asking_ = false;
    clock::time_point since_{};
};

class health_gate {
public:
    health_gate(health_check check, std::chrono::milliseconds interval, std::chrono::milliseconds patience, std::shared_ptr<health_verdict> found);
    /// Waits for a check that is under way, for as long as one may take. Then its thread is left to itself, and ends when the check returns.
    ~health_gate();
    health_gate(health_gate const&) = delete;
    health_gate& operator=(health_gate const&) = delete;

private:
    struct shared {
        std::mutex mutex;
        std::condition_variable_any wakes;
        bool has_ended = false;
    };
    std::shared_ptr<shared> const shared_ = std::make_shared<shared>();
    std::chrono::milliseconds const patience_;
    std::stop_source stop_;
    std::thread thread_;
};

}  // namespace lockstep::detail
