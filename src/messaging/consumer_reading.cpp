#include "messaging/consumer_state.hpp"

#include "core/session.hpp"
#include "lease/pause.hpp"
#include "messaging/stream_read.hpp"
#include "messaging/stream_state.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

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
        // Not allowed: then a stop waits until the read that is under way is over.
    }
    if (std::exchange(self->looks_for_unheard_, false)) {
        auto taking = take_unheard(self);
        co_await std::move(taking);
    }
    auto const& options = self->options_;
    while (true) {
        std::unique_lock guard{self->mutex_};
        if (self->stopping_) co_return;
        auto const room = self->wanted();
        if (2 * self->line_.size() > room) {
            self->reader_waits_ = true;
            guard.unlock();
            auto waiting = doorbell::wait(self->at_.owner(), self->room_, longest_block);
            co_await std::move(waiting);
            continue;
        }
        auto const count = std::min(options.batch, room - std::min(self->line_.size(), room - 1));
        guard.unlock();
        request const what = request{"XREADGROUP", "GROUP", options.group, options.name, "COUNT", count, "BLOCK", longest_block.count(), "STREAMS", self->at_.key(), ">"}
                                 .within(longest_block + block_grace);
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
        self->accept(std::move(entries), false);
    }
}

namespace {
constexpr std::size_t at_once = 100;
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
        if (!unheard.empty()) {
            std::vector<argument> words{options.group, options.name};
            words.insert(words.end(), unheard.begin(), unheard.end());
            std::string_view const keys[] = {self->at_.key(), self->taken_key_};
            auto taking = self->at_.run(scripts::stream_take, keys, words, {});
            auto const taken = co_await std::move(taking);
            std::vector<found> entries;
            for (std::size_t i = 0; i + 3 < taken.size(); i += 4) {
                entries.push_back({.id = std::string{taken[i].text()},
                                   .deliveries = taken[i + 1].integer(),
                                   .is_counted = taken[i + 2].integer() == 1,
                                   .fields = read_fields(taken[i + 3])});
            }
            self->accept(std::move(entries), true);
        }
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
