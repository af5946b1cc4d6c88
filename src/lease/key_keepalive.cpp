#include "lease/key_keepalive.hpp"

#include "base/random.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"

#include <lockstep/error.hpp>
#include <lockstep/task.hpp>

#include <algorithm>
#include <exception>
#include <optional>

namespace lockstep::engine {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds tick = 250ms;  // what is due within it goes along
constexpr milliseconds longest_rest = 1h;
constexpr milliseconds shortest_retention = 1s;  // as if it were so long
constexpr double burst = key_keepalive::commands_per_second / 2;

// Once a key's turn has come, it is put off for the sake of the rate until this part of its retention is over. Its expiry is at least one
// retention away when it is registered, and two after every round.
constexpr milliseconds longest_wait(milliseconds retention) noexcept { return retention * 5 / 6; }

}  // namespace

std::shared_ptr<key_keepalive::registration> key_keepalive::keep(detail::core& client, std::string const& key,
                                                                 milliseconds retention) try {
    auto& keeper = static_cast<key_keepalive&>(
        client.extend("keepalive", [](detail::core& core) { return std::make_unique<key_keepalive>(core); }));
    retention = std::max(retention, shortest_retention);
    std::lock_guard const guard{keeper.mutex_};
    if (keeper.closed_) return nullptr;
    if (auto const found = keeper.by_key_.find(key); found != keeper.by_key_.end()) {
        if (auto known = found->second.lock()) {
            if (known->retention_ < retention) known->retention_ = retention;
            return known;
        }
        keeper.by_key_.erase(found);  // it is about to go, and its text with it
    }
    auto made = std::make_shared<registration>(keeper, key, retention);
    keeper.by_key_.emplace(made->key_, made);
    // Spread from the beginning, so that many that are made together do not fall due together.
    auto const first =
        retention / 12 + milliseconds{base::random_below(static_cast<std::uint64_t>(retention.count()) / 4)};
    keeper.put_in_queue(*made, made->extended_at_ + first);
    return made;
} catch (cancelled_error const&) {
    return nullptr;
}

key_keepalive::registration::registration(key_keepalive& keeper, std::string key, milliseconds retention)
    : keeper_(keeper), key_(std::move(key)), retention_(retention), extended_at_(clock::now()) {}

key_keepalive::registration::~registration() {
    if (!keeper_.client_.same_process()) return;
    std::lock_guard const guard{keeper_.mutex_};
    keeper_.queue_.erase({due_, this});
    auto const found = keeper_.by_key_.find(key_);
    if (found != keeper_.by_key_.end() && found->first.data() == key_.data()) keeper_.by_key_.erase(found);
}

void key_keepalive::put_in_queue(registration& kept, clock::time_point due) {
    queue_.erase({kept.due_, &kept});
    kept.due_ = due;
    queue_.emplace(due, &kept);
    if (due < armed_) wake();
}

void key_keepalive::wake() noexcept {
    if (closed_ || handed_in_) return;
    handed_in_ = client_.home().hand_in(*this);
}

void key_keepalive::arrive() noexcept {
    std::lock_guard const guard{mutex_};
    handed_in_ = false;
    if (closed_ || queue_.empty()) return;
    auto const now = client_.home().now();
    armed_ = std::clamp(queue_.begin()->first, now + milliseconds{1}, now + longest_rest);
    client_.home().arm(*this, armed_);
}

void key_keepalive::fire() noexcept {
    std::vector<request> due;
    {
        std::lock_guard const guard{mutex_};
        armed_ = clock::time_point::max();
        if (closed_) return;
        auto const now = client_.home().now();
        due = take_due(now);
        if (!queue_.empty()) {
            armed_ = std::clamp(queue_.begin()->first, now + tick, now + longest_rest);
            client_.home().arm(*this, armed_);
        }
    }
    for (auto const& one : due) send(one);
}

std::vector<key_keepalive::request> key_keepalive::take_due(clock::time_point now) {
    auto const earned = std::chrono::duration<double>{now - filled_at_}.count() * commands_per_second;
    allowance_ = std::min(allowance_ + earned, burst);
    filled_at_ = now;
    std::vector<registration*> taken;
    for (auto const& [due, kept] : queue_) {
        if (due > now + tick) break;
        if (due > now + kept->retention_ / 12) continue;
        bool const must_go = kept->extended_at_ + longest_wait(kept->retention_) <= now + tick;
        if (allowance_ < 1 && !must_go) continue;
        allowance_ = std::max(allowance_ - 1, 0.0);
        taken.push_back(kept);
    }
    std::vector<request> requests;
    requests.reserve(taken.size());
    for (auto* const kept : taken) {
        queue_.erase({kept->due_, kept});
        kept->extended_at_ = now;
        kept->due_ = now + kept->retention_ / 3;
        queue_.emplace(kept->due_, kept);
        requests.push_back({kept->key_, static_cast<std::int16_t>(redis::key_slot(kept->key_)), 2 * kept->retention_});
    }
    return requests;
}

// Without an answer to wait for: the next round makes up for what fails.
void key_keepalive::send(request const& wanted) noexcept {
    redis::command_terms const terms{
        .deadline = std::min(client_.deadline({}), client_.home().now() + wanted.expiry / 6),
        .slot = wanted.slot,
        .repeatable = true,
        .errors_are_replies = true};
    start(redis::run(client_.way(), terms, "PEXPIRE", wanted.key, wanted.expiry.count(), "GT"),
          [](std::exception_ptr, std::optional<reply>) {});
}

void key_keepalive::close(std::function<void()> done) noexcept {
    {
        std::lock_guard const guard{mutex_};
        closed_ = true;
    }
    client_.home().take_back(*this);
    client_.home().disarm(*this);
    done();
}

}  // namespace lockstep::engine
