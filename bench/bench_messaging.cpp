// Queues against BullMQ and bee-queue. docs/bench.md says how to read it.

#include "messaging/cases.hpp"

#include <string>

namespace lockstep::bench {
namespace {

void measure(settings const& chosen) {
    report rows{"messaging"};
    stand all{chosen, rows, "bench_messaging"};
    peer_kit peers{all};
    auto const run = [&](std::string const& name, auto const& work) {
        if (!chosen.wants(name)) return;
        chosen.progress(name);
        work(all, peers, name);
        all.redis.command({"FLUSHALL"});
    };
    run("enqueue, 64 at once", enqueue_one_by_one);
    run("enqueue, 100 together", enqueue_in_bulk);
    run("take, handle, acknowledge, 50 at once", take_and_acknowledge);
    run("an item's whole life", whole_life);
    run("enqueue to handler", latency);
    run("a waiting item", memory);
    chosen.progress("");
    rows.print(chosen);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
    return lockstep::bench::run_bench(argc, argv, "Queues against BullMQ and bee-queue", lockstep::bench::measure);
}
