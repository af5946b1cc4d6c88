#include "run.hpp"

#include "drain.hpp"
#include "ending.hpp"
#include "job_drain.hpp"
#include "leftovers.hpp"
#include "support/chaos_names.hpp"
#include "support/eventually.hpp"
#include "support/program_path.hpp"

#include <algorithm>
#include <thread>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t worker_count = 5;

}  // namespace

run::run(topology where, std::uint64_t seed, std::string const& history_file)
    : where_{where}, seed_{seed}, world_{make_world(where, worker_count)}, referee_{history_file} {
    for (std::size_t i = 0; i < worker_count; ++i) workers_.push_back(begin_worker(i));
}

test::child_process run::begin_worker(std::size_t which) {
    auto const incarnation = incarnations_[which]++;
    auto const who = names_[which] = "w" + std::to_string(which) + "." + std::to_string(incarnation);
    auto const seed = seed_ + 1'000 * which + 10 * incarnation;
    // Across a failover a lease that is lost may be passed on inside a process before that is known, with fences of its range.
    return test::child_process{{test::program_path("chaos_worker"), world_->url_for(which), referee_.socket_path(), who,
                                std::to_string(seed), fails_over() ? "1" : "5"},
                               {.capture_stderr = false}};
}

// ---- the nemesis

void run::torment(std::chrono::milliseconds length) {
    auto begin = std::chrono::steady_clock::now();
    auto const end = begin + length;
    for (auto const& next : make_plan(seed_, where_, length, worker_count)) {
        begin = std::max(begin, std::chrono::steady_clock::now() - next.at);  // what takes long puts off what follows
        if (begin + next.at > end) break;
        std::this_thread::sleep_until(begin + next.at);
        auto const name = std::string{name_of(next.what)};
        note("deed", name, static_cast<std::int64_t>(next.whom));
        commit(next);
        note("deed", name + " done", static_cast<std::int64_t>(next.whom));
    }
}

void run::commit(step const& next) {
    auto const name = where_ == topology::quorum ? quorum_name_at(next.name) : name_at(next.name, boot_ns());
    switch (next.what) {
        case deed::kill: return replace(next.whom % worker_count);
        case deed::kill_holder: return replace(user_of(name, next.whom));
        case deed::nap: return put_to_sleep(next.whom, next.whom % worker_count);
        case deed::nap_holder: return put_to_sleep(next.whom, user_of(name, next.whom));
        case deed::wake: return workers_.at(asleep_.at(next.whom)).cont();
        default: world_->commit(next);
    }
}

/// A plan says "whoever uses it": who that is depends on the run.
std::size_t run::user_of(std::string const& name, std::uint64_t otherwise) {
    auto const who = referee_.last_user(name);
    return who.empty() ? otherwise % worker_count : static_cast<std::size_t>(who.at(1) - '0');
}

void run::replace(std::size_t which) {
    if (!workers_.at(which).running()) note("left", "a worker that ended by itself");
    auto const who = names_.at(which);
    workers_.at(which) = begin_worker(which);
    referee_.note({.t = boot_ns(), .who = who, .what = "killed"});
}

void run::put_to_sleep(std::uint64_t number, std::size_t which) {
    asleep_[number] = which;
    workers_.at(which).stop();
}

// ---- the end

history run::finish() {
    world_->calm_down();
    for (auto& one : workers_) one.cont();
    if (where_ == topology::quorum) {
        rest();
        part();
        leave_nothing_at_the_nodes(*world_, [this](event what) { referee_.note(std::move(what)); });
        return referee_.finish();
    }
    auto const report = [this](event what) { referee_.note(std::move(what)); };
    {
        // Everything is held here, so that they wait in vain and give up.
        ending const last{*world_, report};
        auto const held = last.take_all(crowd::living);
        rest();
        expect_nothing([this] { return left_by_the_living(*world_, "w", !fails_over()); });
    }
    expect_nothing([this] { return left_by_the_living(*world_, "opw", !fails_over()); });
    part();
    note("parted", "");
    drain(*world_, report);
    drain_jobs(*world_, referee_.socket_path(), report);
    {
        // Whatever the dead held has run out, and who comes then cleans up after them.
        ending const last{*world_, report};
        auto const held = last.take_all(crowd::dead);
        last.meet_nobody();
        last.take_signals();
    }
    tell_changes(*world_, report);
    expect_nothing([&] {
        auto found = leftovers(*world_);
        // While slots move, or when a clock was set back, nobody can be sure who is dead: then it is the next one who cleans up.
        if (!found.empty()) {
            ending const next{*world_, report};
            auto const held = next.take_all(crowd::dead);
            next.meet_nobody();
        }
        return found;
    });
    return referee_.finish();
}

/// They stop working, and their clients live on.
void run::rest() {
    for (auto& one : workers_) one.write_line("rest");
    for (auto& one : workers_) {
        if (one.read_line(30s) != "idle") note("left", "a worker that does not come to rest");
    }
}

/// They end.
void run::part() {
    for (auto& one : workers_) one.close_input();
    for (auto& one : workers_) {
        auto const ended = one.wait(30s);
        if (!ended || ended->code != 0) {
            note("left",
                 "a worker that did not end well: " + (ended ? "signal " + std::to_string(ended->signal) : "it hangs"));
        }
    }
}

void run::expect_nothing(std::function<std::vector<std::string>()> const& look) {
    if (test::eventually([&] { return look().empty(); })) return;
    for (auto const& one : look()) note("left", one);
}

void run::note(std::string const& what, std::string const& text, std::int64_t n) {
    referee_.note({.t = boot_ns(), .who = what == "deed" ? "nemesis" : "end", .what = what, .n = n, .note = text});
}

}  // namespace lockstep::chaos
