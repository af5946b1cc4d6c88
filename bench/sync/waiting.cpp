// 10,000 who wait in one process for 100 names that somebody holds and renews: what they cost while nothing happens.

#include "base/names.hpp"
#include "scripts/all.hpp"
#include "support/heap.hpp"
#include "support/parking.hpp"
#include "sync/cases.hpp"
#include "sync/members.hpp"

#include <lockstep/mutex.hpp>

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t waiters = 10'000;
constexpr std::size_t names = 100;
// A tenth of the default. Waiters look whether the holder still renews about once in a ttl, so this shows ten times as many commands.
constexpr std::chrono::milliseconds ttl{3'000};

std::string key_of(std::string const& prefix, std::size_t index) {
    return base::key_name("lockstep", prefix + std::to_string(index), "lock");
}

/// Sees every command that clients send, until `commands()` is asked.
class observer {
public:
    explicit observer(server& redis) : redis_(redis), connection_(redis.where()), began_(wall_seconds()) {
        connection_.command({"MONITOR"});
    }
    /// How many scripts ran on keys of each crowd, by name and second. The holder's renewals and the clients' heartbeats are not counted.
    std::vector<double> commands(std::vector<std::string> const& prefixes) {
        auto const seconds = wall_seconds() - began_;
        redis_.command({"ECHO", "the observer has seen enough"});
        std::vector<double> counts(prefixes.size());
        for (;;) {
            auto const line = connection_.receive();
            if (has(line, "the observer has seen enough")) break;
            if (!has(line, "\"EVAL") || is_of(line, scripts::lock_renew) || is_of(line, scripts::client_register) ||
                is_of(line, scripts::statistics_add))
                continue;
            for (std::size_t i = 0; i != prefixes.size(); ++i) counts[i] += has(line, prefixes[i]) ? 1 : 0;
        }
        for (auto& count : counts) count /= static_cast<double>(names) * seconds;
        return counts;
    }

private:
    static bool has(std::string_view line, std::string_view part) { return line.find(part) != std::string_view::npos; }
    static bool is_of(std::string_view line, scripts::script const& one) {
        return has(line, one.sha1) || has(line, std::string{one.name} + ':');  // EVALSHA, or EVAL with its whole text
    }

    server& redis_;
    raw_connection connection_;
    double began_;
};

/// One client and those who wait through it.
class crowd {
public:
    crowd(stand& all, std::string prefix, lease_options const& how)
        : stand_(all), prefix_(std::move(prefix)), through_(all.connect()) {
        for (std::size_t i = 0; i != names; ++i) locks_.emplace_back(through_, prefix_ + std::to_string(i), how);
        through_.command("PING");
        tasks_.reserve(waiters);
    }

    void held_by_another() {
        holder_ =
            std::make_unique<process>(member_command("holder", stand_.redis.where(),
                                                     {prefix_, std::to_string(names), std::to_string(ttl.count())}),
                                      stand_.where.client);
        if (auto const said = holder_->hear(); said != "ready") throw std::runtime_error("the holder says " + said);
    }
    void held_here() {
        for (auto& lock : locks_) held_.push_back(lock.acquire());
    }

    void gather() {
        auto const heap = heap_in_use();
        auto const memory = server_memory();
        for (std::size_t i = 0; i != waiters; ++i) {
            tasks_.push_back(locks_[i % names].async_acquire());
            await_parked(block_, tasks_.back(), progress_);
        }
        through_.command("PING");  // all have arrived
        for (double seen = 0, now = server_memory(); now != seen; std::this_thread::sleep_for(20ms))
            seen = std::exchange(now, server_memory());
        client_bytes = static_cast<double>(heap_in_use() - heap) / static_cast<double>(waiters);
        server_bytes = (server_memory() - memory) / static_cast<double>(waiters);
    }
    /// Everyone gets it in turn, and gives it back.
    void disperse() {
        if (holder_) holder_->tell("release");
        held_.clear();
        auto const latest = std::chrono::steady_clock::now() + 20s;
        while (progress_.ended != waiters) {
            if (std::chrono::steady_clock::now() > latest)
                throw std::runtime_error("not all who waited got their lock");
            std::this_thread::sleep_for(5ms);
        }
        if (progress_.failed != 0) throw std::runtime_error("some who waited got an error");
    }
    double client_bytes = 0;
    double server_bytes = 0;

private:
    double server_memory() {
        double sum = 0;
        for (std::size_t i = 0; i != names; ++i)
            sum += std::stod(stand_.redis.command({"MEMORY", "USAGE", key_of(prefix_, i), "SAMPLES", "0"}));
        return sum;
    }

    stand& stand_;
    std::string prefix_;
    client through_;
    std::vector<mutex> locks_;
    std::unique_ptr<process> holder_;
    std::vector<lease> held_;
    root_block block_{waiters};
    std::vector<task<lease>> tasks_;
    parked_progress progress_;
};

}  // namespace

void many_waiters(stand& all, std::string const& name) {
    pin_this_thread(all.where.client);
    crowd strict{all, "bench:strict:", {.ttl = ttl, .cohort_passes = 0}};
    strict.held_by_another();
    strict.gather();
    all.rows.add({.name = name + ", connections",
                  .value = static_cast<double>(all.redis.connections_named(all.name)),
                  .unit = "connections",
                  .kind = bar_kind::value_at_most,
                  .bar = 1});
    crowd apart{all, "bench:apart:", {.ttl = ttl}};
    apart.held_by_another();
    apart.gather();
    crowd cohort{all, "bench:cohort:", {.ttl = ttl}};
    cohort.held_here();
    cohort.gather();

    observer watch{all.redis};
    std::this_thread::sleep_for(all.chosen.is_quick() ? ttl * 4 / 3 : ttl * 4);
    auto const commands = watch.commands({"bench:strict:", "bench:apart:", "bench:cohort:"});

    auto const add = [&](std::string const& what, double value, std::string const& unit, bar_kind kind, double bar) {
        all.rows.add({.name = name + ", " + what, .value = value, .unit = unit, .kind = kind, .bar = bar});
    };
    add("client memory each, no cohort", strict.client_bytes, "bytes", bar_kind::value_at_most, 1024);
    add("client memory each, cohort", apart.client_bytes, "bytes", bar_kind::value_at_most, 1024);
    add("server memory each, no cohort", strict.server_bytes, "bytes", bar_kind::value_at_most, 300);
    add("server memory each, cohort", apart.server_bytes, "bytes", bar_kind::none, 0);
    add("commands while they wait, no cohort", commands[0], "by name and s", bar_kind::value_at_most, 1);
    add("commands while they wait, cohort, held in the same process", commands[2], "by name and s",
        bar_kind::value_at_most, 0);
    add("commands while they wait, cohort, held by another process", commands[1], "by name and s", bar_kind::none, 0);
    cohort.disperse();
    apart.disperse();
    strict.disperse();
}

}  // namespace lockstep::bench
