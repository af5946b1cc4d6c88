// Glob patterns: the first line is the pattern, the rest a text. Whatever they are:
//   - a quoted text fits itself and nothing else;
//   - a pattern fits what the server's own algorithm says that it fits (written here as it is there, recursive and slow, for short ones).

#include "messaging/glob.hpp"

#include "support/fuzz.hpp"

#include <utility>

namespace {

using namespace lockstep;
using fuzz::require;

/// stringmatchlen of Redis (util.c).
bool server_fits(std::string_view pattern, std::string_view text) {
    while (!pattern.empty() && !text.empty()) {
        switch (pattern.front()) {
            case '*':
                while (pattern.size() > 1 && pattern[1] == '*') pattern.remove_prefix(1);
                if (pattern.size() == 1) return true;
                for (; !text.empty(); text.remove_prefix(1)) {
                    if (server_fits(pattern.substr(1), text)) return true;
                }
                return false;
            case '?': break;
            case '[': {
                pattern.remove_prefix(1);
                bool const negated = !pattern.empty() && pattern.front() == '^';
                if (negated) pattern.remove_prefix(1);
                bool found = false;
                for (;;) {
                    if (pattern.size() >= 2 && pattern.front() == '\\') {
                        pattern.remove_prefix(1);
                        found = found || pattern.front() == text.front();
                    } else if (pattern.empty() || pattern.front() == ']') {
                        break;
                    } else if (pattern.size() >= 3 && pattern[1] == '-') {
                        auto low = pattern[0];
                        auto high = pattern[2];
                        if (low > high) std::swap(low, high);
                        found = found || (text.front() >= low && text.front() <= high);
                        pattern.remove_prefix(2);
                    } else {
                        found = found || pattern.front() == text.front();
                    }
                    pattern.remove_prefix(1);
                }
                if (found == negated) return false;
                if (pattern.empty()) {  // not closed
                    text.remove_prefix(1);
                    return text.empty();
                }
                break;
            }
            case '\\':
                if (pattern.size() >= 2) pattern.remove_prefix(1);
                [[fallthrough]];
            default:
                if (pattern.front() != text.front()) return false;
        }
        text.remove_prefix(1);
        pattern.remove_prefix(1);
        if (text.empty()) {
            while (!pattern.empty() && pattern.front() == '*') pattern.remove_prefix(1);
        }
    }
    return pattern.empty() && text.empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::exact_copy const copy{fuzz::text_of(data, size)};
    auto text = copy.view();
    auto const pattern = fuzz::take_line(text);
    bool const fits = detail::fits_glob(pattern, text);
    require(detail::fits_glob(detail::quoted_glob(text), text), "a quoted text fits itself", text);
    require(detail::fits_glob(detail::quoted_glob(pattern), text) == (pattern == text), "a quoted text fits nothing else", text);
    if (pattern.size() <= 16 && text.size() <= 16) require(fits == (server_fits(pattern, text) || (text.empty() && pattern.find_first_not_of('*') == std::string_view::npos)), "fits as at the server", copy.view());
    return 0;
}
