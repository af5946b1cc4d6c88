#pragma once

// Keeps keys from expiring while this client has objects that use them: semaphores, events, latches and barriers, which nobody needs to
// hold or wait for in order to rely on them.
//
// Each key is registered by the objects that use it. One timer sends `PEXPIRE key 2*retention GT` for all of them, every retention/3, in
// batches that share a write. GT never shortens an expiry, and a key that is gone stays gone. Up to 50 commands leave in a second: with more
// keys than that allows the rounds become longer, but never so long that a key could expire. A command that fails is made up for by the next
// round. Without registered keys the timer rests. One per client; registering is possible from any thread.

#include "core/core.hpp"
#include "redis/reactor.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::engine {

class key_keepalive final : public detail::core::extension, redis::arrival {
public:
    class registration;

    /// The key is kept for as long as the result lives. Null: the client is closed.
    static std::shared_ptr<registration> keep(detail::core& client, std::string const& key,
                                              std::chrono::milliseconds retention);

    explicit key_keepalive(detail::core& client) noexcept : client_(client) {}
    ~key_keepalive() override = default;

    static constexpr double commands_per_second = 50;

private:
    using clock = redis::reactor::clock;
    using queue = std::set<std::pair<clock::time_point, registration*>>;

    struct request {
        std::string key;
        std::int16_t slot;
        std::chrono::milliseconds expiry;
    };

    void close(std::function<void()> done) noexcept override;
    void arrive() noexcept override;
    void fire() noexcept override;
    void put_in_queue(registration& kept, clock::time_point due);  // the three of them with the mutex held
    void wake() noexcept;
    std::vector<request> take_due(clock::time_point now);
    void send(request const& wanted) noexcept;

    detail::core& client_;
    std::mutex mutex_;
    std::map<std::string_view, std::weak_ptr<registration>> by_key_;
    queue queue_;
    clock::time_point armed_ = clock::time_point::max();
    clock::time_point filled_at_{};
    double allowance_ = 0;  // how many commands may leave now
    bool handed_in_ = false;
    bool closed_ = false;
};

/// A key that somebody uses.
class key_keepalive::registration {
public:
    registration(key_keepalive& keeper, std::string key, std::chrono::milliseconds retention);
    ~registration();
    registration(registration const&) = delete;

private:
    friend key_keepalive;

    key_keepalive& keeper_;
    std::string key_;
    std::chrono::milliseconds retention_;
    clock::time_point extended_at_;
    clock::time_point due_ = clock::time_point::max();
};

}  // namespace lockstep::engine
