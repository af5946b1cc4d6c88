#include "state/state_object.hpp"

#include "lease/hub.hpp"
#include "lease/pause.hpp"
#include "lease/session_pool.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using std::chrono::milliseconds;
using clock = redis::reactor::clock;

constexpr milliseconds longest_budget{5'000};  // a command that was given up can run so much later at most

}  // namespace

state_object::state_object(client& by, std::string_view name, std::string_view kind) : state_object(core_access::of(by), name, kind) {}
state_object::state_object(std::shared_ptr<core> owner, std::string_view name, std::string_view kind)
    : keyed(std::move(owner), name, kind), hub_(engine::hub::of(*this->owner())), clock_(this->owner()->is_cluster() ? nullptr : &hub_.offset_ms) {}

std::string state_object::rules(milliseconds retention) const {
    return fmt::format("{} {}", retention.count(), owner()->is_cluster() ? "SPUBLISH" : "PUBLISH");
}

std::int64_t latest_run(core const& owner, engine::server_clock const& there, clock::time_point until) {
    auto const left = std::chrono::ceil<milliseconds>(until - owner.home().now());
    return there.now() + std::clamp(left, milliseconds{10}, longest_budget).count();
}

clock::time_point end_of_tries(core const& owner) { return std::min(owner.deadline({}), owner.home().now() + engine::longest_try); }

task<reply> change_once(std::shared_ptr<state_object const> at, change what) {
    engine::pause turn{at->owner(), milliseconds{0}};
    co_await turn;
    auto const until = end_of_tries(*at->owner());
    auto session = at->home().sessions().borrow();
    std::vector<std::string_view> const keys(what.keys.begin(), what.keys.end());
    while (true) {
        std::vector<argument> words{session.id, session.sequence, latest_run(*at->owner(), at->clock(), until)};
        words.insert(words.end(), what.words.begin(), what.words.end());
        reply said;
        try {
            auto const left = std::max(std::chrono::ceil<milliseconds>(until - at->owner()->home().now()), milliseconds{1});
            auto asking = at->run(*what.script, keys, words, {.within = left});
            said = co_await std::move(asking);
        } catch (timeout_error const& problem) {
            throw indeterminate_error(fmt::format("whether {} '{}' was changed is not known: {}", at->kind(), at->name(), problem.what()));
        } catch (error const& problem) {
            bool const answered = problem.reason() == errc::server || problem.reason() == errc::invalid_argument;
            if (answered) at->home().sessions().give_back(std::move(session));
            throw;
        }
        if (said.size() < 3 || !said[0].is_text()) throw_unexpected_answer(*at);
        at->clock().learn(said[2].integer());
        if (said[0].text() == "late") continue;  // it did not count, and now the server's time is known
        at->home().sessions().give_back(std::move(session));
        co_return said;
    }
}

void require_time(keyed const& at, std::string_view option, milliseconds time, milliseconds least) {
    if (time >= least && time.count() <= 1'000'000'000'000) return;
    throw invalid_argument_error(fmt::format("{} '{}': {} must be {} to 10^12 ms, not {} ms", at.kind(), at.name(), option, least.count(), time.count()));
}

void throw_unexpected_answer(keyed const& at) {
    throw protocol_error(fmt::format("{} '{}': the server's answer to a script is not one of the script's", at.kind(), at.name()));
}

}  // namespace lockstep::detail
