#pragma once

// The demo as a picture in the terminal, drawn over the one before.

#include "demo/fleet.hpp"
#include "demo/story.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::demo {

struct scene {
    std::chrono::milliseconds elapsed{0}, length{0};
    std::vector<std::string> introduction;  ///< left out where the terminal has few rows
    std::vector<std::string> page;          ///< where the web page is
    std::size_t columns = 80, rows = 24;
    bool coloured = true;
};

/// Lines with their ends, none wider than the terminal.
std::string draw(story const& what, fleet const& who, scene const& how, story::clock::time_point now);

}  // namespace lockstep::demo
