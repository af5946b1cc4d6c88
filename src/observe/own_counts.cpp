#include "observe/own_counts.hpp"

#include "core/core.hpp"
#include "lease/hub.hpp"
#include "lease/kind.hpp"
#include "lease/pause.hpp"

#include <lockstep/error.hpp>

#include <utility>

namespace lockstep::observe {
namespace {

task<std::optional<snapshot>> look(client& by) {
    monitor eye{by};
    snapshot_options options;
    options.waiters = 0;  // they are counted all the same
    co_return co_await eye.async_snapshot(options);
}

task<std::optional<snapshot>> nothing_after(std::shared_ptr<detail::core> owner, std::chrono::milliseconds time) {
    engine::pause rest{std::move(owner), time};
    co_await rest;
    co_return std::nullopt;
}

}  // namespace

std::vector<kind_counts> own_counts(client& of) {
    auto const& core = detail::core_access::of(of);
    std::vector<kind_counts> made;
    if (core->closed()) return made;
    for (auto const* const kind : {&engine::lock_kind, &engine::recursive_kind, &engine::shared_kind,
                                   &engine::semaphore_kind, &engine::event_kind, &engine::election_kind}) {
        made.push_back({.kind = std::string{kind->word}, .held = {}, .waited = {}});
    }
    for (auto& one : engine::hub::of(*core).totals()) {
        for (auto& sum : made) {
            if (sum.kind != one.what->word) continue;
            sum = {.kind = sum.kind,
                   .acquisitions = one.all.acquisitions,
                   .waits = one.all.waits,
                   .timeouts = one.all.timeouts,
                   .losses = one.all.losses,
                   .held = std::move(one.all.held),
                   .waited = std::move(one.all.waited)};
        }
    }
    return made;
}

std::shared_ptr<detail::message_counts const> own_messages(client& of) {
    auto const& core = detail::core_access::of(of);
    if (core->closed()) return nullptr;
    return detail::message_counts::of(*core);
}

task<std::optional<snapshot>> look_at_all(client& by, std::chrono::milliseconds within) {
    std::vector<task<std::optional<snapshot>>> race;
    race.push_back(look(by));
    race.push_back(nothing_after(detail::core_access::of(by), within));
    auto first = co_await when_any(std::move(race));
    co_return std::move(first.value);
}

}  // namespace lockstep::observe
