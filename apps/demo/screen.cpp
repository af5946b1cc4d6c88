#include "demo/screen.hpp"

#include "cli/terminal.hpp"
#include "demo/worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace lockstep::demo {
namespace {

using cli::paint;
using cli::style;

/// So many of so many, as a bar.
std::string bar(double part, std::size_t width) {
    auto const full = static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(width) + 0.5);
    std::string out;
    for (std::size_t i = 0; i < width; ++i) out += i < full ? "█" : "░";
    return out;
}

std::string holders_of(story::name_state const& where) {
    std::string out;
    for (auto const& [id, one] : where.holds) out += fmt::format("{}{}{}", out.empty() ? "" : ", ", one.worker, one.use == "writer" ? " (writes)" : "");
    return out.empty() ? "-" : out;
}

std::string waiting_of(story::name_state const& where) {
    std::string out;
    for (auto const& [worker, n] : where.waiting) out += fmt::format("{}{}", out.empty() ? "" : ", ", worker);
    return out.empty() ? "-" : out;
}

}  // namespace

std::string draw(story const& what, fleet const& who, scene const& how, story::clock::time_point now) {
    std::vector<std::string> lines;
    auto const add = [&](std::string const& plain, style in = style::plain) {
        lines.push_back(paint(cli::cut_to(plain, how.columns), in, how.coloured));
    };
    auto const part = how.length.count() == 0 ? 0 : static_cast<double>(how.elapsed.count()) / static_cast<double>(how.length.count());
    auto const running = std::count_if(who.members().begin(), who.members().end(), [](auto const& one) { return one.pid > 0; });
    add(fmt::format("lockstep demo   {} {:>3} s of {} s   Ctrl-C ends it", bar(part, 20), how.elapsed.count() / 1'000, how.length.count() / 1'000), style::bold);
    if (how.rows >= 20) {
        for (auto const& line : how.introduction) add(line);
    }
    for (auto const& line : how.page) add(line, style::cyan);
    add("");
    add(fmt::format("{} of {} workers running   killed: {}   takeovers: {}   violations: {}", running, who.members().size(), what.kills(),
                    what.takeovers().size(), what.violations()),
        what.violations() == 0 ? style::dim : style::red);
    add(fmt::format("{:<11}{:<11}{:>8}  {:<15}{:<15}{}", "NAME", "KIND", "HOLDS", "HELD BY", "WAITING", "FENCING TOKEN"), style::dim);
    for (auto const& [name, where] : what.names()) {
        auto const count = where.kind == "barrier" ? where.meetings : where.acquisitions;
        add(fmt::format("{:<11}{:<11}{:>8}  {:<15}{:<15}{}", name, where.kind, count, holders_of(where), waiting_of(where),
                        where.largest_fence == 0 ? std::string{"-"} : std::to_string(where.largest_fence)),
            where.holds.empty() && where.kind != "barrier" ? style::yellow : style::plain);
    }
    add("");
    auto const left = how.rows > lines.size() + 2 ? how.rows - lines.size() - 2 : 0;
    auto const& events = what.events();
    for (auto at = events.size() - std::min(events.size(), left); at < events.size(); ++at) {
        auto const ago = std::chrono::duration_cast<std::chrono::milliseconds>(now - events[at].at);
        add(fmt::format("{:>6.1f} s ago  {}", static_cast<double>(ago.count()) / 1'000, events[at].text), events[at].is_bad ? style::red : style::green);
    }
    std::string out;
    for (auto const& line : lines) out += line + "\x1b[K\n";
    return out;
}

}  // namespace lockstep::demo
