#include "cli/duration.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr double longest_ms = 100.0 * 365 * 24 * 3600 * 1000;

/// How many ms the unit at the front of `text` has, and takes it off. A number without one is in seconds.
std::optional<double> take_unit(std::string_view& text) {
    static constexpr std::array<std::pair<std::string_view, double>, 5> units{
        {{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 24 * 3600e3}}};
    if (text.empty()) return 1e3;
    for (auto const& [word, length] : units) {
        if (!text.starts_with(word)) continue;
        text.remove_prefix(word.size());
        return length;
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
    if (text.empty()) return std::nullopt;
    double sum = 0;
    while (!text.empty()) {
        double number = 0;
        auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
        if (problem != std::errc{} || !std::isfinite(number) || number < 0 || text.front() == '-') return std::nullopt;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        auto const unit = take_unit(text);
        if (!unit) return std::nullopt;
        sum += number * *unit;
    }
    if (sum > longest_ms) return std::nullopt;
    return std::chrono::milliseconds{std::llround(std::ceil(sum - 1e-9))};
}

std::string show(std::chrono::microseconds time) {
    auto const us = time.count();
    if (us < 0) return "-" + show(-time);
    if (us == 0) return "0 s";
    if (us < 10'000) return fmt::format("{:.1f} ms", static_cast<double>(us) / 1e3);
    if (us < 1'000'000) return fmt::format("{} ms", us / 1000);
    if (us < 60'000'000) return fmt::format("{:.1f} s", static_cast<double>(us) / 1e6);
    auto const seconds = us / 1'000'000;
    if (seconds < 3600) return fmt::format("{}m {}s", seconds / 60, seconds % 60);
    if (seconds < 24 * 3600) return fmt::format("{}h {}m", seconds / 3600, seconds / 60 % 60);
    return fmt::format("{}d {}h", seconds / (24 * 3600), seconds / 3600 % 24);
}

}  // namespace lockstep::cli
