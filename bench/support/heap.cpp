#include "support/heap.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<std::size_t> allocated{0};
std::atomic<std::size_t> allocated_bytes{0};

}  // namespace

void* operator new(std::size_t size) {
    if (counting.load(std::memory_order_relaxed)) [[unlikely]] {
        allocated.fetch_add(1, std::memory_order_relaxed);
        allocated_bytes.fetch_add(size, std::memory_order_relaxed);
    }
    if (void* const block = std::malloc(size == 0 ? 1 : size)) return block;
    throw std::bad_alloc{};
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace lockstep::bench {

std::size_t heap_in_use() {
    auto const all = mallinfo2();
    return all.uordblks + all.hblkhd;  // hblkhd: large blocks, which malloc maps one by one
}

void start_counting_allocations() {
    allocated = 0;
    allocated_bytes = 0;
    counting = true;
}

allocations stop_counting_allocations() {
    counting = false;
    return {allocated, allocated_bytes};
}

}  // namespace lockstep::bench
