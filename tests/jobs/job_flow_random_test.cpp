// Flows of random shapes with random failures and policies, against a model that says how each job must end; and flows under faults.
#include "jobs_support.hpp"
#include "support/seed.hpp"

#include <lockstep/consumer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <random>
#include <set>

namespace lockstep::test {
namespace {

using text = std::string;

struct model_job {
    std::vector<std::size_t> parents{};  // all before it
    parent_failure policy = parent_failure::fail;
    bool is_bad = false;
    bool has_run = false;
    job_state state = job_state::unknown;
};

/// How each ends, if those that have not run yet are run as their parents allow it.
void settle(std::vector<model_job>& all) {
    for (auto& one : all) {
        if (one.has_run) continue;
        bool const is_doomed = one.policy != parent_failure::go_on && std::any_of(one.parents.begin(), one.parents.end(), [&](std::size_t parent) {
            return all[parent].state != job_state::completed;
        });
        one.has_run = !is_doomed;
        if (is_doomed) one.state = one.policy == parent_failure::skip ? job_state::cancelled : job_state::failed;
        else one.state = one.is_bad ? job_state::failed : job_state::completed;
    }
}

enum class shape { random, layers, tree, funnel, chain, star };

std::vector<model_job> make(shape how, std::size_t size, std::mt19937_64& random) {
    std::vector<model_job> all(size);
    auto const below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>{0, n - 1}(random); };
    for (std::size_t i = 1; i != size; ++i) {
        auto& parents = all[i].parents;
        switch (how) {
            case shape::random:
                for (auto n = below(4); n != 0; --n) parents.push_back(below(i));
                break;
            case shape::layers:
                if (i >= 100) {
                    for (auto n = 1 + below(5); n != 0; --n) parents.push_back(i / 100 * 100 - 100 + below(100));
                }
                break;
            case shape::tree: parents.push_back((i - 1) / 2); break;
            case shape::funnel:
                for (auto const parent : {2 * i - size, 2 * i - size + 1}) {
                    if (2 * i >= size && parent < i) parents.push_back(parent);
                }
                break;
            case shape::chain: parents.push_back(i - 1); break;
            case shape::star:
                if (i + 1 != size) parents.push_back(0);
                else for (std::size_t parent = 1; parent != i; ++parent) parents.push_back(parent);
                break;
        }
        std::sort(parents.begin(), parents.end());
        parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
    }
    // Some fail, so many that not all comes to nothing.
    auto const chance = how == shape::chain || how == shape::star ? 3 * size : std::size_t{60};
    for (auto& one : all) {
        one.policy = static_cast<parent_failure>(below(3));
        one.is_bad = below(chance) == 0;
    }
    return all;
}

class flow_trial {
public:
    flow_trial(redis_server& server, std::vector<model_job> all) : by_{server.url()}, all_(std::move(all)) {
        for (std::size_t i = 0; i != all_.size(); ++i) {
            if (all_[i].is_bad) bad_.insert(std::to_string(i));
        }
    }

