#include "support/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace lockstep::bench {
namespace {

std::string number(double value) {
    if (std::abs(value) >= 10'000) return fmt::format("{:.0f}", value);
    return fmt::format("{:.{}f}", value, std::abs(value) >= 100 ? 1 : 3);
}

std::string or_dash(std::optional<double> value) { return value ? number(*value) : "-"; }

std::string bar_text(row const& one) {
    switch (one.kind) {
        case bar_kind::none: return "-";
        case bar_kind::ratio_at_least: return fmt::format("ratio >= {}", one.bar);
        case bar_kind::ratio_at_most: return fmt::format("ratio <= {}", one.bar);
        case bar_kind::value_at_least: return fmt::format(">= {} {}", one.bar, one.unit);
        case bar_kind::value_at_most: return fmt::format("<= {} {}", one.bar, one.unit);
    }
    return {};
}

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (char const c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result + '"';
}

std::string json_number(std::optional<double> value) {
    return value && std::isfinite(*value) ? fmt::format("{:.6g}", *value) : "null";
}

}  // namespace

bool row::ok() const noexcept {
    switch (kind) {
        case bar_kind::none: return true;
        case bar_kind::ratio_at_least: return ratio && ratio->median >= bar;
        case bar_kind::ratio_at_most: return ratio && ratio->median <= bar;
        case bar_kind::value_at_least: return value >= bar;
        case bar_kind::value_at_most: return value <= bar;
    }
    return false;
}

void report::print(settings const& chosen) const {
    if (empty()) throw std::runtime_error("no case has \"" + chosen.only + "\" in its name");
    chosen.json ? print_json() : print_table();
}

void report::print_table() const {
    std::size_t width = 4;
    for (auto const& one : rows_) width = std::max(width, one.name.size());
    fmt::print("{:<{}}  {:>10}  {:>10}  {:<12}  {:>6}  {:>15}  {:<16}  {}\n", "case", width, "ours", "baseline", "unit",
               "ratio", "range", "bar", "ok");
    for (auto const& one : rows_) {
        auto const ratio = one.ratio ? fmt::format("{:.3f}", one.ratio->median) : "-";
        auto const range = one.ratio ? fmt::format("{:.3f} .. {:.3f}", one.ratio->low, one.ratio->high) : "-";
        std::string const verdict = one.kind == bar_kind::none ? "" : one.ok() ? "yes" : "NO";
        fmt::print("{:<{}}  {:>10}  {:>10}  {:<12}  {:>6}  {:>15}  {:<16}  {}\n", one.name, width, number(one.value),
                   or_dash(one.baseline), one.unit, ratio, range, bar_text(one), one.note.empty() ? verdict : one.note);
    }
    std::fflush(stdout);
}

void report::print_json() const {
    fmt::print("[");
    char const* separator = "\n";
    for (auto const& one : rows_) {
        auto const ratio = one.ratio ? std::optional{one.ratio->median} : std::nullopt;
        auto const bar = one.kind == bar_kind::none ? std::nullopt : std::optional{one.bar};
        fmt::print(
            R"({}  {{"bench": {}, "case": {}, "value": {}, "unit": {}, "baseline": {}, "ratio": {}, "bar": {}, "ok": {})",
            separator, quoted(bench_), quoted(one.name), json_number(one.value), quoted(one.unit),
            json_number(one.baseline), json_number(ratio), json_number(bar), one.ok());
        if (!one.note.empty()) fmt::print(R"(, "note": {})", quoted(one.note));
        if (one.ratio) fmt::print(R"(, "range": [{}, {}])", json_number(one.ratio->low), json_number(one.ratio->high));
        fmt::print("}}");
        separator = ",\n";
    }
    fmt::print("\n]\n");
    std::fflush(stdout);
}

}  // namespace lockstep::bench
