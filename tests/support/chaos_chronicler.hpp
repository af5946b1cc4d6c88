// How a thread of chaos_worker adds to streams; and who reads them.
#pragma once

#include "chaos_actor.hpp"

#include <lockstep/client.hpp>
#include <lockstep/consumer.hpp>
#include <lockstep/stream.hpp>

#include <cstdint>
#include <vector>

namespace lockstep::chaos {

class chronicler {
public:
    chronicler(actor& self, client& by);

    void add();

private:
    actor& self_;
    std::vector<stream> streams_;
    std::uint64_t made_ = 0;
};

/// Handles what is in a stream, one entry after the other, now and then slowly or in vain. The actor is the handler's.
consumer read_stream(actor& self, client& by, std::string const& name);

}  // namespace lockstep::chaos
