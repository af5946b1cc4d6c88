#pragma once

// What one run of one contender gave, and what many rounds of several contenders say together.

#include "support/settings.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::bench {

struct measurement {
    std::size_t operations = 0;
    double seconds = 0;
    double client_cpu = 0;  ///< seconds, user + system
    double server_cpu = 0;
    // Of those who contend for something:
    double wait_p99 = 0;  ///< seconds
    std::size_t fewest = 0;
    std::size_t most = 0;  ///< operations by one of them
    std::size_t contenders = 1;
    double commands = 0;  ///< that the server got

    double rate() const noexcept { return static_cast<double>(operations) / seconds; }
    double micros() const noexcept { return seconds * 1e6 / static_cast<double>(operations); }
    double client_micros() const noexcept { return client_cpu * 1e6 / static_cast<double>(operations); }
    double server_micros() const noexcept { return server_cpu * 1e6 / static_cast<double>(operations); }
    /// On one core for all, this is what bounds the rate, and other programs on that core do not change it.
    double all_micros() const noexcept { return client_micros() + server_micros(); }
    /// With the server and its client on a core each, likewise.
    double busiest_micros() const noexcept { return client_micros() > server_micros() ? client_micros() : server_micros(); }
    double wait_p99_micros() const noexcept { return wait_p99 * 1e6; }
    double commands_each() const noexcept { return commands / static_cast<double>(operations); }
    double most_by_fewest() const noexcept { return static_cast<double>(most) / static_cast<double>(fewest); }
    double fewest_by_average() const noexcept {
        return static_cast<double>(fewest) * static_cast<double>(contenders) / static_cast<double>(operations);
    }
};

struct contender {
    std::string name;
    std::function<measurement()> run;  ///< warms up, then measures
};

struct summary {
    double median = 0;
    double low = 0;
    double high = 0;
};
summary summarize(std::vector<double> values);

/// The results of the contenders in each round, in the order in which they were given. Within a round they run one after the
/// other, each round beginning with another one: what disturbs the machine disturbs all, and the ratio within a round keeps.
class rounds {
public:
    using figure = double (measurement::*)() const noexcept;

    /// As many rounds as chosen, or fewer when the time for a case is up; at least one.
    rounds(std::vector<contender> const& contenders, settings const& chosen);

    summary of(std::size_t contender, figure what) const;
    /// Of the two contenders' figures in each round.
    summary ratio(std::size_t contender, std::size_t baseline, figure what) const;

private:
    std::vector<std::vector<measurement>> results_;
};

}  // namespace lockstep::bench
