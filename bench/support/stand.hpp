#pragma once

// Where everything is measured: the server on one core, the contenders on the other, or all on the server's.

#include "support/cpu.hpp"
#include "support/measurement.hpp"
#include "support/report.hpp"
#include "support/server.hpp"
#include "support/settings.hpp"

#include <lockstep/client.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace lockstep::bench {

struct stand {
    settings const& chosen;
    report& rows;
    std::string name;  ///< of our clients
    cores where = available_cores();
    server redis{where.server, chosen.by_unix_socket};

    client connect() const { return client{client_options{.url = redis.url(), .name = name}}; }
    void require_one_connection(client const& through) {
        auto const seen = through.statistics();
        if (redis.connections_named(name) != 1 || seen.connects != 1 || seen.reconnects != 0)
            throw std::runtime_error("the client did not keep to its one connection");
    }
    /// Runs a tenth to warm up, then all, with the server's CPU time.
    template <class Run>
    measurement warm_then_measure(std::size_t operations, std::size_t depth, Run run) {
        run(std::max(operations / 10, depth));
        auto const before = redis.cpu_seconds();
        measurement result = run(operations);
        result.server_cpu = redis.cpu_seconds() - before;
        return result;
    }
};

}  // namespace lockstep::bench
