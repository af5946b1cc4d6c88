#include <lockstep/log.hpp>

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

/// One line, whatever a server put into it: line ends would forge further ones, and a terminal obeys escapes (also the C1 controls, C2 80 to C2 9F in UTF-8).
std::string one_line(std::string_view message) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string line;
    line.reserve(message.size());
    for (std::size_t i = 0; i != message.size(); ++i) {
        auto const byte = static_cast<unsigned char>(message[i]);
        bool const is_c1 = byte >= 0x80 && byte < 0xA0 && i != 0 && message[i - 1] == '\xC2';
        if (byte >= ' ' && byte != 0x7F && !is_c1) {
            line += message[i];
            continue;
        }
        if (is_c1) line.pop_back();  // its first byte
        line += "\\x";
        line += digits[byte >> 4U];
        line += digits[byte & 15U];
    }
    return line;
}

void to_standard_error(log_level level, std::string_view message) {
    if (level < log_level::warning) return;
    char const* const word = level == log_level::warning ? "warning" : "error";
    std::fprintf(stderr, "lockstep: %s: %s\n", word, one_line(message).c_str());
}

struct state {
    std::mutex mutex;
    std::shared_ptr<log_hook const> hook = std::make_shared<log_hook const>(to_standard_error);
};

// Never destroyed: a client that outlives main() may still log.
state& current() {
    static auto* const instance = new state;
    return *instance;
}

}  // namespace

log_hook set_log_hook(log_hook hook) {
    auto next = std::make_shared<log_hook const>(std::move(hook));
    auto& now = current();
    std::lock_guard const guard{now.mutex};
    return *std::exchange(now.hook, std::move(next));
}

void log(log_level level, std::string_view message) noexcept try {
    auto& now = current();
    std::shared_ptr<log_hook const> hook;
    {
        std::lock_guard const guard{now.mutex};
        hook = now.hook;
    }
    if (*hook) (*hook)(level, message);
} catch (...) {  // logging must never be the reason something fails
}

}  // namespace lockstep
