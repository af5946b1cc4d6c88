#include "observe/survey.hpp"

#include "lease/kind.hpp"
#include "observe/offload.hpp"
#include "observe/search.hpp"
#include "redis/slot.hpp"
#include "resp/cursor.hpp"
#include "scripts/all.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep::observe {
namespace {

// Small steps: none keeps the server for more than about a millisecond.
constexpr std::size_t keys_of_a_script = 100;
constexpr std::size_t reads_of_a_script = 150;
constexpr std::size_t requests_at_once = 50;
constexpr std::size_t most_holds = 1'000'000;  // of an object

template <class Number = std::uint64_t>
Number as_number(std::string_view text) {
    Number number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

void read_holds(reply_view said, std::vector<seen_hold>& into) {
    for (resp::cursor rest{said, 6}; rest.left() >= 6;) {
        seen_hold one;
        one.id = rest.next().text();
        one.permits = rest.next().integer();
        one.fence = as_number(rest.next().text());
        one.ends_ms = rest.next().integer();
        one.span_ms = rest.next().integer();
        one.offered = rest.next().text() != "held";
        into.push_back(std::move(one));
    }
}

/// What survey_things says of a stream, after its first six.
void read_groups(reply_view said, object_info& into) {
    into.dead = said[6].integer();
    for (resp::cursor rest{said, 7}; rest.left() >= 4;) {
        auto& made = into.groups.emplace_back();
        made.name = rest.next().text();
        made.consumers = static_cast<std::size_t>(rest.next().integer());
        made.pending = rest.next().integer();
        if (auto const lag = rest.next().integer(); lag >= 0) made.lag = lag;
    }
}

/// Of these it says who waits instead of who holds.
bool is_of_clients(std::string_view format) noexcept { return format == "latch" || format == "broadcast" || format == "barrier"; }

seen_object read_object(found_object const& found, reply_view said) {
    seen_object one;
    one.key = found.key;
    one.is = found.is;
    one.is.queue = static_cast<std::size_t>(std::max<std::int64_t>(0, said[1].integer()));
    one.is.count = said[2].is_text() ? as_number<std::int64_t>(said[2].text()) : said[2].integer();
    one.is.taken = said[3].integer();
    one.is.holders = static_cast<std::size_t>(std::max<std::int64_t>(0, said[4].integer()));
    one.next_hold = static_cast<std::size_t>(said[5].integer());
    if (said[0].text() == "stream") {
        read_groups(said, one.is);
        return one;
    }
    if (!is_of_clients(said[0].text()) && said.size() == 10) {  // a queue, or jobs
        one.is.delayed = said[6].integer();
        one.is.dead = said[7].integer();
        one.is.blocked = said[8].integer();
        one.is.paused = said[9].integer() == 1;
    }
    if (engine::find_kind(one.is.kind) == nullptr) {
        if (!is_of_clients(said[0].text())) return one;
        for (resp::cursor rest{said, 6}; rest.left() != 0;) one.clients.emplace_back(rest.next().text());
        return one;
    }
    read_holds(said, one.holds);
    if (said.size() == 13) one.leader = said[12].text();
    return one;
}

/// Keys that one script may read together.
std::vector<std::vector<found_object>> grouped(std::vector<found_object> keys, bool by_slot) {
    std::map<unsigned, std::vector<found_object>> slots;
    for (auto& one : keys) slots[by_slot ? redis::key_slot(one.key) : 0U].push_back(std::move(one));
    std::vector<std::vector<found_object>> groups;
    for (auto& [slot, all] : slots) {
        for (std::size_t from = 0; from < all.size(); from += keys_of_a_script) {
            auto const to = std::min(all.size(), from + keys_of_a_script);
            groups.emplace_back(std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(from)),
                                std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(to)));
        }
    }
    return groups;
}

