#include "cli/lanes.hpp"

#include "cli/duration.hpp"
#include "cli/terminal.hpp"
#include "cli/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace lockstep::cli {
namespace {

using time_point = std::chrono::system_clock::time_point;

struct span {
    time_point from, to;
    char mark;  // # held, - waiting, ! lost
};
using drawing = std::vector<std::pair<std::string, std::vector<span>>>;  // in the order in which owners appear

std::vector<span>& lane_of(drawing& all, std::string const& owner) {
    auto const found = std::ranges::find(all, owner, &drawing::value_type::first);
    if (found != all.end()) return found->second;
    return all.emplace_back(owner, std::vector<span>{}).second;
}

struct open_hold {
    std::string owner;
    std::uint64_t fence;
    time_point from, to;
    bool gone = false;  // another had it alone afterwards: its owner died without a word
};

/// A hold is open from its `acquired` to its end, or to the next that has it alone, or to the end of the records.
drawing spans_of(std::vector<history_entry> const& records, time_point last) {
    drawing all;
    std::map<std::string, open_hold> held;  // by hold
    for (auto const& one : records) {
        auto& lane = lane_of(all, one.owner);
        auto const waited = std::chrono::duration_cast<time_point::duration>(one.waited);
        if (one.what == "acquired") {
            if (one.waited.count() > 1000) lane.push_back({one.at - waited, one.at, '-'});
            if (one.use == "owner" || one.use == "writer") {
                for (auto& [hold, old] : held) {
                    if (old.gone || old.fence >= one.fence) continue;
                    old.to = one.at;
                    old.gone = true;
                }
            }
            held[one.hold] = {.owner = one.owner, .fence = one.fence, .from = one.at, .to = last};
        } else if (one.what == "timed_out" || one.what == "cancelled") {
            lane.push_back({one.at - waited, one.at, '-'});
        } else if (one.what == "released" || one.what == "lost") {
            auto const known = held.find(one.hold);
            auto const held_for = std::chrono::duration_cast<time_point::duration>(one.held);
            lane.push_back({known != held.end() ? known->second.from : one.at - held_for, one.at, '#'});
            if (one.what == "lost") lane.push_back({one.at, one.at, '!'});
            held.erase(one.hold);
        }
    }
    for (auto const& [hold, open] : held) {
        auto& lane = lane_of(all, open.owner);
        lane.push_back({open.from, open.to, '#'});
        if (open.gone) lane.push_back({open.to, open.to, '!'});
    }
    return all;
}

std::string draw(std::vector<span> const& lane, time_point first, double per_column, std::size_t columns) {
    std::string line(columns, ' ');
    auto const column = [&](time_point at) {
        auto const seconds = std::chrono::duration<double>(at - first).count();
        return std::min(columns - 1, static_cast<std::size_t>(std::max(0.0, seconds / per_column)));
    };
    for (char const mark : {'-', '#', '!'}) {  // the later ones lie on top
        for (auto const& one : lane) {
            if (one.mark == mark) std::fill(line.begin() + static_cast<std::ptrdiff_t>(column(one.from)), line.begin() + static_cast<std::ptrdiff_t>(column(one.to)) + 1, mark);
        }
    }
    return line;
}

std::string colour(std::string const& line, bool coloured) {
    std::string shown;
    for (std::size_t at = 0; at < line.size();) {
        auto const end = std::min(line.find_first_not_of(line[at], at), line.size());
        auto const how = line[at] == '#' ? style::green : line[at] == '-' ? style::yellow : line[at] == '!' ? style::red : style::plain;
        shown += paint(std::string_view{line}.substr(at, end - at), how, coloured);
        at = end;
    }
    return shown;
}

}  // namespace

std::string lanes(std::vector<history_entry> const& records, std::size_t width, bool coloured) {
    if (records.empty()) return {};
    auto first = records.front().at;
    auto last = first;
    for (auto const& one : records) {
        auto const longest = std::max(one.waited, one.held);
        first = std::min(first, one.at - std::chrono::duration_cast<time_point::duration>(longest));
        last = std::max(last, one.at);
    }
    auto const all = spans_of(records, last);
    std::size_t names = 5;
    for (auto const& [owner, lane] : all) names = std::max(names, width_of(printable(owner)));
    names = std::min(names, std::max<std::size_t>(width / 3, 12));
    auto const columns = width > names + 12 ? width - names - 2 : 10;
    auto const whole = std::chrono::duration<double>(last - first).count();
    auto const per_column = std::max(whole, 1e-6) / static_cast<double>(columns);

    std::string text;
    for (auto const& [owner, lane] : all) {
        auto const name = cut_to(printable(owner), names);
        text += name + std::string(names - width_of(name) + 2, ' ') + colour(draw(lane, first, per_column, columns), coloured) + "\n";
    }
    auto const begin = show_time(first);
    auto const end = show_time(last);
    auto const gap = columns > begin.size() + end.size() ? columns - begin.size() - end.size() : 1;
    text += std::string(names + 2, ' ') + begin + std::string(gap, ' ') + end + "\n";
    return text + fmt::format("# held  - waiting  ! lost   {} in all\n", show(std::chrono::duration_cast<std::chrono::microseconds>(last - first)));
}

}  // namespace lockstep::cli
