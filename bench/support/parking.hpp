#pragma once

// What a request costs in memory while it waits: many tasks are started against a server that does not answer, and the growth of the
// heap is divided by their number.
//
// Counted is all that the library keeps for one: the task's frame, the encoded command, malloc's headers, and its share of buffers
// that grew. Not counted is what the bench adds to get them going: the coroutines that await the tasks lie in one block that was
// made before, and so does the list of the tasks.

#include "support/heap.hpp"

#include <lockstep/client.hpp>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lockstep::bench {

/// Room for the frames of all roots. A frame is a few dozen bytes; a compiler that makes larger ones is told so.
class root_block {
public:
    explicit root_block(std::size_t count) : memory_(new std::byte[count * frame_room]), left_(count) {}
    void* take(std::size_t size) {
        if (size > frame_room || left_ == 0) throw std::bad_alloc{};
        return memory_.get() + --left_ * frame_room;
    }

private:
    static constexpr std::size_t frame_room = 256;
    std::unique_ptr<std::byte[]> memory_;
    std::size_t left_;
};

/// Awaits one task and says when it ended.
struct parked_root {
    struct promise_type {
        template <class... Others>
        static void* operator new(std::size_t size, root_block& block, Others&&...) {
            return block.take(size);
        }
        static void operator delete(void*, std::size_t) noexcept {}
        parked_root get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

struct parked_progress {
    std::atomic<std::size_t> ended{0};
    std::atomic<std::size_t> failed{0};
};

template <class T>
parked_root await_parked(root_block&, task<T>& one, parked_progress& progress) {
    try {
        co_await std::move(one);
    } catch (...) {
        ++progress.failed;
    }
    ++progress.ended;
}

struct parked_cost {
    double heap_bytes = 0;   ///< per request, as malloc counts
    double asked_bytes = 0;  ///< per request, as asked of operator new, whether or not it was given back
    double allocations = 0;  ///< per request
};

/// `make(i)` gives the task to park; the server must not answer before `go_on()`.
inline parked_cost measure_parked(client& through, std::size_t count,
                                  std::function<task<reply>(std::size_t)> const& make,
                                  std::function<void()> const& go_on) {
    root_block block{count};
    std::vector<task<reply>> tasks;
    tasks.reserve(count);
    parked_progress progress;
    auto const wait_until = [](auto const& condition) {
        auto const latest = std::chrono::steady_clock::now() + std::chrono::seconds{5};
        while (!condition()) {
            if (std::chrono::steady_clock::now() > latest)
                throw std::runtime_error("the requests did not park or did not end");
            std::this_thread::sleep_for(std::chrono::milliseconds{2});
        }
    };

    auto const before = heap_in_use();
    start_counting_allocations();
    for (std::size_t i = 0; i != count; ++i) {
        tasks.push_back(make(i));
        await_parked(block, tasks.back(), progress);
    }
    wait_until([&] { return through.statistics().pending == count; });
    auto const asked = stop_counting_allocations();
    auto const after = heap_in_use();
    auto const share = [count](auto sum) { return static_cast<double>(sum) / static_cast<double>(count); };
    parked_cost const cost{share(after - before), share(asked.bytes), share(asked.count)};

    go_on();
    wait_until([&] { return progress.ended == count; });
    if (progress.failed != 0) throw std::runtime_error("parked requests failed");
    return cost;
}

}  // namespace lockstep::bench
