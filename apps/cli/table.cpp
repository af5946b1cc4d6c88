#include "cli/table.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::cli {
namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t least = 8;  // a column that gives keeps so much

void narrow(std::vector<std::size_t>& widths, std::vector<column> const& columns, std::size_t width) {
    auto const all = [&] { return std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1)); };
    while (all() > width) {
        std::size_t* widest = nullptr;
        for (std::size_t i = 0; i != widths.size(); ++i) {
            if (columns[i].gives && widths[i] > least && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
        }
        if (widest == nullptr) return;
        --*widest;
    }
}

}  // namespace

std::string table::text(bool coloured, std::size_t width) const {
    std::vector<std::size_t> widths;
    for (auto const& one : columns_) widths.push_back(width_of(one.title));
    for (auto const& row : rows_) {
        for (std::size_t i = 0; i != row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i].text));
    }
    if (width != 0) narrow(widths, columns_, width);
    std::string lines;
    auto const add = [&](std::size_t at, std::string_view content, style how) {
        auto const shown = cut_to(content, widths[at]);
        std::string const fill(widths[at] - width_of(shown), ' ');
        bool const right = columns_[at].side == align::right;
        if (right) lines += fill;
        lines += paint(shown, how, coloured);
        if (at + 1 == columns_.size()) {
            lines += '\n';
        } else {
            lines += (right ? std::string{} : fill) + std::string(gap, ' ');
        }
    };
    for (std::size_t i = 0; i != columns_.size(); ++i) add(i, columns_[i].title, style::bold);
    for (auto const& row : rows_) {
        for (std::size_t i = 0; i != row.size(); ++i) add(i, row[i].text, row[i].how);
    }
    return lines;
}

}  // namespace lockstep::cli
