#pragma once

// The bytes that wait to be written: a growable array that, unlike std::string, can be written into without being
// filled with zeros first.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace lockstep::resp {

class output {
public:
    output() noexcept = default;
    output(output&& other) noexcept
        : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)), capacity_(std::exchange(other.capacity_, 0)) {}
    output& operator=(output other) noexcept { return swap(other), *this; }

    char const* data() const noexcept { return data_.get(); }
    std::size_t size() const noexcept { return size_; }
    std::size_t capacity() const noexcept { return capacity_; }
    bool empty() const noexcept { return size_ == 0; }
    std::string_view view() const noexcept { return {data_.get(), size_}; }

    void clear() noexcept { size_ = 0; }           ///< keeps the memory
    void release() noexcept { *this = output{}; }  ///< gives the memory back
    void swap(output& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

    /// Room for `bytes` more; write there, then commit() the end of what was written.
    char* reserve(std::size_t bytes) {
        if (capacity_ - size_ < bytes) grow(bytes);
        return data_.get() + size_;
    }
    void commit(char const* end) noexcept { size_ = static_cast<std::size_t>(end - data_.get()); }

    void append(std::string_view text) {
        auto* const at = reserve(text.size());
        if (!text.empty()) std::memcpy(at, text.data(), text.size());
        size_ += text.size();
    }

    /// Takes back everything behind the first `size` bytes: a command that is not to be sent after all.
    void truncate(std::size_t size) noexcept { size_ = std::min(size_, size); }

private:
    void grow(std::size_t bytes) {
        auto const capacity = std::max({std::size_t{512}, capacity_ * 2, size_ + bytes});
        auto larger = std::make_unique_for_overwrite<char[]>(capacity);
        if (size_ != 0) std::memcpy(larger.get(), data_.get(), size_);
        data_ = std::move(larger);
        capacity_ = capacity;
    }

    std::unique_ptr<char[]> data_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace lockstep::resp
