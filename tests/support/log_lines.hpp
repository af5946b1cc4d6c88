// Everything Lockstep logs while this object lives, instead of on standard error.
#pragma once

#include <lockstep/log.hpp>

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::test {

// One at a time: the hook is the process's. Clients that log must be gone before it is. Any thread.
class log_lines {
public:
    log_lines()
        : before_{set_log_hook([this](log_level level, std::string_view text) {
              std::lock_guard const guard{mutex_};
              lines_.emplace_back(level, text);
          })} {}
    ~log_lines() { set_log_hook(std::move(before_)); }
    log_lines(log_lines const&) = delete;
    log_lines& operator=(log_lines const&) = delete;

    [[nodiscard]] std::size_t count(std::string_view part) const {
        std::lock_guard const guard{mutex_};
        auto const has = [part](auto const& line) { return line.second.find(part) != std::string::npos; };
        return static_cast<std::size_t>(std::count_if(lines_.begin(), lines_.end(), has));
    }
    [[nodiscard]] std::size_t count(log_level level, std::string_view part) const {
        std::lock_guard const guard{mutex_};
        auto const has = [=](auto const& line) {
            return line.first == level && line.second.find(part) != std::string::npos;
        };
        return static_cast<std::size_t>(std::count_if(lines_.begin(), lines_.end(), has));
    }
    [[nodiscard]] std::string text() const {
        std::lock_guard const guard{mutex_};
        std::string all;
        for (auto const& line : lines_) all += line.second + "\n";
        return all;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::pair<log_level, std::string>> lines_;
    log_hook before_;
};

}  // namespace lockstep::test
