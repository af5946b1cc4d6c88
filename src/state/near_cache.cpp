#include <lockstep/near_cache.hpp>

#include "base/names.hpp"
#include "core/core.hpp"
#include "lease/pause.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

// Why no stale value stays: the server registers a read when it runs it, so the word of a later change comes after the reply. Whatever word comes
// between the sending of a read and the keeping of its value (of this key, of another that shares its counter, or that the connection was
// lost) has moved the counter, and then the value is not kept. A word that comes after it was kept drops it.

namespace lockstep::detail {
namespace {

using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};

/// What is kept. Does not know its client: whoever tells it something may be the last to hold it.
class near_entries {
public:
    explicit near_entries(near_cache_options const& options) : how_(options) {
        if (how_.max_entries < 16) throw invalid_argument_error(fmt::format("near_cache: max_entries must be at least 16, not {}", how_.max_entries));
        if (how_.max_age.count() < 1 || how_.max_age.count() > 1'000'000'000) {
            throw invalid_argument_error(fmt::format("near_cache: max_age must be 1 to 10^9 ms, not {} ms", how_.max_age.count()));
        }
    }

    bool hit(std::string_view name, std::shared_ptr<void const>& to) noexcept {
        auto& part = part_of(name);
        std::shared_lock const guard{part.mutex};
        auto const found = part.entries.find(name);
        if (found == part.entries.end() || steady::now() >= found->second.until) return false;
        if (!found->second.used.load(std::memory_order_relaxed)) found->second.used.store(true, std::memory_order_relaxed);
        part.hits.fetch_add(1, std::memory_order_relaxed);
        to = found->second.value;
        return true;
    }

    /// To be taken before the read is sent.
    std::uint64_t count_of(std::string_view name) const noexcept { return counters_[text_hash{}(name) % counters_.size()]; }

    /// `count`: what `count_of` said before it was asked for.
    void keep(std::string const& name, std::shared_ptr<void const> value, steady::time_point until, std::uint64_t count) {
        auto& part = part_of(name);
        std::lock_guard const guard{part.mutex};
        if (count != count_of(name) || closed_) return;
        if (!part.entries.contains(name) && part.entries.size() >= how_.max_entries / parts_.size()) evict(part);
        auto& kept = part.entries[name];
        kept.value = std::move(value);
        kept.until = until;
    }

    void drop(std::string_view name) noexcept {
        ++counters_[text_hash{}(name) % counters_.size()];  // first: who is about to keep it sees that, or is seen below
        auto& part = part_of(name);
        shard::table::node_type gone;  // ends outside of the lock: it is the user's
        std::lock_guard const guard{part.mutex};
        auto const found = part.entries.find(name);
        if (found == part.entries.end()) return;
        gone = part.entries.extract(found);
        ++invalidations_;
    }

    void drop_all() noexcept {
        for (auto& one : counters_) ++one;
        for (auto& part : parts_) {
            shard::table gone;
            std::lock_guard const guard{part.mutex};
            gone.swap(part.entries);
            invalidations_ += gone.size();
        }
    }

    void close() noexcept {
        closed_ = true;
        drop_all();
    }

    near_cache_statistics statistics() const noexcept {
        near_cache_statistics sum{.hits = 0, .misses = misses, .invalidations = invalidations_, .evictions = evictions_, .entries = 0};
        for (auto const& part : parts_) {
            std::shared_lock const guard{part.mutex};
            sum.hits += part.hits;
            sum.entries += part.entries.size();
        }
        return sum;
    }

    milliseconds max_age() const noexcept { return how_.max_age; }

    std::atomic<std::uint64_t> misses{0};

private:
    struct entry {
        std::shared_ptr<void const> value;  // null: there is none
        steady::time_point until;
        std::atomic<bool> used{false};
    };
    struct alignas(64) shard {
        mutable std::shared_mutex mutex;
        using table = std::unordered_map<std::string, entry, text_hash, std::equal_to<>>;
        table entries;
        std::atomic<std::uint64_t> hits{0};
    };

    shard& part_of(std::string_view name) noexcept { return parts_[(text_hash{}(name) >> 32) % parts_.size()]; }

    /// Makes room for one: the first that was not used since it was last passed over.
    void evict(shard& where) noexcept {
        for (auto at = where.entries.begin(); at != where.entries.end(); ++at) {
            if (at->second.used.exchange(false) && steady::now() < at->second.until) continue;
            where.entries.erase(at);
            ++evictions_;
            return;
        }
        if (!where.entries.empty()) where.entries.erase(where.entries.begin());
        ++evictions_;
    }

    near_cache_options how_;
    std::array<shard, 16> parts_;
    std::array<std::atomic<std::uint64_t>, 1024> counters_{};
    std::atomic<std::uint64_t> invalidations_{0};
    std::atomic<std::uint64_t> evictions_{0};
    std::atomic<bool> closed_{false};
};

constexpr std::string_view kind = "value";

/// All near caches of a client: one tracked way tells all of them.
class near_hub final : public core::extension, redis::key_listener {
public:
    explicit near_hub(core& owner) : owner_(owner) {}

