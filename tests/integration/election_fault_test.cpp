// Leaders that are killed, paused or cut off, as processes; the referee is a file outside Redis (support/reign_book.hpp).
#include "election_support.hpp"
#include "lease_fault_support.hpp"
#include "support/child_process.hpp"
#include "support/fault_proxy.hpp"
#include "support/program_path.hpp"
#include "support/reign_book.hpp"
#include "support/scratch_dir.hpp"
#include "support/seed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <sstream>

namespace lockstep::test {
namespace {

class election_with_faults : public testing::Test {
protected:
    struct times {
        int ttl = 1'200, renew_deadline = 800, retry_period = 100;
    };

    std::unique_ptr<child_process> candidate(std::string const& id, std::string const& url, times const& how) {
        return std::make_unique<child_process>(
            std::vector<std::string>{program_path("candidate"), url, "name", id, std::to_string(how.ttl), std::to_string(how.renew_deadline),
                                     std::to_string(how.retry_period), file()},
            child_options{.capture_stderr = false});
    }
    std::unique_ptr<child_process> candidate(std::string const& id) { return candidate(id, server.url(), times{}); }

    static std::uint64_t elected(child_process& who, std::chrono::milliseconds timeout = 20s) {
        while (true) {
            auto const line = who.read_line(timeout);
            if (!line) throw std::runtime_error{"the candidate says nothing"};
            std::istringstream words{*line};
            std::string what;
            std::uint64_t term = 0;
            if (words >> what >> term && what == "elected") return term;
            if (what == "failed:") throw std::runtime_error{*line};
        }
    }
    bool stand_in_line(int count) {
        return eventually([&] { return candidates_at(server) == count; });
    }
    /// What the server still gives the leader.
    std::chrono::milliseconds left() {
        auto const end = std::stoll(server.must({"HGET", "lockstep:{name}:election", "e"}).text);
        auto const time = server.must({"TIME"}).elements;
        return std::chrono::milliseconds{end - std::stoll(time[0].text) * 1'000 - std::stoll(time[1].text) / 1'000};
    }
    std::string file() const { return directory.file("book"); }

    /// No two were valid at the same time, and later ones have larger terms.
    static void expect_one_at_a_time(std::vector<reign> const& all) {
        for (std::size_t i = 1; i < all.size(); ++i) {
            EXPECT_GT(all[i].first_ns, all[i - 1].last_ns) << "two lead: terms " << all[i - 1].term << " and " << all[i].term;
            EXPECT_GT(all[i].term, all[i - 1].term);
        }
    }
    /// Each leader was elected once, in order, and every end follows its own beginning.
    static void expect_in_order(std::vector<leader_change> const& seen, std::vector<reign> const& reigns) {
        std::set<std::uint64_t> terms;
        std::uint64_t leads = 0, last = 0;
        for (auto const& one : seen) {
            if (one.what == leader_change::kind::elected) {
                EXPECT_EQ(leads, 0U) << "elected while " << leads << " led";
                EXPECT_GT(one.term, last);
                terms.insert(one.term);
                leads = last = one.term;
            } else {
                EXPECT_EQ(one.term, leads) << to_string(one.what);
                leads = 0;
            }
        }
        for (auto const& one : reigns) EXPECT_TRUE(terms.contains(one.term)) << "nobody saw " << one.term << " elected";
    }

