#include "core/subscription.hpp"

#include "redis/subscriptions.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <coroutine>
#include <utility>

namespace lockstep {
namespace detail {

namespace {
redis::channel_kind kind_of(subscription_kind kind) {
    switch (kind) {
        case subscription_kind::channel: return redis::channel_kind::plain;
        case subscription_kind::pattern: return redis::channel_kind::pattern;
        case subscription_kind::shard: return redis::channel_kind::shard;
    }
    throw invalid_argument_error("the kind of subscription is unknown");
}
}  // namespace

/// A listener of the bus. Its handler is called in turns; `end` takes the turn lock, so that no handler runs after it returned.
class subscription_state final : public std::enable_shared_from_this<subscription_state>, redis::listener, redis::arrival, parked {
public:
    subscription_state(std::shared_ptr<core> owner, subscription_options options)
        : owner_(std::move(owner)), options_(std::move(options)), kind_(kind_of(options_.kind)) {}
    ~subscription_state() = default;

    void end() noexcept {
        if (!owner_->same_process()) return;
        owner_->home().in_turn([this] { leave(); });
    }

    // Awaited once: until the server has confirmed it.
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
        awaiting_ = awaiting;
        cancel_ = cancellation_of(awaiting);
        if (owner_->home().hand_in(*this)) return true;
        awaiting_ = nullptr;
        problem_ = make_error(errc::cancelled, "the client is closed");
        return false;
    }
    void await_resume() {
        if (!problem_) return;
        std::rethrow_exception(problem_);
    }

private:
    void arrive() noexcept override {
        if (owner_->closed()) return settle(make_error(errc::cancelled, "the client is closed"));
        if (cancel_ != nullptr && !cancel_->park(*this)) {
            cancel_ = nullptr;
            return settle(make_error(errc::cancelled, "the subscription was cancelled"));
        }
        auto& home = owner_->home();
        home.arm(*this, owner_->deadline(std::chrono::milliseconds{0}));
        listening_ = true;
        owner_->bus().listening().add(kind_, options_.channel, *this);
    }
    void leave() noexcept {
        awaiting_ = nullptr;
        if (auto* const cancel = std::exchange(cancel_, nullptr)) cancel->unpark();
        owner_->home().disarm(*this);
        owner_->home().take_back(*this);  // it may not have arrived yet
        if (std::exchange(listening_, false)) owner_->bus().listening().remove(kind_, options_.channel, *this);
    }
    void settle(std::exception_ptr problem) {
        auto const awaiting = std::exchange(awaiting_, nullptr);
        if (!awaiting) return;
        owner_->home().disarm(*this);
        if (auto* const cancel = std::exchange(cancel_, nullptr)) cancel->unpark();
        if (problem) leave();
        problem_ = std::move(problem);
        awaiting.resume();
    }

    void message(std::string_view channel, std::string_view payload) noexcept override {
        guarded([&] { options_.handler({.channel = channel, .payload = payload}); });
    }
    void subscribed() noexcept override {
        refusal_.clear();
        if (awaiting_) return settle(nullptr);
        if (options_.on_gap) guarded(options_.on_gap);
    }
    /// The user's code must not take the connection along. It may end the subscription, and it is kept in here.
    template <class F>
    void guarded(F const& call) noexcept {
        auto const self = shared_from_this();
        try {
            call();
        } catch (std::exception const& problem) {
            log(log_level::error, fmt::format("the handler of '{}' threw: {}", options_.channel, problem.what()));
        } catch (...) {
            log(log_level::error, fmt::format("the handler of '{}' threw", options_.channel));
        }
    }
    void interrupted() noexcept override {}
    void refused(errc reason, std::string_view why) noexcept override {
        if (awaiting_) return settle(make_error(reason, std::string{why}));
        if (reason == errc::cancelled || refusal_ == why) return;
        refusal_ = why;
        log(log_level::error, fmt::format("no more messages of '{}': {}", options_.channel, why));
    }
    void fire() noexcept override {
        settle(make_error(errc::unavailable, "the server did not confirm the subscription in time"));
    }
    void cancel_requested(std::shared_ptr<cancel_state> state) noexcept override {
        owner_->home().post([state = std::move(state)] { state->deliver(); });
    }
    void cancel_here() noexcept override {
        cancel_ = nullptr;
        settle(make_error(errc::cancelled, "the subscription was cancelled"));
    }

    std::shared_ptr<core> owner_;
    subscription_options options_;
    redis::channel_kind kind_;
    bool listening_ = false;
    std::coroutine_handle<> awaiting_;
    cancel_state* cancel_ = nullptr;
    std::exception_ptr problem_;
    std::string refusal_;  // logged already
};

namespace {
struct subscription_guard {
    std::shared_ptr<subscription_state> state;
    ~subscription_guard() {
        if (state) state->end();
    }
};
}  // namespace

task<subscription> open_subscription(std::shared_ptr<core> owner, subscription_options options) {
    auto state = std::make_shared<subscription_state>(std::move(owner), std::move(options));
    subscription_guard guard{state};  // also when this coroutine is destroyed while it waits
    auto& confirmation = *state;
    co_await confirmation;
    guard.state.reset();
    co_return subscription{std::move(state)};
}

}  // namespace detail

subscription::subscription(std::shared_ptr<detail::subscription_state> state) noexcept : state_(std::move(state)) {}
subscription& subscription::operator=(subscription&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}
subscription::~subscription() { unsubscribe(); }

void subscription::unsubscribe() noexcept {
    if (auto const state = std::exchange(state_, nullptr)) state->end();
}

}  // namespace lockstep
