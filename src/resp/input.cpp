#include "resp/input.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace lockstep::resp {
namespace {

constexpr std::size_t smallest = 64 * 1024;
constexpr std::size_t keep_at_most = 4 * input::large;  // more is given back when it is empty

std::size_t whole_pages(std::size_t size) noexcept {
    static auto const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return (size + page - 1) / page * page;
}

}  // namespace

pages::pages(std::size_t size) : size_(whole_pages(size)) {
    void* const made = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) throw std::bad_alloc{};
    data_ = static_cast<char*>(made);
}

pages::~pages() { ::munmap(data_, size_); }

void pages::grow(std::size_t size) {
    size = whole_pages(size);
    if (size <= size_) return;
    void* const made = ::mremap(data_, size_, size, MREMAP_MAYMOVE);
    if (made == MAP_FAILED) throw std::bad_alloc{};
    data_ = static_cast<char*>(made);
    size_ = size;
}

void pages::shrink(std::size_t size) noexcept {
    size = std::max<std::size_t>(whole_pages(size), 1);
    if (size >= size_) return;
    ::munmap(data_ + size, size_ - size);
    size_ = size;
}

void input::make_room(std::size_t bytes) {
    if (begin_ == end_) {
        begin_ = end_ = 0;
        if (size_ > keep_at_most) {
            array_.reset();
            pages_.reset();
            data_ = nullptr;
            size_ = 0;
        }
    }
    if (size_ - end_ >= bytes) return;
    auto const kept = end_ - begin_;
    if (begin_ != 0 && (begin_ >= kept || pages_ != nullptr)) {  // of pages, so that they grow from the front on
        std::memmove(data_, data_ + begin_, kept);
        begin_ = 0;
        end_ = kept;
        if (size_ - end_ >= bytes) return;
    }
    if (kept + bytes < large) {
        // Doubled, so that a reply of any size is moved a constant number of times.
        auto const size = std::max({smallest, kept * 2, kept + bytes});
        auto wider = std::make_unique_for_overwrite<char[]>(size);
        if (kept != 0) std::memcpy(wider.get(), data_ + begin_, kept);
        array_ = std::move(wider);
        data_ = array_.get();
        size_ = size;
    } else {
        auto const size = std::max(kept + kept / 2, kept + bytes);
        if (pages_ != nullptr) {
            pages_->grow(size);
        } else {
            pages_ = std::make_shared<pages>(size);
            if (kept != 0) std::memcpy(pages_->data(), data_ + begin_, kept);
            array_.reset();
        }
        data_ = pages_->data();
        size_ = pages_->size();
    }
    begin_ = 0;
    end_ = kept;
}

// A reply has them now, and what has come behind it goes on in an array, or in pages of its own.
void input::leave_pages() {
    auto const left = std::exchange(pages_, nullptr);
    auto const rest = std::string_view{data_ + begin_, end_ - begin_};
    auto const used = begin_;
    data_ = nullptr;
    size_ = begin_ = end_ = 0;
    if (!rest.empty()) {
        make_room(rest.size());
        std::memcpy(data_, rest.data(), rest.size());
        end_ = rest.size();
    }
    left->shrink(used);
}

}  // namespace lockstep::resp
