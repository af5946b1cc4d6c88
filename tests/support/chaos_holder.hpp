// How a thread of chaos_worker uses what can be held: mutex, counting_semaphore, shared_mutex, and leases that others detached.
#pragma once

#include "chaos_actor.hpp"

#include <lockstep/client.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/lease.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/shared_mutex.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace lockstep::chaos {

class holder {
public:
    holder(actor& self, client& by);

    void use_mutex();
    void use_semaphore();
    void use_shared();
    /// What somebody else detached, if there is any.
    void adopt();

private:
    using attempt = std::function<std::optional<lease>(std::chrono::milliseconds, std::stop_token)>;

    /// What is asked for, and how having got it is called.
    struct wish {
        std::string name, mode{};
        std::int64_t permits = 0;
        char const* got = "granted";
    };
    /// Asks for it, uses it and gives it up.
    void hold(wish const& what, attempt const& take);
    void use(lease held, std::string const& mode);
    void change(lease& held, std::string& mode);
    void give_up(lease held, std::string const& mode);
    counting_semaphore& semaphore(std::size_t which);

    actor& self_;
    client& by_;
    std::vector<mutex> mutexes_;
    std::vector<shared_mutex> shared_;
    std::vector<std::optional<counting_semaphore>> semaphores_;
};

}  // namespace lockstep::chaos
