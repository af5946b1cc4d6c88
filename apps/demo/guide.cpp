#include "demo/guide.hpp"

#include "demo/worker.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace lockstep::demo {
namespace {

double seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1'000; }

}  // namespace

std::vector<std::string> introduction(std::size_t workers, std::chrono::milliseconds kill_every) {
    return {fmt::format("Distributed locks at work: {} worker processes compete for a lock, a semaphore,", workers),
            fmt::format("a readers-writer lock and a barrier. Every {:g} s one of them is killed (SIGKILL).", seconds(kill_every)),
            fmt::format("Its lease ends within the ttl of {:g} s, and a waiting worker takes over. Each new", seconds(std::chrono::milliseconds{ttl_ms})),
            "holder gets a larger fencing token: late writes of the old one can be refused."};
}

std::vector<std::string> page_lines(web_page page, page_access const& access) {
    if (page == web_page::served) {
        return {fmt::format("Web page: {}", access.link),
                fmt::format("Token, once the link is used or {} min old: {}", access.link_lifetime.count(), access.token)};
    }
    if (page == web_page::declined) return {"Web page: none, because of --no-dashboard"};
    return {"Web page: this program was built without it; `lockstep dashboard` says why"};
}

std::string stop_line(std::chrono::milliseconds length) {
    return fmt::format("It ends by itself after {:g} s; Ctrl-C ends it sooner.", seconds(length));
}

std::string next_steps(std::string_view program, web_page page) {
    std::array<std::pair<std::string_view, std::string_view>, 4> commands{{
        {"run report -- sleep 30", "in two terminals at once"},
        {"ls", "what is held, by whom"},
        {"why report", "why it is not free"},
        {"dashboard", "the same in a browser"},
    }};
    if (page == web_page::not_built) commands.back() = {"top", "the same, live"};
    std::string text = "\nTry it yourself:\n";
    for (auto const& [command, purpose] : commands) text += fmt::format("  {} {:<22}  # {}\n", program, command, purpose);
    return text + "Read on:\n"
                  "  docs/command.md            this command\n"
                  "  docs/leases.md             leases, fencing tokens, and what is promised\n"
                  "  examples/quickstart.cpp    a lock taken, lost and handed over, in C++\n";
}

}  // namespace lockstep::demo