    /// Adds all, and runs them to the end; then the failed ones again, as long as there are some.
    void run() {
        job_flow flow;
        for (std::size_t i = 0; i != all_.size(); ++i) {
            auto const name = std::to_string(i);
            flow.add(name, type_of(i), name, {.on_parent_failure = all_[i].policy});
            for (auto const parent : all_[i].parents) flow.after(name, std::to_string(parent));
        }
        auto const before = std::chrono::steady_clock::now();
        ids_ = jobs_.add_flow(flow);
        for (auto const& [name, id] : ids_) names_[id] = name;
        auto const took = std::chrono::steady_clock::now() - before;
        std::cout << all_.size() << " jobs were added in " << std::chrono::duration_cast<std::chrono::milliseconds>(took).count() << " ms\n";
        job_worker worker{by_, "name", {.concurrency = 16, .keep_completed = 100'000, .keep_failed = 100'000}};
        for (std::size_t i = 0; i != 3; ++i) {
            worker.handle<text>(type_of(i), [this](job_context& job, text const& what) -> task<text> {
                for (auto const& one : job.parents()) check_parent(one, what);
                if (is_bad(what)) throw reject("bad");
                co_return what;
            });
        }
        worker.start();
        for (int round = 0; round != 4; ++round) {
            settle(all_);
            ASSERT_TRUE(eventually([&] { return is_quiet(); }, 50s));
            compare();
            if (testing::Test::HasFailure() || !requeue_some()) break;
        }
        worker.stop();
    }

private:
    static text type_of(std::size_t i) { return text(1, static_cast<char>('a' + i % 3)); }
    bool is_bad(text const& what) {
        std::lock_guard const guard{mutex_};
        runs_[what] += 1;
        return bad_.contains(what);
    }
    /// A child is run after its parents.
    void check_parent(text const& id, text const& child) {
        std::lock_guard const guard{mutex_};
        auto const& of = all_[std::stoul(child)];
        auto const& parent = names_.at(id);
        if (!std::binary_search(of.parents.begin(), of.parents.end(), std::stoul(parent))) ADD_FAILURE() << id << " is no parent of " << child;
        else if (of.policy != parent_failure::go_on && !runs_.contains(parent)) ADD_FAILURE() << child << " is run before " << parent;
    }
    bool is_quiet() {
        for (std::size_t i = 0; i != 3; ++i) {
            auto const now = jobs_.counts(type_of(i));
            if (now.waiting + now.delayed + now.blocked + now.running != 0) return false;
        }
        return true;
    }
    void compare() {
        std::map<text, job_state> found;
        for (std::size_t i = 0; i != 3; ++i) {
            for (auto const state : {job_state::completed, job_state::failed, job_state::cancelled}) {
                for (std::size_t from = 0;; from += 1000) {
                    auto const some = jobs_.list(type_of(i), state, from, 1000);
                    for (auto const& one : some) found[one.id] = one.state;
                    if (some.size() < 1000) break;
                }
            }
        }
        ASSERT_EQ(found.size(), all_.size());
        for (std::size_t i = 0; i != all_.size(); ++i) {
            auto const name = std::to_string(i);
            ASSERT_EQ(to_string(found.at(ids_.at(name))), to_string(all_[i].state)) << "job " << name;
            ASSERT_EQ(runs_.contains(name), all_[i].has_run) << "job " << name;
        }
    }
    /// About half of those that failed by themselves, which now are good. False: there is none.
    bool requeue_some() {
        std::vector<std::size_t> which;
        {
            std::lock_guard const guard{mutex_};
            for (std::size_t i = 0; i != all_.size(); ++i) {
                if (!all_[i].has_run || all_[i].state != job_state::failed || (i % 2 == 0 && !which.empty())) continue;
                which.push_back(i);
                all_[i].is_bad = false;
                all_[i].state = job_state::completed;
                bad_.erase(std::to_string(i));
            }
        }
        for (auto const i : which) EXPECT_TRUE(jobs_.requeue(ids_.at(std::to_string(i))));
        return !which.empty();
    }

