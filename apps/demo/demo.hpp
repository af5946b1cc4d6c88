#pragma once

// `lockstep demo`: a private server and a small fleet of processes that compete for locks, permits and a barrier. Every few seconds one of
// them is killed, and people see which one takes over, how soon and with which fence. Ends by itself and leaves nothing behind.

#include "demo/guide.hpp"

#include <boost/json/fwd.hpp>

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

namespace lockstep::demo {

struct demo_options {
    std::chrono::milliseconds length{60'000};
    std::chrono::milliseconds kill_every{5'000};
    std::string program;       ///< this one, for the workers
    std::string program_name;  ///< as people call it
    unsigned seed = 0;    ///< of who is killed; 0: chosen
};

/// How it is shown.
struct stage {
    std::function<void(boost::json::object const&)> print_json;  ///< if set, only this
    std::function<void(std::string_view)> print;
    bool on_terminal = false;
    bool coloured = false;
    /// Called with the server's URL when it runs; returns how to get into the dashboard, nothing in a build without it. Not set: it is not wanted.
    std::function<page_access(std::string const&)> open_dashboard;
};

/// True: all went as promised.
bool run_demo(demo_options const& how, stage const& on, std::stop_token stop);

}  // namespace lockstep::demo
