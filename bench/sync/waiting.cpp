// 10,000 who wait in one process for 100 names that somebody holds and renews: what they cost while nothing happens.

#include "support/heap.hpp"
#include "support/parking.hpp"
#include "sync/cases.hpp"
#include "sync/members.hpp"

#include <lockstep/mutex.hpp>

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

namespace lockstep::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t waiters = 10'000;
constexpr std::size_t names = 100;
// A tenth of the default. Waiters look whether the holder still renews about once in a ttl, so this shows ten times as many commands.
constexpr std::chrono::milliseconds ttl{3'000};

/// What the server uses, less what its clients' buffers happen to have.
double server_memory(server& redis) {
    auto const info = redis.command({"INFO", "memory"});
    auto const field = [&](std::string const& name) {
        auto const at = info.find("\n" + name + ":");
        return std::stod(info.substr(at + name.size() + 2));
    };
    return field("used_memory") - field("mem_clients_normal");
}

/// One client and those who wait through it.
class crowd {
public:
    crowd(stand& all, std::string prefix, lease_options const& how) : stand_(all), prefix_(std::move(prefix)), through_(all.connect()) {
        for (std::size_t i = 0; i != names; ++i) locks_.emplace_back(through_, prefix_ + std::to_string(i), how);
        through_.command("PING");
        tasks_.reserve(waiters);
    }

    void held_by_another() {
        holder_ = std::make_unique<process>(
            member_command("holder", stand_.redis.where(), {prefix_, std::to_string(names), std::to_string(ttl.count())}),
            stand_.where.client);
        if (auto const said = holder_->hear(); said != "ready") throw std::runtime_error("the holder says " + said);
    }
    void held_here() {
        for (auto& lock : locks_) held_.push_back(lock.acquire());
    }

    void gather() {
        auto const heap = heap_in_use();
        auto const memory = server_memory(stand_.redis);
        for (std::size_t i = 0; i != waiters; ++i) {
            tasks_.push_back(locks_[i % names].async_acquire());
            await_parked(block_, tasks_.back(), progress_);
        }
        through_.command("PING");  // it comes after them all, and so does its answer
        client_bytes = static_cast<double>(heap_in_use() - heap) / static_cast<double>(waiters);
        server_bytes = (server_memory(stand_.redis) - memory) / static_cast<double>(waiters);
        requests_ = through_.statistics().requests;
    }
    /// Requests by name and second since they are all there.
    double commands(double seconds) {
        auto const sent = static_cast<double>(through_.statistics().requests - requests_);
        return sent / static_cast<double>(names) / seconds;
    }
    /// Everyone gets it in turn, and gives it back.
    void disperse() {
        if (holder_) holder_->tell("release");
        held_.clear();
        auto const latest = std::chrono::steady_clock::now() + 20s;
        while (progress_.ended != waiters) {
            if (std::chrono::steady_clock::now() > latest) throw std::runtime_error("not all who waited got their lock");
            std::this_thread::sleep_for(5ms);
        }
        if (progress_.failed != 0) throw std::runtime_error("some who waited got an error");
    }
    client const& through() const noexcept { return through_; }

    double client_bytes = 0;
    double server_bytes = 0;

private:
    stand& stand_;
    std::string prefix_;
    client through_;
    std::vector<mutex> locks_;
    std::unique_ptr<process> holder_;
    std::vector<lease> held_;
    root_block block_{waiters};
    std::vector<task<lease>> tasks_;
    parked_progress progress_;
    std::uint64_t requests_ = 0;
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

    auto const began = wall_seconds();
    auto const strict_before = strict.commands(1);
    auto const apart_before = apart.commands(1);
    auto const cohort_before = cohort.commands(1);
    std::this_thread::sleep_for(all.chosen.rounds > 5 ? 4 * ttl : ttl * 4 / 3);
    auto const seconds = wall_seconds() - began;
    auto const strict_commands = strict.commands(seconds) - strict_before / seconds;
    auto const apart_commands = apart.commands(seconds) - apart_before / seconds;
    auto const cohort_commands = cohort.commands(seconds) - cohort_before / seconds;

    auto const add = [&](std::string const& what, double value, std::string const& unit, bar_kind kind, double bar) {
        all.rows.add({.name = name + ", " + what, .value = value, .unit = unit, .kind = kind, .bar = bar});
    };
    add("client memory each, no cohort", strict.client_bytes, "bytes", bar_kind::value_at_most, 1024);
    add("client memory each, cohort", apart.client_bytes, "bytes", bar_kind::value_at_most, 1024);
    add("server memory each, no cohort", strict.server_bytes, "bytes", bar_kind::value_at_most, 300);
    add("server memory each, cohort", apart.server_bytes, "bytes", bar_kind::none, 0);
    add("commands while they wait, no cohort", strict_commands, "by name and s", bar_kind::value_at_most, 1);
    add("commands while they wait, cohort, held in the same process", cohort_commands, "by name and s", bar_kind::value_at_most, 0);
    add("commands while they wait, cohort, held by another process", apart_commands, "by name and s", bar_kind::none, 0);
    cohort.disperse();
    apart.disperse();
    strict.disperse();
}

}  // namespace lockstep::bench
