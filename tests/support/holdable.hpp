// Something that can be held, of any kind, so that a test of what they all promise is written once.
#pragma once

#include <lockstep/counting_semaphore.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/recursive_mutex.hpp>
#include <lockstep/shared_mutex.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace lockstep::test {

enum class kind {
    mutex,
    recursive_mutex,  // every object is an owner of its own
    writer,           // of a shared mutex
    reader,
    permits,     // two of the three that a semaphore has
    one_permit,  // of the same
};

// Of all kinds but reader and one_permit, one hold excludes another. As the primitives: any thread, and the object may be destroyed
// while its leases live on. A semaphore is created by the constructor, which asks the server for that.
class holdable {
public:
    holdable(kind what, client& by, std::string_view name, lease_options const& options = {});

    lease acquire() {
        return std::visit([](auto& one) { return one.acquire(); }, of_);
    }
    task<lease> async_acquire() {
        return std::visit([](auto& one) { return one.async_acquire(); }, of_);
    }
    std::optional<lease> try_acquire() { return try_acquire_for(std::chrono::milliseconds{0}); }
    std::optional<lease> try_acquire_for(std::chrono::milliseconds time) {
        return std::visit([time](auto& one) { return one.try_acquire_for(time); }, of_);
    }

private:
    struct reading {
        shared_mutex of;
        lease acquire() { return of.acquire_shared(); }
        task<lease> async_acquire() { return of.async_acquire_shared(); }
        std::optional<lease> try_acquire_for(std::chrono::milliseconds time) { return of.try_acquire_shared_for(time); }
    };
    struct permits {
        counting_semaphore of;
        std::int64_t amount;
        lease acquire() { return of.acquire(amount); }
        task<lease> async_acquire() { return of.async_acquire(amount); }
        std::optional<lease> try_acquire_for(std::chrono::milliseconds time) {
            return of.try_acquire_for(time, amount);
        }
    };
    using any = std::variant<lockstep::mutex, lockstep::recursive_mutex::owner, shared_mutex, reading, permits>;
    static any make(kind what, client& by, std::string_view name, lease_options const& options);

    any of_;
};

[[nodiscard]] std::string name_of(kind what);
[[nodiscard]] kind kind_called(std::string_view name);  // throws std::invalid_argument
// Where the server keeps the object of this name.
[[nodiscard]] std::string key_of(kind what, std::string_view name);

}  // namespace lockstep::test
