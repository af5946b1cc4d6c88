#include "messaging/consumer_state.hpp"

#include "base/random.hpp"
#include "messaging/stream_read.hpp"
#include "messaging/stream_state.hpp"
#include "resp/cursor.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t most_acknowledged = 1'000;  // by one request
constexpr std::size_t most_renewed = 200;
constexpr std::size_t most_recovered = 100;
constexpr int sweeps_every = 20;  // looks

std::chrono::milliseconds between(std::chrono::milliseconds least, std::chrono::milliseconds most) {
    return least + std::chrono::milliseconds{base::random_below(static_cast<std::uint64_t>((most - least).count()) + 1)};
}

}  // namespace

// ---- the flusher

task<void> consumer_state::flush(std::shared_ptr<consumer_state> self) {
    base::backoff pause{20ms, 2s};
    bool closed = false;
    while (!closed) {
        settlement work;
        {
            std::lock_guard const guard{self->mutex_};
            std::swap(work, self->settled_);
            self->settling_ = work.size();
            if (work.size() == 0) {
                self->flushing_ = false;
                break;
            }
        }
        bool failed = false;
        try {
            auto settling = settle(self, work);
            co_await std::move(settling);
            pause.reset();
        } catch (cancelled_error const&) {
            closed = true;
        } catch (std::exception const& problem) {
            failed = true;
            self->complain("can't acknowledge, and tries again", problem.what());
        }
        {
            std::lock_guard const guard{self->mutex_};
            closed = closed || (failed && self->abandoned_);
            if (!closed) self->settled_.append(std::move(work));
            self->settling_ = 0;
        }
        if (!failed || closed) continue;
        try {
            auto const time = std::chrono::ceil<milliseconds>(pause.next());
            auto resting = doorbell::wait(self->at_.owner(), self->patience_, time);
            co_await std::move(resting);
        } catch (cancelled_error const&) {
            closed = true;
        }
    }
    std::lock_guard const guard{self->mutex_};
    if (closed) {
        self->settled_ = {};  // they stay pending
        self->returning_ = 0;
        self->flushing_ = false;
    }
    if (self->is_drained()) self->drained_.ring();
}

/// Takes out of `work` what the server has confirmed.
task<void> consumer_state::settle(std::shared_ptr<consumer_state> self, settlement& work) {
    auto const& options = self->options_;
    while (!work.done.empty()) {
        auto const count = std::min(work.done.size(), most_acknowledged);
        auto const from = work.done.end() - static_cast<std::ptrdiff_t>(count);
        std::vector<argument> words{"XACK", self->at_.key(), options.group};
        for (auto at = from; at != work.done.end(); ++at) words.emplace_back((*at)->what.id);
        auto asking = self->at_.command(words, {});
        co_await std::move(asking);
        std::lock_guard const guard{self->mutex_};
        for (auto at = from; at != work.done.end(); ++at) self->drop((*at)->id);
        work.done.erase(from, work.done.end());
        self->settling_ = work.size();
        self->count_acknowledged(count);
    }
    if (!work.returned.empty()) {
        auto returning = settle_returned(self, work);
        co_await std::move(returning);
    }
    while (!work.dead.empty()) {
        auto const& what = work.dead.back();
        std::string_view const keys[] = {self->at_.key(), self->dead_key_};
        std::vector<argument> const words{options.group, options.name, what.which->what.id, what.which->what.deliveries, what.reason, options.max_dead_letters,
                                          options.dead_retention.count()};
        auto burying = self->at_.run(scripts::stream_bury, keys, words, {});
        auto const said = co_await std::move(burying);
        bool const is_there = said[0].integer() == 1;  // or somebody else has it now, or it was trimmed away
        self->note_dropped(said[1].integer());
        if (is_there) log(log_level::error, "an entry of stream '" + self->at_.name() + "' went to the dead letters: " + what.which->what.id + ", " + what.reason);
        std::lock_guard const guard{self->mutex_};
        self->drop(what.which->id);
        work.dead.pop_back();
        self->settling_ = work.size();
        if (is_there) self->count(&consumer_statistics::dead);
    }
}

// ---- the keeper