task<reply> ask(reader const& from, std::vector<std::string> const& keys, std::size_t begin, bool with_clients = false) {
    return from.script(scripts::survey, keys, {std::to_string(reads_of_a_script), std::to_string(begin), with_clients ? "clients" : ""});
}

/// One that somebody else wrote must not hide all others.
bool is_left_for_later(reader const& from, found_object const& found, reply_view said, survey& into) {
    try {
        auto const format = said[0].text();
        if (format == "later") return true;
        if (said.size() > 1) {
            into.objects.push_back(read_object(found, said));
            return false;
        }
        if (format != "unreadable") return false;
    } catch (conversion_error const&) {
        // said of something that is not as Lockstep writes it
    }
    ++into.left_out;
    from.note(found.key, "not what Lockstep keeps there");
    return false;
}

/// Some objects, and what was answered of them: {now_ms, then of each}. Nothing: the answer was more than this client receives, or the time is over.
struct group_answer {
    std::vector<found_object> objects;
    std::optional<reply> said;
};

/// One whose answer is too large is asked for again, each object by itself: one must not hide all others.
task<std::vector<group_answer>> read_group(reader from, std::vector<found_object> objects, bool with_clients) {
    std::vector<group_answer> all;
    std::optional<reply> said;
    if (!from.is_late()) {
        std::vector<std::string> keys;
        for (auto const& one : objects) keys.push_back(one.key);
        try {
            auto asking = ask(from, keys, 1, with_clients);
            said.emplace(co_await std::move(asking));
        } catch (protocol_error const& problem) {
            from.note(objects.front().key, objects.size() == 1 ? std::string_view{problem.what()} : "an answer about this and other keys was too large: they are read one by one");
        }
    }
    if (said || objects.size() == 1 || from.is_time_over()) {
        all.push_back({std::move(objects), std::move(said)});
        co_return all;
    }
    for (auto& one : objects) {
        auto reading = read_group(from, {std::move(one)}, with_clients);
        auto alone = co_await std::move(reading);
        std::move(alone.begin(), alone.end(), std::back_inserter(all));
    }
    co_return all;
}

/// Reads these objects; returns the keys that there was no room for in the answers.
task<std::vector<found_object>> read_objects(reader from, std::vector<found_object> keys, bool with_clients, survey& into) {
    std::vector<task<std::vector<group_answer>>> questions;
    for (auto& group : grouped(std::move(keys), from.owner()->is_cluster())) questions.push_back(read_group(from, std::move(group), with_clients));
    auto asking = in_groups(std::move(questions), requests_at_once);
    auto const answers = co_await std::move(asking);
    std::vector<found_object> later;
    for (auto const& parts : answers) {
        for (auto const& part : parts) {
            if (!part.said) {
                into.left_out += part.objects.size();
                continue;
            }
            resp::cursor rest{*part.said};
            into.now_ms = std::max(into.now_ms, rest.next().integer());
            for (auto const& found : part.objects) {
                if (is_left_for_later(from, found, rest.next(), into)) later.push_back(found);
            }
        }
    }
    co_return later;
}

/// Of objects with many holds, the rest of them.
task<void> read_more_holds(reader from, survey& into, std::size_t most) {
    for (auto& one : into.objects) {
        walk_limit limit{from, one.key, reads_of_a_script, most_holds};
        while (one.next_hold != 0 && one.holds.size() < most && limit.goes_on()) {
            try {
                auto asking = ask(from, {one.key}, one.next_hold);
                auto const answer = co_await std::move(asking);
                auto const said = answer[1];
                if (said.size() < 6) break;  // gone meanwhile
                read_holds(said, one.holds);
                one.next_hold = static_cast<std::size_t>(said[5].integer());
            } catch (conversion_error const&) {
                from.note(one.key, "not what Lockstep keeps there");
                break;
            } catch (protocol_error const& problem) {
                from.note(one.key, problem.what());
                break;
            }
        }
        if (one.holds.size() > most) one.holds.resize(most);
    }
}

