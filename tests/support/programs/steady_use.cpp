// Counts what steady use of a mutex allocates, in all threads, after it has warmed up: `steady_use <url> [<pool size>]` prints two numbers, for
// coroutines on the I/O thread and for blocking calls.
#include <lockstep/mutex.hpp>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <new>
#include <string>

namespace {
std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations{0};

void* allocate(std::size_t size) {
    if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
    if (auto* const memory = std::malloc(size)) return memory;
    throw std::bad_alloc{};
}
}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

constexpr int rounds = 10'000;

lockstep::task<void> in_coroutine(lockstep::mutex& mutex, int count) {
    for (int i = 0; i < count; ++i) {
        auto acquiring = mutex.async_acquire();
        auto lease = co_await std::move(acquiring);
        auto releasing = lease.async_release();
        co_await std::move(releasing);
    }
}

void blocking(lockstep::mutex& mutex, int count) {
    for (int i = 0; i < count; ++i) mutex.acquire().release();
}

template <class F>
std::size_t counted(F work) {
    allocations = 0;
    counting = true;
    work();
    counting = false;
    return allocations;
}

}  // namespace

int main(int count, char** arguments) {
    lockstep::client_options options{.url = arguments[1]};
    if (count > 2) options.pool_size = std::stoul(arguments[2]);
    lockstep::client client{options};
    lockstep::mutex mutex{client, "steady"};
    lockstep::sync_wait(in_coroutine(mutex, 1000));
    blocking(mutex, 1000);
    auto const first = counted([&] { lockstep::sync_wait(in_coroutine(mutex, rounds)); });
    auto const second = counted([&] { blocking(mutex, rounds); });
    std::cout << first << ' ' << second << '\n';
}
