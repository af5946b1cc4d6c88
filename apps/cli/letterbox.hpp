#pragma once

// What the library's threads hear, for the one that prints.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace lockstep::cli {

template <class T>
class letterbox {
public:
    void put(T one) {
        std::lock_guard const guard{mutex_};
        waiting_.push_back(std::move(one));
        changed_.notify_all();
    }
    /// Nothing: told to end.
    std::optional<T> next(std::stop_token const& token) {
        std::unique_lock guard{mutex_};
        if (!changed_.wait(guard, token, [this] { return !waiting_.empty(); })) return std::nullopt;
        auto one = std::move(waiting_.front());
        waiting_.pop_front();
        return one;
    }

private:
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<T> waiting_;
};

}  // namespace lockstep::cli