    redis_server server;
    scratch_dir directory;
    reign_book book{file()};
    client by{server.url()};
    election watched{by, "name", {.id = "observer"}};
    seen_changes seen;
    observation watching = watched.observe(seen.handler());
};

TEST_F(election_with_faults, follows_a_leader_that_was_killed_when_its_lease_has_run_out) {
    auto first = candidate("a");
    auto const term = elected(*first);
    auto second = candidate("b");
    ASSERT_TRUE(stand_in_line(1));
    first->stop();  // from here on no renewal is on its way
    auto const begin = now_ms();
    auto const rest = left();
    first->kill();
    EXPECT_GT(elected(*second), term);
    auto const after = std::chrono::milliseconds{now_ms() - begin};
    EXPECT_GE(after, rest - 2ms);
    EXPECT_LE(after, rest + 200ms + load_slack);
    RecordProperty("beyond_the_ttl_ms", std::to_string((after - rest).count()));
    EXPECT_TRUE(seen.becomes("elected a, lost a, elected b")) << seen.text();
    expect_one_at_a_time(book.read());
}

TEST_F(election_with_faults, ends_a_paused_leader_before_it_can_act_again) {
    auto first = candidate("a");
    elected(*first);
    auto second = candidate("b");
    ASSERT_TRUE(stand_in_line(1));
    first->stop();
    elected(*second);
    first->cont();
    while (true) {
        auto const line = first->read_line(20s);
        ASSERT_TRUE(line);
        if (line->starts_with("lost ")) break;
    }
    ASSERT_TRUE(stand_in_line(1)) << "and it stands again";
    second->write_line("resign");
    elected(*first);
    EXPECT_TRUE(seen.becomes("elected a, lost a, elected b, resigned b, elected a")) << seen.text();
    first->close_input();
    EXPECT_TRUE(first->wait());
    expect_one_at_a_time(book.read());
}

TEST_F(election_with_faults, ends_a_leader_that_is_cut_off_before_another_leads) {
    fault_proxy proxy{server.address()};
    auto first = candidate("a", proxy.url(), {});
    auto const term = elected(*first);
    auto second = candidate("b");
    ASSERT_TRUE(stand_in_line(1));
    proxy.half_open();
    auto const begin = now_ms();
    std::int64_t lost_after = 0;
    for (std::optional<std::string> line; (line = first->read_line(20s));) {
        if (!line->starts_with("ended ")) continue;
        lost_after = now_ms() - begin;
        break;
    }
    EXPECT_GT(lost_after, 0);
    EXPECT_LE(lost_after, 800 + load_slack.count()) << "renew_deadline";
    EXPECT_GT(elected(*second), term);
    proxy.heal();
    ASSERT_TRUE(stand_in_line(1));
    EXPECT_TRUE(seen.becomes("elected a, lost a, elected b")) << seen.text();
    expect_one_at_a_time(book.read());
}

TEST_F(election_with_faults, shows_changes_that_came_while_the_observer_was_cut_off) {
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    election from_afar{far, "name", {.id = "far"}};
    seen_changes there;
    auto const looking = from_afar.observe(there.handler());
    election one{by, "name", {.id = "one"}};
    auto leads = one.campaign();
    ASSERT_TRUE(there.becomes("elected one")) << there.text();
    proxy.refuse();
    proxy.cut();
    leads.resign();
    leads = one.campaign();
    ASSERT_TRUE(seen.becomes("elected one, resigned one, elected one")) << seen.text();
    EXPECT_EQ(there.text(), "elected one");
    proxy.heal();
    EXPECT_TRUE(there.becomes("elected one, resigned one, elected one")) << there.text();
}

TEST_F(election_with_faults, takes_one_leader_however_many_replies_are_lost) {
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    election from_afar{far, "name", {.id = "far"}};
    for (int i = 0; i < 5; ++i) {
        far.command("PING");
        proxy.drop_replies(1);
        auto leads = from_afar.campaign();
        EXPECT_TRUE(leads.valid());
        proxy.drop_replies(1);
        leads.resign();
    }
    ASSERT_TRUE(eventually([&] { return seen.all().size() == 10; })) << seen.text();
    expect_in_order(seen.all(), {});
}

class slow_election_of_twenty : public election_with_faults {};

TEST_F(slow_election_of_twenty, has_one_leader_at_a_time_whatever_happens_to_them) {
    constexpr int count = 20;
    auto const seed = chosen_seed();
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    std::mt19937_64 chance{seed};
    fault_proxy proxy{server.address()};
    std::vector<std::unique_ptr<child_process>> all;
    times const how{.ttl = 600, .renew_deadline = 400, .retry_period = 80};
    auto const launch = [&](int i) { return candidate("c" + std::to_string(i), i % 2 == 0 ? server.url() : proxy.url(), how); };
    for (int i = 0; i < count; ++i) all.push_back(launch(i));
    std::vector<int> paused;
    auto const one_of = [&](std::uint64_t n) { return static_cast<int>(chance() % n); };
    // The leader, mostly: that is whom it concerns.
    auto const victim = [&]() -> int {
        auto const now = chance() % 4 == 0 ? std::nullopt : watched.leader();
        return now && now->id.size() > 1 ? std::stoi(now->id.substr(1)) : one_of(count);
    };
    for (auto const end = now_ms() + 20'000; now_ms() < end;) {
        auto const before = book.read().size();
        int const who = victim();
        auto& process = all[static_cast<std::size_t>(who)];
        bool dies = true;  // then the lease has to run out first
        switch (one_of(6)) {
            case 0:
                process->kill();
                process = launch(who);
                std::erase(paused, who);
                break;
            case 1:
                process->stop();
                paused.push_back(who);
                break;
            case 2:
                for (int const one : paused) all[static_cast<std::size_t>(one)]->cont();
                paused.clear();
                dies = false;
                break;
            case 3:
                proxy.half_open();
                static_cast<void>(eventually([&] { return book.read().size() > before; }, std::chrono::milliseconds{how.ttl}));
                proxy.heal();
                break;
            default:
                process->write_line("resign");
                dies = false;
        }
        static_cast<void>(eventually([&] { return book.read().size() > before; }, dies ? 1200ms : 300ms));
    }
    for (int const one : paused) all[static_cast<std::size_t>(one)]->cont();
    for (auto& one : all) one->close_input();
    for (auto& one : all) static_cast<void>(one->wait(20s));
    auto const reigns = book.read();
    EXPECT_GT(reigns.size(), 8U);
    RecordProperty("leaders", std::to_string(reigns.size()));
    expect_one_at_a_time(reigns);
    auto const last = reigns.back().term;
    EXPECT_TRUE(eventually([&] { return !seen.all().empty() && seen.all().back().term >= last; }));
    expect_in_order(seen.all(), reigns);
}

}  // namespace
}  // namespace lockstep::test
