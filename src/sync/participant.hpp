#pragma once

// One who takes part in one generation of a barrier: it arrives, its arrival is renewed, and it hears how the generation ended. Everything
// in turns, except what is said to be otherwise.
//
// Its arrival must not stay behind. So whoever takes part has a `presence` in its coroutine's frame, and when that goes before the end is
// known (a cancellation, an error, a frame that is destroyed), the arrival is taken back in the background.

#include "lease/gate.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::detail {

struct barrier_state {
    engine::gate_target what;
    std::int64_t parties;
    std::function<void()> completion;
};

class barrier_gate final : public engine::gate {
public:
    using gate::gate;
    std::string_view purpose(engine::visitor const& who) const noexcept override { return who.how().any_change ? "place" : "others"; }
    /// The one that is open, as far as is known here; 0: nothing is known.
    std::int64_t open_generation = 0;
    /// The server knows nothing of this generation, or of an arrival in it.
    void forgotten(std::int64_t generation) noexcept;

private:
    task<engine::gate_answer> ask(std::string id, clock::time_point until) override;
    bool frees(engine::gate_answer const& said, engine::visitor& who) noexcept override;
    errc hopeless() const noexcept override { return errc::indeterminate; }

    std::int64_t asked_for_ = -1;
};

class participant final : redis::timer, public std::enable_shared_from_this<participant> {
public:
    using clock = engine::gate::clock;
    using answer = engine::gate_answer;
    using word = engine::gate_word;
    using state = std::shared_ptr<barrier_state const>;

    participant(state of, bool dropping);
    virtual ~participant() = default;

    /// Arrives in the open generation, if the server gets it before `until`. Any answer that is not of an arrival means: it has not
    /// arrived and will not.
    task<answer> arrive(clock::time_point until);
    /// After it arrived: throws `broken_barrier_error`. False: its time was over, and that broke the generation.
    task<bool> wait_for_end(clock::time_point until, std::uint64_t changes);
    /// The completion function was run.
    task<answer> finish(bool ok);
    /// Nobody waits for it any more, and the end is not known. `ran`: the completion function was run, well or not.
    void abandon(std::optional<bool> ran) noexcept;

    barrier_gate& where() const noexcept { return static_cast<barrier_gate&>(*of_->what.where); }
    std::int64_t generation() const noexcept { return generation_; }

private:
    enum class stage : std::uint8_t { outside, arriving, inside, over };

    task<answer> send_arrival(std::int64_t deadline_ms, clock::time_point until);
    task<answer> withdraw(clock::time_point until);
    bool ended(answer const& said);
    bool may_have_been_sent_twice() const noexcept;
    static root renew(std::shared_ptr<participant> self);
    static root clean_up(std::shared_ptr<participant> self, stage was, std::optional<bool> ran);
    void fire() noexcept override;
    void schedule_renewal() noexcept;
    void be_over() noexcept;

    state of_;
    std::string hold_;
    std::int64_t generation_ = 0;
    std::int64_t deadline_ms_ = 0;  // of the arrival under way
    std::uint64_t connects_ = 0;    // how often the way had been connected when it was first sent
    stage stage_ = stage::outside;
    bool dropping_;
};

/// Owns a participation. Made in a turn, destroyed anywhere.
class presence {
public:
    explicit presence(std::shared_ptr<participant> who) noexcept : who_(std::move(who)) {}
    presence(presence&&) noexcept = default;
    ~presence();

    participant* operator->() const noexcept { return who_.get(); }
    std::optional<bool> ran;  ///< the completion function was run: well?

private:
    std::shared_ptr<participant> who_;
};

}  // namespace lockstep::detail
