#pragma once

/// Jobs that are too many for one server of a Cluster: over several names, in slots that lie evenly apart.
///
///     lockstep::job_shards jobs{client, "shop", 16};
///     jobs.of(customer).schedule("mail", letter);                 // what belongs together is in one shard: keys, flows, batches
///     jobs.next().schedule("mail", other);                        // anywhere
///
///     lockstep::job_shard_worker worker{client, "shop", 16, {.concurrency = 64}};
///     worker.handle<letter>("mail", [](letter const& what) { send(what); });
///     worker.start();
///
/// Each shard is a `job_client` of its own, and all that is promised holds within it: order, keys, `single`, flows, and ids, which say nothing of their shard.
/// All processes must use the same count. To change it, let the jobs of the old shards be run before their workers end.
/// `shard_names` does the same for queues: one `queue` for each name.
///
/// Failure and threads: as `job_client` and `job_worker`.

#include <lockstep/job_client.hpp>
#include <lockstep/job_worker.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// `<name>.<shard>.<number>` for each of 1 to 1,024 shards, the same in every process. Throws `invalid_argument_error` for another count.
std::vector<std::string> shard_names(std::string_view name, std::size_t count);
/// Which of them this key belongs to, the same in every process.
std::size_t shard_of(std::string_view key, std::size_t count) noexcept;

class job_shards {
public:
    job_shards(client& by, std::string_view name, std::size_t count) {
        for (auto const& one : shard_names(name, count)) shards_.emplace_back(by, one);
    }

    std::size_t size() const noexcept { return shards_.size(); }
    job_client& operator[](std::size_t shard) { return shards_.at(shard); }
    /// Always the same one for a key.
    job_client& of(std::string_view key) { return shards_[shard_of(key, size())]; }
    /// One after the other.
    job_client& next() noexcept { return shards_[turn_++ % size()]; }

    /// Of all shards together.
    job_counts counts(std::string_view type, std::stop_token token = {}) {
        job_counts sum;
        for (auto& one : shards_) sum += one.counts(type, token);
        return sum;
    }
    task<job_counts> async_counts(std::string_view type) {
        std::vector<task<job_counts>> asking;
        for (auto& one : shards_) asking.push_back(one.async_counts(type));
        return sum_of(when_all(std::move(asking)));
    }

    /// Of all shards. False: all were paused already.
    bool pause(std::string_view type, std::stop_token token = {}) {
        bool any = false;
        for (auto& one : shards_) any = one.pause(type, token) || any;
        return any;
    }
    task<bool> async_pause(std::string_view type) {
        std::vector<task<bool>> asking;
        for (auto& one : shards_) asking.push_back(one.async_pause(type));
        return any_of(when_all(std::move(asking)));
    }
    /// False: none was paused.
    bool resume(std::string_view type, std::stop_token token = {}) {
        bool any = false;
        for (auto& one : shards_) any = one.resume(type, token) || any;
        return any;
    }
    task<bool> async_resume(std::string_view type) {
        std::vector<task<bool>> asking;
        for (auto& one : shards_) asking.push_back(one.async_resume(type));
        return any_of(when_all(std::move(asking)));
    }

private:
    static task<bool> any_of(task<std::vector<bool>> asking) {
        auto const all = co_await std::move(asking);
        co_return std::ranges::find(all, true) != all.end();
    }
    static task<job_counts> sum_of(task<std::vector<job_counts>> asking) {
        auto const all = co_await std::move(asking);
        job_counts sum;
        for (auto const& one : all) sum += one;
        co_return sum;
    }

    std::deque<job_client> shards_;
    std::atomic<std::size_t> turn_{0};
};

/// Runs the jobs of all shards.
class job_shard_worker {
public:
    /// `concurrency` is shared out evenly; each shard has 1 at least.
    job_shard_worker(client& by, std::string_view name, std::size_t count, job_worker_options how = {}) {
        auto const names = shard_names(name, count);
        how.concurrency = std::max<std::size_t>((how.concurrency + count - 1) / count, 1);
        for (auto const& one : names) workers_.emplace_back(by, one, how);
    }

    /// As `job_worker::handle`; each shard has a copy of the handler.
    template <class T, codec_for<T> Codec = codec<T>, class F>
    void handle(std::string_view type, F const& handler, handle_options const& how = {}) {
        for (auto& one : workers_) one.template handle<T, Codec>(type, handler, how);
    }
    void start() {
        for (auto& one : workers_) one.start();
    }
    /// All end what they have begun, at the same time.
    void stop() { sync_wait(async_stop()); }
    task<void> async_stop() {
        std::vector<task<void>> ending;
        for (auto& one : workers_) ending.push_back(one.async_stop());
        return when_all(std::move(ending));
    }
    /// As `job_worker::stop` with a limit, of all at the same time. Returns whether all handlers have ended.
    bool stop(std::chrono::milliseconds limit) { return sync_wait(async_stop(limit)); }
    task<bool> async_stop(std::chrono::milliseconds limit) {
        std::vector<task<bool>> ending;
        for (auto& one : workers_) ending.push_back(one.async_stop(limit));
        return have_all_ended(when_all(std::move(ending)));
    }
    std::uint64_t completed() const noexcept {
        std::uint64_t sum = 0;
        for (auto const& one : workers_) sum += one.completed();
        return sum;
    }

private:
    static task<bool> have_all_ended(task<std::vector<bool>> ending) {
        auto const all = co_await std::move(ending);
        co_return std::find(all.begin(), all.end(), false) == all.end();
    }

    std::deque<job_worker> workers_;
};

}  // namespace lockstep
