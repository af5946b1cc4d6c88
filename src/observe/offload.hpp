#pragma once

// Work on what was read, away from the client's I/O thread: leases are renewed there, and the more there is to look at, the longer it takes.

#include "lease/pause.hpp"
#include "observe/reader.hpp"
#include "redis/aside.hpp"

#include <lockstep/error.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace lockstep::observe {

template <class T>
struct offloaded {
    std::optional<T> value;
    std::exception_ptr problem;
};

/// What `work` returns, which owns all that it uses. Where there are few elements, or no further thread can be had, it is done at once.
template <class F>
task<std::invoke_result_t<F&>> offload(reader from, std::size_t elements, F work) {
    using result = offloaded<std::invoke_result_t<F&>>;
    constexpr std::size_t few = 500;  // some 100 us
    if (elements <= few) co_return work();
    engine::pause turn{from.owner(), std::chrono::milliseconds{0}};
    co_await turn;
    redis::aside<result> elsewhere{from.owner()->home()};
    auto guarded = [work = std::move(work)]() mutable noexcept {
        result made;
        try {
            made.value.emplace(work());
        } catch (...) {
            made.problem = std::current_exception();
        }
        return made;
    };
    auto const shared = std::make_shared<decltype(guarded)>(std::move(guarded));
    auto by_thread = [shared]() noexcept { return (*shared)(); };
    std::optional<result> done;
    bool is_alone = false;
    try {
        auto working = elsewhere.at(std::move(by_thread));
        done = co_await working;
    } catch (std::system_error const&) {  // a limit of processes
        is_alone = true;
    }
    if (is_alone) done = (*shared)();
    if (!done) throw cancelled_error("the client is closed");
    if (done->problem) std::rethrow_exception(done->problem);
    co_return std::move(*done->value);
}

}  // namespace lockstep::observe
