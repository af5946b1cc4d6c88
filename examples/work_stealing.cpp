// A tree is walked by three workers. Only the first has the root; the others steal.
#include <lockstep/lockstep.hpp>
#include <lockstep/work_stealing_queue.hpp>

#include <array>
#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

int main() try {
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};
    constexpr int nodes = 1023;  // of a binary tree, numbered from the root
    std::atomic<int> visited{0};
    std::array<std::atomic<int>, 3> by{};

    std::vector<std::unique_ptr<lockstep::work_stealing_queue<int>>> lanes;
    std::vector<lockstep::queue_worker> workers;
    for (int i = 0; i != 3; ++i) {
        lanes.push_back(std::make_unique<lockstep::work_stealing_queue<int>>(client, "tree", "worker-" + std::to_string(i)));
    }
    for (std::size_t i = 0; i != 3; ++i) {
        workers.push_back(lanes[i]->consume({}, [&, i](int node) {
            for (int const child : {2 * node, 2 * node + 1}) {
                if (child <= nodes) lanes[i]->push(child);
            }
            ++by[i];
            ++visited;
        }));
    }
    lanes[0]->push(1);
    while (visited < nodes) std::this_thread::yield();
    for (auto& one : workers) one.stop();
    std::cout << visited << " nodes visited, by the workers: " << by[0] << ' ' << by[1] << ' ' << by[2] << '\n';
    return visited == nodes ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "work_stealing: " << problem.what() << '\n';
    return 1;
}
