#include "job_drain.hpp"

#include "support/chaos_job.hpp"
#include "support/chaos_names.hpp"
#include "support/chaos_workshop.hpp"
#include "support/eventually.hpp"

#include <lockstep/client.hpp>
#include <lockstep/election.hpp>
#include <lockstep/job_client.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;

class job_drainer {
public:
    job_drainer(world& where, std::string const& referee, std::function<void(event)> const& report)
        : referee_{referee}, report_{report}, by_{{.url = where.url_for(0), .name = "end"}}, jobs_{by_, jobs_name} {}

    void run_all() {
        // While nobody works: whoever died in line is found out.
        for (auto const* const type : {hand_type, mind_type, single_type}) {
            auto const value = job_plan{.who = "end", .number = ++made_, .is_task = type == mind_type, .single = type == single_type ? "0" : ""};
            say("schedule", value.value());
            auto const done = jobs_.schedule(type, value.value(), value.options());
            say("scheduled", value.value() + " " + done.id, 1);
        }
        workshop const working{by_, referee_, "end", 1};
        for (auto const& one : jobs_.crons()) jobs_.drop_cron(one.id);
        auto const nothing_is_left = [this] {
            for (auto const* const type : job_types) {
                auto const is = jobs_.counts(type);
                if (is.waiting + is.delayed + is.blocked + is.running != 0) return false;
            }
            return true;
        };
        if (test::eventually(nothing_is_left, 30s)) return;
        for (auto const* const type : job_types) {
            for (auto const state : {job_state::waiting, job_state::blocked, job_state::running}) {
                for (auto const& one : jobs_.list(type, state)) {
                    say("left", "a job that does not end: " + one.id + " " + std::string{to_string(one.state)} + " " + one.payload);
                }
            }
        }
        say("left", "jobs that do not end");
    }

    void tell_all() {
        for (auto const* const type : job_types) {
            for (auto const state : {job_state::completed, job_state::failed, job_state::cancelled}) tell(type, state);
            if (std::string_view{type} == tick_type) continue;
            auto const is = jobs_.counts(type);
            say("ever", "added", is.ever_added);
            say("ever", "ended", is.ever_completed + is.ever_failed + is.ever_cancelled);
        }
    }

    /// By workers that are to remember nothing. One that only looks forgets some.
    void forget_all() {
        for (auto const* const type : job_types) jobs_.schedule(type, std::string{"nobody is in line for it"});
        auto const nothing_is_left = [this] {
            // Callers wait for jobs in a run, and for a minute these would be remembered.
            for (auto const* const type : job_types) by_.command("DEL", "lockstep:{" + std::string{jobs_name} + "}:jobs:q:" + type + ":awaited");
            auto how = job_worker_options_of(ttl_of(jobs_name));
            how.completed_retention = how.failed_retention = 0ms;
            how.fires_crons = false;
            job_worker forgetful{by_, jobs_name, how};
            for (auto const* const type : job_types) forgetful.handle<std::string>(type, [](std::string const&) {});
            forgetful.start();
            auto const looked = [this] { return left() == 0; };
            return test::eventually(looked, 100ms);
        };
        if (!test::eventually(nothing_is_left, 30s)) say("left", std::to_string(left()) + " jobs that cannot be forgotten");
    }

    /// Those who would have fired schedules are found out when it is their turn; who is doubted has its turn when nobody else is there.
    void lead_until_nobody_waits() {
        auto const name = std::string{"jobs:"} + jobs_name;
        election office{by_, name, {.ttl = 1s, .renew_deadline = 600ms, .retry_period = 100ms}};
        auto const nobody_waits = [&] {
            if (!office.try_campaign_for(10s)) return false;
            auto const fields = by_.command<std::vector<std::string>>("HKEYS", "lockstep:{" + name + "}:election");
            // Who waited, and now has its turn, is dead as well.
            return std::ranges::none_of(fields, [](std::string const& one) { return one.starts_with('w') || one == "o"; });
        };
        if (!test::eventually(nobody_waits, 30s)) say("left", "somebody who waits for ever to fire schedules, or nobody can");
    }

private:
    void say(std::string const& what, std::string const& note, std::int64_t n = 0) const {
        report_({.t = boot_ns(), .who = "end", .what = what, .name = jobs_name, .n = n, .note = note});
    }

    void tell(std::string const& type, job_state state) {
        constexpr std::size_t most = 1'000;
        for (std::size_t from = 0;; from += most) {
            auto const page = jobs_.list(type, state, from, most);
            for (auto const& one : page) {
                if (type == tick_type) {
                    say("fired", one.payload + " " + one.id, one.due.time_since_epoch() / 1ms);
                } else {
                    say("final", one.payload + " " + one.result, static_cast<std::int64_t>(one.state));
                }
            }
            if (page.size() < most) return;
        }
    }

    std::int64_t left() {
        std::int64_t sum = 0;
        for (auto const* const type : job_types) {
            auto const is = jobs_.counts(type);
            sum += is.waiting + is.running + is.completed + is.failed + is.cancelled;
        }
        return sum;
    }

    std::string referee_;
    std::function<void(event)> const& report_;
    client by_;
    job_client jobs_;
    std::uint64_t made_ = 0;
};

}  // namespace

void drain_jobs(world& where, std::string const& referee, std::function<void(event)> const& report) {
    job_drainer last{where, referee, report};
    last.run_all();
    last.tell_all();
    last.forget_all();
    last.lead_until_nobody_waits();
}

}  // namespace lockstep::chaos