task<reply> read_queue(reader from, std::string key, std::size_t most) {
    if (from.is_late()) co_return reply{};
    try {
        auto asking = from.script(scripts::queue_read, {key}, {std::to_string(most)});
        co_return co_await std::move(asking);
    } catch (server_error const& problem) {
        from.note_or_throw(key, problem);
    } catch (protocol_error const& problem) {
        from.note(key, problem.what());
    }
    co_return reply{};
}

task<void> read_queues(reader from, survey& into, std::size_t most) {
    std::vector<std::size_t> whose;
    std::vector<task<reply>> questions;
    for (std::size_t i = 0; i < into.objects.size(); ++i) {
        if (into.objects[i].is.queue == 0 || most == 0 || engine::find_kind(into.objects[i].is.kind) == nullptr) continue;
        whose.push_back(i);
        questions.push_back(read_queue(from, into.objects[i].key, std::min<std::size_t>(most, 1'000)));
    }
    auto asking = in_groups(std::move(questions), requests_at_once);
    auto const answers = co_await std::move(asking);
    for (std::size_t i = 0; i < whose.size(); ++i) {
        bool const ranked = into.objects[whose[i]].is.kind == "election";  // what it wants is a priority there
        resp::cursor rest{answers[i]};
        while (rest.left() >= 2) {
            std::string id{rest.next().text()};
            auto const text = rest.next().text();
            auto const wanted = static_cast<std::int64_t>(as_number(text));
            into.objects[whose[i]].queue.push_back({.id = std::move(id), .permits = ranked || text.empty() ? 1 : wanted, .priority = ranked ? wanted : 0});
        }
        if (rest.left() == 1) from.note(into.objects[whose[i]].key, rest.next().text());
    }
}

void sort_objects(std::vector<seen_object>& all) {
    std::sort(all.begin(), all.end(), [](seen_object const& a, seen_object const& b) { return comes_before(a.is, b.is) || (!comes_before(b.is, a.is) && a.key > b.key); });
    // Of a board with periods, the newest.
    all.erase(std::unique(all.begin(), all.end(), [](seen_object const& a, seen_object const& b) { return !comes_before(a.is, b.is) && a.is.kind == "board"; }), all.end());
}

}  // namespace

std::string_view client_of(std::string_view hold) noexcept { return hold.substr(0, hold.find('.')); }

task<survey> take_survey(reader from, survey_terms what) {
    survey made;
    auto finding = find_objects(from, what, made.left_out);
    auto all = co_await std::move(finding);
    if (all.size() > what.limit) {
        made.left_out += all.size() - what.limit;
        all.resize(what.limit);
    }
    std::vector<found_object> keys;
    for (auto& one : all) {
        if (one.key.empty()) {
            made.objects.emplace_back().is = std::move(one.is);
        } else {
            keys.push_back(std::move(one));
        }
    }
    while (!keys.empty()) {
        auto const before = keys.size();
        auto reading = read_objects(from, std::move(keys), !what.name.empty(), made);
        keys = co_await std::move(reading);
        if (keys.size() < before) continue;
        made.left_out += keys.size();  // each round answers for some
        from.note(from.prefix(), "only a part was read: the server has no room in its answers");
        break;
    }
    if (made.now_ms == 0) {
        auto asking = from.command(0, {"TIME"});
        auto const time = co_await std::move(asking);
        made.now_ms = static_cast<std::int64_t>(as_number(time[0].text()) * 1'000 + as_number(time[1].text()) / 1'000);
    }
    auto completing = read_more_holds(from, made, what.holders);
    co_await std::move(completing);
    auto const size = made.objects.size();
    auto sort = [objects = std::move(made.objects)]() mutable {
        sort_objects(objects);
        return std::move(objects);
    };
    auto sorting = offload(from, size, std::move(sort));
    made.objects = co_await std::move(sorting);
    auto reading = read_queues(from, made, what.waiters);
    co_await std::move(reading);
    co_return made;
}

}  // namespace lockstep::observe
