#include "messaging/stream_read.hpp"

#include "lease/pause.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/request.hpp>

#include <fmt/format.h>

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
    } catch (protocol_error const&) {
        if (!may_repeat) throw;  // the reply was too large
    } catch (indeterminate_error const&) {
        if (!may_repeat) throw;
    }
    co_return std::nullopt;
}

}  // namespace

reply_limits reply_sizes(core const& owner) noexcept {
    constexpr std::size_t most = std::size_t{4} << 20;  // a script takes about a millisecond for one of them
    auto const allowed = owner.options().max_reply_bytes;
    return {.budget = static_cast<std::int64_t>(std::min(most, allowed / 2)), .limit = static_cast<std::int64_t>(allowed - 4'096)};
}

std::size_t reply_limits::count_of(std::size_t entry_bytes) const noexcept {
    constexpr std::size_t careful = 10;
    return entry_bytes == 0 ? careful : std::max<std::size_t>(static_cast<std::size_t>(budget) / entry_bytes, 1);
}

std::size_t bytes_of(stream_fields const& fields) noexcept {
    std::size_t bytes = 0;
    for (auto const& [field, value] : fields) bytes += field.size() + value.size() + 32;
    return bytes;
}

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

entry_too_large::entry_too_large(keyed const& at, std::string entry_id, std::int64_t bytes)
    : protocol_error(fmt::format("stream '{}': the entry {} has {} bytes, more than max_reply_bytes ({}) allows", at.name(), entry_id, bytes,
                                 at.owner()->options().max_reply_bytes)),
      id_(std::make_shared<std::string const>(std::move(entry_id))) {}

task<std::vector<stream_entry>> read_range(keyed at, bool is_reverse, std::string from, std::string to, std::size_t count) {
    constexpr std::size_t most = 1'000;  // by one request
    auto const sizes = reply_sizes(*at.owner());
    std::vector<stream_entry> entries;
    while (true) {
        auto const more = count == 0 ? most : std::min(most, count - entries.size());
        auto asking = at.run(scripts::stream_range, {is_reverse ? "XREVRANGE" : "XRANGE", from, to, more, sizes.budget, sizes.limit});
        auto const answer = co_await std::move(asking);
        auto part = answer.begin();
        bool const is_more = (*part).integer() == 1;
        for (++part; part != answer.end(); ++part) {
            auto const entry = *part;
            stream_entry next{.id = std::string{entry[0].text()}};
            if (!entry[1].is_aggregate()) {
                if (!entries.empty()) co_return entries;
                throw entry_too_large(at, std::move(next.id), entry[1].integer());
            }
            next.fields = read_fields(entry[1]);
            entries.push_back(std::move(next));
        }
        if (!is_more || entries.size() == count) co_return entries;
        from = "(" + entries.back().id;
    }
}

task<bool> has_entries(keyed at, std::string from, std::string to) {
    auto asking = at.run(scripts::stream_range, {"XRANGE", from, to, 1, 0, 0});
    auto const answer = co_await std::move(asking);
    co_return answer.size() > 1;
}

task<reply> run_apart(std::shared_ptr<stream_state> self, std::vector<std::string> words, bool may_repeat) {
    auto const until = self->at.owner()->deadline({});
    while (true) {
        auto asking = read_once(self, words, milliseconds{0}, may_repeat);
        auto answer = co_await std::move(asking);
        if (answer) co_return std::move(*answer);
        if (clock::now() >= until) throw unavailable_error(fmt::format("stream '{}': no connection served {} in time", self->at.name(), words.front()));
        engine::pause rest{self->at.owner(), milliseconds{20}};
        co_await rest;
    }
}

task<std::vector<stream_entry>> read_after(std::shared_ptr<stream_state> self, std::string after, std::size_t count, milliseconds time) {
    auto const until = end_of(time);
    if (after == "$") {
        // What "$" means must not change when the question is repeated.
        auto asking = last_id(self->at);
        after = co_await std::move(asking);
    }
    if (after.find('-') == std::string::npos) after += "-0";  // for XRANGE a whole millisecond
    if (time.count() <= 0) co_return co_await read_range(self->at, false, "(" + after, "+", count);
    bool comes_in_pieces = false;  // the reply may have been too large
    while (true) {
        if (std::exchange(comes_in_pieces, false)) {
            auto reading = read_range(self->at, false, "(" + after, "+", count);
            auto entries = co_await std::move(reading);
            if (!entries.empty()) co_return entries;
        }
        auto const block = block_for(until);
        words_of const words{"XREAD", "COUNT", std::to_string(count), "BLOCK", std::to_string(block.count()), "STREAMS", self->at.key(), after};
        auto asking = read_once(self, words, block, true);
        auto const said = co_await std::move(asking);
        if (said && !said->is_null()) co_return read_of_one(*said);
        comes_in_pieces = !said;
        if (clock::now() >= until && said) co_return std::vector<stream_entry>{};
        if (!said) {
            engine::pause rest{self->at.owner(), milliseconds{20}};
            co_await rest;
        }
    }
}

task<std::vector<stream_entry>> read_for(std::shared_ptr<stream_state> self, std::string group, std::string consumer, std::size_t count, milliseconds time) {
    auto const until = end_of(time);
    if (time.count() <= 0) {
        words_of const words{"XREADGROUP", "GROUP", group, consumer, "COUNT", std::to_string(count), "STREAMS", self->at.key(), ">"};
        auto asking = run_apart(self, words, false);
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
