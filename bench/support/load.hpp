#pragma once

// Ours as a contender: some number of coroutines on the client's I/O thread, each with one request in flight at a time.
//
//     worker set_forever(load& work, client& through, std::size_t) {
//         while (work.take()) co_await through.async_command("SET", "key", "value");
//     }
//     measurement const result = run_load(through, {.depth = 64, .operations = 100'000}, set_forever);

#include "support/measurement.hpp"

#include <lockstep/client.hpp>

#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace lockstep::bench {

/// One run: how much is left to do, and when it began and ended. Used on one thread, the client's; the caller waits in `result`.
class load {
public:
    load(std::size_t workers, std::size_t operations) noexcept
        : workers_(workers), operations_(operations), left_(operations) {}

    /// One more operation? A worker that gets false ends.
    bool take() noexcept {
        if (left_ == 0) return false;
        --left_;
        return true;
    }
    static void expect(bool right) {
        if (!right) throw std::runtime_error("a reply was not what it had to be");
    }

    void begin() noexcept;                            ///< starts the clocks of the calling thread
    void ended(std::exception_ptr problem) noexcept;  ///< a worker has; the last one stops the clocks
    measurement result();                             ///< waits for that; throws what a worker threw

private:
    std::size_t workers_;
    std::size_t operations_;
    std::size_t left_;
    double seconds_ = 0;
    double cpu_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    std::exception_ptr problem_;
};

/// A coroutine that starts at once, belongs to nobody and frees itself. Its first parameter is its load.
struct worker {
    struct promise_type {
        template <class... Others>
        explicit promise_type(load& owner, Others&&...) noexcept : work(owner) {}
        worker get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        auto final_suspend() noexcept {
            work.ended(std::exchange(problem, nullptr));
            return std::suspend_never{};
        }
        void return_void() const noexcept {}
        void unhandled_exception() noexcept { problem = std::current_exception(); }

        load& work;
        std::exception_ptr problem;
    };
};

/// A worker's coroutine function; the last argument is its number, from 0.
using make_worker = std::function<worker(load&, client&, std::size_t)>;

struct load_size {
    std::size_t depth;       ///< workers, each with one request in flight
    std::size_t operations;  ///< of all together
};
measurement run_load(client& through, load_size size, make_worker const& make);

}  // namespace lockstep::bench
