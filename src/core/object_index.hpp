#pragma once

// Which objects there are, kept at the server so that monitors find them without looking through all its keys. Nothing depends on it.
//
//     <prefix>:{objects/<n>}:index   sorted set, n from 0 to 15: that of an object is the Cluster slot of its name, modulo 16
//       member   the object's key without the prefix: '{<name>}:lock'. Of jobs the key of their types or of their schedules. A session store
//                and a rate limiter have no key of their own: '{<name>}:sessions', '{<name>}:limiter'
//       score    the server's time in ms at which somebody looks whether the key is still there; without a key, when it leaves the list
//
// An object that is used is noted here, in memory; a second after the first, and then at most every 10 s, the client tells the server, 5,000
// objects a second. So no call that uses an object pays for it. With that, and once a minute when it has nothing to tell, a client looks after
// some objects whose time has come: those whose keys are gone leave the index, so it does not grow without end. Readers look for the keys
// themselves, so nothing that is gone is ever shown.
//
// Each index expires by itself: a month after the last use of a lock, a year after that of something that does not expire.

#include "redis/reactor.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lockstep::detail {

class core;

class object_index final : redis::arrival {
public:
    explicit object_index(core& owner);

    /// Of an object: whether it was noted since the server was told last.
    class mark {
    public:
        mark() = default;
        mark(mark const&) noexcept {}
        mark& operator=(mark const&) noexcept { return *this; }

    private:
        friend class object_index;
        std::atomic<std::uint32_t> round_{0};
    };

    // From any thread:
    /// It was used, and was not noted since the server was told last: then it is to be `add`ed. Costs two loads.
    bool is_new(mark& of) noexcept {
        auto const round = round_.load(std::memory_order_relaxed);
        if (of.round_.load(std::memory_order_relaxed) == round) return false;
        of.round_.store(round, std::memory_order_relaxed);
        return true;
    }
    /// By its key; one that has no key of its own is listed for so long.
    void add(std::string_view key, std::chrono::milliseconds listed_for = {}) noexcept;

    // In turns:
    /// Somebody looks at what there is: until then the server is told as often as this.
    void hurry(std::chrono::milliseconds pace, redis::reactor::clock::time_point until) noexcept;
    /// Tells what is noted; calls `done` when that is settled.
    void close(std::function<void()> done) noexcept;

    static constexpr unsigned shards = 16;
    static std::string key_of(std::string_view prefix, unsigned shard);
    /// Of an object by its member, or by any of its keys.
    static unsigned shard_of(std::string_view key) noexcept;

    static constexpr std::chrono::milliseconds interval{10'000};

private:
    using clock = redis::reactor::clock;

    void arrive() noexcept override;
    void fire() noexcept override;
    void tell();
    void begin_tending(unsigned shard, std::vector<std::string> words);
    bool was_told_lately(std::string const& member);
    void one_less() noexcept;

    core& owner_;
    std::size_t const prefix_size_;
    std::atomic<std::uint32_t> round_;

    std::mutex mutex_;
    std::unordered_map<std::string, std::int64_t> noted_;  // and for how many ms they are listed
    bool is_handed_in_ = false;

    // In turns:
    std::unordered_map<std::string, clock::time_point> told_;
    std::uint64_t connects_ = 0;
    clock::time_point told_at_{};
    clock::time_point hurry_until_{};
    std::chrono::milliseconds pace_{interval};
    unsigned next_shard_;
    std::size_t under_way_ = 0;
    bool closing_ = false;
    std::function<void()> closed_;
};

}  // namespace lockstep::detail
