// Who led when, written down outside Redis by the leaders themselves: a file that all of them map, so that what one wrote before it was
// killed is there.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <time.h>
#include <vector>

namespace lockstep::test {

struct reign {
    std::uint64_t term = 0;
    std::int64_t first_ns = 0;  // when it was found valid first, and last; CLOCK_BOOTTIME, read before it was asked
    std::int64_t last_ns = 0;
};

class reign_book {
public:
    explicit reign_book(std::string const& path) {
        int const file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0 || ::ftruncate(file, sizeof(pages)) != 0) throw std::runtime_error{"the book can't be opened: " + path};
        void* const mapped = ::mmap(nullptr, sizeof(pages), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        ::close(file);
        if (mapped == MAP_FAILED) throw std::runtime_error{"the book can't be mapped"};
        pages_ = static_cast<pages*>(mapped);
    }
    ~reign_book() { ::munmap(pages_, sizeof(pages)); }
    reign_book(reign_book const&) = delete;
    reign_book& operator=(reign_book const&) = delete;

    static std::int64_t now_ns() {
        timespec now{};
        ::clock_gettime(CLOCK_BOOTTIME, &now);
        return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    }

    /// A line of its own for a new leader, which `is_valid` and still leads. Calls `is_valid` as often as it can until it says no.
    template <class F>
    void keep(std::uint64_t term, F is_valid) {
        auto const index = std::atomic_ref{pages_->used}.fetch_add(1);
        if (index >= most) throw std::runtime_error{"the book is full"};
        auto& line = pages_->lines[index];
        line.term = term;
        for (auto now = now_ns(); is_valid(); now = now_ns()) {
            if (line.first_ns == 0) line.first_ns = now;
            line.last_ns = now;
        }
    }

    /// Those who were valid at all, by the time they began.
    std::vector<reign> read() const {
        auto const used = std::min<std::uint64_t>(std::atomic_ref{pages_->used}.load(), most);
        std::vector<reign> all(pages_->lines, pages_->lines + used);
        std::erase_if(all, [](reign const& one) { return one.first_ns == 0; });
        std::ranges::sort(all, {}, &reign::first_ns);
        return all;
    }

private:
    static constexpr std::uint64_t most = 10'000;
    struct pages {
        std::uint64_t used;
        reign lines[most];
    };
    pages* pages_;
};

}  // namespace lockstep::test
