#pragma once

// What `shared_value<T>` is without its T: bytes. Compiled in src/state/shared_value.cpp.

#include <lockstep/client.hpp>
#include <lockstep/task.hpp>
#include <lockstep/versioned.hpp>
#include <lockstep/watching.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

struct shared_value_options {
    std::chrono::milliseconds ttl{0};                 ///< of values that are set without one; 0: they stay
    std::chrono::milliseconds retention{86'400'000};  ///< how long the fence is remembered after the value has ended, 2 min at least
};

namespace detail {

class shared_value_state;
class raw_shared_map;
class state_object;

struct raw_value {
    std::string bytes;
    std::uint64_t version = 0;
};

class raw_shared_value {
public:
    raw_shared_value(client& by, std::string_view name, shared_value_options const& options);

    task<std::optional<raw_value>> read() const;
    task<bool> exists() const;
    task<std::uint64_t> set(std::string bytes, write_options how) const;
    task<std::optional<std::uint64_t>> compare_and_set(std::uint64_t version, std::string bytes, write_options how) const;
    task<bool> erase(write_options how) const;
    task<watching> watch(std::function<void(std::optional<raw_value> const&)> handler) const;
    /// Without a time: never nothing.
    task<std::optional<raw_value>> wait_newer(std::uint64_t version, std::optional<std::chrono::milliseconds> time) const;
    void require_blocking() const;

private:
    friend class update_attempts;
    std::shared_ptr<shared_value_state const> state_;
};

/// Between the attempts of an update that lost against others: a pause that grows, of a random length.
class update_attempts {
public:
    explicit update_attempts(raw_shared_value const& of) noexcept;
    explicit update_attempts(raw_shared_map const& of) noexcept;
    /// Throws `timeout_error` after too many, `cancelled_error` when a stop is requested.
    void pause(std::stop_token token);
    task<void> async_pause();

private:
    std::chrono::milliseconds next();

    std::shared_ptr<state_object const> what_;
    int lost_ = 0;
};

/// What an update's `change` makes of what is there. Nothing: it is to be left as it is.
template <class T, class F>
std::optional<T> apply_change(F& change, std::optional<versioned<T>> const& found) {
    std::optional<T> now;
    if (found) now = found->value;
    return change(std::as_const(now));
}

}  // namespace detail
}  // namespace lockstep
