#include <lockstep/multi_lock.hpp>

#include "lease/pause.hpp"
#include "lease/take.hpp"
#include "sync/targets.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>

namespace lockstep {
namespace {

using clock = std::chrono::steady_clock;
using target_pointer = std::shared_ptr<engine::target const>;

constexpr std::size_t most_names = 1000;

std::vector<target_pointer> targets_of(client& by, std::vector<std::string> const& names, lease_options const& options) {
    if (names.empty() || names.size() > most_names) {
        throw invalid_argument_error(fmt::format("it takes 1 to {} names, not {}", most_names, names.size()));
    }
    std::vector<target_pointer> made;
    for (auto const& name : names) made.push_back(detail::make_target(by, engine::lock_kind, name, options));
    return made;
}

/// One after the other: asking for the next before this one is granted could deadlock.
task<std::optional<leases>> take_in_order(std::vector<target_pointer> names, std::vector<std::size_t> order, clock::time_point until) {
    std::vector<lease> held(names.size());
    for (auto const index : order) {
        auto work = engine::try_take(names[index], until);
        auto got = co_await std::move(work);
        if (!got) co_return std::nullopt;  // what is held so far is given back here
        held[index] = std::move(*got);
    }
    auto const all = std::all_of(held.begin(), held.end(), [](auto const& one) { return one.valid(); });
    if (!all) throw lease_lost_error("the lease of a name was lost while waiting for the others");
    co_return leases{std::move(held)};
}

task<leases> take_all(std::vector<target_pointer> names, std::vector<std::size_t> order) {
    auto const limit = names.front()->how.wait_limit;
    auto const attempts = names.front()->how.attempts;
    auto const until = limit.count() == 0 ? clock::time_point::max() : clock::now() + limit;
    auto work = take_in_order(std::move(names), std::move(order), until);
    auto got = co_await std::move(work);
    if (!got && attempts != 0) throw timeout_error(fmt::format("not all names were obtained in {} attempts each", attempts));
    if (!got) throw timeout_error(fmt::format("not all names were obtained within {} ms", limit.count()));
    co_return std::move(*got);
}

/// An error does not stop the others.
task<std::exception_ptr> quietly(task<void> work) {
    try {
        co_await std::move(work);
    } catch (...) {
        co_return std::current_exception();
    }
    co_return nullptr;
}

/// All that begins in one turn leaves in one write.
engine::pause next_turn(engine::target const& of) { return {of.where->owner(), std::chrono::milliseconds::zero()}; }

task<std::vector<std::optional<lease>>> try_each(std::vector<target_pointer> names) {
    auto turn = next_turn(*names.front());
    co_await turn;
    std::vector<task<std::optional<lease>>> works;
    for (auto& one : names) works.push_back(engine::try_take(std::move(one), {}));
    auto all = when_all(std::move(works));
    co_return co_await std::move(all);
}

/// What `held` belongs to; null: they are all empty.
target_pointer common_target(std::vector<lease> const& held) {
    auto const found = std::find_if(held.begin(), held.end(), [](auto const& one) { return static_cast<bool>(one); });
    return found == held.end() ? nullptr : engine::hold::of(*found)->what();
}

task<void> release_each(std::vector<lease> held) {
    std::erase_if(held, [](auto const& one) { return !one; });
    if (held.empty()) co_return;
    auto turn = next_turn(*engine::hold::of(held.front())->what());
    co_await turn;
    std::vector<task<std::exception_ptr>> works;
    for (auto& one : held) works.push_back(quietly(one.async_release()));
    auto all = when_all(std::move(works));
    auto const problems = co_await std::move(all);
    for (auto const& problem : problems) {
        if (problem) std::rethrow_exception(problem);
    }
}

std::vector<lease> those_of(std::vector<std::optional<lease>> held) {
    std::vector<lease> all;
    for (auto& one : held) {
        if (one) all.push_back(std::move(*one));
    }
    return all;
}

}  // namespace

// ---- leases

bool leases::valid() const noexcept {
    return !held_.empty() && std::all_of(held_.begin(), held_.end(), [](auto const& one) { return one.valid(); });
}

void leases::release() {
    if (auto const what = common_target(held_)) engine::require_blocking(*what);
    sync_wait(async_release());
}

task<void> leases::async_release() {
    auto const what = common_target(held_);
    if (!what) throw not_held_error("the leases are empty: they were released or moved from");
    engine::require_usable(*what);
    return release_each(std::exchange(held_, {}));
}

// ---- multi_lock

multi_lock::multi_lock(client& by, std::vector<std::string> const& names, lease_options const& options)
    : names_(targets_of(by, names, options)), order_(names.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    auto const key = [this](std::size_t index) -> std::string const& { return names_[index]->where->key(); };
    std::sort(order_.begin(), order_.end(), [&](auto left, auto right) { return key(left) < key(right); });
    auto const twice =
        std::adjacent_find(order_.begin(), order_.end(), [&](auto left, auto right) { return key(left) == key(right); });
    if (twice != order_.end()) throw invalid_argument_error(fmt::format("the name '{}' is given twice", names[*twice]));
}

leases multi_lock::acquire(std::stop_token token) {
    engine::require_blocking(*names_.front());
    return sync_wait(async_acquire(), std::move(token));
}
task<leases> multi_lock::async_acquire() {
    engine::require_usable(*names_.front());
    return take_all(names_, order_);
}

std::optional<leases> multi_lock::try_until(clock::time_point until, std::stop_token token) {
    engine::require_blocking(*names_.front());
    return sync_wait(async_try_until(until), std::move(token));
}
task<std::optional<leases>> multi_lock::async_try_until(clock::time_point until) {
    engine::require_usable(*names_.front());
    return take_in_order(names_, order_, until);
}

// ---- independent names

std::vector<std::optional<lease>> try_acquire_all(client& by, std::vector<std::string> const& names, lease_options const& options) {
    detail::core_access::of(by)->require_blocking_is_allowed();
    return sync_wait(async_try_acquire_all(by, names, options));
}

task<std::vector<std::optional<lease>>> async_try_acquire_all(client& by, std::vector<std::string> const& names,
                                                              lease_options const& options) {
    return try_each(targets_of(by, names, options));
}

void release_all(std::vector<std::optional<lease>> held) {
    auto all = those_of(std::move(held));
    if (auto const what = common_target(all)) engine::require_blocking(*what);
    sync_wait(release_each(std::move(all)));
}

task<void> async_release_all(std::vector<std::optional<lease>> held) {
    auto all = those_of(std::move(held));
    if (auto const what = common_target(all)) engine::require_usable(*what);
    return release_each(std::move(all));
}

}  // namespace lockstep
