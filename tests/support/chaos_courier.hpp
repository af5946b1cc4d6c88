// How a thread of chaos_worker uses queues: every item has a value of its own, and what becomes of it is reported.
#pragma once

#include "chaos_actor.hpp"

#include <lockstep/client.hpp>
#include <lockstep/queue.hpp>
#include <lockstep/work_stealing_queue.hpp>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace lockstep::chaos {

class courier {
public:
    courier(actor& self, client& by);

    void enqueue();
    void take();
    /// The same with a lane of work that others may steal: those of one process have one lane, and its successors have it, too.
    void push();
    void take_or_steal();
    /// One after the other from the queue whose order is checked, for as long as it takes.
    void take_in_order(std::stop_token const& told);

private:
    using item = queue_item<std::string>;

    void enqueue_some_in_order();
    std::optional<enqueued> send(std::size_t which, std::string const& value);
    std::string new_value();
    void revive();
    void handle(item what);
    void settle(item what);

    actor& self_;
    std::vector<queue<std::string>> queues_;
    work_stealing_queue<std::string> lane_;
    std::uint64_t made_ = 0;
};

}  // namespace lockstep::chaos
