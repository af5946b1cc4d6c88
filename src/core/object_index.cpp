#include "core/object_index.hpp"

#include "base/names.hpp"
#include "base/random.hpp"
#include "core/core.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"
#include "resp/cursor.hpp"
#include "scripts/all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::detail {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds first_after{1'000};
constexpr milliseconds idle_interval{60'000};
constexpr milliseconds told_again_after{30'000};  // much less than `look_after`: what was told lately is still in the index
constexpr milliseconds look_after{600'000};
constexpr std::size_t most_noted = 50'000;        // some 5 MB
constexpr std::size_t most_told = 5'000;          // at once, of all shards; more of them a second later
constexpr milliseconds next_of_many{1'000};
constexpr std::size_t objects_of_a_script = 100;  // some 200 us of the server's time
constexpr std::size_t most_tended = 50;           // of each shard at once, and so many more as were noted

// Leases are kept for their retention, which is an hour unless somebody chose otherwise; other objects may never expire.
constexpr std::array<std::string_view, 9> of_leases{":lock", ":recursive", ":shared", ":semaphore", ":event", ":election", ":latch", ":broadcast", ":barrier"};
constexpr std::chrono::hours keep_leases{24 * 31};
constexpr std::chrono::hours keep_others{24 * 366};

milliseconds keep_for(std::string_view member) noexcept {
    bool const is_lease = std::any_of(of_leases.begin(), of_leases.end(), [&](std::string_view one) { return member.ends_with(one); });
    return is_lease ? keep_leases : keep_others;
}

task<reply> ask(core& owner, std::string_view key, std::vector<std::string_view> words) {
    redis::command_terms const terms{.deadline = owner.deadline({}), .slot = static_cast<std::int16_t>(redis::key_slot(key)), .repeatable = true};
    std::vector<argument> const arguments(words.begin(), words.end());
    return redis::run_command(owner.way(), arguments, terms);
}

task<reply> ask(core& owner, scripts::script const& script, std::string_view key, std::vector<std::string> const& words) {
    redis::command_terms const terms{.deadline = owner.deadline({}), .slot = static_cast<std::int16_t>(redis::key_slot(key)), .repeatable = true};
    std::vector<argument> const arguments(words.begin(), words.end());
    std::string_view const keys[] = {key};
    return redis::run_script(owner.way(), script, keys, arguments, terms);
}

/// Tells one shard what was noted, and looks after what that one leaves to this client.
task<void> tell_shard(std::shared_ptr<core> owner, std::string index, std::vector<std::string> words) {
    auto telling = ask(*owner, scripts::index_note, index, words);
    auto const left = co_await std::move(telling);
    if (left.size() < 2 || owner->closed()) co_return;
    std::vector<task<reply>> questions;
    std::vector<std::string> answers{fmt::format("{}", left[0].integer()), fmt::format("{}", look_after.count())};
    std::vector<std::string> members;
    for (resp::cursor rest{left, 1}; rest.left() != 0;) {
        auto const& member = members.emplace_back(rest.next().text());
        auto const key = owner->options().prefix + ':' + member;
        questions.push_back(ask(*owner, key, {"PTTL", key}));
    }
    auto asking = when_all(std::move(questions));
    auto const spans = co_await std::move(asking);
    for (std::size_t i = 0; i < members.size(); ++i) {
        answers.push_back(std::move(members[i]));
        answers.push_back(fmt::format("{}", spans[i].integer()));
    }
    auto tending = ask(*owner, scripts::index_tend, index, answers);
    co_await std::move(tending);
}

}  // namespace

object_index::object_index(core& owner)
    : owner_(owner), prefix_size_(owner.options().prefix.size() + 1), round_(owner.options().monitoring ? 1U : 0U),
      next_shard_(static_cast<unsigned>(base::random_below(shards))) {}

std::string object_index::key_of(std::string_view prefix, unsigned shard) {
    return base::key_name(prefix, fmt::format("objects/{}", shard), "index");
}

unsigned object_index::shard_of(std::string_view key) noexcept { return redis::key_slot(key) % shards; }

void object_index::add(std::string_view key, milliseconds listed_for) noexcept {
    if (key.size() <= prefix_size_ || !owner_.same_process()) return;
    try {
        std::lock_guard const guard{mutex_};
        if (noted_.size() >= most_noted) return;
        noted_.try_emplace(std::string{key.substr(prefix_size_)}, listed_for.count());
        if (std::exchange(is_handed_in_, true)) return;
    } catch (std::bad_alloc const&) {
        return;  // then it is not listed
    }
    owner_.home().hand_in(*this);
}

void object_index::arrive() noexcept {
    if (closing_) return;
    auto& home = owner_.home();
    auto const soon = home.now() + std::min(first_after, pace_);
    auto const due_at = std::max(soon, told_at_ + pace_);
    if (!linked() || due() > due_at) home.arm(*this, due_at);
}

void object_index::hurry(milliseconds pace, clock::time_point until) noexcept {
    pace_ = std::clamp(pace, milliseconds{100}, interval);
    hurry_until_ = until;
    if (closing_ || !linked()) return;
    std::unique_lock guard{mutex_};
    bool const has_news = !noted_.empty();
    guard.unlock();
    if (has_news) arrive();
}

void object_index::fire() noexcept {
    if (closing_) return;
    auto& home = owner_.home();
    if (home.now() >= hurry_until_) pace_ = interval;
    try {
        tell();
    } catch (std::exception const&) {
        // No memory, or the client is being closed: next time.
    }
    std::unique_lock guard{mutex_};
    bool const has_more = !noted_.empty();
    is_handed_in_ = has_more;  // otherwise the next that is noted hands this in
    guard.unlock();
    home.arm(*this, home.now() + (has_more ? next_of_many : idle_interval));
}

bool object_index::was_told_lately(std::string const& member) {
    auto const [found, is_new] = told_.try_emplace(member, owner_.home().now());
    if (is_new) return false;
    if (owner_.home().now() - found->second < told_again_after) return true;
    found->second = owner_.home().now();
    return false;
}

void object_index::tell() {
    auto const now = owner_.home().now();
    told_at_ = now;
    lockstep::statistics counted;
    owner_.way()->add_to(counted);
    if (std::exchange(connects_, counted.connects) != counted.connects) told_.clear();  // it may be a server that knows less
    std::erase_if(told_, [&](auto const& one) { return now - one.second >= told_again_after; });

    std::unique_lock guard{mutex_};
    if (round_.load(std::memory_order_relaxed) != 0) round_.fetch_add(1, std::memory_order_relaxed);
    std::array<std::vector<std::pair<std::string, std::int64_t>>, shards> by_shard;
    for (std::size_t i = 0; i < most_told && !noted_.empty(); ++i) {
        auto one = noted_.extract(noted_.begin());
        if (was_told_lately(one.key())) continue;
        auto const shard = shard_of(one.key());
        by_shard[shard].emplace_back(std::move(one.key()), one.mapped());
    }
    guard.unlock();

    bool told_any = false;
    for (unsigned shard = 0; shard < shards; ++shard) {
        auto const& all = by_shard[shard];
        for (std::size_t from = 0; from < all.size(); from += objects_of_a_script) {
            auto const to = std::min(all.size(), from + objects_of_a_script);
            milliseconds keep{0};
            for (auto i = from; i < to; ++i) keep = std::max(keep, keep_for(all[i].first));
            std::vector<std::string> words{fmt::format("{}", keep.count()), fmt::format("{}", look_after.count()), fmt::format("{}", closing_ ? 0 : most_tended + to - from)};
            for (auto i = from; i < to; ++i) {
                words.push_back(all[i].first);
                words.push_back(fmt::format("{}", all[i].second));
            }
            begin_tending(shard, std::move(words));
            told_any = true;
        }
    }
    if (told_any || closing_) return;
    next_shard_ = (next_shard_ + 1) % shards;
    begin_tending(next_shard_, {"0", fmt::format("{}", look_after.count()), fmt::format("{}", most_tended)});
}

void object_index::begin_tending(unsigned shard, std::vector<std::string> words) {
    ++under_way_;
    auto self = owner_.shared_from_this();
    auto work = tell_shard(self, key_of(owner_.options().prefix, shard), std::move(words));
    start(std::move(work), [self](std::exception_ptr) { self->objects().one_less(); });
}

void object_index::one_less() noexcept {
    if (--under_way_ == 0 && closed_) std::exchange(closed_, nullptr)();
}

void object_index::close(std::function<void()> done) noexcept {
    owner_.home().take_back(*this);
    owner_.home().disarm(*this);
    closing_ = true;
    auto const self = owner_.weak_from_this().lock();  // null: it is being destroyed, and nothing is sent any more
    std::unique_lock guard{mutex_};
    bool const has_news = !noted_.empty();
    guard.unlock();
    if (!self || (!has_news && under_way_ == 0)) return done();
    ++under_way_;
    bool const waits = owner_.way()->reaches(-1);  // without a server nobody waits for its answer
    if (waits) closed_ = done;
    try {
        tell();
    } catch (std::exception const&) {
        // Then they are listed when somebody else uses them.
    }
    one_less();
    if (!waits) done();
}

}  // namespace lockstep::detail
