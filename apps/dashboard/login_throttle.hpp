// How long a request that presents a token waits before it is looked at: longer with each wrong token from its address, and a little for all
// addresses when many of them guess. Right tokens wait as well, or the time would tell which they are. None is refused, so a user with the
// token is slowed down but never locked out by a guesser at the same address. One address alone never delays another. How many requests of an
// address may wait at one time is limited; which, is drawn by lot (connection_table.hpp), so of N that come while one waits each has the same chance.
//
// An address is a network here (text.hpp, network_of): all of an IPv6 /64 belong to one subscriber.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace lockstep::dashboard {

struct login_delays {
    std::chrono::milliseconds first{250};  // doubled with each wrong token
    std::chrono::milliseconds longest{8'000};
    std::chrono::milliseconds longest_shared{2'000};
};

class login_throttle {
public:
    using clock = std::chrono::steady_clock;
    static constexpr double free_failures = 5;                // people mistype
    static constexpr double free_shared_failures = 40;        // of all addresses; each counts for free_failures at most
    static constexpr std::chrono::seconds forgets_one_in{30};

    explicit login_throttle(login_delays delays) : delays_(delays) {}

    // Of a request that presents a token, before it is looked at.
    [[nodiscard]] std::chrono::milliseconds delay(std::string const& network, clock::time_point now);
    void note_failure(std::string const& network, clock::time_point now);

private:
    struct failures {
        double count = 0;
        clock::time_point as_of{};
    };

    void forget(clock::time_point now);
    [[nodiscard]] std::chrono::milliseconds backoff(double excess, std::chrono::milliseconds longest) const;

    login_delays delays_;
    std::mutex mutex_;
    std::map<std::string, failures> failures_;
};

}  // namespace lockstep::dashboard