task<void> consumer_state::keep(std::shared_ptr<consumer_state> self) {
    while (true) {
        auto const now = clock::now();
        // A sixth: what is due after a third is renewed before half of the limit has passed.
        auto next = now + std::max<milliseconds>(self->options_.idle_limit / 6, 1ms);
        {
            std::lock_guard const guard{self->mutex_};
            if (self->ended_) co_return;
            if (!self->stopping_) {
                next = std::min(next, self->next_look());
                if (!self->again_.empty()) next = std::min(next, self->again_.begin()->first);
            }
        }
        try {
            if (next > now) {
                auto resting = doorbell::wait(self->at_.owner(), self->chores_, std::chrono::ceil<milliseconds>(next - now));
                co_await std::move(resting);
            }
            auto keeping = keep_once(self);
            co_await std::move(keeping);
            continue;
        } catch (cancelled_error const&) {
            co_return;
        } catch (server_error const& problem) {
            if (problem.prefix() != "NOGROUP") self->complain("can't renew or take over, and tries again", problem.what());
        } catch (std::exception const& problem) {
            self->complain("can't renew or take over, and tries again", problem.what());
        }
        try {
            auto resting = doorbell::wait(self->at_.owner(), self->chores_, between(50ms, 150ms));
            co_await std::move(resting);
        } catch (cancelled_error const&) {
            co_return;
        }
    }
}

task<void> consumer_state::keep_once(std::shared_ptr<consumer_state> self) {
    std::vector<held*> due;
    std::vector<std::string> old;
    bool looks = false;
    {
        std::lock_guard const guard{self->mutex_};
        if (self->ended_) co_return;
        auto const now = clock::now();
        while (!self->stopping_ && !self->again_.empty() && self->again_.begin()->first <= now && due.size() < most_renewed) {
            due.push_back(self->again_.begin()->second);
            due.back()->where = place::renewing;
            self->again_.erase(self->again_.begin());
        }
        for (auto const& [id, one] : self->held_) {
            if (one->where == place::renewing || now - one->renewed < self->options_.idle_limit / 3) continue;
            old.push_back(one->what.id);
            if (old.size() == most_renewed) break;  // the rest when it comes by again, at once
        }
        looks = !self->stopping_ && now >= self->next_look();
    }
    if (old.size() == most_renewed) self->chores_.ring();
    if (!due.empty()) {
        auto trying = try_again(self, std::move(due));
        co_await std::move(trying);
    }
    if (!old.empty()) {
        auto renewing = renew(self, std::move(old));
        co_await std::move(renewing);
    }
    if (looks) {
        auto recovering = recover(self);
        co_await std::move(recovering);
    }
}

/// Of entries, which are not this consumer's any more.
task<std::vector<entry_number>> consumer_state::ask_renewal(std::shared_ptr<consumer_state> self, std::vector<std::string> words) {
    std::vector<argument> all{self->options_.group, self->options_.name};
    all.insert(all.end(), words.begin(), words.end());
    std::string_view const keys[] = {self->at_.key()};
    auto asking = self->at_.run(scripts::stream_renew, keys, all, {});
    auto const said = co_await std::move(asking);
    std::vector<entry_number> lost;
    for (auto const one : said) lost.push_back(entry_number::of(one.text()));
    co_return lost;
}

task<void> consumer_state::renew(std::shared_ptr<consumer_state> self, std::vector<std::string> ids) {
    std::vector<std::string> words;
    for (auto const& id : ids) words.insert(words.end(), {id, "0"});
    auto const asked = clock::now();
    auto asking = ask_renewal(self, std::move(words));
    auto const lost = co_await std::move(asking);
    std::lock_guard const guard{self->mutex_};
    for (auto const& id : ids) {
        if (auto const it = self->held_.find(entry_number::of(id)); it != self->held_.end()) it->second->renewed = asked;
    }
    for (auto const& id : lost) {
        // Somebody else has it. What runs here runs to its end; what has not begun is left to the other.
        auto const it = self->held_.find(id);
        if (it == self->held_.end()) continue;
        auto* const one = it->second.get();
        if (one->where == place::line) {
            std::erase(self->line_, one);
            self->drop(id);
        } else if (one->where == place::again) {
            std::erase_if(self->again_, [one](auto const& waiting) { return waiting.second == one; });
            self->drop(id);
        }
    }
    self->make_room();
    if (self->is_drained()) self->drained_.ring();
}

