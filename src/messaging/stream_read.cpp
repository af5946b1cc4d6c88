#include "messaging/stream_read.hpp"

#include "lease/pause.hpp"

#include <lockstep/error.hpp>
#include <lockstep/request.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::detail {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

namespace {

task<session> borrow_connection(std::shared_ptr<stream_state> self) {
    {
        std::lock_guard const guard{self->idle_mutex};
        if (!self->idle.empty()) {
            auto found = std::move(self->idle.back());
            self->idle.pop_back();
            co_return found;
        }
    }
    auto opening = open_session(self->at.owner(), self->at.slot());
    co_return co_await std::move(opening);
}

void give_back(stream_state& self, session unused) {
    std::lock_guard const guard{self.idle_mutex};
    self.idle.push_back(std::move(unused));
}

/// BLOCK 0 would wait for ever.
milliseconds block_for(clock::time_point until) {
    auto const left = std::chrono::ceil<milliseconds>(until - clock::now());
    return std::clamp(left, milliseconds{1}, longest_block);
}

clock::time_point end_of(milliseconds time) {
    return clock::now() + std::min<milliseconds>(time, std::chrono::hours{24 * 365});
}

using words_of = std::vector<std::string>;

request blocking_request(words_of const& words, milliseconds block) {
    std::vector<std::string_view> const views(words.begin(), words.end());
    return request::from(views).within(block + block_grace);
}

/// One read that waits. Nothing: its connection was of no use and nothing can have been given to it; another one may be.
task<std::optional<reply>> read_once(std::shared_ptr<stream_state> self, words_of words, milliseconds block, bool may_repeat) {
    auto borrowing = borrow_connection(self);
    auto on = co_await std::move(borrowing);
    try {
        auto const what = blocking_request(words, block);
        auto asking = on.async_execute(what);
        auto said = co_await std::move(asking);
        give_back(*self, std::move(on));
        co_return std::move(said);
    } catch (server_error const& problem) {
        if (!is_astray(problem)) throw;
    } catch (unavailable_error const&) {
        // It broke while it was idle.
    } catch (indeterminate_error const&) {
        if (!may_repeat) throw;
    }
    co_return std::nullopt;
}

}  // namespace

bool is_astray(server_error const& problem) {
    constexpr std::array<std::string_view, 7> reasons{"UNBLOCKED", "MOVED", "ASK", "TRYAGAIN", "READONLY", "LOADING", "CLUSTERDOWN"};
    return std::find(reasons.begin(), reasons.end(), problem.prefix()) != reasons.end();
}

task<std::string> last_id(keyed at) {
    try {
        auto asking = at.command({"XINFO", "STREAM", at.key()});
        auto const said = co_await std::move(asking);
        co_return std::string{said.find("last-generated-id").text()};
    } catch (server_error const& problem) {
        if (problem.text().find("no such key") == std::string::npos) throw;
    }
    co_return std::string{"0-0"};
}

task<std::vector<stream_entry>> read_after(std::shared_ptr<stream_state> self, std::string after, std::size_t count, milliseconds time) {
    auto const until = end_of(time);
    if (after == "$") {
        // What "$" means must not change when the question is repeated.
        auto asking = last_id(self->at);
        after = co_await std::move(asking);
    }
    if (time.count() <= 0) {
        auto asking = self->at.command({"XREAD", "COUNT", count, "STREAMS", self->at.key(), after});
        auto const said = co_await std::move(asking);
        co_return read_of_one(said);
    }
    while (true) {
        auto const block = block_for(until);
        words_of const words{"XREAD", "COUNT", std::to_string(count), "BLOCK", std::to_string(block.count()), "STREAMS", self->at.key(), after};
        auto asking = read_once(self, words, block, true);
        auto const said = co_await std::move(asking);
        if (said && !said->is_null()) co_return read_of_one(*said);
        if (clock::now() >= until) co_return std::vector<stream_entry>{};
        if (!said) {
            engine::pause rest{self->at.owner(), milliseconds{20}};
            co_await rest;
        }
    }
}

task<std::vector<stream_entry>> read_for(std::shared_ptr<stream_state> self, std::string group, std::string consumer, std::size_t count, milliseconds time) {
    auto const until = end_of(time);
    if (time.count() <= 0) {
        argument const words[] = {"XREADGROUP", "GROUP", group, consumer, "COUNT", count, "STREAMS", self->at.key(), ">"};
        auto asking = self->at.command(words, keyed::terms{.once = true});
        auto const said = co_await std::move(asking);
        co_return read_of_one(said);
    }
    while (true) {
        auto const block = block_for(until);
        words_of const words{"XREADGROUP", "GROUP", group, consumer, "COUNT", std::to_string(count), "BLOCK", std::to_string(block.count()), "STREAMS", self->at.key(), ">"};
        auto asking = read_once(self, words, block, false);
        auto const said = co_await std::move(asking);
        if (said && !said->is_null()) co_return read_of_one(*said);
        if (clock::now() >= until) co_return std::vector<stream_entry>{};
        if (!said) {
            engine::pause rest{self->at.owner(), milliseconds{20}};
            co_await rest;
        }
    }
}

}  // namespace lockstep::detail
