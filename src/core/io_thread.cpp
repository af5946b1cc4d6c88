#include "core/io_thread.hpp"

#include "base/quiet_thread.hpp"

#include <lockstep/detail/cancellation.hpp>

#include <pthread.h>

namespace lockstep::detail {

io_thread::io_thread() : context_(std::make_shared<boost::asio::io_context>(1)), work_(context_->get_executor()) {
    thread_ = base::quiet_thread([context = context_] { context->run(); });
    pthread_setname_np(thread_.native_handle(), "lockstep-io");
}

io_thread::~io_thread() { finish(); }

void io_thread::finish() noexcept {
    work_.reset();
    if (!thread_.joinable()) return;
    if (on_io_thread() || thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();
    } else {
        thread_.join();
    }
}

}  // namespace lockstep::detail
