#pragma once

// Somebody in this process who waits at a gate, in the frame of the coroutine that waits:
//
//     visitor mine{gate, {.deadline = ...}};
//     co_await mine;                        // throws when it can't wait any longer
//     if (!mine.outcome()) ...              // its time was over

#include "lease/awaiter.hpp"
#include "lease/gate_answer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace lockstep::engine {

class gate;

class visitor final : public awaiter {
public:
    struct terms {
        clock::time_point deadline = clock::time_point::max();
        /// The server knew of it when the gate had been told of so many changes; nothing: it begins with a question.
        std::optional<std::uint64_t> changes{};
        bool any_change = false;       ///< free as soon as anything changes, without a question
        std::int64_t generation = -1;  ///< what it waits for the end of; -1: not known yet
        std::string_view hold{};       ///< its own id at the server, where it has one; must live as long as this
    };

    visitor(std::shared_ptr<gate> at, terms how) noexcept;
    ~visitor() { withdraw(); }

    /// What set it free; nothing: its time was over before.
    std::optional<gate_word> outcome() const noexcept { return outcome_; }

    // For the gate, in turns:
    terms const& how() const noexcept { return how_; }
    void finish(std::optional<gate_word> how) noexcept;

    std::uint64_t entry = 0;       ///< how many had come to the gate with it
    std::int64_t generation = -1;  ///< as in the terms, or learnt since

private:
    std::shared_ptr<detail::core> const& owner() const noexcept override;
    clock::time_point deadline() const noexcept override { return how_.deadline; }
    void enter() override;
    void leave() noexcept override;
    void time_is_over() noexcept override { finish(std::nullopt); }
    void is_cancelled() noexcept override;

    std::shared_ptr<gate> gate_;
    terms how_;
    std::optional<gate_word> outcome_;
};

}  // namespace lockstep::engine