/// The server counts the delivery before it happens, so that an entry that kills its consumers is given up in the end.
task<void> consumer_state::try_again(std::shared_ptr<consumer_state> self, std::vector<held*> which) {
    std::vector<std::string> words;
    for (auto const* const one : which) {
        auto const count = one->busy > 0 || !one->is_counted ? 0 : one->what.deliveries + 1;
        words.insert(words.end(), {one->what.id, std::to_string(count)});
    }
    std::vector<entry_number> lost;
    std::exception_ptr problem;
    try {
        auto asking = ask_renewal(self, std::move(words));
        lost = co_await std::move(asking);
    } catch (server_error const& refusal) {
        if (refusal.prefix() != "NOGROUP") problem = std::current_exception();
        // Without a group it is nobody's; the new one delivers it again.
        for (auto const* const one : which) lost.push_back(one->id);
    } catch (...) {
        problem = std::current_exception();
    }
    {
        std::lock_guard const guard{self->mutex_};
        for (auto* const one : which) {
            if (problem) {
                one->where = place::again;
                self->again_.emplace(clock::now() + between(50ms, 150ms), one);
            } else if (std::find(lost.begin(), lost.end(), one->id) != lost.end()) {
                self->drop(one->id);
            } else if (self->stopping_ || self->circuit_.is_open()) {
                self->give_back(*one, one->what.deliveries - (one->busy > 0 || !one->is_counted ? 1 : 0), milliseconds{0});
            } else {
                if (one->busy == 0 && one->is_counted) ++one->what.deliveries;
                if (one->is_counted) self->count(&consumer_statistics::retried);
                one->renewed = clock::now();
                one->where = place::line;
                self->line_.push_back(one);
            }
        }
    }
    if (problem) std::rethrow_exception(problem);
    self->flush_if_any();
    self->let_work();
}

consumer_state::clock::time_point consumer_state::next_look() const {
    return circuit_.is_open() ? std::max(next_look_, circuit_.next_probe()) : next_look_;
}

/// One at least where the line is not too long: with a slow handler the reader keeps it full, and what was given back must not wait for ever.
std::size_t consumer_state::takeable() {
    if (free_places() == 0 || returning_ > 0) return 0;
    if (circuit_.is_open()) return line_.empty() && running_ < options_.concurrency && circuit_.try_probe(clock::now()) ? 1 : 0;
    auto const most = wanted();
    if (line_.size() > most) return 0;
    return std::min({std::max<std::size_t>(most - line_.size(), 1), free_places(), most_recovered});
}

task<void> consumer_state::recover(std::shared_ptr<consumer_state> self) {
    std::size_t count = 0;
    milliseconds patience{0};
    {
        std::lock_guard const guard{self->mutex_};
        count = self->takeable();
        // Where there is a healthy consumer, it has taken by then what is due.
        if (self->circuit_.is_open()) patience = std::min<milliseconds>(1s, self->options_.retry_max);
        // If this comes to nothing.
        self->next_look_ = clock::now() + (self->returning_ > 0 ? between(5ms, 15ms) : between(500ms, 1500ms));
        if (count > 0) {
            self->is_told_ = false;
            // A probe has intervals of its own.
            self->earliest_look_ = clock::now() + (self->circuit_.is_open() ? 0ms : between(30ms, 90ms));
        }
    }
    if (count == 0) co_return;
    auto const& options = self->options_;
    std::string_view const keys[] = {self->at_.key(), self->taken_key_, self->returned_key_};
    auto const sizes = reply_sizes(*self->at_.owner());
    std::vector<argument> const words{options.group, options.name, options.idle_limit.count(), self->cursor_, count, sizes.budget, sizes.limit, patience.count()};
    reply said;
    try {
        auto asking = self->at_.run(scripts::stream_recover, keys, words, {.once = true});
        said = co_await std::move(asking);
    } catch (indeterminate_error const&) {
        // What it took over is taken over again, after the limit, from this very consumer.
        self->cursor_ = "0-0";
        throw;
    }
    self->cursor_ = said[0].text();
    auto const next_due = said[1].integer();
    std::vector<found> returned;
    std::vector<found> recovered;
    for (resp::cursor rest{said, 2}; rest.left() >= 4;) {
        auto const id = rest.next();
        auto const deliveries = rest.next().integer();
        bool const was_returned = rest.next().integer() == 1;
        (was_returned ? returned : recovered).push_back(read_found(id, deliveries + 1, false, rest.next()));
    }
    bool const is_more = self->cursor_ != "0-0" || !(returned.empty() && recovered.empty());
    // Few at a time, and each consumer at its own times: what a dead one had is spread over those that live.
    auto pause = is_more ? between(50ms, 150ms) : between(options.idle_limit * 3 / 4, options.idle_limit * 5 / 4);
    if (next_due >= 0) pause = std::min(pause, milliseconds{std::max<std::int64_t>(next_due, 1)});
    {
        std::lock_guard const guard{self->mutex_};
        // Unless it was told meanwhile of something that was given back later.
        auto const now = clock::now();
        auto const next = std::max(now + pause, self->earliest_look_);
        self->next_look_ = self->is_told_ ? std::min(self->next_look_, next) : next;
    }
    if (!returned.empty()) self->accept(std::move(returned), origin::returned);
    if (!recovered.empty()) self->accept(std::move(recovered), origin::recovered);
    if (self->looks_++ % sweeps_every == 0) {
        auto sweeping = sweep(self);
        co_await std::move(sweeping);
    }
}

