// The resource that the locks guard, outside Redis: lets nobody in who comes with a smaller fence than somebody before, and writes down
// what the workers report. Leases that are detached pass through its hands.
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
    /// Who last said that it has this, or waits for others there; "": nobody yet.
    [[nodiscard]] std::string last_user(std::string const& name);
    /// In order of time; ends when all workers have closed their lines.
    [[nodiscard]] history finish();

private:
    void run();
    void hear(int from);
    void write(event what);
    /// Readers come in any order, but not after a writer with a larger fence.
    bool lets_in(event const& who);
    /// What somebody detached: the latest, to one who wants it, and some of them to another one too, who must not get it.
    std::string hand_out();

    struct fences {
        std::uint64_t of_writers = 0, of_all = 0;
    };
    test::scratch_dir directory_;
    int listening_ = -1;
    int ending_ = -1;  // an eventfd
    std::vector<int> lines_;
    std::map<std::string, fences> highest_;
    std::vector<event> detached_;
    std::mutex mutex_;
    std::map<std::string, std::string> users_;  // name, who
    history all_;
    std::FILE* file_ = nullptr;
    std::thread thread_;
};

}  // namespace lockstep::chaos
