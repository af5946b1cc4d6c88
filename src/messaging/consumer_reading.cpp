#include "messaging/consumer_state.hpp"

#include "core/session.hpp"
#include "lease/pause.hpp"
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

task<void> consumer_state::read(std::shared_ptr<consumer_state> self) {
    while (true) {
        {
            std::lock_guard const guard{self->mutex_};
            if (self->stopping_) break;
        }
        bool closed = false;
        try {
            auto reading = read_on_one_connection(self);
            co_await std::move(reading);
        } catch (cancelled_error const&) {
            closed = self->at_.owner()->closed();
        } catch (server_error const& problem) {
            // NOGROUP: the group, or the whole stream, was deleted. It is made anew at once.
            if (problem.prefix() != "NOGROUP") self->complain("can't read, and tries again", problem.what());
        } catch (std::exception const& problem) {
            self->complain("can't read, and tries again", problem.what());
        }
        self->connection_id_ = 0;
        if (closed) break;
        {
            std::lock_guard const guard{self->mutex_};
            self->count(&consumer_statistics::interruptions);
        }
        try {
            auto const time = std::chrono::ceil<milliseconds>(self->retreat_time_.next());
            auto resting = doorbell::wait(self->at_.owner(), self->retreat_, time);
            co_await std::move(resting);
        } catch (cancelled_error const&) {
            break;
        }
    }
    std::lock_guard const guard{self->mutex_};
    self->reading_ = false;
    self->drained_.ring();
}

task<void> consumer_state::ensure_group(std::shared_ptr<consumer_state> self) {
    // One that was there and is not any more begins at the beginning: what came since it was deleted must not be missed.
    auto const start = self->group_was_there_ ? std::string{"0"} : self->options_.start;
    auto making = create_group(self->at_, self->options_.group, start);
    bool const made = co_await std::move(making);
    if (made && self->group_was_there_) self->complain("found its group deleted", "made anew, from the beginning of the stream");
    self->group_was_there_ = true;
}