task<void> consumer_state::sweep(std::shared_ptr<consumer_state> self) {
    auto const& options = self->options_;
    std::string_view const keys[] = {self->at_.key(), self->dead_key_};
    auto const long_gone = std::max<milliseconds>(1h, 20 * options.idle_limit);
    std::vector<argument> const words{options.group, options.name, long_gone.count(), options.max_dead_letters, options.dead_retention.count()};
    auto asking = self->at_.run(scripts::stream_sweep, keys, words, {});
    auto const answer = co_await std::move(asking);
    self->note_dropped(answer[1].integer());
    if (answer[1].integer() > 0) self->looks_ = 0;  // there may be more: with the next look
}

/// Of dead letters.
void consumer_state::note_dropped(std::int64_t dropped) {
    if (dropped <= 0) return;
    {
        std::lock_guard const guard{mutex_};
        count(&consumer_statistics::dead_dropped, static_cast<std::uint64_t>(dropped));
    }
    auto const unlogged = drops_logged_.add(clock::now(), static_cast<std::uint64_t>(dropped));
    if (unlogged == 0) return;
    log(log_level::warning, fmt::format("{} dead letters of stream '{}' were dropped: they were older than dead_retention, or more than max_dead_letters", unlogged, at_.name()));
}

// ---- the end

task<void> consumer_state::leave(std::shared_ptr<consumer_state> self) {
    try {
        std::string_view const keys[] = {self->at_.key()};
        std::vector<argument> const words{self->options_.group, self->options_.name};
        auto asking = self->at_.run(scripts::stream_leave, keys, words, {});
        co_await std::move(asking);
    } catch (std::exception const&) {
        // A name that stays is swept away later, by others.
    }
}

task<bool> consumer_state::stop(std::shared_ptr<consumer_state> self, std::optional<milliseconds> limit) {
    {
        std::lock_guard const guard{self->mutex_};
        self->stopping_ = true;
        if (limit) {
            self->hurried_ = true;
            self->give_back_waiting();
        } else {
            self->give_back_again();
        }
    }
    self->flush_if_any();
    if (limit) self->stop_handlers_.request_stop();
    self->room_.ring();
    self->retreat_.ring();
    start(unblock(self), [](std::exception_ptr) {});
    auto const until = clock::now() + limit.value_or(self->options_.stop_limit);
    auto const returns_at = limit ? until : until + self->grace_;  // what runs then
    enum class phase { waiting, asked, returned };
    auto now_in = phase::waiting;
    bool all_ended = true;
    while (true) {
        auto const now = clock::now();
        bool drained = false;
        bool idle = false;
        bool told = false;
        {
            std::lock_guard const guard{self->mutex_};
            drained = self->is_drained();
            idle = self->running_ == 0;
            told = self->settling_ == 0 && self->settled_.size() == 0;
        }
        if (drained) break;
        if (now_in == phase::returned) {
            // Handlers have ended, or go on without being waited for. Where the server does not answer, what it was not told is done again by others.
            if ((idle || limit) && (told || now >= returns_at + 1s)) break;
        } else if (now_in == phase::asked) {
            if (idle && now >= until + 1s) break;
            if (now >= returns_at) {
                now_in = phase::returned;
                self->return_running();
                continue;
            }
        } else if (now >= until) {
            now_in = phase::asked;
            all_ended = idle;
            self->abandon();
            continue;
        }
        auto rest = std::chrono::milliseconds{1'000};
        if (now_in == phase::waiting) rest = std::chrono::ceil<milliseconds>(until - now);
        if (now_in == phase::asked) rest = std::min(rest, std::max(std::chrono::ceil<milliseconds>(returns_at - now), milliseconds{1}));
        auto resting = doorbell::wait(self->at_.owner(), self->drained_, rest);
        co_await std::move(resting);
    }
    bool leaves = false;
    {
        std::lock_guard const guard{self->mutex_};
        leaves = self->is_drained() && !std::exchange(self->left_, true);
        self->ended_ = true;
    }
    self->work_.notify_all();
    self->chores_.ring();
    self->drained_.ring();  // others may stop it too
    if (leaves) {
        auto leaving = leave(self);
        co_await std::move(leaving);
    }
    co_return all_ended;
}

}  // namespace lockstep::detail
