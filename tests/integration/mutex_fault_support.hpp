// What the fault tests of the mutex share: a holder in a process of its own, the server's view of a lease, and a load that checks what it
// is given.
#pragma once

#include "lease_support.hpp"
#include "support/child_process.hpp"
#include "support/program_path.hpp"

#include <lockstep/mutex.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::test {

/// What a loaded machine may add to any time that is promised.
constexpr std::chrono::milliseconds load_slack{1'500};

/// tests/support/programs/holder.cpp
class holder_process {
public:
    holder_process(std::string const& url, std::string const& name, std::chrono::milliseconds ttl = 30s,
                   std::chrono::milliseconds window = 500ms)
        : process{{program_path("holder"), url, name, std::to_string(ttl.count()), std::to_string(window.count())},
                  {.capture_stderr = false}} {}

    void begin(std::string const& order) { process.write_line(order); }
    std::string answer(std::chrono::milliseconds timeout = 20s) {
        auto const line = process.read_line(timeout);
        if (!line) throw std::runtime_error{"the holder does not answer"};
        return *line;
    }
    std::string ask(std::string const& order) {
        begin(order);
        return answer();
    }
    /// The fence of its hold.
    std::uint64_t held(std::chrono::milliseconds timeout = 20s) {
        auto const said = answer(timeout);
        if (!said.starts_with("held ")) throw std::runtime_error{"the holder says " + said};
        return std::stoull(said.substr(5));
    }
    std::uint64_t acquire() {
        begin("acquire");
        return held();
    }

    child_process process;
};

/// How long the server will keep the hold or the offer that it has now.
inline std::chrono::milliseconds left_at(redis_server& server, std::string const& name) {
    auto const key = "lockstep:{" + name + "}:lock";
    auto const found = server.must({"HMGET", key, "o", "e", "f", "t"}).elements;
    auto const time = server.must({"TIME"}).elements;
    auto const now = std::stoll(time.at(0).text) * 1000 + std::stoll(time.at(1).text) / 1000;
    if (found.at(0).is_nil()) throw std::runtime_error{"nobody holds " + name};
    auto const end = found.at(0).text == "*" ? std::stoll(found.at(1).text)
                                              : std::stoll(found.at(2).text) / 1000 + std::stoll(found.at(3).text);
    return std::chrono::milliseconds{end - now};
}

inline std::string state_at(redis_server& server, std::string const& name) {
    return server.must({"HGET", "lockstep:{" + name + "}:lock", "s"}).text;
}

/// Clients, each with its own thread, that take the same name again and again and check what they get.
class mutex_load {
public:
    struct options {
        std::size_t clients = 3;
        bool exclusive = true;  ///< false: across an asynchronous failover, where that is not promised
        lease_options lease{.ttl = 10s};
    };

    explicit mutex_load(std::string const& url, std::string const& name) : mutex_load(url, name, options{}) {}
    mutex_load(std::string const& url, std::string const& name, options const& how)
        : mutex_load(std::vector<std::string>(how.clients, url), name, how) {}
    /// One client for each URL.
    mutex_load(std::vector<std::string> const& urls, std::string const& name, options const& how) : how_{how} {
        for (auto const& url : urls) threads_.emplace_back([this, url, name] { work(url, name); });
    }
    ~mutex_load() { finish(); }

    /// True when so many more were granted.
    bool wait_for_more(std::uint64_t grants = 30) {
        auto const goal = grants_ + grants;
        return eventually([&] { return grants_ >= goal; }, 40s);
    }
    /// What was wrong, after all have ended.
    std::vector<std::string> finish() {
        stop_ = true;
        for (auto& one : threads_) {
            if (one.joinable()) one.join();
        }
        std::lock_guard const guard{mutex_};
        return wrong_;
    }
    std::uint64_t grants() const { return grants_; }
    std::uint64_t losses() const { return losses_; }

private:
    void complain(std::string const& what) {
        std::lock_guard const guard{mutex_};
        wrong_.push_back(what);
    }

    void work(std::string const& url, std::string const& name) {
        client by{{.url = url, .command_timeout = 40s}};
        mutex of{by, name, how_.lease};
        while (!stop_) {
            try {
                once(of);
            } catch (lease_lost_error const&) {
                ++losses_;
            } catch (unavailable_error const&) {    // no connection when its time was over
            } catch (indeterminate_error const&) {  // the same, for a release that was sent before
            } catch (std::exception const& failure) {
                complain(failure.what());
            }
        }
    }

    void once(mutex& of) {
        auto const before = highest_.load();
        auto held = of.try_acquire_for(2s);
        if (!held) return;
        auto const fence = held->fence();
        if (fence <= before) complain("fence " + std::to_string(fence) + " after " + std::to_string(before));
        for (auto known = highest_.load(); known < fence && !highest_.compare_exchange_weak(known, fence);) {}
        ++grants_;
        auto const others = inside_.fetch_add(1);
        if (others != 0 && how_.exclusive && held->valid()) complain("held twice, fence " + std::to_string(fence));
        std::this_thread::yield();
        inside_.fetch_sub(1);
        held->release();
    }

    options how_;
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> highest_{0};
    std::atomic<std::uint64_t> grants_{0};
    std::atomic<std::uint64_t> losses_{0};
    std::atomic<int> inside_{0};
    std::mutex mutex_;
    std::vector<std::string> wrong_;
    std::vector<std::thread> threads_;
};

}  // namespace lockstep::test
