#include "redis/reactor.hpp"

#include <lockstep/error.hpp>

#include <algorithm>
#include <utility>

namespace lockstep::redis {
namespace {
thread_local reactor::turn* current = nullptr;
constexpr int most_arrivals = 4096;
}

reactor::reactor(asio::any_io_executor executor, std::function<bool()> blocks_here)
    : executor_(std::move(executor)), blocks_here_(std::move(blocks_here)), alarm_(std::in_place, executor_) {}

bool reactor::here() const noexcept { return current != nullptr && &current->owner_ == this; }

reactor::lending::lending() noexcept : from_(std::exchange(current, nullptr)) {
    if (from_ != nullptr) from_->lock_.unlock();
}

reactor::lending::~lending() {
    if (from_ == nullptr) return;
    from_->lock_.lock();
    current = from_;
}

bool reactor::may_block() const noexcept {
    if (detail::on_io_thread()) return false;
    std::lock_guard const guard{inbox_mutex_};
    return !blocks_here_ || !blocks_here_();
}

void reactor::require_blocking_is_allowed() const {
    detail::require_blocking_is_allowed();
    if (!may_block()) {
        throw would_deadlock_error(
            "a blocking call was made on a thread of the executor this client lives on and could wait for itself; "
            "use the async_ form there, or give the client a thread of its own");
    }
}

reactor::turn::turn(reactor& owner) : owner_(owner), lock_(owner.turn_mutex_) {
    current = this;
    owner_.now_ = clock::now();
    ++owner_.turns_;
}

reactor::turn::~turn() {
    if (owner_.turns_ == 1) {  // otherwise the one that was lent does that
        owner_.finish_turn();
        if (!owner_.kept_.empty()) std::exchange(owner_.kept_, {}).clear();
    }
    --owner_.turns_;
    current = nullptr;
}

bool reactor::hand_in(arrival& item) {
    if (here()) {
        arrived_.push_back(item);
        ++arrivals_;
        return true;
    }
    std::lock_guard const guard{inbox_mutex_};
    if (shut_) return false;
    inbox_.push_back(item);
    if (!std::exchange(inbox_posted_, true)) post_turn([this] { drain_inbox(); });
    return true;
}

void reactor::shut() noexcept {
    while (!outside_.empty()) outside_.front().end();
    std::lock_guard const guard{inbox_mutex_};
    shut_ = true;
    arrived_.splice(arrived_.end(), inbox_);
    alarm_at_ = clock::time_point::min();  // none is set any more
    alarm_.reset();
    executor_ = {};
    blocks_here_ = {};
}

bool reactor::wait_outside(outside& item) noexcept {
    if (shut_) return false;
    outside_.push_back(item);
    return true;
}

void reactor::take_back(arrival& item) noexcept {
    std::lock_guard const guard{inbox_mutex_};
    item.unlink();
}

void reactor::drain_inbox() noexcept {
    std::lock_guard const guard{inbox_mutex_};
    inbox_posted_ = false;
    arrived_.splice(arrived_.end(), inbox_);
}

void reactor::at_end_of_turn(turn_end& work) {
    if (std::exchange(work.listed_, true)) return;
    endings_.push_back(&work);
}

void reactor::forget(turn_end& work) noexcept {
    if (std::exchange(work.listed_, false)) std::erase(endings_, &work);
}

void reactor::finish_turn() noexcept {
    settle();
    set_alarm();
    if (!arrived_.empty()) post([] {});
}

void reactor::settle() noexcept {
    int more = most_arrivals;
    while (!arrived_.empty() || !endings_.empty()) {
        if (!arrived_.empty() && (more-- > 0 || shut_)) {
            auto& item = arrived_.front();
            item.unlink();
            item.arrive();
            continue;
        }
        if (endings_.empty()) return;
        auto* const work = endings_.back();
        endings_.pop_back();
        work->listed_ = false;
        work->end_of_turn();
    }
}

void reactor::arm(timer& item, clock::time_point due) { wheel_.insert(item, due); }

void reactor::set_alarm() {
    // The alarm is left alone when it is set too early: it then finds nothing due and is set anew. Most timers are removed
    // long before they are due, so this makes no system call in a steady stream of requests.
    auto const due = wheel_.next_due(now_);
    if (!due || *due >= alarm_at_) return;
    alarm_at_ = *due;
    alarm_->expires_at(*due);
    alarm_->async_wait([self = weak_from_this()](boost::system::error_code error) {
        auto const alive = self.lock();
        if (!alive || error) return;
        turn const now{*alive};
        if (alive->alarm_at_ == clock::time_point::min()) return;  // shut meanwhile
        alive->alarm_at_ = clock::time_point::max();
        alive->wheel_.expire(alive->now_, [](base::timer_node& node) { static_cast<timer&>(node).fire(); });
    });
}

}  // namespace lockstep::redis
