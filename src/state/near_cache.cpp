#include <lockstep/detail/near_cache.hpp>

#include "base/clock.hpp"
#include "base/names.hpp"
#include "core/core.hpp"
#include "lease/awaiter.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <boost/intrusive/list.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <functional>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

// Why no stale value stays: the server registers a read when it runs it, so the word of a later change comes after the reply. Whatever word comes
// between the sending of a read and the keeping of its value (of this key, of another that shares its counter, or that the connection was
// lost) has moved the counter, and then the value is not kept. A word that comes after it was kept drops it.
//
// A reader that misses a value which is being read already waits for that read, unless the counter has moved since it was sent. The read belongs to none
// of the readers, so that it goes on when one of them is cancelled.

namespace lockstep::detail {
namespace {

using clock = base::boot_clock;  // a value gets older while the machine sleeps, and then nobody hears of its changes
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
        if (found == part.entries.end() || clock::now() >= found->second.until) return false;
        if (!found->second.used.load(std::memory_order_relaxed)) found->second.used.store(true, std::memory_order_relaxed);
        part.hits.fetch_add(1, std::memory_order_relaxed);
        to = found->second.value;
        return true;
    }

    /// To be taken before the read is sent.
    std::uint64_t count_of(std::string_view name) const noexcept { return counters_[text_hash{}(name) % counters_.size()]; }

    /// `count`: what `count_of` said before it was asked for.
    void keep(std::string const& name, std::shared_ptr<void const> value, clock::time_point until, std::uint64_t count) {
        auto& part = part_of(name);
        shard::table::node_type gone;  // as the value that was there before, which is in `value` then: both end outside of the lock
        std::lock_guard const guard{part.mutex};
        if (count != count_of(name) || closed_) return;
        auto found = part.entries.find(name);
        if (found == part.entries.end()) {
            if (part.entries.size() >= how_.max_entries / parts_.size()) gone = evict(part);
            found = part.entries.try_emplace(name).first;
            part.link(*found);
        }
        found->second.value.swap(value);
        found->second.until = until;
    }

    void drop(std::string_view name) noexcept {
        ++counters_[text_hash{}(name) % counters_.size()];  // first: who is about to keep it sees that, or is seen below
        auto& part = part_of(name);
        shard::table::node_type gone;  // ends outside of the lock: it is the user's
        std::lock_guard const guard{part.mutex};
        auto const found = part.entries.find(name);
        if (found == part.entries.end()) return;
        gone = part.take(found);
        ++invalidations_;
    }

    void drop_all() noexcept {
        for (auto& one : counters_) ++one;
        for (auto& part : parts_) {
            shard::table gone;
            std::lock_guard const guard{part.mutex};
            gone.swap(part.entries);
            part.hand = nullptr;
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
        clock::time_point until;
        std::atomic<bool> used{false};
        std::pair<std::string const, entry>* before = nullptr;  // in the ring
        std::pair<std::string const, entry>* after = nullptr;
    };
    struct alignas(64) shard {
        using table = std::unordered_map<std::string, entry, text_hash, std::equal_to<>>;
        using item = table::value_type;

        /// As the last that the hand comes to.
        void link(item& one) noexcept {
            if (hand == nullptr) hand = one.second.before = one.second.after = &one;
            one.second.after = hand;
            one.second.before = std::exchange(hand->second.before, &one);
            one.second.before->second.after = &one;
        }
        /// Out of the ring and the table.
        table::node_type take(table::iterator at) noexcept {
            auto* const before = at->second.before;
            auto* const after = at->second.after;
            if (hand == &*at) hand = after == hand ? nullptr : after;
            before->second.after = after;
            after->second.before = before;
            return entries.extract(at);
        }

        mutable std::shared_mutex mutex;
        table entries;
        item* hand = nullptr;  // in a ring of all entries
        std::atomic<std::uint64_t> hits{0};
    };

    shard& part_of(std::string_view name) noexcept { return parts_[(text_hash{}(name) >> 32) % parts_.size()]; }

    /// Makes room for one in a part that has some: the first that was not used since it came or was last passed over, or is too old. The hand goes on
    /// where it stopped, and so each is there for a round at least.
    shard::table::node_type evict(shard& where) noexcept {
        auto const now = clock::now();
        while (where.hand->second.used.exchange(false, std::memory_order_relaxed) && now < where.hand->second.until) where.hand = where.hand->second.after;
        ++evictions_;
        return where.take(where.entries.find(where.hand->first));
    }

    near_cache_options how_;
    std::array<shard, 16> parts_;
    std::array<std::atomic<std::uint64_t>, 1024> counters_{};
    std::atomic<std::uint64_t> invalidations_{0};
    std::atomic<std::uint64_t> evictions_{0};
    std::atomic<bool> closed_{false};
};

/// Where the values are that a cache reads.
struct near_source {
    std::string map{};    ///< the key of the map whose fields they are; empty: each is a shared value
    std::string about{};  ///< the map's other key
};

constexpr std::string_view kind = "value";

/// Of `<prefix>:{<name>}:value`, as base::key_name makes it. Nothing: it is no such key.
std::optional<std::string> name_of_value(std::string_view key, std::string_view prefix) {
    auto const open = prefix.size() + 2;
    auto const close = kind.size() + 2;
    if (key.size() < open + close || !key.ends_with(kind) || key[key.size() - close] != '}') return std::nullopt;
    return base::decode_name(key.substr(open, key.size() - open - close));
}

/// All near caches of a client: one tracked way tells all of them.
class near_hub final : public core::extension, redis::key_listener {
public:
    explicit near_hub(core& owner) : owner_(owner) {}

