// The resource that the locks guard, outside Redis: lets nobody in who comes with a smaller fence than somebody before, and writes down
// what the workers report.
#pragma once

#include "support/history.hpp"
#include "support/scratch_dir.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::chaos {

/// Answers and writes on a thread of its own. All functions from any thread.
class referee {
public:
    /// Writes to the file as it goes.
    explicit referee(std::string const& history_file);
    ~referee();
    referee(referee const&) = delete;
    referee& operator=(referee const&) = delete;

    /// Where witness connects to.
    [[nodiscard]] std::string socket_path() const { return directory_.file("referee"); }
    void note(event what);
    /// Who last said that it was granted this; "": nobody yet.
    [[nodiscard]] std::string last_granted(std::string const& name);
    /// In order of time; ends when all workers have closed their lines.
    [[nodiscard]] history finish();

private:
    void run();
    void hear(int from);
    void write(event what);

    test::scratch_dir directory_;
    int listening_ = -1;
    int ending_ = -1;  // an eventfd
    std::vector<int> lines_;
    std::map<std::string, std::uint64_t> highest_;
    std::mutex mutex_;
    std::map<std::string, std::string> granted_;  // name, who
    history all_;
    std::FILE* file_ = nullptr;
    std::thread thread_;
};

}  // namespace lockstep::chaos
