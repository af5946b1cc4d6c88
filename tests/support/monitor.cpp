#include "monitor.hpp"

namespace lockstep::test {

monitor::monitor(redis_server& server) : server_{server}, connection_{server.connect()} {
    connection_.must({"MONITOR"});
}

void monitor::read_up_to_now() {
    auto const mark = "monitored-" + std::to_string(++marks_);
    server_.must({"ECHO", mark});
    for (;;) {
        auto line = connection_.read().text;
        bool const last = line.find(mark) != std::string::npos;
        if (last) return;
        lines_.push_back(std::move(line));
    }
}

std::vector<std::chrono::microseconds> monitor::times_of(std::string_view word, std::string_view other) {
    read_up_to_now();
    std::vector<std::chrono::microseconds> found;
    for (auto const& line : lines_) {  // <seconds>.<six digits> [0 <from>] "EVALSHA" "..." ...
        if (line.find(word) == std::string::npos || line.find(other) == std::string::npos) continue;
        if (line.find(" lua] ") != std::string::npos) continue;
        auto const dot = line.find('.');
        found.emplace_back(std::stoll(line.substr(0, dot)) * 1'000'000 + std::stoll(line.substr(dot + 1, 6)));
    }
    return found;
}

}  // namespace lockstep::test