    static near_hub& of(core& owner) {
        return static_cast<near_hub&>(owner.extend("near_cache", [](core& of) { return std::make_unique<near_hub>(of); }));
    }

    void add(std::shared_ptr<near_entries> const& one) {
        std::lock_guard const guard{mutex_};
        std::erase_if(caches_, [](auto const& gone) { return gone.expired(); });
        caches_.push_back(one);
    }

    /// In a turn.
    std::shared_ptr<redis::router> way() {
        auto made = owner_.tracked();
        made->tell_of_keys(this);
        return made;
    }

private:
    template <class F>
    void each(F what) noexcept {
        std::vector<std::shared_ptr<near_entries>> all;
        std::unique_lock guard{mutex_};
        for (auto const& one : caches_) {
            if (auto alive = one.lock()) all.push_back(std::move(alive));
        }
        guard.unlock();
        for (auto const& one : all) what(*one);
    }
    void key_changed(std::string_view key) noexcept override {
        // <prefix>:{<name>}:value, as base::key_name makes it.
        auto const open = owner_.options().prefix.size() + 2;
        auto const close = kind.size() + 2;
        if (key.size() < open + close) return;
        auto const name = base::decode_name(key.substr(open, key.size() - open - close));
        if (name) each([&](near_entries& one) { one.drop(*name); });
    }
    void any_key_changed() noexcept override {
        each([](near_entries& one) { one.drop_all(); });
    }
    void close(std::function<void()> done) noexcept override {
        each([](near_entries& one) { one.close(); });
        done();
    }

    core& owner_;
    std::mutex mutex_;
    std::vector<std::weak_ptr<near_entries>> caches_;
};

}  // namespace

class near_cache_state {
public:
    near_cache_state(client& by, near_cache_options const& options, raw_near_cache::maker maker)
        : owner(core_access::of(by)), make(maker), kept(std::make_shared<near_entries>(options)) {
        owner->require_same_process();
        near_hub::of(*owner).add(kept);
    }

    std::shared_ptr<core> owner;
    raw_near_cache::maker make;
    std::shared_ptr<near_entries> kept;
};

namespace {

task<std::shared_ptr<void const>> run_fetch(std::shared_ptr<near_cache_state> at, std::string name, std::string key) {
    engine::pause turn{at->owner, milliseconds{0}};
    co_await turn;
    auto const way = near_hub::of(*at->owner).way();
    ++at->kept->misses;
    auto const count = at->kept->count_of(name);
    auto const asked = steady::now();
    bool const is_cluster = at->owner->is_cluster();
    std::string_view const keys[] = {key};
    redis::command_terms const terms{.deadline = at->owner->deadline({}),
                                     .slot = is_cluster ? static_cast<std::int16_t>(redis::key_slot(key)) : std::int16_t{-1},
                                     .repeatable = true,
                                     .errors_are_replies = true};
    auto asking = redis::run_script(way, scripts::value_read, keys, {}, terms);
    auto const said = co_await std::move(asking);
    if (said.is_error()) throw server_error(fmt::format("{} (value '{}')", said.text(), name));
    if (said.size() != 2 && said.size() != 4) throw protocol_error(fmt::format("value '{}': the server's answer to a script is not one of the script's", name));
    auto const version = static_cast<std::uint64_t>(said[0].integer());
    auto until = asked + at->kept->max_age();
    std::shared_ptr<void const> value;
    if (said.size() == 4) {
        value = at->make(said[3].text(), version);
        auto const ttl = said[2].integer();  // the server does not tell when it has run out
        if (ttl >= 0) until = std::min(until, asked + milliseconds{ttl});
    }
    // A slot may move from a node that has no such key, and so has nobody to tell of it.
    bool const is_told = version != 0 || !is_cluster;
    if (is_told) at->kept->keep(name, value, until, count);
    co_return value;
}

}  // namespace

raw_near_cache::raw_near_cache(client& by, near_cache_options const& options, maker make)
    : state_(std::make_shared<near_cache_state>(by, options, make)) {}

bool raw_near_cache::hit(std::string_view name, std::shared_ptr<void const>& to) const {
    state_->owner->require_same_process();
    return state_->kept->hit(name, to);
}

task<std::shared_ptr<void const>> raw_near_cache::fetch(std::string_view name) const {
    return run_fetch(state_, std::string{name}, base::key_name(state_->owner->options().prefix, name, kind));
}

void raw_near_cache::forget(std::string_view name) const noexcept { state_->kept->drop(name); }
near_cache_statistics raw_near_cache::statistics() const noexcept { return state_->kept->statistics(); }

void raw_near_cache::require_blocking() const {
    state_->owner->require_same_process();
    state_->owner->require_blocking_is_allowed();
}

}  // namespace lockstep::detail
