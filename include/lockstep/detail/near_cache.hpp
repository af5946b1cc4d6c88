#pragma once

// What `near_cache<T>` is without its T. Compiled in src/state/near_cache.cpp.

#include <lockstep/client.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace lockstep {

struct near_cache_options {
    std::size_t max_entries = 10'000;           ///< values kept here, at least 16; those not used lately go first
    std::chrono::milliseconds max_age{60'000};  ///< none is older, whatever happens to the server and the network
};

struct near_cache_statistics {
    std::uint64_t hits = 0;           ///< answered here
    std::uint64_t misses = 0;         ///< asked of the server
    std::uint64_t invalidations = 0;  ///< values dropped because they changed, or may have
    std::uint64_t evictions = 0;      ///< values dropped for want of room
    std::size_t entries = 0;
};

namespace detail {

class near_cache_state;

class raw_near_cache {
public:
    /// Makes the value that is kept, of its bytes and its version.
    using maker = std::shared_ptr<void const> (*)(std::string_view bytes, std::uint64_t version);

    raw_near_cache(client& by, near_cache_options const& options, maker make);

    /// False: it is not here.
    bool hit(std::string_view name, std::shared_ptr<void const>& to) const;
    task<std::shared_ptr<void const>> fetch(std::string_view name) const;
    void forget(std::string_view name) const noexcept;
    near_cache_statistics statistics() const noexcept;
    void require_blocking() const;

private:
    std::shared_ptr<near_cache_state> state_;
};

}  // namespace detail
}  // namespace lockstep
