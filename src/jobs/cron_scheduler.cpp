#include "jobs/cron_scheduler.hpp"

#include "core/subscription.hpp"
#include "election/seat.hpp"
#include "lease/kind.hpp"
#include "lease/pause.hpp"
#include "messaging/raw_queue_parts.hpp"
#include "resp/cursor.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::size_t most_told = 200;           // schedules in one call
constexpr std::size_t most_in_call = 1'000;      // with those that are skipped (cron_fire.lua)
constexpr std::size_t enough_runs = 500;         // jobs in one call, and those of one more schedule
constexpr milliseconds claim_window = 500ms;     // as for queues (depot.cpp)
constexpr milliseconds rest_after_failure = 1s;
constexpr milliseconds longest_wait = 30s;       // for what is due: the server's clock may be set
constexpr milliseconds longest_idle = 5min;
constexpr milliseconds resign_every = 1min;      // where a time zone is not known
constexpr milliseconds rest_after_resignation = 1s;  // so that another one is elected, if there is one

engine::kind const scheduler_kind{.word = "scheduler",
                                  .acquire = scripts::election_acquire,
                                  .claim = scripts::election_claim,
                                  .renew = scripts::election_renew,
                                  .release = scripts::election_release,
                                  .adopt = scripts::lock_adopt,
                                  .change = nullptr,
                                  .evict = scripts::election_evict,
                                  .is_pool = false,
                                  .is_election = true};

election_options candidacy(std::string const& name, milliseconds takeover) { return checked_options(name, {.ttl = takeover}); }

}  // namespace

std::shared_ptr<venue> make_scheduler_venue(std::shared_ptr<core> owner, std::string const& name, milliseconds takeover) {
    return make_server_venue(std::move(owner), scheduler_kind, name, candidate_id(name, {}), candidacy(name, takeover));
}

cron_scheduler::cron_scheduler(std::shared_ptr<job_office> office, milliseconds takeover) : office_(std::move(office)) {
    auto const& name = office_->all().name();
    auto where = make_scheduler_venue(office_->owner(), name, takeover);
    election_ = std::make_shared<election_state>(std::move(where), name, candidate_id(name, {}), candidacy(name, takeover));
    election_->supervise();
}

void cron_scheduler::report(std::exception_ptr why) const noexcept {
    try {
        std::rethrow_exception(why);
    } catch (std::exception const& problem) {
        log(log_level::warning, fmt::format("schedules of jobs '{}': {}", office_->all().name(), problem.what()));
    }
}

// ---- standing

task<void> cron_scheduler::run(std::shared_ptr<cron_scheduler> self) {
    try {
        auto standing = with_stop_token(stand(self), self->stop_.get_token());
        co_await std::move(standing);
    } catch (cancelled_error const&) {
        // As it was asked to.
    }
    self->ear_ = {};
}

task<void> cron_scheduler::listen(std::shared_ptr<cron_scheduler> self) {
    auto const& all = self->office_->all();
    subscription_options how;
    how.channel = all.key_of("crons:changed");
    how.kind = all.owner()->is_cluster() ? subscription_kind::shard : subscription_kind::channel;
    how.handler = [bell = self->changed_](message const&) { bell->ring(); };
    how.on_gap = [bell = self->changed_] { bell->ring(); };
    auto opening = open_subscription(all.owner(), std::move(how));
    self->ear_ = co_await std::move(opening);
}

task<void> cron_scheduler::stand(std::shared_ptr<cron_scheduler> self) {
    bool listens = false;
    while (true) {
        std::exception_ptr problem;
        try {
            if (!listens) {
                auto hearing = listen(self);
                co_await std::move(hearing);
                listens = true;
            }
            auto waiting = wait_for_turn(self);
            co_await std::move(waiting);
        } catch (cancelled_error const&) {
            throw;
        } catch (...) {
            problem = std::current_exception();
        }
        if (!problem) continue;
        self->report(problem);
        engine::pause rest{self->office_->owner(), rest_after_failure};
        co_await rest;
    }
}

/// Waits until there is a schedule, then for the election, and leads until there is none. What ends it early has the office resigned.
task<void> cron_scheduler::wait_for_turn(std::shared_ptr<cron_scheduler> self) {
    auto looking = fire(self, {});
    auto const seen = co_await std::move(looking);
    if (seen.next_ms == 0) {
        auto resting = doorbell::wait(self->office_->owner(), *self->changed_, longest_idle);
        co_await std::move(resting);
        co_return;
    }
    {
        auto standing = election_state::campaign(self->election_, venue::clock::time_point::max());
        auto mine = co_await std::move(standing);
        auto const leads = seat::make_leadership(std::move(mine));
        auto const token = leads.stop_token();
        try {
            auto leading = with_stop_token(lead(self), token);
            co_await std::move(leading);
        } catch (cancelled_error const&) {
            if (!token.stop_requested()) throw;  // else it leads no more
        }
    }
    if (!std::exchange(self->resigns_, false)) co_return;
    engine::pause rest{self->office_->owner(), rest_after_resignation};
    co_await rest;
}

