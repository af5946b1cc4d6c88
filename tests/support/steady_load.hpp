// Coroutines that use a client without a break while a test disturbs its servers, and check every answer.
//
//     steady_load load{client};
//     nodes.failover(0);
//     EXPECT_TRUE(load.wait_for_fresh_round());
//     auto const seen = load.finish();
//     EXPECT_THAT(seen.wrong, IsEmpty());
//
// Each worker goes through rounds. Requests that may run twice: an ECHO of a token never used before, a SET and a GET of
// its own key, a script on that key. Requests that must not: an INCR, and a transaction of two. What they left on the
// servers is compared with what they were told.
#pragma once

#include <lockstep/client.hpp>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::test {

struct load_options {
    std::size_t workers = 64;
    std::chrono::milliseconds patience{40'000};  // of each request: longer than any disturbance
    std::chrono::milliseconds pace{10};          // a worker's next round begins when this has passed since all had one
    bool durable = true;                         // no acknowledged write is lost: neither by kill nor by a late replica
};

struct load_report {
    std::size_t answered = 0;
    std::vector<std::string> wrong;    // answers that are another's, and counters that contradict what was answered
    std::vector<std::string> failed;   // requests that may run twice and yet failed
    std::map<errc, std::size_t> once;  // how those that must not ended, other than well
    bool ended = false;                // no request hangs
};

// One thread at a time.
class steady_load {
public:
    explicit steady_load(client& through, load_options options = {});
    ~steady_load();

    // True when every worker has been through a whole round that began after this call.
    [[nodiscard]] bool wait_for_fresh_round(std::chrono::milliseconds timeout = std::chrono::seconds{40});
    // Lets the rounds under way end, then looks at the counters.
    load_report finish();

private:
    class crew;
    std::shared_ptr<crew> crew_;
};

}  // namespace lockstep::test
