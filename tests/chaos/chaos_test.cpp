// Worker processes that use Lockstep, a nemesis that harms them and the servers, a referee that holds what they guard, and checkers that
// read what happened.
//
//   LOCKSTEP_SEED=<n>             the nemesis' choices of an earlier run, which printed its seed (what comes of them depends on timing)
//   LOCKSTEP_CHAOS_SECONDS=<n>    any length, for each topology
//   LOCKSTEP_CHAOS_HISTORY=<file> where the history goes; kept. Otherwise it is kept only when something is wrong
//   --gtest_filter=chaos.*        or one of them: chaos.standalone, chaos.sentinel, chaos.cluster, chaos.cluster_failover
#include "checkers.hpp"
#include "plan.hpp"
#include "referee.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/program_path.hpp"
#include "world.hpp"

#include <lockstep/client.hpp>
#include <lockstep/error.hpp>
#include <lockstep/mutex.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::size_t worker_count = 5;

std::uint64_t number_from(char const* variable, std::uint64_t otherwise) {
    auto const* const given = std::getenv(variable);
    return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

class chaos_run {
public:
    chaos_run(topology where, std::uint64_t seed, std::string const& history_file)
        : where_{where}, seed_{seed}, world_{make_world(where, worker_count)}, referee_{history_file} {
        for (std::size_t i = 0; i < worker_count; ++i) workers_.push_back(begin_worker(i));
    }

    void torment(milliseconds length) {
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

    /// Ends the workers in order, and looks at what is left: of those who live, and then of those who did.
    history finish() {
        world_->calm_down();
        for (auto& one : workers_) one.cont();
        {
            // Everything is held here, so that they wait in vain and give up.
            client by{{.url = world_->url_for(0), .name = "end"}};
            auto const held = take_all(by);
            for (auto& one : workers_) one.write_line("rest");
            for (auto& one : workers_) {
                if (one.read_line(30s) != "idle") note("left", "a worker that does not come to rest");
            }
            expect_nothing([this] { return left_by_the_living(*world_, "w"); });
        }
        expect_nothing([this] { return left_by_the_living(*world_, "opw"); });
        for (auto& one : workers_) one.close_input();
        for (auto& one : workers_) {
            auto const ended = one.wait(30s);
            if (!ended || ended->code != 0) {
                note("left", "a worker that did not end well: " + (ended ? "signal " + std::to_string(ended->signal) : "it hangs"));
            }
        }
        {
            // Whatever the dead held has run out, and who comes then cleans up after them.
            client by{{.url = world_->url_for(0), .name = "end"}};
            auto const held = take_all(by);
        }
        expect_nothing([this] { return leftovers(*world_); });
        return referee_.finish();
    }

private:
    test::child_process begin_worker(std::size_t which) {
        auto const incarnation = incarnations_[which]++;
        auto const who = "w" + std::to_string(which) + "." + std::to_string(incarnation);
        auto const seed = seed_ + 1'000 * which + 10 * incarnation;
        // Across a failover a lease that is lost may be passed on inside a process before that is known, with fences of its range.
        bool const passes_on = where_ == topology::standalone || where_ == topology::cluster;
        return test::child_process{{test::program_path("chaos_worker"), world_->url_for(which), referee_.socket_path(), who,
                                    std::to_string(seed), passes_on ? "3" : "1"},
                                   {.capture_stderr = false}};
    }

    void commit(step const& next) {
        switch (next.what) {
            case deed::kill: return replace(next.whom % worker_count);
            case deed::kill_holder: return replace(holder_of(next.whom));
            case deed::nap: return put_to_sleep(next.whom, next.whom % worker_count);
            case deed::nap_holder: return put_to_sleep(next.whom, holder_of(next.whom));
            case deed::wake: return workers_.at(asleep_.at(next.whom)).cont();
            default: world_->commit(next);
        }
    }

    /// A plan says "whoever holds it": who that is depends on the run.
    std::size_t holder_of(std::uint64_t name) {
        auto const who = referee_.last_granted(mutex_name(name));
        return who.empty() ? name % worker_count : static_cast<std::size_t>(who.at(1) - '0');
    }
    void replace(std::size_t which) {
        if (!workers_.at(which).running()) note("left", "a worker that ended by itself");
        workers_.at(which) = begin_worker(which);
    }
    void put_to_sleep(std::uint64_t number, std::size_t which) {
        asleep_[number] = which;
        workers_.at(which).stop();
    }

    std::vector<lease> take_all(client& by) {
        std::vector<lease> all;
        for (std::size_t i = 0; i < mutex_names; ++i) {
            mutex last{by, mutex_name(i)};
            auto held = last.try_acquire_for(10s);
            if (held) all.push_back(std::move(*held));
            if (!held) note("left", mutex_name(i) + " cannot be had any more");
        }
        return all;
    }
    void expect_nothing(std::function<std::vector<std::string>()> const& look) {
        if (test::eventually([&] { return look().empty(); })) return;
        for (auto const& one : look()) note("left", one);
    }

    void note(std::string const& what, std::string const& text, std::int64_t n = 0) {
        referee_.note({.t = boot_ns(), .who = what == "deed" ? "nemesis" : "end", .what = what, .n = n, .note = text});
    }

    topology where_;
    std::uint64_t seed_;
    std::unique_ptr<world> world_;
    referee referee_;
    std::map<std::size_t, unsigned> incarnations_;
    std::map<std::uint64_t, std::size_t> asleep_;  // by the plan's number
    std::vector<test::child_process> workers_;
};

void expect_none(complaints const& found, char const* what) {
    constexpr std::size_t shown = 5;
    for (std::size_t i = 0; i < std::min(found.size(), shown); ++i) ADD_FAILURE() << what << ": " << found[i];
    if (found.size() > shown) ADD_FAILURE() << what << ": and " << found.size() - shown << " more";
}

std::string summary(history const& all) {
    std::map<std::string, int> counts;
    for (auto const& one : all) {
        if (one.what == "deed" && !one.note.ends_with(" done")) ++counts[one.note];
        if (one.what == "granted" || one.what == "none" || one.what == "failed") ++counts[one.what];
        if (one.what == "access") ++counts[one.n == 1 ? "let in" : "refused"];
        if (one.what == "ended" && !one.note.empty()) ++counts["lost"];
    }
    std::string text;
    for (auto const& [what, count] : counts) text += (text.empty() ? "" : ", ") + what + " " + std::to_string(count);
    return text;
}

void run_chaos(topology where, char const* name, std::uint64_t usual_seconds) {
    auto const seed = number_from("LOCKSTEP_SEED", std::random_device{}());
    auto const seconds = number_from("LOCKSTEP_CHAOS_SECONDS", usual_seconds);
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    std::cout << name << ": LOCKSTEP_SEED=" << seed << ", " << seconds << " s" << std::endl;
    auto const* const wanted = std::getenv("LOCKSTEP_CHAOS_HISTORY");
    auto const file = wanted != nullptr ? std::string{wanted}
                                        : testing::TempDir() + "lockstep-chaos-" + name + "-" + std::to_string(seed) + ".jsonl";

    chaos_run run{where, seed, file};
    run.torment(std::chrono::seconds{seconds});
    auto const all = run.finish();
    promises const given{.exclusion = where == topology::standalone || where == topology::cluster};
    expect_none(check_exclusion(all, given), "exclusion");
    expect_none(check_fences(all, given), "fences");
    expect_none(check_nothing_left(all), "left");

    std::cout << name << ": " << summary(all) << std::endl;
    auto const expected = make_error_code(errc::unavailable).message();
    for (auto const& one : all) {
        if (one.what == "failed" && !one.note.starts_with(expected)) ADD_FAILURE() << to_json(one);
    }
    auto const grants = holds_of(all, "mutex").size();
    EXPECT_GT(grants, 5 * seconds) << "they hardly got to do anything";
    if (testing::Test::HasFailure()) {
        std::cout << "the history is in " << file << std::endl;
    } else if (wanted == nullptr) {
        std::filesystem::remove(file);
    }
}

TEST(chaos, standalone) { run_chaos(topology::standalone, "standalone", 60); }
TEST(chaos, sentinel) { run_chaos(topology::sentinel, "sentinel", 10); }
TEST(chaos, cluster) { run_chaos(topology::cluster, "cluster", 10); }
TEST(chaos, cluster_failover) { run_chaos(topology::cluster_failover, "cluster_failover", 10); }

}  // namespace
}  // namespace lockstep::chaos
