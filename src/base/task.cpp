#include <lockstep/task.hpp>

#include <utility>

// Not in the header: without optimisation g++ generates the code of an inline coroutine in every file, used or not.

namespace lockstep {

task<void> when_all(std::vector<task<void>> works) {
    detail::gathering<void> gathering{std::move(works)};
    co_await gathering.all();
    gathering.check();
}

task<std::size_t> when_any(std::vector<task<void>> works) {
    detail::gathering<void> gathering{std::move(works)};
    co_await gathering.any();
    gathering.check();
    co_return gathering.winner();
}

}  // namespace lockstep
