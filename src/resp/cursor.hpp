#pragma once

// Reads a list from front to back: what replies of fixed records are taken apart with.
//
//     for (resp::cursor rest{answer, 2}; rest.left() >= 2;) {
//         auto const name = rest.next().text();
//         auto const score = rest.next().integer();
//     }

#include <lockstep/reply.hpp>

#include <cstddef>
#include <string>

namespace lockstep::resp {

class cursor {
public:
    /// Behind the first `skipped`; at the end where there are fewer.
    explicit cursor(reply_view list, std::size_t skipped = 0) noexcept : at_(list.begin()), size_(list.size()), left_(size_) {
        for (; skipped != 0 && left_ != 0; --skipped) step();
    }
    explicit cursor(reply&&, std::size_t = 0) = delete;  // it would look into a reply that is gone

    std::size_t left() const noexcept { return left_; }

    /// Throws `conversion_error` at the end.
    reply_view next() {
        if (left_ == 0) throw conversion_error("the reply has " + std::to_string(size_) + " elements, and another is expected behind them");
        auto const found = *at_;
        step();
        return found;
    }

private:
    void step() noexcept {
        ++at_;
        --left_;
    }

    reply_view::iterator at_;
    std::size_t size_;
    std::size_t left_;
};

}  // namespace lockstep::resp
