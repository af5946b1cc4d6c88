#include "state/newer.hpp"

#include "lease/hub.hpp"
#include "lease/pause.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep::detail {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

namespace {

using found = std::optional<raw_value>;

task<found> nothing_after(std::shared_ptr<core> owner, milliseconds time) {
    engine::pause rest{std::move(owner), time};
    co_await rest;
    co_return std::nullopt;
}

}  // namespace

void newer::offer(found const& now) {
    if (!now || now->version <= known_ || got_) return;
    got_ = now;
    bell_.ring();
}

task<found> newer::wait(std::shared_ptr<newer> self, std::shared_ptr<watch_state> watch, std::shared_ptr<core> owner) {
    auto beginning = watch_state::begin(std::move(watch));
    auto const listening = co_await std::move(beginning);
    self->has_looked_ = true;
    while (!self->got_) {
        auto waiting = doorbell::wait(owner, self->bell_, 1h);
        co_await std::move(waiting);
    }
    co_return std::move(self->got_);
}

task<found> newer::no_longer_than(milliseconds time, std::shared_ptr<newer> self, std::shared_ptr<state_object const> at, task<found> waiting, task<found> reading) {
    std::vector<task<found>> race;
    race.push_back(std::move(waiting));
    race.push_back(nothing_after(at->owner(), std::min<milliseconds>(time, 24h * 3'650)));
    auto racing = when_any(std::move(race));
    auto first = co_await std::move(racing);
    if (first.value) co_return std::move(first.value);
    if (!self->has_looked_) {
        auto looking = if_newer(self->known_, std::move(reading));
        co_return co_await std::move(looking);
    }
    if (!at->home().is_connected(at->slot())) throw unavailable_error(fmt::format("{} '{}': no server could be reached in the time allowed", at->kind(), at->name()));
    co_return std::nullopt;
}

task<found> if_newer(std::uint64_t version, task<found> reading) {
    auto now = co_await std::move(reading);
    if (now && now->version <= version) now.reset();
    co_return now;
}

}  // namespace lockstep::detail
