#pragma once

// The thread of a client that has no executor to live on.

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <memory>
#include <thread>

namespace lockstep::detail {

class io_thread {
public:
    io_thread();
    ~io_thread();

    boost::asio::io_context::executor_type executor() noexcept { return context_->get_executor(); }
    /// Lets it end when nothing is left to do, and waits for that unless called on a thread that does I/O, its own or another client's.
    void finish() noexcept;

private:
    // Shared with the thread itself: the last owner of a client may be a coroutine that ends on it.
    std::shared_ptr<boost::asio::io_context> context_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    std::thread thread_;
};

}  // namespace lockstep::detail
