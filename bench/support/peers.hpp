#pragma once

// The peers: lock libraries of Node, run by bench/peers/peer.js. Its packages are installed beside the bench program when they are first
// needed (npm ci, by the lock file). Without Node, npm or a registry there are no peers, and rows say so.

#include "support/stand.hpp"
#include "support/crew.hpp"

#include <chrono>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::bench {

/// A library with the retry delay that suits it best for some job.
struct peer {
    std::string library;
    unsigned delay_ms = 0;
    std::unique_ptr<crew> members;
};

/// Queues and jobs of Node are twice as fast when their code has been compiled.
constexpr std::chrono::milliseconds peer_warm_up{1000};

class peer_kit {
public:
    explicit peer_kit(stand& all) : stand_(all) {}

    /// Tries every library with every delay for a short time: that with the largest rate, or with the smallest wait. Nothing: there
    /// are no peers, and `why()` says why not.
    enum class best_by { rate, wait };
    std::optional<peer> best(job what, std::size_t processes, int core, best_by figure);
    /// One library over these servers, without trying others or delays. Null: there are no peers.
    /// `script`: by which it is run; what it needs is installed beside it.
    std::unique_ptr<crew> start(std::string const& library, std::vector<server*> const& nodes, int core, std::string const& script = "peer.js");
    std::string const& why() const noexcept { return why_; }

private:
    bool install(std::string const& folder = {});

    stand& stand_;
    std::map<std::string, bool> there_;  // by folder
    std::string directory_;
    std::string why_;
};

struct peer_case {
    char const* name;
    void (*work)(stand& all, peer_kit& peers, std::string const& name);
};

/// Runs those of them that are wanted, one after the other, each on an empty server, and prints the report of that name.
void measure_cases(settings const& chosen, std::string const& name, std::initializer_list<peer_case> cases);

}  // namespace lockstep::bench
