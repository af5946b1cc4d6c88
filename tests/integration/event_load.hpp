// Clients, each with its own thread, half of which set an event and half of which wait for it: no signal is lost, and none is taken twice.
#pragma once

#include "support/eventually.hpp"

#include <lockstep/error.hpp>
#include <lockstep/event.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::test {

class event_load {
public:
    struct options {
        bool counts = true;  ///< false: across an asynchronous failover, where signals may be lost
        lease_options lease{.ttl = std::chrono::seconds{10}};
    };

    explicit event_load(std::string const& url) : event_load(url, options{}) {}
    event_load(std::string const& url, options const& how) : event_load(std::vector<std::string>(4, url), how) {}
    /// One client for each URL.
    event_load(std::vector<std::string> const& urls, options const& how) : how_{how} {
        for (std::size_t i = 0; i < urls.size(); ++i) {
            threads_.emplace_back([this, url = urls[i], sets = i % 2 == 0] { work(url, sets); });
        }
    }
    ~event_load() { end(); }

    /// True when so many more were taken.
    bool wait_for_more(std::uint64_t signals = 30) {
        auto const goal = taken_ + signals;
        if (eventually([&] { return taken_ >= goal; }, std::chrono::seconds{40})) return true;
        std::lock_guard const guard{mutex_};
        wrong_.emplace_back("event: nobody is woken any more");
        return false;
    }
    /// What was wrong, after all have ended. `by` reaches the server now.
    std::vector<std::string> finish(client& by) {
        end();
        // One that was offered to a waiter whose connection broke, and which ended then, comes back after the claim window.
        std::uint64_t left = 0;
        auto const is_found = [&] {
            left += static_cast<std::uint64_t>(event{by, "name"}.clear());
            return !how_.counts || taken_ + left >= sets_;
        };
        static_cast<void>(eventually(is_found));
        auto const found = taken_ + left;
        auto const text = "event: " + std::to_string(sets_) + " set, " + std::to_string(unknown_) + " perhaps, " +
                          std::to_string(taken_) + " taken, " + std::to_string(left) + " left";
        if (how_.counts && (found < sets_ || found > sets_ + unknown_)) wrong_.push_back(text);
        return wrong_;
    }

private:
    void end() {
        stop_ = true;
        for (auto& one : threads_) {
            if (one.joinable()) one.join();
        }
    }

    void work(std::string const& url, bool sets) {
        client by{{.url = url, .command_timeout = std::chrono::seconds{40}}};
        event of{by, "name", how_.lease};
        while (!stop_) {
            try {
                sets ? set(of) : wait(of);
            } catch (indeterminate_error const&) {
                ++unknown_;
            } catch (unavailable_error const&) {  // no connection when its time was over
            } catch (std::exception const& failure) {
                std::lock_guard const guard{mutex_};
                wrong_.push_back(std::string{"event: "} + failure.what());
            }
        }
    }
    /// Now far ahead, now behind: signals are stored, and waiters queue.
    void set(event& of) {
        // Where signals may be lost, their number says nothing of whether one is left.
        bool const enough = how_.counts ? sets_ > taken_ + (sets_ / 50 % 2 == 0 ? 0 : 20) : of.is_set();
        if (enough) return std::this_thread::sleep_for(std::chrono::milliseconds{1});
        of.set();
        ++sets_;
    }
    void wait(event& of) {
        if (of.wait_for(std::chrono::milliseconds{200})) ++taken_;
    }

    options how_;
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> sets_{0};
    std::atomic<std::uint64_t> unknown_{0};
    std::atomic<std::uint64_t> taken_{0};
    std::mutex mutex_;
    std::vector<std::string> wrong_;
    std::vector<std::thread> threads_;
};

}  // namespace lockstep::test
