// One lock over three servers that know nothing of each other. Each keeps it as the plain Redis lock that libraries of other languages use.
#include <lockstep/lockstep.hpp>

#include <chrono>
#include <iostream>

using namespace std::chrono_literals;

int main() try {
    lockstep::embedded_server const a, b, c;
    lockstep::redlock_nodes const nodes{a.url(), b.url(), c.url()};
    std::cout << nodes.quorum() << " of " << nodes.size() << " nodes decide\n";

    lockstep::redlock lock{nodes, "report", {.ttl = 10s, .fence = true}};
    auto lease = lock.acquire();
    bool const alone = !lock.try_acquire();
    std::cout << "fence " << lease.fence() << ", " << (alone ? "nobody else gets it" : "somebody else got it too") << '\n';

    int having = 0;  // the third may be a little later: two are enough
    for (auto const* const node : {&a, &b, &c}) having += lockstep::client{node->url()}.command("EXISTS", "report").integer() == 1 ? 1 : 0;
    std::cout << having << " nodes have it under its name\n";
    lease.release();
    return alone ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "redlock: " << problem.what() << '\n';
    return 1;
}
