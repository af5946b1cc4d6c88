// What a server is asked, and when by its own clock, from MONITOR.
//
//     monitor watch{server};
//     ...
//     EXPECT_EQ(watch.times_of(scripts::lock_acquire.sha1, "lockstep:{name}:lock").size(), 3U);
//
// A script counts when it is called by its SHA1: SCRIPT LOAD it first, or the first call comes as EVAL.
#pragma once

#include "raw_client.hpp"
#include "redis_server.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::test {

class monitor {
public:
    explicit monitor(redis_server& server);

    /// When each of the commands that have both words came, since this began to watch; those that came before this call are all there.
    [[nodiscard]] std::vector<std::chrono::microseconds> times_of(std::string_view word, std::string_view other);

private:
    void read_up_to_now();

    redis_server& server_;
    raw_client connection_;
    std::vector<std::string> lines_;
    int marks_ = 0;
};

}  // namespace lockstep::test
