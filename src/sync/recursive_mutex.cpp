#include <lockstep/recursive_mutex.hpp>

#include "base/names.hpp"
#include "sync/targets.hpp"
#include "sync/thread_leases.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace lockstep {
namespace {

/// No two threads of the process ever have the same: std::thread::id is used again when a thread has ended.
std::uint64_t number_of_this_thread() noexcept {
    static std::atomic<std::uint64_t> threads{0};
    thread_local std::uint64_t const mine = ++threads;
    return mine;
}

std::shared_ptr<engine::target const> owned_by(engine::target const& what, std::string_view id) {
    auto made = std::make_shared<engine::target>(what);
    made->mode = fmt::format("group {}", id);
    return made;
}

}  // namespace

recursive_mutex::recursive_mutex(client& by, std::string_view name, lease_options const& options)
    : held_(std::make_unique<detail::thread_leases>(true)) {
    auto made = detail::target_of(by, engine::recursive_kind, name, options);
    made.count = "1";
    what_ = std::make_shared<engine::target const>(std::move(made));
}

recursive_mutex::~recursive_mutex() = default;
recursive_mutex::recursive_mutex(recursive_mutex&&) noexcept = default;
recursive_mutex& recursive_mutex::operator=(recursive_mutex&&) noexcept = default;

recursive_mutex::owner recursive_mutex::as(std::string_view id) const {
    bool const clean = std::all_of(id.begin(), id.end(), [](unsigned char c) { return c > ' ' && c != 127; });
    if (id.empty() || id.size() > 256 || !clean) {
        throw invalid_argument_error(
            fmt::format("recursive_mutex '{}': an owner must be 1 to 256 bytes without spaces and control characters, not {}",
                        what_->where->name(), id.empty() || id.size() > 256 ? fmt::format("{} bytes", id.size()) : base::encode_name(id)));
    }
    return owner{owned_by(*what_, id)};
}

recursive_mutex::owner recursive_mutex::this_thread() const {
    return owner{owned_by(*what_, fmt::format("{}-{}", what_->where->home().client_id(), number_of_this_thread()))};
}

bool recursive_mutex::put(std::optional<lease> held) {
    if (!held) return false;
    held_->put(std::move(*held));
    return true;
}

void recursive_mutex::unlock() noexcept { detail::release_quietly(held_->take()); }
std::uint64_t recursive_mutex::fence() const { return held_->fence(); }
std::stop_token recursive_mutex::stop_token() const { return held_->stop_token(); }

}  // namespace lockstep
