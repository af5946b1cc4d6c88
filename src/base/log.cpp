#include <lockstep/log.hpp>

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

namespace lockstep {
namespace {

void to_standard_error(log_level level, std::string_view message) {
    if (level < log_level::warning) return;
    char const* const word = level == log_level::warning ? "warning" : "error";
    std::fprintf(stderr, "lockstep: %s: %.*s\n", word, static_cast<int>(message.size()), message.data());
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
