#pragma once

// co_await a task that must come to its end though the awaiting coroutine is cancelled: telling the server what became of something.
//
//     auto telling = base::uncancelled(give_back(what));
//     co_await telling;

#include <lockstep/task.hpp>

#include <coroutine>
#include <utility>

namespace lockstep::base {

template <class T>
class uncancelled {
public:
    explicit uncancelled(task<T> work) noexcept : work_(std::move(work)) {}

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> awaiting) { return detail::task_awaiter<T>{detail::task_access::frame(work_)}.enter(awaiting, nullptr); }
    T await_resume() { return detail::task_access::frame(work_).promise().take(); }

private:
    task<T> work_;
};

}  // namespace lockstep::base
