#include "base/random.hpp"
#include "lease/pause.hpp"
#include "lease/session_pool.hpp"
#include "scripts/all.hpp"
#include "state/breaker_state.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <algorithm>
#include <utility>

// What a circuit breaker tells the server of its calls: counted by threads, gathered and sent in turns, one report at a time.

namespace lockstep::detail {

using namespace std::chrono_literals;

void breaker_state::gather() noexcept {
    outcome_counts found;
    for (auto& one : stripes_) found += {.ok = one.ok.exchange(0), .failed = one.failed.exchange(0)};
    if (found.all() == 0) return;
    pending_ += found;
    window_.add(found, clock::now());
}

task<void> breaker_state::report_later(std::shared_ptr<core> owner, std::weak_ptr<breaker_state> which) {
    auto self = which.lock();
    if (!self) co_return;
    auto const interval = self->how_.report_interval;
    self.reset();
    // All of a fleet may have begun to count at the same moment.
    engine::pause rest{owner, interval - interval * base::random_below(20) / 100};
    co_await rest;
    self = which.lock();
    if (!self) co_return;
    self->is_due_.store(false);  // not by other reports: each would set a time of its own, beside this one
    self->report_now();
}

/// Ahead of its time: the server might open it by that.
void breaker_state::report_early() noexcept {
    gather();
    // With a quorum it opens by the word of a process that is bad by itself; what others report needs no hurry.
    if (how_.quorum_of_reporters > 1 && !is_bad(how_, window_.sum(clock::now()), how_.quorum_of_reporters)) return;
    report_now();
}

void breaker_state::decide_if_local() noexcept {
    if (is_local()) decide_here();
}

void breaker_state::report_now() noexcept {
    again_ = true;
    if (reporting_) {
        // The one under way may have to wait for a server that is not there.
        gather();
        decide_if_local();
    }
    if (std::exchange(reporting_, true)) return;
    try {
        start(report(shared_from_this()), [self = shared_from_this()](std::exception_ptr) { self->reporting_ = false; });
    } catch (...) {
        reporting_ = false;
    }
}

task<void> breaker_state::report(std::shared_ptr<breaker_state> self) {
    while (std::exchange(self->again_, false)) {
        try {
            auto sending = send(self);
            co_await std::move(sending);
        } catch (error const& problem) {
            if (is_silence(problem)) {
                self->go_local(problem);
            } else if (problem.reason() != errc::cancelled) {
                log(log_level::error, problem.what());
            }
        }
    }
}

/// In a turn: all that was counted up to now; where it decides by itself, also nothing, to find out whether the server takes it. Throws when the
/// server does not have it.
task<void> breaker_state::send(std::shared_ptr<breaker_state> self) {
    self->begin();
    self->gather();
    self->decide_if_local();
    // What was sent before and not answered, and what came since. Not what comes meanwhile: that is gathered for the next report.
    for (int i = 0; i < 2; ++i) {
        auto& sent = self->sent_;
        auto const now = clock::now();
        // What is older than the sampling time counts no more, however long the server was away; nor what the server may have counted and forgotten since.
        if (sent.sequence != 0 && now - sent.made > std::min(self->how_.sampling, engine::longest_try)) sent.counts = {}, sent.is_bad = false;
        bool const is_new = sent.sequence == 0;  // the server may have written the other one long ago
        if (is_new) {
            auto const lately = self->window_.sum(now);
            self->pending_ = {.ok = std::min(self->pending_.ok, lately.ok), .failed = std::min(self->pending_.failed, lately.failed)};
            if (self->pending_.all() == 0 && !self->is_local()) co_return;
            bool const bad = is_bad(self->how_, lately, self->how_.quorum_of_reporters);
            std::uint64_t version = 0;
            {
                std::lock_guard const guard{self->mutex_};
                version = self->server_.version;
            }
            sent = {.sequence = ++self->sequence_, .version = version, .counts = std::exchange(self->pending_, {}), .is_bad = bad, .made = now};
        }
        auto const sequence = sent.sequence;
        bool const was_bad = sent.is_bad;
        auto const asked = clock::now();
        std::string_view const keys[] = {self->object_.key()};
        argument const words[] = {self->rules_,         self->session_, sent.sequence, sent.version, sent.counts.ok, sent.counts.failed,
                                  sent.is_bad ? 1 : 0, self->host_};
        auto asking = self->object_.run(scripts::breaker_report, keys, words, {.within = self->how_.server_timeout});
        auto const said = co_await std::move(asking);
        if (self->sent_.sequence == sequence) self->sent_ = {};
        outcome_counts const of_all{.ok = said[5].as<std::int64_t>(), .failed = said[6].as<std::int64_t>()};
        self->server_ok_ = of_all.ok;
        self->server_failed_ = of_all.failed;
        self->is_reported_bad_ = was_bad && is_bad(self->how_, of_all);
        self->adopt_reply(said, asked, is_new);
    }
}

task<void> breaker_state::flush(std::shared_ptr<breaker_state> self) {
    engine::pause turn{self->object_.owner(), 0ms};
    co_await turn;
    // One report at a time: those of a session follow one another.
    while (std::exchange(self->reporting_, true)) {
        engine::pause rest{self->object_.owner(), 1ms};
        co_await rest;
    }
    struct end_of_report {
        breaker_state& of;
        ~end_of_report() {
            of.object_.owner()->home().in_turn([this] {
                of.reporting_ = false;
                if (of.again_) of.report_now();
            });
        }
    };
    end_of_report const end{*self};
    auto sending = send(self);
    co_await std::move(sending);
}

}  // namespace lockstep::detail