    static near_hub& of(core& owner) {
        return static_cast<near_hub&>(owner.extend("near_cache", [](core& of) { return std::make_unique<near_hub>(of); }));
    }

    void add(std::shared_ptr<near_entries> const& one, near_source const& from) {
        std::lock_guard const guard{mutex_};
        std::erase_if(caches_, [](auto const& known) { return known.kept.expired(); });
        caches_.push_back({one, from});
    }

    /// In a turn.
    std::shared_ptr<redis::router> way() {
        auto made = owner_.tracked();
        made->tell_of_keys(this);
        return made;
    }

private:
    struct known_cache {
        std::weak_ptr<near_entries> kept;
        near_source from;
    };

    /// Those of them of whose source this is true.
    template <class Which, class F>
    void each(Which which, F what) noexcept {
        std::vector<std::shared_ptr<near_entries>> all;
        std::unique_lock guard{mutex_};
        for (auto const& one : caches_) {
            if (!which(one.from)) continue;
            if (auto alive = one.kept.lock()) all.push_back(std::move(alive));
        }
        guard.unlock();
        for (auto const& one : all) what(*one);
    }
    static bool any(near_source const&) noexcept { return true; }

    void key_changed(std::string_view key) noexcept override {
        if (auto const name = name_of_value(key, owner_.options().prefix)) {
            return each([](near_source const& from) { return from.map.empty(); }, [&](near_entries& one) { one.drop(*name); });
        }
        each([&](near_source const& from) { return from.map == key || from.about == key; }, [](near_entries& one) { one.drop_all(); });
    }
    void any_key_changed() noexcept override {
        each(any, [](near_entries& one) { one.drop_all(); });
    }
    void close(std::function<void()> done) noexcept override {
        each(any, [](near_entries& one) { one.close(); });
        done();
    }

    core& owner_;
    std::mutex mutex_;
    std::vector<known_cache> caches_;
};

}  // namespace

class near_waiter;

/// A read of one value that is under way, and the readers that wait for it.
struct near_fetch {
    std::uint64_t count = 0;  ///< what `count_of` said before it was sent
    boost::intrusive::list<near_waiter, boost::intrusive::base_hook<redis::list_hook>, boost::intrusive::constant_time_size<false>> waiting{};
};

class near_cache_state {
public:
    near_cache_state(client& by, std::optional<std::string_view> map, near_cache_options const& options, raw_near_cache::maker maker)
        : owner(core_access::of(by)), make(maker), kept(std::make_shared<near_entries>(options)) {
        owner->require_same_process();
        if (map) {
            from.map = base::key_name(owner->options().prefix, *map, "map");
            from.about = from.map + ":about";
        }
        near_hub::of(*owner).add(kept, from);
    }

    std::shared_ptr<core> owner;
    near_source from;
    raw_near_cache::maker make;
    std::shared_ptr<near_entries> kept;
    std::unordered_map<std::string, std::shared_ptr<near_fetch>> fetches;  ///< in turns; by name, the latest of each
};

class near_waiter final : public engine::awaiter {
public:
    near_waiter(std::shared_ptr<near_cache_state> of, std::string name, std::string key)
        : of_(std::move(of)), name_(std::move(name)), key_(std::move(key)) {}
    ~near_waiter() { withdraw(); }

    void finish(std::shared_ptr<void const> value) noexcept {
        value_ = std::move(value);
        resume_soon();
    }
    std::shared_ptr<void const> take() noexcept { return std::move(value_); }

private:
    std::shared_ptr<core> const& owner() const noexcept override { return of_->owner; }
    void enter() override;
    void leave() noexcept override { unlink(); }

    std::shared_ptr<near_cache_state> of_;
    std::string name_;
    std::string key_;
    std::shared_ptr<void const> value_;
};

