#pragma once

// Lets a reply keep the bytes of a large message instead of a copy of them, or the message would be in memory twice.
//
//     resp::shared_message const sharing{bytes, owner};   // `owner` keeps the bytes where they are
//     handle(parser.message());                           // a `reply` that is made of most of it, on this thread, shares them

#include <memory>
#include <string_view>
#include <utility>

namespace lockstep::resp {

class shared_message {
public:
    shared_message(std::string_view bytes, std::shared_ptr<void const> owner) noexcept : bytes_(bytes), owner_(std::move(owner)), outer_(std::exchange(current_, this)) {}
    ~shared_message() { current_ = outer_; }
    shared_message(shared_message const&) = delete;
    shared_message& operator=(shared_message const&) = delete;

    /// What keeps these `size` bytes of texts, which count from `base`; null: they are to be copied. A small part of a message is not worth that all of it is kept.
    static std::shared_ptr<void const> owner_of(char const* base, std::size_t size) noexcept {
        auto const* const now = current_;
        if (now == nullptr || base != now->bytes_.data() || size < now->bytes_.size() / 2) return nullptr;
        now->is_kept_ = true;
        return now->owner_;
    }
    bool is_kept() const noexcept { return is_kept_; }

private:
    static inline thread_local shared_message const* current_ = nullptr;

    std::string_view bytes_;
    std::shared_ptr<void const> owner_;
    shared_message const* outer_;
    mutable bool is_kept_ = false;
};

}  // namespace lockstep::resp
