#include <lockstep/shared_mutex.hpp>

#include "lease/take.hpp"
#include "sync/targets.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

namespace lockstep {
namespace {

// A pool of very many permits: a reader holds one of them, a writer all.
constexpr std::int64_t all = std::int64_t{1} << 30;

std::shared_ptr<engine::target const> side(client& by, std::string_view name, lease_options const& options, std::int64_t amount) {
    auto made = detail::target_of(by, engine::shared_kind, name, options);
    made.amount = amount;
    made.count = fmt::format("{}", all);
    return std::make_shared<engine::target const>(std::move(made));
}

task<lease> run_downgrade(lease writing) {
    auto work = engine::change(std::move(writing), 1);
    auto result = co_await std::move(work);
    co_return std::move(result.held);
}

task<shared_mutex::upgrade> run_upgrade(lease reading) {
    auto work = engine::change(std::move(reading), all);
    auto result = co_await std::move(work);
    co_return shared_mutex::upgrade{result.changed, std::move(result.held)};
}

}  // namespace

shared_mutex::shared_mutex(client& by, std::string_view name, lease_options const& options)
    : lockable(side(by, name, options, all)), shared_(side(by, name, options, 1)) {}

void shared_mutex::require_mine(lease const& held) const {
    engine::require_usable(*what_);
    auto const* const its = engine::hold::of(held);
    if (its == nullptr) {
        throw not_held_error(
            fmt::format("the lease for '{}' is empty: it was released, detached or moved from", what_->where->name()));
    }
    if (its->what()->where != what_->where) {
        throw invalid_argument_error(fmt::format("the lease is of '{}', not of '{}'", held.name(), what_->where->name()));
    }
}

lease shared_mutex::downgrade(lease writing) {
    engine::require_blocking(*what_);
    return sync_wait(async_downgrade(std::move(writing)));
}

task<lease> shared_mutex::async_downgrade(lease writing) {
    require_mine(writing);
    return run_downgrade(std::move(writing));
}

shared_mutex::upgrade shared_mutex::try_upgrade(lease reading) {
    engine::require_blocking(*what_);
    return sync_wait(async_try_upgrade(std::move(reading)));
}

task<shared_mutex::upgrade> shared_mutex::async_try_upgrade(lease reading) {
    require_mine(reading);
    return run_upgrade(std::move(reading));
}

}  // namespace lockstep
