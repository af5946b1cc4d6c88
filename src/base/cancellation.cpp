#include <lockstep/detail/cancellation.hpp>

#include <lockstep/error.hpp>

#include <utility>

namespace lockstep::detail {

void cancel_state::request() noexcept {
    std::lock_guard const guard{mutex_};
    if (std::exchange(requested_, true)) return;
    if (place_ != nullptr) place_->cancel_requested(shared_from_this());
}

bool cancel_state::requested() const noexcept {
    std::lock_guard const guard{mutex_};
    return requested_;
}

bool cancel_state::park(parked& place) noexcept {
    std::lock_guard const guard{mutex_};
    if (requested_) return false;
    place_ = &place;
    return true;
}

void cancel_state::unpark() noexcept {
    std::lock_guard const guard{mutex_};
    place_ = nullptr;
}

void cancel_state::deliver() noexcept {
    // After a request no new place can register: what stands here is what was asked to stop, or nothing.
    parked* place = nullptr;
    {
        std::lock_guard const guard{mutex_};
        place = std::exchange(place_, nullptr);
    }
    if (place != nullptr) place->cancel_here();
}

void cancel_link::link(cancel_state* outer, std::shared_ptr<cancel_state> inner) noexcept {
    inner_ = std::move(inner);
    if (outer == nullptr) return;
    if (outer->park(*this)) {
        outer_ = outer;
    } else {
        inner_->request();
    }
}

void cancel_link::unlink() noexcept {
    if (auto* const outer = std::exchange(outer_, nullptr)) outer->unpark();
}

namespace {
thread_local bool does_io = false;
}

bool on_io_thread() noexcept { return does_io; }

void require_blocking_is_allowed() {
    if (does_io) {
        throw would_deadlock_error(
            "a blocking call was made on the thread that does the I/O and would wait for itself; "
            "use the async_ form there, or move the work to another thread");
    }
}

io_thread_mark::io_thread_mark() noexcept : before_(std::exchange(does_io, true)) {}
io_thread_mark::~io_thread_mark() { does_io = before_; }

}  // namespace lockstep::detail
