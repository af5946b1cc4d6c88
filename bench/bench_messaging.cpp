// Queues against BullMQ and bee-queue, a stream's consumer against a raw loop. docs/bench.md says how to read it.

#include "messaging/cases.hpp"

#include <string>

namespace lockstep::bench {
namespace {

void measure(settings const& chosen) {
    measure_cases(chosen, "messaging", {{"enqueue, 64 at once", enqueue_one_by_one},
                                       {"enqueue, 100 together", enqueue_in_bulk},
                                       {"take, handle, acknowledge, 50 at once", take_and_acknowledge},
                                       {"an item's whole life", whole_life},
                                       {"enqueue to handler", latency},
                                       {"server CPU of an item", many_waiting},
                                       {"a waiting item", memory},
                                       {"stream consumer", stream_consumer}});
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
    return lockstep::bench::run_bench(argc, argv, "Queues against BullMQ and bee-queue, consumers of streams", lockstep::bench::measure);
}