namespace {
constexpr std::size_t large_entry = 64 * 1024;
constexpr std::chrono::milliseconds without_unblock{1'000};
}

task<void> consumer_state::read_on_one_connection(std::shared_ptr<consumer_state> self) {
    auto ensuring = ensure_group(self);
    co_await std::move(ensuring);
    auto opening = open_session(self->at_.owner(), self->at_.slot());
    auto on = co_await std::move(opening);
    std::int64_t id = 0;
    try {
        auto asking = on.async_command<std::int64_t>("CLIENT", "ID");
        id = co_await std::move(asking);
    } catch (server_error const&) {
        // Not allowed: then a stop waits until the read that is under way is over, and none waits for long.
    }
    self->at_.owner()->home().in_turn([&self] { self->listen(); });
    self->gap_checks_ = 1;
    if (std::exchange(self->looks_for_unheard_, false)) {
        auto taking = take_unheard(self);
        co_await std::move(taking);
    }
    auto const& options = self->options_;
    auto const sizes = reply_sizes(*self->at_.owner());
    auto const block = id != 0 ? longest_block : without_unblock;
    while (true) {
        std::unique_lock guard{self->mutex_};
        if (self->stopping_) co_return;
        auto const now = clock::now();
        std::size_t count = 0;
        milliseconds rest = longest_block;
        if (!self->circuit_.is_open()) {
            count = std::min(self->readable(), sizes.count_of(self->entry_bytes_));
        } else if (self->line_.empty() && self->running_ < options.concurrency && self->free_places() > 0 && self->circuit_.try_probe(now)) {
            count = 1;
        } else {
            auto const next = self->circuit_.next_probe();
            // Where one may be tried, but something runs still: when that fails, the time for the next one changes.
            rest = next > now ? std::min(std::chrono::ceil<milliseconds>(next - now), longest_block) : milliseconds{250};
        }
        if (count == 0) {
            self->reader_waits_ = true;
            guard.unlock();
            self->gap_checks_ = 2;
            auto waiting = doorbell::wait(self->at_.owner(), self->room_, rest);
            co_await std::move(waiting);
            continue;
        }
        guard.unlock();
        // The server copies two entries for that: not too often where they are large.
        if (self->gap_checks_ > 0 && (self->entry_bytes_ < large_entry || now >= self->next_gap_check_)) {
            --self->gap_checks_;
            self->next_gap_check_ = now + milliseconds{100};
            auto looking = look_for_gap(self);
            co_await std::move(looking);
        }
        request const what = request{"XREADGROUP", "GROUP", options.group, options.name, "COUNT", count, "BLOCK", block.count(), "STREAMS", self->at_.key(), ">"}
                                 .within(block + block_grace);
        self->connection_id_ = id;
        self->looks_for_unheard_ = true;  // until it is answered
        reply said;
        try {
            auto asking = on.async_execute(what);
            said = co_await std::move(asking);
        } catch (server_error const& problem) {
            self->looks_for_unheard_ = false;  // refused: nothing was given
            if (is_astray(problem)) co_return;
            throw;
        }
        self->connection_id_ = 0;
        self->looks_for_unheard_ = false;
        self->retreat_time_.reset();
        self->works_again();
        if (said.is_null()) continue;
        std::vector<found> entries;
        for (auto& one : read_of_one(said)) entries.push_back({.id = std::move(one.id), .deliveries = 1, .fields = std::move(one.fields)});
        // It lags behind, perhaps so far that entries were trimmed away. Once more when it does not any longer: what was trimmed between a look and a read shows then.
        if (entries.size() == count) self->gap_checks_ = 2;
        self->accept(std::move(entries), origin::read);
    }
}

/// Were entries removed before they were delivered to the group?
task<void> consumer_state::look_for_gap(std::shared_ptr<consumer_state> self) {
    try {
        auto asking = self->at_.run(scripts::stream_gap, {self->options_.group, "0"});
        auto const answer = co_await std::move(asking);
        if (answer.integer() > 0) self->note_gap(static_cast<std::uint64_t>(answer.integer()));
    } catch (server_error const& problem) {
        self->complain("can't find out whether entries were trimmed away unread", problem.what());  // and reads all the same
    }
}

void consumer_state::note_gap(std::uint64_t missed) {
    {
        std::lock_guard const guard{mutex_};
        count(&consumer_statistics::missed, missed);
        count(&consumer_statistics::gaps);
        gap_untold_ = options_.on_gap != nullptr;
    }
    if (auto const unlogged = gaps_logged_.add(clock::now(), missed); unlogged > 0) {
        log(log_level::warning, fmt::format("{} entries of stream '{}' were trimmed away or deleted before they were delivered to group '{}'", unlogged, at_.name(), options_.group));
    }
    let_work();
}

void consumer_state::tell_gap() noexcept {
    try {
        options_.on_gap();
    } catch (std::exception const& problem) {
        log(log_level::error, fmt::format("on_gap of a consumer of stream '{}' threw: {}", at_.name(), problem.what()));
    } catch (...) {
        log(log_level::error, fmt::format("on_gap of a consumer of stream '{}' threw", at_.name()));
    }
}

consumer_state::found consumer_state::read_found(reply_view id, std::int64_t deliveries, bool is_counted, reply_view fields) {
    found entry{.id = std::string{id.text()}, .deliveries = deliveries, .is_counted = is_counted};
    if (fields.is_aggregate()) {
        entry.fields = read_fields(fields);
    } else {
        entry.too_large = fields.integer();
    }
    return entry;
}

namespace {
constexpr std::size_t at_once = 100;
}

/// Of entries (each: the id, and how often it is delivered with this): those that are this consumer's. They come in pieces, none of which is too large.
task<void> consumer_state::take_known(std::shared_ptr<consumer_state> self, std::vector<std::string> entries) {
    auto const& options = self->options_;
    auto const sizes = reply_sizes(*self->at_.owner());
    std::string_view const keys[] = {self->at_.key(), self->taken_key_};
    auto next = entries.begin();
    while (next != entries.end()) {
        {
            std::unique_lock guard{self->mutex_};
            if (!self->stopping_ && !self->circuit_.is_open() && self->free_places() == 0) {
                self->reader_waits_ = true;
                guard.unlock();
                auto waiting = doorbell::wait(self->at_.owner(), self->room_, milliseconds{1'000});
                co_await std::move(waiting);
                continue;
            }
        }
        std::vector<argument> words{options.group, options.name, sizes.budget, sizes.limit};
        words.insert(words.end(), next, entries.end());
        auto taking = self->at_.run(scripts::stream_take, keys, words, {});
        auto const taken = co_await std::move(taking);
        std::vector<found> got;
        for (resp::cursor rest{taken, 1}; rest.left() >= 4;) {
            auto const id = rest.next();
            auto const deliveries = rest.next().integer();
            bool const was_returned = rest.next().integer() == 1;
            got.push_back(read_found(id, deliveries, was_returned, rest.next()));
        }
        next += std::clamp<std::ptrdiff_t>(2 * taken[0].integer(), 2, entries.end() - next);
        self->accept(std::move(got), origin::recovered);
    }
}

/// What the server has given to this consumer, but nobody here knows of: the reply was lost, or an earlier process of this name died.
/// Of what that process had, the first, as many as are run at once, count as delivered once more: one of them may have killed it. What it had read ahead keeps
/// its count, or it would be given up together with the one that kills. The server is told the number and does not add, and what was counted is not counted
/// again when this begins again: an answer that is lost counts once.
task<void> consumer_state::take_unheard(std::shared_ptr<consumer_state> self) {
    self->looks_for_unheard_ = true;  // until it is through
    auto const& options = self->options_;
    std::string from = "-";
    while (true) {
        auto asking = self->at_.command({"XPENDING", self->at_.key(), options.group, from, "+", at_once, options.name});
        auto const said = co_await std::move(asking);
        std::vector<std::string> unheard;
        for (auto const one : said) {
            auto const id = std::string{one[0].text()};
            from = "(" + id;
            if (self->is_known(id)) continue;
            bool const is_suspect = self->suspects_ > 0;
            if (is_suspect) --self->suspects_;
            unheard.insert(unheard.end(), {id, std::to_string(is_suspect ? one[3].integer() + 1 : 0)});
        }
        auto taking = take_known(self, std::move(unheard));
        co_await std::move(taking);
        if (said.size() < at_once) break;
    }
    self->looks_for_unheard_ = false;
    self->suspects_ = 0;
}

/// Ends the read that waits, without losing what it may just be given (as closing its connection could).
task<void> consumer_state::unblock(std::shared_ptr<consumer_state> self) {
    while (true) {
        engine::pause rest{self->at_.owner(), milliseconds{0}};
        co_await rest;
        {
            std::lock_guard const guard{self->mutex_};
            if (!self->reading_) co_return;
        }
        if (auto const id = self->connection_id_; id != 0) {
            auto asking = self->at_.command({"CLIENT", "UNBLOCK", id});
            co_await std::move(asking);
        }
        engine::pause while_it_ends{self->at_.owner(), milliseconds{10}};  // it may not have begun to wait when it was told
        co_await while_it_ends;
    }
}

}  // namespace lockstep::detail