namespace {

/// What the server says of one value.
struct near_answer {
    std::uint64_t known = 0;  ///< the version of all there is, be it there or not; 0: the server knows nothing of it
    std::int64_t ttl_ms = -1;
    std::optional<std::string_view> bytes{};
    std::uint64_t version = 0;
};

/// The answer of value_read, or of map_read to 'near'. Nothing: it is neither.
std::optional<near_answer> read_answer(reply const& said, bool is_field) {
    if (said.size() < 2) return std::nullopt;
    near_answer made{.known = static_cast<std::uint64_t>(said[0].integer())};
    if (!is_field) {
        if (said.size() != 2 && said.size() != 4) return std::nullopt;
        if (said.size() == 4) made = {.known = made.known, .ttl_ms = said[2].integer(), .bytes = said[3].text(), .version = made.known};
        return made;
    }
    made.ttl_ms = said[1].integer();
    if (said.size() == 2) return made;
    auto const text = said[2].text();
    auto const end = text.data() + text.size();
    auto const [rest, problem] = std::from_chars(text.data(), end, made.version);
    if (problem != std::errc{} || rest == end || *rest != ' ') return std::nullopt;
    made.bytes = text.substr(static_cast<std::size_t>(rest + 1 - text.data()));
    return made;
}

/// In a turn. `count`: as of `near_fetch`.
task<std::shared_ptr<void const>> read_value(std::shared_ptr<near_cache_state> at, std::string name, std::string key, std::uint64_t count) {
    auto const way = near_hub::of(*at->owner).way();
    ++at->kept->misses;
    auto const asked = clock::now();
    bool const is_cluster = at->owner->is_cluster();
    bool const is_field = !at->from.map.empty();
    redis::command_terms const terms{.deadline = at->owner->deadline({}),
                                     .slot = is_cluster ? static_cast<std::int16_t>(redis::key_slot(key)) : std::int16_t{-1},
                                     .repeatable = true,
                                     .errors_are_replies = true};
    std::array<std::string_view, 2> const keys{key, at->from.about};
    std::array<argument, 2> const words{argument{"near"}, argument{name}};
    auto const& script = is_field ? scripts::map_read : scripts::value_read;
    auto const its_keys = std::span<std::string_view const>{keys}.first(is_field ? 2 : 1);
    auto const its_words = std::span<argument const>{words}.first(is_field ? 2 : 0);
    auto asking = redis::run_script(way, script, its_keys, its_words, terms);
    auto const said = co_await std::move(asking);
    auto const what = fmt::format("{} '{}'", is_field ? "field" : "value", name);
    if (said.is_error()) throw server_error(fmt::format("{} ({})", said.text(), what));
    auto const answer = read_answer(said, is_field);
    if (!answer) throw protocol_error(fmt::format("{}: the server's answer to a script is not one of the script's", what));
    auto until = asked + at->kept->max_age();
    std::shared_ptr<void const> value;
    if (answer->bytes) {
        value = at->make(*answer->bytes, answer->version);
        // The server does not tell when it has run out.
        if (answer->ttl_ms >= 0) until = std::min(until, asked + milliseconds{answer->ttl_ms});
    }
    // A slot may move from a node that has no such key, and so has nobody to tell of it.
    bool const is_told = answer->known != 0 || !is_cluster;
    if (is_told) at->kept->keep(name, value, until, count);
    co_return value;
}

task<std::shared_ptr<void const>> wait_for_value(std::shared_ptr<near_cache_state> at, std::string name, std::string key) {
    near_waiter waiting{std::move(at), std::move(name), std::move(key)};
    co_await waiting;
    co_return waiting.take();
}

}  // namespace

void near_waiter::enter() {
    if (of_->kept->hit(name_, value_)) return resume_soon();  // it came while this was on its way
    auto const count = of_->kept->count_of(name_);
    auto& latest = of_->fetches[name_];
    if (latest && latest->count == count) return latest->waiting.push_back(*this);
    auto const fetch = std::make_shared<near_fetch>();
    fetch->count = count;
    auto const end = [at = of_, name = name_, fetch](std::exception_ptr problem, std::optional<std::shared_ptr<void const>> value) {
        auto const known = at->fetches.find(name);
        if (known != at->fetches.end() && known->second == fetch) at->fetches.erase(known);
        auto& waiting = fetch->waiting;
        while (!waiting.empty()) problem ? waiting.front().fail(problem) : waiting.front().finish(*value);
    };
    auto reading = read_value(of_, name_, key_, count);
    latest = fetch;
    fetch->waiting.push_back(*this);
    try {
        start(std::move(reading), end);
    } catch (...) {
        of_->fetches.erase(name_);  // there is no memory for it, and others would wait for it in vain
        throw;
    }
}

raw_near_cache::raw_near_cache(client& by, std::optional<std::string_view> map, near_cache_options const& options, maker make)
    : state_(std::make_shared<near_cache_state>(by, map, options, make)) {}

bool raw_near_cache::hit(std::string_view name, std::shared_ptr<void const>& to) const {
    state_->owner->require_same_process();
    return state_->kept->hit(name, to);
}

task<std::shared_ptr<void const>> raw_near_cache::fetch(std::string_view name) const {
    auto const& map = state_->from.map;
    return wait_for_value(state_, std::string{name}, map.empty() ? base::key_name(state_->owner->options().prefix, name, kind) : map);
}

void raw_near_cache::forget(std::string_view name) const noexcept { state_->kept->drop(name); }
near_cache_statistics raw_near_cache::statistics() const noexcept { return state_->kept->statistics(); }

void raw_near_cache::require_blocking() const {
    state_->owner->require_same_process();
    state_->owner->require_blocking_is_allowed();
}

}  // namespace lockstep::detail
