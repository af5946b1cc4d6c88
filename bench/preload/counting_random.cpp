// Preloaded into redis-benchmark: its keys come from random(), and with one that counts they come in order, each once. That lets
// one run take locks and the next one release the very same locks. Nothing else about redis-benchmark is changed.

#include <cstdlib>

extern "C" long random() noexcept {
    static long next = 0;
    return next++;
}
