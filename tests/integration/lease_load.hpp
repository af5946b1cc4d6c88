// Clients, each with its own thread, that take the same thing again and again and check what they get.
#pragma once

#include "support/eventually.hpp"
#include "support/holdable.hpp"

#include <lockstep/error.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::test {

/// Of a shared mutex they are readers and writers in turn, of a semaphore they want one permit and two, and an owner of a recursive mutex
/// takes it twice.
class lease_load {
public:
    struct options {
        std::size_t clients = 3;
        bool exclusive = true;  ///< false: across an asynchronous failover, where that is not promised
        lease_options lease{.ttl = std::chrono::seconds{10}};
    };

    lease_load(kind what, std::string const& url) : lease_load(what, url, options{}) {}
    lease_load(kind what, std::string const& url, options const& how)
        : lease_load(what, std::vector<std::string>(how.clients, url), how) {}
    /// One client for each URL.
    lease_load(kind what, std::vector<std::string> const& urls, options const& how) : what_{what}, how_{how} {
        for (auto const& url : urls) threads_.emplace_back([this, url] { work(url); });
    }
    ~lease_load() { finish(); }

    /// True when so many more were granted.
    bool wait_for_more(std::uint64_t grants = 30) {
        auto const goal = grants_ + grants;
        if (eventually([&] { return grants_ >= goal; }, std::chrono::seconds{40})) return true;
        complain("nobody gets it any more");
        return false;
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
    std::uint64_t losses() const { return losses_; }

private:
    static constexpr int whole = 6;

    /// How much of it a hold of this kind takes.
    static int share_of(kind what) {
        switch (what) {
            case kind::reader: return 1;
            case kind::one_permit: return whole / 3;
            case kind::permits: return 2 * whole / 3;
            default: return whole;
        }
    }
    /// What is taken in turn with it.
    static kind other(kind what) {
        return what == kind::writer ? kind::reader : what == kind::permits ? kind::one_permit : what;
    }

    void complain(std::string const& what) {
        std::lock_guard const guard{mutex_};
        wrong_.push_back(name_of(what_) + ": " + what);
    }

    void work(std::string const& url) try {
        client by{{.url = url, .command_timeout = std::chrono::seconds{40}}};
        holdable one{what_, by, "name", how_.lease};
        holdable two{other(what_), by, "name", how_.lease};
        for (unsigned turn = 0; !stop_; ++turn) {
            // Those who elect a new master need the processor too.
            if (!how_.exclusive) std::this_thread::sleep_for(std::chrono::milliseconds{2});
            try {
                if (what_ == kind::recursive_mutex && !how_.exclusive) {
                    // A failover may bring a hold back that was released. The same owner would be let in beside it with its old fence,
                    // though another had a larger one in between: known, and not what this is about.
                    holdable new_owner{what_, by, "name", how_.lease};
                    once(new_owner, what_);
                    continue;
                }
                turn % 2 == 0 ? once(one, what_) : once(two, other(what_));
            } catch (lease_lost_error const&) {
                ++losses_;
            } catch (unavailable_error const&) {    // no connection when its time was over
            } catch (indeterminate_error const&) {  // the same, for what was sent before
            } catch (std::exception const& failure) {
                complain(failure.what());
            }
        }
    } catch (std::exception const& failure) {
        complain(failure.what());
    }

    void once(holdable& of, kind as) {
        auto const before = highest_.load();
        auto held = of.try_acquire_for(std::chrono::seconds{2});
        if (!held) return;
        auto const fence = held->fence();
        if (fence <= before) complain("fence " + std::to_string(fence) + " after " + std::to_string(before));
        for (auto known = highest_.load(); known < fence && !highest_.compare_exchange_weak(known, fence);) {
        }
        ++grants_;
        auto const taken = inside_.fetch_add(share_of(as));
        if (taken + share_of(as) > whole && how_.exclusive && held->valid())
            complain("held by too many, fence " + std::to_string(fence));
        if (as == kind::recursive_mutex) enter_again(of, *held);
        std::this_thread::yield();
        inside_.fetch_sub(share_of(as));
        held->release();
    }

    void enter_again(holdable& of, lease const& held) {
        auto again = of.try_acquire();
        if (!held.valid() || !how_.exclusive) return;
        if (!again) return complain("its owner is not let in again");
        if (again->fence() != held.fence()) complain("another fence when its owner comes again");
    }

    kind what_;
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
