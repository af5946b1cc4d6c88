// An executor of the user's with one thread, for clients that live on it.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <future>
#include <thread>
#include <utility>

namespace lockstep::test {

class executor_thread {
public:
    ~executor_thread() {
        work_.reset();
        thread_.join();
    }
    auto executor() { return context_.get_executor(); }

    /// Runs `work` there; ready when it has ended.
    template <class F>
    std::future<void> run(F work) {
        std::packaged_task<void()> task{std::move(work)};
        auto ended = task.get_future();
        boost::asio::post(context_, std::move(task));
        return ended;
    }

private:
    boost::asio::io_context context_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
    std::thread thread_{[this] { context_.run(); }};
};

}  // namespace lockstep::test
