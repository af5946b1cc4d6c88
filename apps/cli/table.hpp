#pragma once

// Rows in columns: as wide as they need to be, cut to the terminal's width.

#include "cli/terminal.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::cli {

enum class align { left, right };

struct column {
    std::string title;
    align side = align::left;
    bool gives = false;  ///< shortened first where a line is too long
};

struct cell {
    std::string text;
    style how = style::plain;
    cell(std::string shown, style in = style::plain) : text(printable(shown)), how(in) {}
    cell(char const* shown, style in = style::plain) : cell(std::string{shown}, in) {}
};

class table {
public:
    explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}

    void add(std::vector<cell> row) { rows_.push_back(std::move(row)); }
    bool empty() const noexcept { return rows_.empty(); }
    std::size_t size() const noexcept { return rows_.size(); }

    /// Lines with their ends. `width` 0: as wide as it is.
    std::string text(bool coloured, std::size_t width = 0) const;

private:
    std::vector<column> columns_;
    std::vector<std::vector<cell>> rows_;
};

}  // namespace lockstep::cli
