#include "messaging/consumer_state.hpp"

#include "base/random.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

// What a consumer gives back to its group, and how the others hear of it.

namespace lockstep::detail {

namespace {
constexpr std::size_t most_returned = 200;  // by one request
}

void consumer_state::settlement::append(settlement&& more) {
    done.insert(done.end(), more.done.begin(), more.done.end());
    dead.insert(dead.end(), std::make_move_iterator(more.dead.begin()), std::make_move_iterator(more.dead.end()));
    returned.insert(returned.end(), std::make_move_iterator(more.returned.begin()), std::make_move_iterator(more.returned.end()));
}

void consumer_state::give_back(held& entry, std::int64_t deliveries, milliseconds delay) {
    entry.where = place::settling;
    ++returning_;
    settled_.returned.push_back({.entry = entry.id, .id = entry.what.id, .deliveries = std::max<std::int64_t>(deliveries, 0), .delay = delay});
}

void consumer_state::give_back_uncounted(held& entry, milliseconds delay) { give_back(entry, entry.what.deliveries - 1, delay); }

void consumer_state::give_back_again() {
    auto const now = clock::now();
    for (auto const& [due, entry] : std::exchange(again_, {})) {
        auto const delay = std::max(std::chrono::ceil<milliseconds>(due - now), milliseconds{0});
        if (entry->busy > 0 || !entry->is_counted) {
            give_back_uncounted(*entry, delay);
        } else {
            give_back(*entry, entry->what.deliveries, delay);
        }
    }
}

void consumer_state::give_back_waiting() {
    for (auto* const entry : std::exchange(line_, {})) give_back_uncounted(*entry);
    give_back_again();
}

void consumer_state::return_running() noexcept {
    std::unique_lock guard{mutex_};
    for (auto const& [id, entry] : held_) {
        if (entry->where != place::running || std::exchange(entry->is_returned, true)) continue;
        settled_.returned.push_back({.entry = id, .id = entry->what.id, .deliveries = entry->what.deliveries - 1, .delay = {}, .is_held = false});
    }
    if (settled_.size() != 0) wake_flusher(std::move(guard));
}

/// Takes out of `work` what the server has confirmed.
task<void> consumer_state::settle_returned(std::shared_ptr<consumer_state> self, settlement& work) {
    auto const& options = self->options_;
    while (!work.returned.empty()) {
        auto const count = std::min(work.returned.size(), most_returned);
        auto const from = work.returned.end() - static_cast<std::ptrdiff_t>(count);
        std::string_view const keys[] = {self->at_.key(), self->returned_key_, self->taken_key_};
        auto const publish = self->at_.owner()->is_cluster() ? std::string_view{"SPUBLISH"} : std::string_view{"PUBLISH"};
        std::vector<argument> words{options.group, options.name, publish, self->returned_key_};
        for (auto at = from; at != work.returned.end(); ++at) words.insert(words.end(), {at->id, at->deliveries, at->delay.count()});
        std::int64_t returned = 0;
        try {
            auto asking = self->at_.run(scripts::stream_return, keys, words, {});
            auto const answer = co_await std::move(asking);
            returned = answer.integer();
        } catch (server_error const& problem) {
            if (problem.prefix() != "NOGROUP") throw;  // without a group they are nobody's; the new one delivers them again
        }
        std::lock_guard const guard{self->mutex_};
        for (auto at = from; at != work.returned.end(); ++at) {
            self->look_within(at->delay);
            if (!at->is_held) continue;
            --self->returning_;
            self->drop(at->entry);
        }
        work.returned.erase(from, work.returned.end());
        self->settling_ = work.size();
        self->count(&consumer_statistics::returned, static_cast<std::uint64_t>(returned));
    }
    self->chores_.ring();
}

/// Something may be taken then that was given back.
void consumer_state::look_within(milliseconds delay) {
    next_look_ = std::min(next_look_, std::max(clock::now() + delay, earliest_look_));
    is_told_ = true;
}

void consumer_state::flush_if_any() noexcept {
    std::unique_lock guard{mutex_};
    if (settled_.size() != 0) wake_flusher(std::move(guard));
}

void consumer_state::listen() {
    if (std::exchange(listening_, true)) return;
    auto const kind = at_.owner()->is_cluster() ? redis::channel_kind::shard : redis::channel_kind::plain;
    at_.owner()->way()->listening().add(kind, returned_key_, *this);
}

consumer_state::~consumer_state() {
    let_go();
    if (!at_.owner()->same_process()) return;
    at_.owner()->home().in_turn([this] {
        if (!listening_) return;
        auto const kind = at_.owner()->is_cluster() ? redis::channel_kind::shard : redis::channel_kind::plain;
        at_.owner()->way()->listening().remove(kind, returned_key_, *this);
    });
}

void consumer_state::message(std::string_view, std::string_view payload) noexcept {
    std::int64_t ms = 0;
    std::from_chars(payload.data(), payload.data() + payload.size(), ms);
    hear_of_returned(milliseconds{std::clamp<std::int64_t>(ms, 0, 1'000'000'000'000)});
}

/// What was given back before, or while this did not hear, is found by a look.
void consumer_state::subscribed() noexcept { hear_of_returned({}); }

void consumer_state::hear_of_returned(milliseconds delay) noexcept {
    auto const self = weak_from_this().lock();
    if (!self) return;  // it ends
    {
        std::lock_guard const guard{mutex_};
        look_within(delay + milliseconds{base::random_below(20)});  // not all consumers at the same moment
    }
    chores_.ring();
}

}  // namespace lockstep::detail
