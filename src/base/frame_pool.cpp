// Memory of coroutine frames, used again. The rules of task_promise.hpp: any thread takes and gives, so the lists are shared; each is
// bounded; and under a sanitizer nothing is kept, which would hide what it looks for.

#include <lockstep/detail/task_promise.hpp>

#include <array>
#include <atomic>
#include <new>
#include <thread>

namespace lockstep::detail {
namespace {

constexpr std::size_t step = 64;
constexpr std::size_t sizes = 16;  // up to 1 kB
constexpr unsigned most = 128;     // of each size

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool keeps_frames = false;
#else
constexpr bool keeps_frames = true;
#endif

struct unused_frame {
    unused_frame* next;
};

/// Held for a few instructions only.
class frame_list {
public:
    void* take() noexcept {
        lock();
        auto* const found = first_;
        if (found != nullptr) {
            first_ = found->next;
            --count_;
        }
        busy_.clear(std::memory_order_release);
        return found;
    }
    bool give(void* memory) noexcept {
        lock();
        bool const kept = count_ < most;
        if (kept) {
            first_ = new (memory) unused_frame{first_};
            ++count_;
        }
        busy_.clear(std::memory_order_release);
        return kept;
    }

private:
    void lock() noexcept {
        while (busy_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }

    std::atomic_flag busy_;
    unused_frame* first_ = nullptr;
    unsigned count_ = 0;
};

constinit std::array<frame_list, sizes> lists{};

constexpr std::size_t index_of(std::size_t size) noexcept { return (size + step - 1) / step - 1; }

}  // namespace

void* allocate_frame(std::size_t size) {
    auto const index = index_of(size);
    if (!keeps_frames || index >= sizes) return ::operator new(size);
    if (auto* const memory = lists[index].take()) return memory;
    return ::operator new((index + 1) * step);
}

void free_frame(void* memory, std::size_t size) noexcept {
    auto const index = index_of(size);
    if (keeps_frames && index < sizes && lists[index].give(memory)) return;
    ::operator delete(memory);
}

}  // namespace lockstep::detail
