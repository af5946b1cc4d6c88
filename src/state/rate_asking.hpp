#pragma once

// What a rate limiter asks the server, and what the answer means (src/scripts/rate_*.lua have the rules). Those who want to know whether something may
// be now, and come in the same turn, ask in one call; each is decided for itself.

#include "core/core.hpp"
#include "lease/shared_calls.hpp"
#include "redis/command.hpp"
#include "state/request_limit.hpp"

#include <lockstep/rate_limiter.hpp>
#include <lockstep/reply.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::detail {

/// The options in the scripts' units.
struct rate_rules {
    static constexpr std::int64_t ticks_per_us = 8;  ///< of rate_bucket.lua
    /// Also how much longer than needed a bucket stays empty when the server's clock is set back.
    static constexpr std::chrono::microseconds furthest_reservation = std::chrono::seconds{10};

    explicit rate_rules(rate_limit_options const& options);

    bool is_bucket() const noexcept { return algorithm == rate_algorithm::token_bucket; }
    std::int64_t most() const noexcept { return is_bucket() ? burst : limit; }

    rate_algorithm algorithm;
    std::int64_t limit, per_us, burst;
    std::int64_t interval;  ///< ticks
    std::int64_t furthest;  ///< ticks: a reservation
    std::int64_t ttl_ms;    ///< of a bucket, or a window
};

struct rate_question {
    enum class way : std::uint8_t { each, all, look };

    std::int64_t cost = 1;
    way how = way::each;
    std::int64_t ahead = 0;  ///< ticks
};

std::int16_t rate_slot(core const& owner, std::string_view full_key);
redis::command_terms rate_terms(core const& owner, request_limit const& limit, std::int16_t slot);

/// For keys of one slot. Who gets an answer is to tell `limit`.
task<reply> ask_rate(core& owner, request_limit const& limit, rate_rules const& rules, std::int16_t slot, std::span<std::string_view const> keys,
                     rate_question const& what);

/// Reads an answer key by key.
class rate_answer {
public:
    rate_answer(rate_rules const& rules, reply const& said, std::size_t keys, rate_question const& what);

    /// What was said of the next key; throws what is wrong with it. `retry_after` is also there when it was allowed: how long a reservation has to wait.
    rate_decision next();

private:
    rate_decision next_of_log();
    rate_decision next_of_window();
    rate_decision next_of_bucket();
    std::int64_t next_number();
    bool is_each() const noexcept { return what_.how == rate_question::way::each; }

    rate_rules const& rules_;
    rate_question what_;
    reply_view::iterator at_;
    rate_decision common_{};
};

/// In ticks, as rate_return.lua wants it: what was said, to one who took.
std::int64_t bucket_after(reply_view said);

class rate_calls final : public engine::shared_calls {
public:
    rate_calls(std::shared_ptr<core> owner, rate_rules const& rules, std::shared_ptr<request_limit> limit)
        : shared_calls(std::move(owner)), rules_(rules), limit_(std::move(limit)) {}

private:
    std::size_t count_together(line const& waiting) const override;
    task<void> send(engine::shared_call& what) override;

    rate_rules rules_;
    std::shared_ptr<request_limit> limit_;
};

/// Waits until it is decided.
class rate_decider final : public engine::passenger {
public:
    rate_decider(std::shared_ptr<rate_calls> by, std::string key, std::int16_t slot_of_key, std::int64_t what) noexcept
        : passenger(std::move(by)), full_key(std::move(key)), slot(slot_of_key), cost(what) {}
    ~rate_decider() { withdraw(); }

    std::string full_key;
    std::int16_t slot;
    std::int64_t cost;
    rate_decision made{};
};

}  // namespace lockstep::detail
