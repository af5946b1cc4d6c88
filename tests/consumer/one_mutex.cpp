// The smallest program: one lock. run.cmake limits its size.
#include <lockstep/mutex.hpp>

#include <cstdio>
#include <mutex>

int main() try {
    lockstep::client client;
    lockstep::mutex mutex{client, "nightly-report"};
    std::scoped_lock const guard{mutex};
    std::puts("ok");
} catch (std::exception const& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
}