    client by_;
    job_client jobs_{by_, "name"};
    std::vector<model_job> all_;
    std::map<text, text, std::less<>> ids_;
    std::map<text, text> names_;  // by id
    std::mutex mutex_;
    std::set<text> bad_;
    std::map<text, int> runs_;
};

class flow_shapes : public testing::TestWithParam<shape> {};
class slow_flow_shapes : public testing::TestWithParam<shape> {};
constexpr shape all_shapes[] = {shape::random, shape::layers, shape::tree, shape::funnel, shape::chain, shape::star};
std::string name_of(testing::TestParamInfo<shape> const& what) {
    constexpr std::array names{"random", "layers", "tree", "funnel", "chain", "star"};
    return names[static_cast<std::size_t>(what.param)];
}
INSTANTIATE_TEST_SUITE_P(all, flow_shapes, testing::ValuesIn(all_shapes), name_of);
INSTANTIATE_TEST_SUITE_P(all, slow_flow_shapes, testing::ValuesIn(all_shapes), name_of);

void try_flow(shape how, std::size_t size) {
    auto const seed = chosen_seed();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random{seed};
    redis_server server;
    flow_trial trial{server, make(how, size, random)};
    trial.run();
}

TEST_P(flow_shapes, of_300_jobs_end_as_the_model_says) {
    for (int i = 0; i < 3; ++i) try_flow(GetParam(), 300);
}

TEST_P(slow_flow_shapes, of_10000_jobs_end_as_the_model_says) { try_flow(GetParam(), 10'000); }

class flow_faults : public testing::Test {
protected:
    child_process runner(char const* mode, int lease = 300) {
        return child_process{{program_path("job_runner"), server.url(), "name", std::to_string(lease), mode}};
    }

    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    job_client jobs{near, "name"};
};

job_flow chain_of(int length) {
    job_flow flow;
    for (int i = 0; i < length; ++i) {
        auto const name = std::to_string(i);
        flow.add(name, "mail", name);
        if (i > 0) flow.after(name, std::to_string(i - 1));
    }
    return flow;
}

TEST_F(flow_faults, a_flow_whose_reply_is_lost_is_added_once) {
    job_client there{far, "name"};
    there.schedule("mail", text{"x"});
    for (int i = 1; i <= 3; ++i) {
        proxy.drop_replies(1);
        auto const ids = there.add_flow(chain_of(5));
        EXPECT_EQ(proxy.counters().struck, static_cast<std::uint64_t>(i));
        EXPECT_EQ(jobs.find(ids.at("4"))->parents.at(0), ids.at("3")) << "these are the ids of those that were added";
    }
    EXPECT_EQ(jobs.counts("mail").ever_added, 16);
    EXPECT_EQ(jobs.counts("mail").waiting, 4);
    EXPECT_EQ(jobs.counts("mail").blocked, 12);
}

TEST_F(flow_faults, a_flow_goes_on_when_workers_are_killed_in_the_middle_of_it) {
    job_flow flow = chain_of(60);
    for (int i = 0; i < 60; ++i) flow.add("side" + std::to_string(i), "mail", "side" + std::to_string(i)).after("side" + std::to_string(i), std::to_string(i));
    auto const ids = jobs.add_flow(flow);
    for (int i = 0; i < 4; ++i) {
        auto dying = runner("run", 200);
        for (int n = 0; n < 12; ++n) ASSERT_TRUE(dying.read_line(20s));
        dying.kill();
    }
    auto alive = runner("run", 200);
    auto const end = jobs.wait(ids.at("59"), 30s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, job_state::completed);
    ASSERT_TRUE(eventually([&] { return jobs.counts("mail").ever_completed == 120; }, 20s));
    EXPECT_EQ(jobs.counts("mail").completed, 120) << "each once";
    alive.close_input();
    EXPECT_TRUE(alive.wait());
}

TEST_F(flow_faults, completions_that_are_said_twice_count_once_for_the_children) {
    job_flow flow;
    flow.add("last", "mail", text{"last"});
    for (int i = 0; i < 100; ++i) flow.add(std::to_string(i), "mail", std::to_string(i)).after("last", std::to_string(i));
    auto const ids = jobs.add_flow(flow);
    std::atomic<int> runs{0};
    std::atomic<bool> was_last_early{false};
    job_worker worker{far, "name", {.concurrency = 3}};
    worker.handle<text>("mail", [&](text const& what) -> task<text> {
        if (++runs % 10 == 0) proxy.drop_replies(1);
        if (what == "last" && runs != 101) was_last_early = true;
        co_return what;
    });
    worker.start();
    ASSERT_TRUE(jobs.wait(ids.at("last"), 30s));
    worker.stop();
    EXPECT_EQ(runs, 101);
    EXPECT_FALSE(was_last_early);
    EXPECT_GT(proxy.counters().struck, 0U);
}

TEST_F(flow_faults, results_are_kept_for_children_though_few_are_to_be_remembered_and_then_nothing_is_left) {
    job_flow flow;
    flow.add("last", "mail", text{"last"});
    for (int i = 0; i < 640; ++i) flow.add(std::to_string(i), "mail", std::to_string(i)).after("last", std::to_string(i));
    auto const ids = jobs.add_flow(flow);
    job_worker worker{near, "name", {.concurrency = 20, .completed_retention = 0ms}};
    worker.handle<text>("mail", [](job_context& job, text const& what) -> task<text> {
        std::size_t known = 0;
        for (auto const& one : job.parents()) {
            auto asking = job.async_parent_result<text>(one);
            auto const got = co_await std::move(asking);
            if (got) ++known;
        }
        co_return job.parents().empty() ? what : std::to_string(known);
    });
    worker.start();
    ASSERT_EQ(jobs.wait(ids.at("last"), 30s)->result, "640");
    auto const links = mail_key + ":links";
    server.must({"DEL", mail_key + ":awaited"});  // as a minute after a caller waited
    EXPECT_TRUE(eventually([&] {  // when more of them come some are forgotten
        auto const before = jobs.counts("mail").ever_completed;
        jobs.schedule_many<text>("mail", std::vector<text>(64, "x"));
        EXPECT_TRUE(eventually([&] { return jobs.counts("mail").ever_completed == before + 64; }));
        return server.must({"HLEN", links}).integer <= 70 && server.must({"HLEN", mail_key + ":records"}).integer <= 130;
    }));
    worker.stop();
    EXPECT_EQ(server.must({"ZCARD", mail_key + ":blocked"}).integer, 0);
}

}  // namespace
}  // namespace lockstep::test
