// First the text becomes sets of numbers (cron_reader). Then next() looks for a due time on the clock on the wall, from field to field with bit
// operations, between two changes of that clock. When it changes, Abseil knows.

#include "jobs/cron.hpp"

#include <lockstep/error.hpp>

#include <absl/time/civil_time.h>
#include <absl/time/time.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::detail {
namespace {

namespace chrono = std::chrono;
using chrono::local_days;
using chrono::local_seconds;
using chrono::sys_seconds;
using namespace std::chrono_literals;
using set = std::uint64_t;

constexpr set only(unsigned value) { return set{1} << value; }
constexpr set from(unsigned value) { return ~set{0} << value; }
constexpr bool has(set values, unsigned value) { return (values & only(value)) != 0; }
constexpr unsigned first_of(set values) { return static_cast<unsigned>(std::countr_zero(values)); }

// ---- reading ----

constexpr std::array<std::string_view, 12> month_names{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> weekday_names{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

struct field {
    std::string_view name;
    std::string_view allowed;
    unsigned low;
    unsigned high;  ///< where `*` ends
    unsigned most;  ///< the largest number that may be written
    std::span<std::string_view const> names;

    bool is_day() const { return low == 1 && high == 31; }
    bool is_weekday() const { return high == 6; }
    set all() const { return from(low) & ~from(high + 1); }
};

constexpr std::array<field, 6> all_fields{{{"second", "0 to 59", 0, 59, 59, {}},
                                           {"minute", "0 to 59", 0, 59, 59, {}},
                                           {"hour", "0 to 23", 0, 23, 23, {}},
                                           {"day-of-month", "1 to 31 or L", 1, 31, 31, {}},
                                           {"month", "1 to 12 or JAN to DEC", 1, 12, 12, month_names},
                                           {"day-of-week", "0 to 7 or SUN to SAT", 0, 6, 7, weekday_names}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> macros{{{"@yearly", "0 0 1 1 *"},
                                                                               {"@annually", "0 0 1 1 *"},
                                                                               {"@monthly", "0 0 1 * *"},
                                                                               {"@weekly", "0 0 * * 0"},
                                                                               {"@daily", "0 0 * * *"},
                                                                               {"@midnight", "0 0 * * *"},
                                                                               {"@hourly", "0 * * * *"}}};

constexpr std::size_t longest_text = 256;  // it is kept, sent and shown

bool same_word(std::string_view a, std::string_view b) {
    auto const lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::vector<std::string_view> words_of(std::string_view text) {
    constexpr std::string_view blank = " \t";
    std::vector<std::string_view> words;
    for (auto at = text.find_first_not_of(blank); at != text.npos; at = text.find_first_not_of(blank, at)) {
        auto const end = std::min(text.find_first_of(blank, at), text.size());
        words.push_back(text.substr(at, end - at));
        at = end;
    }
    return words;
}

std::optional<unsigned> number(std::string_view text) {
    unsigned value = 0;
    auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

class cron_reader {
public:
    explicit cron_reader(std::string_view text) : text_(text) {}

    cron_fields read() const {
        auto words = words_of(text_);
        if (words.size() == 1 && words[0].starts_with('@')) words = words_of(macro(words[0]));
        if (words.size() != 5 && words.size() != 6)
            refuse(fmt::format("there are 5 fields (minute hour day-of-month month day-of-week) or 6 (second first), not {}", words.size()));
        if (words.size() == 5) words.insert(words.begin(), "0");

        std::array<set, 6> sets{};
        for (std::size_t i = 0; i != sets.size(); ++i) sets[i] = values_of(all_fields[i], words[i]);
        auto const open = [](std::string_view word) { return word.starts_with('*') || word == "?"; };
        bool const every_hour = sets[2] == all_fields[2].all();
        cron_fields const fields{.seconds = sets[0],
                                 .minutes = sets[1],
                                 .hours = sets[2],
                                 .days = sets[3],
                                 .months = sets[4],
                                 .weekdays = sets[5],
                                 .either_day = !open(words[3]) && !open(words[5]),
                                 .fires_in_gaps = !every_hour,
                                 .fires_in_echoes = every_hour || open(words[1]) || sets[1] == all_fields[1].all()};
        if (!fields.either_day && !has_a_day(fields)) refuse("it would never fire, for none of its months has such a day");
        return fields;
    }

private:
    [[noreturn]] void refuse(std::string const& why) const { throw invalid_argument_error{fmt::format("cron '{}': {}", text_, why)}; }

    [[noreturn]] void refuse(field const& kind, std::string_view given) const {
        refuse(fmt::format("{} is {}, not {}", kind.name, kind.allowed, given));
    }

    std::string_view macro(std::string_view word) const {
        for (auto const& [name, meaning] : macros)
            if (same_word(name, word)) return meaning;
        refuse(fmt::format("there are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly, not {}", word));
    }

    set values_of(field const& kind, std::string_view word) const {
        if (word == "?" && (kind.is_day() || kind.is_weekday())) return kind.all();
        set values = 0;
        for (std::size_t at = 0; at <= word.size();) {
            auto const end = std::min(word.find(',', at), word.size());
            if (end == at) refuse(kind, word);  // nothing between two commas
            values |= element(kind, word.substr(at, end - at));
            at = end + 1;
        }
        return values;
    }

    set element(field const& kind, std::string_view text) const {
        if (kind.is_day() && same_word(text, "L")) return cron_fields::last_day;
        auto const slash = text.find('/');
        auto const range = text.substr(0, slash);
        unsigned low = kind.low;
        unsigned high = kind.high;
        if (range != "*") {
            auto const dash = range.find('-');
            low = value(kind, range.substr(0, dash), text);
            if (dash != range.npos) {
                high = value(kind, range.substr(dash + 1), text);
                if (kind.is_weekday() && high == 0 && low > 0) high = 7;  // SAT-SUN
            }
            if (kind.is_weekday() && low == 7 && high != 7) low = 0;
            if (dash == range.npos && slash == text.npos) high = low;
        }
        if (low > high)
            refuse(fmt::format("a range of {} goes up, not {}; write {}-{},{}-{}", kind.name, range, low, kind.high, kind.low, high));
        unsigned const step = slash == text.npos ? 1 : step_of(kind, text.substr(slash + 1));
        set values = 0;
        for (auto i = low; i <= high; i += step) values |= only(i);
        return kind.is_weekday() && has(values, 7) ? (values | 1) & ~only(7) : values;
    }

    unsigned value(field const& kind, std::string_view text, std::string_view whole) const {
        for (std::size_t i = 0; i != kind.names.size(); ++i)
            if (same_word(kind.names[i], text)) return kind.low + static_cast<unsigned>(i);
        auto const value = number(text);
        bool const is_l = kind.is_day() && same_word(text, "L");  // L alone is allowed, L-3 is not
        if (!value || *value < kind.low || *value > kind.most) refuse(kind, text.empty() || is_l ? whole : text);
        return *value;
    }

    // More than there is would be a trap: `*/90` is not every 90 minutes.
    unsigned step_of(field const& kind, std::string_view text) const {
        auto const most = kind.high - kind.low + 1;
        auto const step = number(text);
        if (!step || *step < 1 || *step > most)
            refuse(fmt::format("a step of {} is 1 to {}, not {}", kind.name, most, text.empty() ? "nothing" : text));
        return *step;
    }

    static bool has_a_day(cron_fields const& fields) {
        if (has(fields.days, 32)) return true;
        for (unsigned month = 1; month <= 12; ++month) {
            auto const last = chrono::year{2024} / chrono::month{month} / chrono::last;  // a leap year
            if (has(fields.months, month) && first_of(fields.days) <= unsigned{last.day()}) return true;
        }
        return false;
    }

    std::string_view text_;
};

// ---- the clock on the wall ----

/// The due days of a month: bit 1 is the first.
set days_in(cron_fields const& fields, chrono::year_month month) {
    constexpr set weeks = only(0) | only(7) | only(14) | only(21) | only(28) | only(35);
    auto const last = unsigned{(month / chrono::last).day()};
    auto by_date = fields.days;
    if (has(by_date, 32)) by_date |= only(last);
    auto const begins = chrono::weekday{local_days{month / 1}}.c_encoding();
    auto const by_weekday = fields.weekdays * weeks >> begins << 1;
    auto const due = fields.either_day ? by_date | by_weekday : by_date & by_weekday;
    return due & from(1) & ~from(last + 1);
}

/// The first due day, that one included. There is one: the reader has seen to it.
local_days due_day(cron_fields const& fields, local_days day) {
    auto const date = chrono::year_month_day{day};
    auto month = date.year() / date.month();
    for (auto left = from(unsigned{date.day()});; left = ~set{0}, month += chrono::months{1}) {
        if (!has(fields.months, unsigned{month.month()})) continue;
        if (auto const due = days_in(fields, month) & left) return local_days{month / chrono::day{first_of(due)}};
    }
}

chrono::seconds time_of_day(unsigned hour, unsigned minute, unsigned second) {
    return chrono::hours{hour} + chrono::minutes{minute} + chrono::seconds{second};
}

/// The first due time of a day, that one included.
std::optional<chrono::seconds> due_time(cron_fields const& fields, chrono::seconds time) {
    auto const seconds_of_day = static_cast<unsigned>(time.count());
    auto const hour = seconds_of_day / 3600;
    auto const minute = seconds_of_day / 60 % 60;
    if (has(fields.hours, hour)) {
        if (has(fields.minutes, minute))
            if (auto const left = fields.seconds & from(seconds_of_day % 60)) return time_of_day(hour, minute, first_of(left));
        if (auto const left = fields.minutes & from(minute + 1)) return time_of_day(hour, first_of(left), first_of(fields.seconds));
    }
    if (auto const left = fields.hours & from(hour + 1)) return time_of_day(first_of(left), first_of(fields.minutes), first_of(fields.seconds));
    return std::nullopt;
}

/// The first due time, that one included.
local_seconds due_at(cron_fields const& fields, local_seconds at) {
    auto const today = chrono::floor<chrono::days>(at);
    auto day = due_day(fields, today);
    auto time = due_time(fields, day == today ? at - today : 0s);
    if (!time) {
        day = due_day(fields, today + chrono::days{1});
        time = due_time(fields, 0s);
    }
    return day + *time;
}

local_seconds local_of(absl::CivilSecond shown) { return local_seconds{chrono::seconds{shown - absl::CivilSecond{}}}; }
absl::Time absl_of(sys_seconds time) { return absl::FromUnixSeconds(time.time_since_epoch().count()); }
sys_seconds sys_of(absl::Time time) { return sys_seconds{chrono::seconds{absl::ToUnixSeconds(time)}}; }

absl::TimeZone loaded(std::string const& name) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_+-";
    // Abseil would also open a file of that path. The machine's own zone is refused since a fleet may have several.
    bool const is_name = !name.empty() && name.size() <= 64 && name.front() != '/' && name.find_first_not_of(letters) == name.npos;
    if (!is_name || name == "localtime")
        throw invalid_argument_error{fmt::format("time zone: an IANA name such as UTC or Europe/Berlin, not '{}'", name.substr(0, 64))};
    absl::TimeZone zone;
    if (absl::LoadTimeZone(name, &zone)) return zone;
    if (absl::LoadTimeZone("Europe/Berlin", &zone))
        throw invalid_argument_error{fmt::format("time zone '{}' is not known; names are IANA's, such as Europe/Berlin, in that spelling", name)};
    throw invalid_argument_error{
        fmt::format("time zone '{}' is not known, and Europe/Berlin is not either: this machine lacks the time zones (Debian: tzdata)", name)};
}

}  // namespace

class cron_schedule::time_zone {
public:
    /// The clock shows `from` and is set to `to`: forward, back, or not at all.
    struct change {
        local_seconds from;
        local_seconds to;
    };

    explicit time_zone(std::string const& name) : zone_(loaded(name)) {}

    chrono::seconds offset(sys_seconds time) const { return chrono::seconds{zone_.At(absl_of(time)).offset}; }

    std::optional<change> change_after(sys_seconds time) const {
        absl::TimeZone::CivilTransition found;
        if (!zone_.NextTransition(absl_of(time), &found)) return std::nullopt;
        return change{local_of(found.from), local_of(found.to)};
    }

    /// All that the clock showed before it shows this, at this moment, is before what is returned: later than `shown` where it was set back.
    local_seconds shown_until(sys_seconds time, local_seconds shown) const {
        auto const info = zone_.At(absl::CivilSecond{} + shown.time_since_epoch().count());
        if (info.kind != absl::TimeZone::TimeInfo::REPEATED || time < sys_of(info.trans)) return shown;
        return shown + (sys_of(info.trans) - sys_of(info.pre));
    }

private:
    absl::TimeZone zone_;
};

cron_schedule::cron_schedule(std::string_view text, std::string_view zone) : text_(text), zone_name_(zone) {
    if (text.size() > longest_text)
        throw invalid_argument_error{fmt::format("cron: an expression has at most {} characters, not {}", longest_text, text.size())};
    fields_ = cron_reader{text_}.read();
    zone_ = std::make_shared<time_zone const>(zone_name_);
}

std::chrono::sys_seconds cron_schedule::next(std::chrono::system_clock::time_point after) const {
    auto since = chrono::floor<chrono::seconds>(after);
    auto offset = zone_->offset(since);
    auto at = local_seconds{since.time_since_epoch() + offset};
    auto const shown = fields_.fires_in_echoes ? at : zone_->shown_until(since, at);
    at = std::max(at + 1s, shown);
    // From change to change of the clock. A due time is at most forty years away, so this ends.
    for (;;) {
        auto const due = due_at(fields_, at);
        auto const change = zone_->change_after(since);
        if (!change || due < change->from) return sys_seconds{due.time_since_epoch() - offset};
        since = sys_seconds{change->from.time_since_epoch() - offset};
        if (due < change->to && fields_.fires_in_gaps) return since;
        offset += change->to - change->from;
        at = fields_.fires_in_echoes ? change->to : std::max(change->from, change->to);
    }
}

}  // namespace lockstep::detail