// ---- leading

task<void> cron_scheduler::lead(std::shared_ptr<cron_scheduler> self) {
    std::vector<std::string> what;
    while (true) {
        auto firing = fire(self, std::move(what));
        auto const seen = co_await std::move(firing);
        what = self->reckon_all(seen);
        if (!what.empty()) continue;
        if (self->resigns_) co_return;
        if (seen.next_ms == 0 && self->owed_.empty()) co_return;
        auto const next = self->skipped_ > 0 ? seen.following_ms : seen.next_ms;
        auto wait = next == 0 ? longest_wait : std::clamp<milliseconds>(milliseconds{next - seen.now_ms}, 1ms, longest_wait);
        if (!self->owed_.empty()) {
            auto const left = std::chrono::ceil<milliseconds>(self->nudge_at_ - std::chrono::steady_clock::now());
            wait = std::clamp<milliseconds>(left, 1ms, wait);
        }
        auto resting = doorbell::wait(self->office_->owner(), *self->changed_, wait);
        co_await std::move(resting);
        if (!self->owed_.empty() && std::chrono::steady_clock::now() >= self->nudge_at_) {
            auto nudging = nudge(self);
            co_await std::move(nudging);
        }
    }
}

task<cron_scheduler::look> cron_scheduler::fire(std::shared_ptr<cron_scheduler> self, std::vector<std::string> what) {
    auto const& all = self->office_->all();
    std::string const crons = all.key_of("crons");
    std::string const specs = all.key_of("crons:specs");
    std::string const last = all.key_of("crons:last");
    std::string const types = all.key_of("types");
    std::string const absent = all.key_of("absent");
    std::string_view const keys[] = {crons, specs, last, types, absent};
    auto const rules = fmt::format("{} {} {}", all.owner()->is_cluster() ? "SPUBLISH" : "PUBLISH", job_queue_options().retention.count(), all.key_of("q:wake:"));
    std::vector<argument> words{rules, std::min(most_told + self->skipped_, most_in_call)};
    words.insert(words.end(), what.begin(), what.end());
    keyed::terms const how;
    auto asking = all.run(scripts::cron_fire, keys, words, how);
    auto const said = co_await std::move(asking);
    look seen{.now_ms = said[0].integer(), .next_ms = said[1].integer(), .following_ms = said[3].integer(), .due = {}};
    for (resp::cursor rest{said, 4}; rest.left() >= 3;) {
        std::string id{rest.next().text()};
        auto const due_ms = rest.next().integer();
        seen.due.push_back({std::move(id), due_ms, std::string{rest.next().text()}});
    }
    co_return seen;
}

/// As cron_fire.lua wants it.
std::vector<std::string> cron_scheduler::reckon_all(look const& seen) {
    std::vector<std::string> words;
    std::size_t runs = 0;
    skipped_ = 0;
    for (auto const& one : seen.due) {
        std::string times;
        auto const head = read_cron_head(one.head);
        std::int64_t next = 0;
        try {
            auto const when = shelf_.find(head.expression, head.zone);
            auto const turn = reckon(*when, head.missed, head.late, time_of_ms(one.due_ms), time_of_ms(seen.now_ms));
            for (auto const& run : turn.runs) times += fmt::format(" {}", ms_of(run));
            next = ms_of(turn.next);
            runs += turn.runs.size();
            if (!turn.runs.empty()) owed_.emplace(head.type);
        } catch (invalid_argument_error const& problem) {
            // This machine does not know its time zone; another one may. It stays due, and does not stand in the way of others.
            ++skipped_;
            leave_to_others(one.id, problem.what());
            continue;
        }
        words.push_back(one.id);
        words.push_back(fmt::format("{} {} {}{}", head.version, one.due_ms, next, times));
        if (runs >= enough_runs) break;
    }
    if (runs > 0) nudge_at_ = std::chrono::steady_clock::now() + claim_window;
    return words;
}

void cron_scheduler::leave_to_others(std::string const& id, std::string_view why) {
    auto const now = std::chrono::steady_clock::now();
    if (now < next_resignation_) return;
    next_resignation_ = now + resign_every;
    resigns_ = true;
    log(log_level::error, fmt::format("schedule '{}' of jobs '{}' is left to other workers, until one can fire it: {}", id, office_->all().name(), why));
}

task<void> cron_scheduler::nudge(std::shared_ptr<cron_scheduler> self) {
    auto const types = std::exchange(self->owed_, {});
    for (auto const& type : types) {
        auto const at = self->office_->queue_of(type);
        std::vector<std::string> words{at->rules(), "0"};
        auto asking = job_office::run(at, scripts::queue_nudge, {"", "ready", "ranked", "waiting", "held"}, std::move(words));
        auto const said = co_await std::move(asking);
        if (said.integer() == 0) continue;
        self->owed_.insert(type);
        self->nudge_at_ = std::chrono::steady_clock::now() + claim_window;
    }
}

}  // namespace lockstep::detail
