#pragma once

// What may be shown where: colour and progress on a terminal only, and nothing from outside that a terminal would obey.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cli {

enum class style { plain, bold, dim, red, green, yellow, blue, cyan };

/// Whether a descriptor is a terminal that takes colours (NO_COLOR and TERM=dumb say it does not).
bool has_colour(int descriptor);

/// The text in that style if `coloured`, else as it is.
std::string paint(std::string_view text, style how, bool coloured);

struct terminal_size {
    std::size_t columns = 80, rows = 24;
};
/// Of standard output; COLUMNS and LINES where it is no terminal.
terminal_size size_of_terminal();

/// Control characters and what is not UTF-8 become \xNN: names come from anybody, and a terminal obeys escape sequences.
std::string printable(std::string_view text);
/// The same for a text of several lines: line ends and tabs stay.
std::string printable_lines(std::string_view text);
/// JSON with such characters as \uNNNN, which means the same to who reads JSON and nothing to a terminal.
std::string printable_json(std::string_view json);

/// How many columns a printable UTF-8 text takes, wide characters counted as two.
std::size_t width_of(std::string_view text);

/// The text, cut to so many columns with an ellipsis where it is longer.
std::string cut_to(std::string_view text, std::size_t columns);

}  // namespace lockstep::cli
