#pragma once

// What the library reports, as JSON: the one form that `--json`, the dashboard and its page share.
//
// Members keep their names. A duration is a whole number, and its unit is part of the name: `held_for_ms`, `waited_us`. A time is
// `at_ms`, in ms since 1970. What is not there (std::optional) is null. Fences and terms are text, as a page can't read all of them; so
// are other numbers from 2^50 on, either way.

#include "base/utf8.hpp"

#include <lockstep/health.hpp>
#include <lockstep/leadership.hpp>
#include <lockstep/monitor.hpp>

#include <boost/describe.hpp>
#include <boost/json.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lockstep {

BOOST_DESCRIBE_STRUCT(client_info, (), (id, name, host, pid, version, since, connected, held, waiting, parent))
BOOST_DESCRIBE_STRUCT(hold_info, (), (name, kind, use, id, owner, fence, permits, offered, stale, held_for, remaining, queue, candidate))
BOOST_DESCRIBE_STRUCT(wait_info, (), (name, kind, use, id, who, position, waiters, permits, waiting_for, priority))
BOOST_DESCRIBE_STRUCT(group_info, (), (name, consumers, pending, lag))
BOOST_DESCRIBE_STRUCT(object_info, (), (name, kind, count, taken, holders, queue, delayed, dead, groups, type, blocked, paused))
BOOST_DESCRIBE_STRUCT(timing, (), (count, average, p50, p95, p99, max))
BOOST_DESCRIBE_STRUCT(name_statistics, (), (name, kind, acquisitions, waits, timeouts, losses, held, waited))
BOOST_DESCRIBE_STRUCT(snapshot, (), (at, objects, holds, waits, clients, notes, left_out, trouble))
BOOST_DESCRIBE_STRUCT(explanation::link, (), (waiter, name, kind, holder, by_command))
BOOST_DESCRIBE_STRUCT(explanation, (), (name, holds, waits, chain, cycles, notes))
BOOST_DESCRIBE_STRUCT(contention_info, (), (name, kind, queue, longest, longest_by, waited))
BOOST_DESCRIBE_STRUCT(audit_entry, (), (id, at, action, name, kind, hold, fence, owner, by, reason, outcome))
BOOST_DESCRIBE_STRUCT(history_entry, (), (id, what, kind, use, name, hold, trace, detail, owner, fence, permits, at, waited, held, missing))
BOOST_DESCRIBE_STRUCT(leader_info, (), (id, host, pid, term, since, remaining, candidates))
BOOST_DESCRIBE_STRUCT(leader_change, (), (what, id, host, pid, term, at, position))
BOOST_DESCRIBE_STRUCT(violation, (), (name, kind, what, first, second, text))
BOOST_DESCRIBE_STRUCT(finding, (), (check, state, found, advice, took))
BOOST_DESCRIBE_STRUCT(health_report, (), (state, server, findings))

}  // namespace lockstep

namespace lockstep::apps {

template <class T>
concept described = boost::describe::has_describe_members<T>::value;

template <class T>
std::string json_key(char const* member, T const&) {
    if constexpr (std::same_as<T, std::chrono::milliseconds> || std::same_as<T, std::optional<std::chrono::milliseconds>> ||
                  std::same_as<T, std::chrono::system_clock::time_point>) {
        return std::string{member} + "_ms";
    } else if constexpr (std::same_as<T, std::chrono::microseconds>) {
        return std::string{member} + "_us";
    } else {
        return member;
    }
}

/// Numbers that grow with the time in µs, whatever they are now.
template <class T>
bool is_wide(std::string_view member, T const&) {
    return std::same_as<T, std::uint64_t> && (member == "fence" || member == "term");
}
template <class T>
std::string wide_text(T const& number) {
    if constexpr (std::same_as<T, std::uint64_t>) return std::to_string(number);
    else return {};
}

inline boost::json::value as_json(std::string const& text) { return boost::json::string{base::as_utf8(text)}; }
inline boost::json::value as_json(health_state state) { return boost::json::string{to_string(state)}; }
inline boost::json::value as_json(leader_change::kind what) { return boost::json::string{to_string(what)}; }
inline boost::json::value as_json(std::chrono::system_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
template <class Rep, class Period>
boost::json::value as_json(std::chrono::duration<Rep, Period> time) {
    return static_cast<std::int64_t>(time.count());
}
template <class T>
    requires std::integral<T>
boost::json::value as_json(T number) {
    if constexpr (sizeof(T) == sizeof(std::int64_t)) {
        constexpr auto limit = std::int64_t{1} << 50;
        if (std::cmp_greater_equal(number, limit) || std::cmp_less_equal(number, -limit)) return boost::json::string{std::to_string(number)};
    }
    return number;
}
template <class T>
boost::json::value as_json(std::optional<T> const& value);
template <class T>
boost::json::value as_json(std::vector<T> const& values);

template <described T>
boost::json::value as_json(T const& value) {
    boost::json::object made;
    boost::mp11::mp_for_each<boost::describe::describe_members<T, boost::describe::mod_any_access>>([&](auto member) {
        auto const& part = value.*member.pointer;
        made.emplace(json_key(member.name, part), is_wide(member.name, part) ? as_json(wide_text(part)) : as_json(part));
    });
    return made;
}

template <class T>
boost::json::value as_json(std::optional<T> const& value) {
    return value ? as_json(*value) : boost::json::value{};
}

template <class T>
boost::json::value as_json(std::vector<T> const& values) {
    boost::json::array made;
    made.reserve(values.size());
    for (auto const& one : values) made.push_back(as_json(one));
    return made;
}

}  // namespace lockstep::apps
