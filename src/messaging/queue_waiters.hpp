#pragma once

// Who waits for something of a queue, in the frame of the coroutine that waits.

#include "lease/awaiter.hpp"
#include "messaging/held_item.hpp"

#include <lockstep/queue_options.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::detail {

/// Waits for an item.
class taker final : public engine::awaiter {
public:
    /// `once`: only for what is there now. `ends`: it does not wait, or not any more, when that is true (see depot::dismiss).
    taker(std::shared_ptr<depot> at, clock::time_point until, std::atomic<bool> const* ends) noexcept
        : once(until == clock::time_point::min()), stopping(ends), depot_(std::move(at)), until_(once ? clock::time_point::max() : until) {}
    ~taker();

    void finish(std::shared_ptr<held_item> with) noexcept {
        got = std::move(with);
        resume_soon();
    }

    bool const once;
    std::atomic<bool> const* const stopping;
    std::uint64_t entry = 0;  ///< how many had come with it
    std::size_t most = 1;     ///< if there are several, so many at once; of jobs only
    std::shared_ptr<held_item> got;
    std::vector<std::shared_ptr<held_item>> more;  ///< behind that, in order

private:
    std::shared_ptr<core> const& owner() const noexcept override;
    clock::time_point deadline() const noexcept override { return until_; }
    void enter() override;
    void leave() noexcept override;
    void time_is_over() noexcept override { resume_soon(); }

    std::shared_ptr<depot> depot_;
    clock::time_point until_;
};

/// What is to be enqueued.
struct cargo {
    std::vector<std::string> payloads;  ///< those that are on their way have none
    std::string options;                ///< of each, as queue_push.lua wants them
    bool has_key = false;
    bool waits = true;  ///< for room
    std::string lane;
};

/// Waits until it is.
class shipment final : public engine::awaiter, public cargo {
public:
    /// Until then it waits for room; it is not given up while it is not known what became of it.
    shipment(std::shared_ptr<depot> at, cargo what, clock::time_point until) : cargo(std::move(what)), depot_(std::move(at)), until_(waits ? until : clock::time_point::max()) {}
    ~shipment() { withdraw(); }

    void finish() noexcept { resume_soon(); }

    std::size_t next = 0;       ///< the first that is not on its way
    std::size_t under_way = 0;  ///< how many are
    std::vector<enqueued> done;

private:
    std::shared_ptr<core> const& owner() const noexcept override;
    clock::time_point deadline() const noexcept override { return until_; }
    void enter() override;
    void leave() noexcept override;
    void time_is_over() noexcept override;

    std::shared_ptr<depot> depot_;
    clock::time_point until_;
};

/// What is said of an item.
struct verdict {
    enum class kind : std::uint8_t { ack, nack, unused, extend, complete, retry, fail, postpone };
    std::shared_ptr<held_item> of;
    kind what = kind::ack;
    std::chrono::milliseconds time{0};
    std::string reason{};  ///< or its result
    bool is_ours = false;  ///< nobody asked for it
    std::uint64_t serial = 0;  ///< of those who wait for an answer about this item; 0: nobody does
};

/// Waits until the server has answered to what was said of an item.
class settling final : public engine::awaiter {
public:
    settling(verdict what, clock::time_point until) noexcept : what_(std::move(what)), until_(until) {}
    ~settling() { withdraw(); }
    void finish() noexcept { resume_soon(); }

private:
    std::shared_ptr<core> const& owner() const noexcept override;
    clock::time_point deadline() const noexcept override { return until_; }
    void enter() override;
    void leave() noexcept override;
    void time_is_over() noexcept override;

    verdict what_;
    clock::time_point until_;
};

/// Waits until all that was said of items until now has been answered, and the server does not wait for us if nobody here does;
/// or until then.
class flusher final : public engine::awaiter {
public:
    explicit flusher(std::shared_ptr<depot> at, clock::time_point until = clock::time_point::max()) noexcept : depot_(std::move(at)), until_(until) {}
    ~flusher() { withdraw(); }
    void finish() noexcept { resume_soon(); }

    std::uint64_t said = 0;      ///< so much had been when it came
    std::uint64_t expected = 0;  ///< and so much was on its way from other threads

private:
    std::shared_ptr<core> const& owner() const noexcept override;
    clock::time_point deadline() const noexcept override { return until_; }
    void enter() override;
    void leave() noexcept override { unlink(); }
    void time_is_over() noexcept override { resume_soon(); }

    std::shared_ptr<depot> depot_;
    clock::time_point until_;
};

}  // namespace lockstep::detail
