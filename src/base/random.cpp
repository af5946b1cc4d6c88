// The fast generator is xoshiro256++ (Blackman and Vigna, public domain): 32 bytes of state and about a nanosecond a number,
// where std::mt19937_64 would cost each thread 2.5 kB.
#include "base/random.hpp"

#include "base/random_ids.hpp"

#include <pthread.h>
#include <sys/random.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace lockstep::base {
namespace {

// Requests of up to 256 bytes are never cut short by a signal once the kernel's pool is ready.
template <class Block>
void fill_from_kernel(Block& block) {
    static_assert(sizeof(Block) <= 256);
    while (::getrandom(&block, sizeof(Block), 0) != static_cast<ssize_t>(sizeof(Block))) {
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
    }
}

// Grows in the child of every fork(): a generator seeded in an earlier generation is a copy of the parent's.
std::atomic<std::uint64_t> generation{1};

[[maybe_unused]] int const fork_watch = ::pthread_atfork(nullptr, nullptr, [] { ++generation; });

class generator {
public:
    std::uint64_t next() {
        if (auto const current = generation.load(std::memory_order_relaxed); seeded_in_ != current) {
            do {
                fill_from_kernel(state_);
            } while (state_ == std::array<std::uint64_t, 4>{});  // the one state xoshiro never leaves
            seeded_in_ = current;
        }
        auto& s = state_;
        auto const result = std::rotl(s[0] + s[3], 23) + s[0];
        auto const shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = std::rotl(s[3], 45);
        return result;
    }

private:
    std::array<std::uint64_t, 4> state_{};
    std::uint64_t seeded_in_ = 0;
};

std::uint64_t next() {
    thread_local generator own;
    return own.next();
}

}  // namespace

std::uint64_t random_below(std::uint64_t n) {
    if (n == 0) return 0;
    // The lowest 2^64 mod n values would make small results more likely: draw again.
    auto const surplus = (0 - n) % n;
    std::uint64_t drawn;
    do {
        drawn = next();
    } while (drawn < surplus);
    return drawn % n;
}

double random_unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

std::string random_id() {
    std::array<std::uint64_t, 2> bits;
    fill_from_kernel(bits);
    std::string id;
    append_id(id, bits[0], bits[1]);
    return id;
}

void random_from_kernel(std::array<std::uint64_t, 32>& to) { fill_from_kernel(to); }

void append_id(std::string& to, std::uint64_t low, std::uint64_t high) {
    static constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char id[22];
    for (int i = 0; i < 21; ++i) {  // 126 bits, six at a time
        id[i] = alphabet[low & 63];
        low = low >> 6 | high << 58;
        high >>= 6;
    }
    id[21] = alphabet[low & 3];
    to.append(id, sizeof id);
}

}  // namespace lockstep::base
