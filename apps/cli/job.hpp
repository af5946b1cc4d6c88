#pragma once

// One `lockstep run` or `lockstep elect`: wait for the lock, run the command while watching over the lease, give the lock back.
//
// All of it happens on the main thread, in a loop that waits for signals (signals.hpp) and for word from the library, whose threads
// only set a flag and ring a bell.

#include "cli/child.hpp"
#include "cli/context.hpp"
#include "cli/grip.hpp"
#include "cli/guard.hpp"
#include "cli/signals.hpp"

#include <lockstep/election.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace lockstep::cli {

struct run_options {
    std::string name;
    std::optional<std::chrono::milliseconds> wait{};  ///< nothing: for ever
    bool shared = false;
    bool exclusive = false;    ///< said in so many words; what it is without -s
    std::int64_t permits = 0;  ///< one of so many; 0: a lock
    int conflict_code = 1;
    std::optional<std::chrono::milliseconds> ttl{}, at_least{}, max_hold{}, kill_after{};
    bool yield = false;
    bool elects = false;  ///< stands in an election instead, as `id`
    std::string id{};
    int priority = 0;

    election_options candidacy() const;  ///< for as long as this lives
};

class job {
public:
    job(context const& all, run_options const& how, signals& from) : all_(all), how_(how), signals_(from) {}

    /// The exit code: the command's, or one of exit_code's.
    int run();

private:
    using clock = std::chrono::steady_clock;

    /// What the library's threads tell the loop.
    struct bell {
        bell();
        ~bell();
        void ring(std::atomic<bool>& flag) noexcept;
        int descriptor = -1;
        std::atomic<bool> done{false}, lost{false}, at_risk{false}, asked{false};
    };

    bool obtain(client& by);
    std::vector<std::function<task<std::optional<grip>>()>> wishes(client& by) const;
    void watch_over_leases();
    command_line describe_command(client& by) const;
    int supervise(client& by);
    int supervise_command();
    void child_changed(int status);
    void pause_with_child();
    void continue_child();
    void lease_is_lost();
    void asked_to_yield();
    void pass_on(int number);
    void end_stragglers();
    void linger(clock::time_point until);
    void give_back();

    /// Waits for the next signal, ring or time, and takes the signals.
    void wait_for_news(std::optional<clock::time_point> until, std::function<void(int)> const& on_signal);
    bool may_chat() const;
    std::chrono::milliseconds grace() const;

    context const& all_;
    run_options const& how_;
    signals& signals_;
    std::shared_ptr<bell> bell_ = std::make_shared<bell>();
    std::exception_ptr problem_;
    std::vector<grip> leases_;
    std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> callbacks_;
    std::unique_ptr<guard> guard_;
    std::unique_ptr<terminal> terminal_;
    pid_t pid_ = -1;
    std::optional<int> status_;      ///< of the command, when it has ended
    int interrupted_ = 0;            ///< the signal that ended the waiting
    bool told_lost_ = false;
    bool had_terminal_ = false;
    std::optional<clock::time_point> kill_at_;
};

}  // namespace lockstep::cli
