#pragma once

// Steps over one message that is too large to be kept, as its bytes come, so that the connection can be used for those behind it. Keeps nothing of it.
//
//     pass.skip(unread) -> how many of these bytes are used up; once done(), the next byte begins the next message

#include "resp/scan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep::resp {

class skipper {
public:
    /// The bytes begin where the last call ended; at first with the message. What is left over has to be given again, with more behind it.
    std::size_t skip(std::string_view bytes) noexcept {
        std::size_t pos = 0;
        while (!failed_ && !done()) {
            if (text_ != 0) {
                auto const here = static_cast<std::size_t>(std::min<std::uint64_t>(text_, bytes.size() - pos));
                pos += here;
                text_ -= here;
                if (text_ != 0) break;
                continue;
            }
            auto const end = bytes.find('\n', pos);
            if (end == std::string_view::npos) {
                failed_ = bytes.size() - pos > max_line;
                break;
            }
            value(bytes.substr(pos, end + 1 - pos));
            pos = end + 1;
        }
        return pos;
    }

    bool done() const noexcept { return values_ == 0 && text_ == 0; }
    /// It is not RESP, or of a kind that no server sends: nobody can tell where the next message begins.
    bool failed() const noexcept { return failed_; }
    /// At least so many bytes are missing.
    std::size_t bytes_missing() const noexcept { return static_cast<std::size_t>(std::min<std::uint64_t>(text_, std::size_t{1} << 20)); }

private:
    static constexpr std::size_t max_line = std::size_t{64} << 10;
    static constexpr std::int64_t max_count = std::int64_t{1} << 40;

    void value(std::string_view line) noexcept {
        --values_;
        switch (line.front()) {
            case '+': case '-': case ':': case '_': case '#': case ',': case '(': return;
            case '$': case '!': case '=': case '*': case '~': case '%': case '|': break;
            default: failed_ = true; return;
        }
        std::size_t pos = 1;
        std::int64_t count = 0;
        if (scan_integer(line, pos, count) != scanned::whole || count < -1 || count > max_count) {
            failed_ = true;
            return;
        }
        if (count == -1) return;  // null
        auto const size = static_cast<std::uint64_t>(count);
        switch (line.front()) {
            case '*': case '~': values_ += size; break;
            case '%': values_ += 2 * size; break;
            case '|': values_ += 2 * size + 1; break;  // an attribute, and the value that it belongs to
            default: text_ = size + 2;
        }
    }

    std::uint64_t values_ = 1;  // to come
    std::uint64_t text_ = 0;    // bytes to come of a text, with the line end behind it
    bool failed_ = false;
};

}  // namespace lockstep::resp
