#pragma once

// What the demo tells before and after its story: what it shows, where its web page is, how to stop it, and what to try next.

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::demo {

enum class web_page {
    served,
    declined,   ///< --no-dashboard
    not_built,  ///< this program was built without it
};

/// Lines of 80 columns at most.
std::vector<std::string> introduction(std::size_t workers, std::chrono::milliseconds kill_every);
/// How to get into the web page.
struct page_access {
    std::string link{};                     ///< logs in once; empty: there is no page
    std::string token{};                    ///< logs in always
    std::chrono::minutes link_lifetime{0};
};
/// Where the web page is, or why there is none.
std::vector<std::string> page_lines(web_page page, page_access const& access);
std::string stop_line(std::chrono::milliseconds length);

/// Commands that can be pasted; `program` is how this one was called.
std::string next_steps(std::string_view program, web_page page);

}  // namespace lockstep::demo
