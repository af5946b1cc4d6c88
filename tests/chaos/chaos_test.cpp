// Worker processes that use Lockstep, a nemesis that harms them and the servers, a referee that holds what they guard, and checkers that
// read what happened.
//
//   LOCKSTEP_SEED=<n>             the nemesis' choices of an earlier run, which printed its seed (what comes of them depends on timing)
//   LOCKSTEP_CHAOS_SECONDS=<n>    any length, for each topology
//   LOCKSTEP_CHAOS_HISTORY=<file> where the history goes; kept. Otherwise it is kept only when something is wrong
//   --gtest_filter=chaos.*        or one of them: chaos.standalone, chaos.sentinel, chaos.cluster, chaos.cluster_failover, chaos.quorum
#include "checkers.hpp"
#include "delivery_checkers.hpp"
#include "job_checkers.hpp"
#include "run.hpp"
#include "support/chaos_names.hpp"

#include <lockstep/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <string>

namespace lockstep::chaos {
namespace {

std::uint64_t number_from(char const* variable, std::uint64_t otherwise) {
    auto const* const given = std::getenv(variable);
    return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

void expect_none(complaints const& found, char const* what) {
    constexpr std::size_t shown = 5;
    for (std::size_t i = 0; i < std::min(found.size(), shown); ++i) ADD_FAILURE() << what << ": " << found[i];
    if (found.size() > shown) ADD_FAILURE() << what << ": and " << found.size() - shown << " more";
}

/// How often each thing happened, by kind; the nemesis' under "deed".
using tally = std::map<std::string, std::map<std::string, std::uint64_t>>;

/// What it is counted as; "": not at all.
std::string label(event const& one) {
    if (one.what == "access") return one.n == 1 ? "let in" : "refused";
    if (one.what == "ended" && !one.name.starts_with("job")) return one.note.empty() ? "ended" : "lost";
    if (one.what == "none") return one.note.empty() ? "none" : one.note;
    if (one.what == "changed") return one.note == "write" ? "upgraded" : "downgraded";
    for (auto const* const asked : {"ask", "sure", "enqueue", "take", "ack", "add", "decide", "schedule", "cancel", "requeue"}) {
        if (one.what == asked) return "";
    }
    if ((one.what == "enqueued" || one.what == "scheduled") && one.n == 0) return "left out";
    if ((one.what == "cancelled" || one.what == "requeued" || one.what == "moved") && one.n == 0) return "too late";
    if (one.what == "ended" && one.name.starts_with("job")) return "awaited";
    return one.what;
}

tally count(history const& all) {
    tally counts;
    for (auto const& one : all) {
        if (one.what == "deed" && !one.note.ends_with(" done")) ++counts["deed"][one.note];
        if (one.name.empty() || one.who == "end" || label(one).empty()) continue;
        ++counts[one.name.substr(0, one.name.find('-'))][label(one)];
    }
    return counts;
}

void print(char const* name, tally const& counts) {
    for (auto const& [kind, all] : counts) {
        std::string text;
        for (auto const& [what, times] : all) text += (text.empty() ? " " : ", ") + what + " " + std::to_string(times);
        std::cout << name << ", " << kind << ":" << text << std::endl;
    }
}

void check(history const& all, promises const& given) {
    for (auto const* const kind : {"mutex", "election", "redlock", "plain"}) expect_none(check_exclusion(all, given, kind), "exclusion");
    for (auto const* const kind : {"mutex", "semaphore", "shared", "election", "redlock"}) {
        expect_none(check_fences(all, given, kind), "fences");
    }
    expect_none(check_bound(all, given, semaphore_permits), "bound");
    expect_none(check_readers_writer(all, given), "readers and writers");
    for (std::uint64_t i = 0; i < barrier_names; ++i) {
        expect_none(check_barrier(all, given, parties_of(i), numbered("barrier", i)), "barrier");
    }
    expect_none(check_event(all, given), "event");
    expect_none(check_changes(all, given), "changes");
    for (auto const* const kind : {"queue", "stealing", "stream"}) expect_none(check_delivered(all, given, kind), "delivered");
    for (auto const* const kind : {"queue", "stealing"}) {
        expect_none(check_done(all, given, kind), "done");
        expect_none(check_possession(all, given, kind), "possession");
    }
    expect_none(check_order(all, given, ordered_queue), "order");
    expect_none(check_keys(all, given), "keys");
    expect_none(check_entries(all, given), "entries");
    expect_none(check_rate(all, given), "rate");
    expect_none(check_jobs_ended(all, given), "jobs");
    expect_none(check_job_sums(all, given), "sums");
    expect_none(check_job_tries(all, given), "tries");
    expect_none(check_single_jobs(all, given), "single jobs");
    expect_none(check_job_parents(all, given), "parents");
    expect_none(check_job_keys(all, given), "keys of jobs");
    expect_none(check_schedules(all, given), "schedules");
    expect_none(check_told(all), "told");
    expect_none(check_nothing_left(all), "left");
    auto const unavailable = make_error_code(errc::unavailable).message();
    auto const not_found = make_error_code(errc::not_found).message();
    // A failover may lose a semaphore that was created a moment before.
    bool const may_lose = std::any_of(all.begin(), all.end(), [](auto const& one) {
        return one.what == "deed" && (one.note.starts_with("failover") || one.note.starts_with("kill_master"));
    });
    for (auto const& one : all) {
        if (one.what != "failed" || one.note.starts_with(unavailable)) continue;
        if (may_lose && one.name.starts_with("semaphore") && one.note.starts_with(not_found)) continue;
        ADD_FAILURE() << to_json(one);
    }
}

void expect_activity(tally counts, topology where, std::uint64_t seconds) {
    EXPECT_GT(counts["election"]["granted"], seconds / 2) << "hardly any";
    if (where == topology::quorum) {
        EXPECT_GT(counts["redlock"]["granted"], seconds) << "hardly any";
        EXPECT_GT(counts["plain"]["granted"], seconds / 2) << "hardly any";
        return;
    }
    for (auto const* const kind : {"mutex", "semaphore", "shared"}) {
        EXPECT_GT(counts[kind]["granted"], seconds) << kind << ": hardly any";
    }
    EXPECT_GT(counts["event"]["woken"], seconds / 2) << "hardly any";
    EXPECT_GT(counts["barrier"]["passed"], 0) << "none";  // it takes all of them, and a failover lasts for most of the time
    EXPECT_GT(counts["queue"]["acked"], seconds) << "hardly any";
    EXPECT_GT(counts["stealing"]["acked"], seconds / 2) << "hardly any";
    EXPECT_GT(counts["stream"]["handled"], seconds) << "hardly any";
    EXPECT_GT(counts["job"]["returned"], seconds) << "hardly any";
    EXPECT_GT(counts["limit"]["allowed"], seconds) << "hardly any";
    EXPECT_GT(counts["limit"]["refused"], seconds / 5) << "hardly any";
}

void run_chaos(topology where, char const* name, std::uint64_t usual_seconds) {
    auto const seed = number_from("LOCKSTEP_SEED", std::random_device{}());
    auto const seconds = number_from("LOCKSTEP_CHAOS_SECONDS", usual_seconds);
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    std::cout << name << ": LOCKSTEP_SEED=" << seed << ", " << seconds << " s" << std::endl;
    auto const* const wanted = std::getenv("LOCKSTEP_CHAOS_HISTORY");
    auto const file = wanted != nullptr
                          ? std::string{wanted}
                          : testing::TempDir() + "lockstep-chaos-" + name + "-" + std::to_string(seed) + ".jsonl";

    run all_of_it{where, seed, file};
    all_of_it.torment(std::chrono::seconds{seconds});
    auto const all = all_of_it.finish();
    check(all, {.memory = !all_of_it.fails_over()});
    auto const counts = count(all);
    print(name, counts);
    expect_activity(counts, where, seconds);
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
TEST(chaos, quorum) { run_chaos(topology::quorum, "quorum", 20); }

}  // namespace
}  // namespace lockstep::chaos
