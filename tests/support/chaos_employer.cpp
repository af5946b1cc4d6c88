#include "chaos_employer.hpp"

#include <lockstep/error.hpp>

#include <utility>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;

std::string explain(error const& problem) { return problem.code().message() + ": " + problem.what(); }

}  // namespace

job_plan employer::new_plan() {
    job_plan made{.who = self_.about().who, .number = ++made_};
    made.is_task = self_.one_in(3);
    auto const kind = self_.below(12);
    if (kind < 2) made.throws = 1 + static_cast<std::int32_t>(self_.below(2));
    if (kind == 2) made.ends = job_plan::fate::throws;
    if (kind == 3) made.ends = job_plan::fate::rejects;
    if (kind == 4) made.has_little_time = true;
    return made;
}

void employer::schedule() try {
    self_.turn_to(jobs_name);
    auto const kind = self_.below(10);
    if (kind == 0) return schedule_many();
    if (kind < 3) return schedule_flow();
    auto what = new_plan();
    if (kind == 3 || kind == 4) what.key = (self_.one_in(3) ? "w" : "k") + std::to_string(self_.below(2));
    if (kind > 6) {
        what.single = std::to_string(self_.below(3));
        what.when_running = "kqrr"[self_.below(4)];
    }
    schedule_one(what);
} catch (indeterminate_error const&) {
    self_.report("unknown");
} catch (error const& problem) {
    self_.report("failed", explain(problem));
}

void employer::schedule_one(job_plan const& what) {
    auto const value = what.value();
    auto how = what.options();
    if (self_.one_in(4)) how.priority = static_cast<std::int32_t>(self_.below(3)) - 1;
    if (self_.one_in(6)) how.delay = self_.up_to(300);
    if (what.key.starts_with('w')) how.key_window = 200ms;
    self_.report("schedule", value);
    auto const done = jobs_.schedule(what.type(), value, how);
    self_.about().n = done.is_new ? 1 : 0;
    self_.report("scheduled", value + " " + done.id);
    if (done.is_new) remember({value, done.id, false});
}

void employer::schedule_many() {
    std::vector<std::string> values;
    for (int i = 0; i < 3; ++i) values.push_back(job_plan{.who = self_.about().who, .number = ++made_}.value());
    for (auto const& one : values) self_.report("schedule", one);
    auto const all = jobs_.schedule_many<std::string>(hand_type, values);
    self_.about().n = 1;
    for (std::size_t i = 0; i != values.size(); ++i) self_.report("scheduled", values[i] + " " + all[i].id);
}

/// A chain, or one, then some, then one; one of them may be single.
void employer::schedule_flow() {
    auto const width = 1 + self_.below(3);
    std::vector<job_plan> all{new_plan()};
    for (std::uint64_t i = 0; i < width; ++i) {
        all.push_back(new_plan());
        all.back().parents = {all.front().number};
    }
    auto last = new_plan();
    for (std::uint64_t i = 1; i <= width; ++i) last.parents.push_back(all[i].number);
    all.push_back(std::move(last));
    for (auto& one : all) one.on_parent_failure = "ffsg"[self_.below(4)];
    if (self_.one_in(4)) {
        auto& one = all[self_.below(all.size())];
        one.single = std::to_string(self_.below(3));
        one.when_running = "kqqr"[self_.below(4)];
    }
    job_flow flow;
    for (auto const& one : all) {
        auto how = one.options();
        if (self_.one_in(8)) how.delay = self_.up_to(100);
        flow.add(std::to_string(one.number), one.type(), one.value(), how);
        for (auto const parent : one.parents) flow.after(std::to_string(one.number), std::to_string(parent));
    }
    for (auto const& one : all) self_.report("schedule", one.value());
    auto const ids = jobs_.add_flow(flow);
    self_.about().n = 1;
    for (auto const& one : all) {
        auto const& id = ids.at(std::to_string(one.number));
        self_.report("scheduled", one.value() + " " + id);
        remember({one.value(), id, true});
    }
}

void employer::remember(known_job which) {
    known_.push_back(std::move(which));
    if (known_.size() > 12) known_.pop_front();
}

void employer::change() try {
    self_.turn_to(jobs_name);
    // Mostly the youngest: it has not ended yet.
    if (!known_.empty()) change(known_job{self_.one_in(3) ? known_[self_.below(known_.size())] : known_.back()});
} catch (indeterminate_error const&) {
    self_.report("unknown");
} catch (error const& problem) {
    self_.report("failed", explain(problem));
}

void employer::change(known_job const& which) {
    auto const kind = self_.below(10);
    if (kind < 6) return wait_for(which);
    auto const delay = self_.one_in(2) ? 0ms : self_.up_to(100);
    if (kind == 6) {
        self_.about().n = jobs_.move(which.id, delay, static_cast<std::int32_t>(self_.below(3)) - 1) ? 1 : 0;
        return self_.report("moved", which.value);
    }
    // Not of flows: one that is run again because of another does not count as asked for.
    bool const again = kind > 7 && !which.is_of_flow;
    self_.report(again ? "requeue" : "cancel", which.value);
    self_.about().n = (again ? jobs_.requeue(which.id, delay) : jobs_.cancel(which.id)) ? 1 : 0;
    self_.report(again ? "requeued" : "cancelled", which.value);
}

void employer::wait_for(known_job const& which) {
    auto const end = jobs_.wait(which.id, self_.up_to(300));
    if (!end) return self_.report("none");
    self_.about().n = static_cast<std::int64_t>(end->state);
    self_.report("ended", which.value + " " + end->result);
}

}  // namespace lockstep::chaos
