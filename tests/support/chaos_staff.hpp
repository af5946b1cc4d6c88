// What a process of chaos_worker does all the time, beside its threads: it takes from the queue whose order is checked, reads a
// stream, and runs jobs.
#pragma once

#include "chaos_actor.hpp"
#include "chaos_workshop.hpp"

#include <lockstep/client.hpp>
#include <lockstep/consumer.hpp>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::chaos {

/// Until it is destroyed.
class staff {
public:
    staff(client& by, std::string const& referee, std::string const& who, std::uint64_t seed);

private:
    actor reader_;
    consumer reading_;
    std::jthread taking_;
    workshop working_;
};

}  // namespace lockstep::chaos
