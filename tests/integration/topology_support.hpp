// What the tests of Sentinel and Cluster share: looking at servers from outside, and at how a call ended.
#pragma once

#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/steady_load.hpp"

#include <lockstep/client.hpp>
#include <lockstep/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::test {

using namespace std::chrono_literals;

/// How many connections of clients with this name the server has.
inline int connections_named(redis_server& server, std::string const& name) {
    auto const list = server.must({"CLIENT", "LIST"}).text;
    auto const field = " name=" + name + " ";
    int count = 0;
    for (auto at = list.find(field); at != std::string::npos; at = list.find(field, at + 1)) ++count;
    return count;
}

/// How often the server ran a command since it started, or since CONFIG RESETSTAT: "get", "cluster|slots".
inline long calls_of(redis_server& server, std::string const& command) {
    auto const stats = server.must({"INFO", "commandstats"}).text;
    auto const field = "cmdstat_" + command + ":calls=";
    auto const at = stats.find(field);
    return at == std::string::npos ? 0 : std::stol(stats.substr(at + field.size()));
}

/// How often the server refused a command before it ran: "exec".
inline long rejections_of(redis_server& server, std::string const& command) {
    auto const stats = server.must({"INFO", "commandstats"}).text;
    auto const begin = stats.find("cmdstat_" + command + ":");
    if (begin == std::string::npos) return 0;
    auto const field = std::string{"rejected_calls="};
    return std::stol(stats.substr(stats.find(field, begin) + field.size()));
}

/// How often the server answered with this error: "MOVED", "TRYAGAIN".
inline long errors_of(redis_server& server, std::string const& word) {
    auto const stats = server.must({"INFO", "errorstats"}).text;
    auto const field = "errorstat_" + word + ":count=";
    auto const at = stats.find(field);
    return at == std::string::npos ? 0 : std::stol(stats.substr(at + field.size()));
}

/// How a call ended that was expected to fail, and after how long.
struct ending {
    std::optional<errc> reason;  // nothing: it went well
    std::string text;
    std::chrono::milliseconds after;
};

template <class F>
ending ending_of(F call) {
    auto const begin = now_ms();
    auto const after = [&] { return std::chrono::milliseconds{now_ms() - begin}; };
    try {
        call();
        return {.reason = {}, .text = {}, .after = after()};
    } catch (error const& problem) {
        return {.reason = problem.reason(), .text = problem.what(), .after = after()};
    }
}

/// The same for a request with little time, sent again when that was over before anything was heard: a busy machine does that.
inline ending hurried_ending(client& through, request const& hurried) {
    for (int left = 20;; --left) {
        auto end = ending_of([&] { through.execute(hurried); });
        if (end.reason != errc::timeout || left == 0) return end;
    }
}

/// A request that was begun and is waited for later.
template <class T>
class begun {
public:
    explicit begun(task<T> work) {
        start(std::move(work), [shared = shared_](std::exception_ptr problem, std::optional<T> value) {
            std::lock_guard const guard{shared->mutex};
            shared->problem = std::move(problem);
            shared->value = std::move(value);
            shared->done = true;
        });
    }
    [[nodiscard]] bool done() const {
        std::lock_guard const guard{shared_->mutex};
        return shared_->done;
    }
    /// Throws what it ended with, or std::runtime_error when it does not end.
    T get(std::chrono::milliseconds timeout = 40s) const {
        if (!eventually([this] { return done(); }, timeout)) throw std::runtime_error{"the request does not end"};
        std::lock_guard const guard{shared_->mutex};
        if (shared_->problem) std::rethrow_exception(shared_->problem);
        return std::move(*shared_->value);
    }

private:
    struct result {
        std::mutex mutex;
        bool done = false;
        std::exception_ptr problem;
        std::optional<T> value;
    };
    std::shared_ptr<result> shared_ = std::make_shared<result>();
};

/// What a subscription heard. Outlives it.
class hearing {
public:
    subscription_options options(std::string channel, subscription_kind kind = subscription_kind::channel) {
        return {.channel = std::move(channel),
                .handler =
                    [this](message const& one) {
                        std::lock_guard const guard{mutex_};
                        ++heard_[std::string{one.payload}];
                    },
                .kind = kind,
                .on_gap = [this] { ++gaps_; }};
    }
    [[nodiscard]] int times(std::string const& payload) const {
        std::lock_guard const guard{mutex_};
        auto const found = heard_.find(payload);
        return found == heard_.end() ? 0 : found->second;
    }
    [[nodiscard]] bool heard(std::string const& payload) const { return times(payload) != 0; }
    [[nodiscard]] int gaps() const { return gaps_; }

private:
    mutable std::mutex mutex_;
    std::map<std::string, int> heard_;
    std::atomic<int> gaps_{0};
};

/// The ends that a request which must not run twice may have while servers fail.
inline void expect_honest_ends(load_report const& seen) {
    for (auto const& [reason, count] : seen.once) {
        EXPECT_TRUE(reason == errc::indeterminate || reason == errc::unavailable)
            << make_error_code(reason).message() << ": " << count;
    }
}

/// What holds whatever was done to the servers meanwhile.
inline void expect_all_is_well(load_report const& seen) {
    EXPECT_TRUE(seen.ended) << "a request hangs";
    EXPECT_THAT(seen.wrong, testing::IsEmpty());
    EXPECT_THAT(seen.failed, testing::IsEmpty());
    EXPECT_GT(seen.answered, 0U);
    expect_honest_ends(seen);
}

}  // namespace lockstep::test
