// The wall clock of servers started with server_options::clock, in the test's hand.
#pragma once

#include "scratch_dir.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::test {

// Shared by any number of servers; it must outlive them. Any thread.
class clock_file {
public:
    explicit clock_file(std::chrono::microseconds offset = {});
    ~clock_file();
    clock_file(clock_file const&) = delete;
    clock_file& operator=(clock_file const&) = delete;

    // In force for the server's next look at its clock. It caches the time for the length of a command and a cron turn.
    void set_offset(std::chrono::microseconds offset);
    void step(std::chrono::microseconds by);
    [[nodiscard]] std::chrono::microseconds offset() const;

    // From now on it moves by steps only, beginning with a full second: what happens in the test does not depend on how fast it runs.
    void stop();

    [[nodiscard]] std::string path() const { return directory_.file("clock"); }

private:
    scratch_dir directory_;
    std::int64_t* mapped_ = nullptr;
};

}  // namespace lockstep::test
