#include "messaging/glob.hpp"

#include <utility>

namespace lockstep::detail {
namespace {

/// Does one character fit what stands at the begin of the pattern (no `*`)? Takes that away from the pattern.
bool takes(std::string_view& pattern, char c) noexcept {
    auto const next = [&pattern] {
        char const first = pattern.front();
        pattern.remove_prefix(1);
        return first;
    };
    char const kind = next();
    if (kind == '?') return true;
    if (kind == '\\' && !pattern.empty()) return next() == c;
    if (kind != '[') return kind == c;
    bool const negated = !pattern.empty() && pattern.front() == '^';
    if (negated) next();
    bool found = false;
    while (!pattern.empty() && pattern.front() != ']') {
        bool const escaped = pattern.front() == '\\' && pattern.size() > 1;
        if (escaped) next();
        char low = next();
        char high = low;
        if (!escaped && pattern.size() > 1 && pattern.front() == '-') {  // [a-] too is a range, to ]
            next();
            high = next();
            if (low > high) std::swap(low, high);
        }
        found = found || (low <= c && c <= high);
    }
    if (!pattern.empty()) next();  // ]
    return found != negated;
}

}  // namespace

std::string quoted_glob(std::string_view text) {
    std::string pattern;
    for (char const c : text) {
        if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\' || c == '^') pattern += '\\';
        pattern += c;
    }
    return pattern;
}

bool fits_glob(std::string_view pattern, std::string_view text) noexcept {
    // Where to go back to when it does not fit: behind the last star, which then takes one character more.
    std::string_view after_star;
    std::string_view text_at_star;
    bool star = false;
    while (!text.empty() || !pattern.empty()) {
        if (!pattern.empty() && pattern.front() == '*') {
            pattern.remove_prefix(1);
            after_star = pattern;
            text_at_star = text;
            star = true;
            continue;
        }
        if (!pattern.empty() && !text.empty() && takes(pattern, text.front())) {
            text.remove_prefix(1);
            continue;
        }
        if (!star || text_at_star.empty()) return false;
        text_at_star.remove_prefix(1);
        text = text_at_star;
        pattern = after_star;
    }
    return true;
}

}  // namespace lockstep::detail
