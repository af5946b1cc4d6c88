#pragma once

// Where bytes arrive from a peer, until they are parsed. Small ones lie in an array. From 1 MiB on they lie in pages of their own: these grow without being
// copied, are in memory only as far as something has come, and a reply can keep them (shared_message.hpp).

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace lockstep::resp {

/// Memory straight from the system.
class pages {
public:
    explicit pages(std::size_t size);
    ~pages();
    pages(pages const&) = delete;
    pages& operator=(pages const&) = delete;

    char* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    /// Throws std::bad_alloc. The bytes may lie elsewhere then.
    void grow(std::size_t size);
    /// Gives back what is beyond; the bytes stay where they are.
    void shrink(std::size_t size) noexcept;

private:
    char* data_ = nullptr;
    std::size_t size_ = 0;
};

class input {
public:
    static constexpr std::size_t large = std::size_t{1} << 20;

    std::string_view unread() const noexcept { return {data_ + begin_, end_ - begin_}; }
    /// Room behind what is there, for so many bytes or more.
    std::span<char> reserve(std::size_t bytes) {
        if (size_ - end_ < bytes || begin_ == end_) make_room(bytes);
        return {data_ + end_, size_ - end_};
    }
    void commit(std::size_t bytes) noexcept { end_ += bytes; }
    /// The first of what is unread.
    void consume(std::size_t bytes) noexcept { begin_ += bytes; }
    /// The same, of what another thread may be reading from now on: an owner of it was given to a reply.
    void release(std::size_t bytes) {
        begin_ += bytes;
        if (pages_ != nullptr) leave_pages();
    }
    /// Keeps the bytes that are there now where they are, if they are released; null where they are few.
    std::shared_ptr<void const> owner() const noexcept { return pages_; }

private:
    void make_room(std::size_t bytes);
    void leave_pages();

    std::unique_ptr<char[]> array_;
    std::shared_ptr<pages> pages_;  // either of them
    char* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace lockstep::resp
