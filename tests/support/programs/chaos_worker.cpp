// One of the processes that a chaos run torments: uses the primitives at random, asks the referee for the guarded resource, and
// reports all it does (support/history.hpp).
//   chaos_worker '<url>[ <url>...]' <referee's socket> <who> <seed> <threads>
// Several URLs are independent nodes; workers take turns in having a client of their own for each.
// The first line of its input ends its work: it says "idle" then, and the client lives on. The end of its input ends it, in order.
//
// To add a primitive: a function of support/chaos_holder.cpp or one of its neighbours, called by work().
#include "support/chaos_actor.hpp"
#include "support/chaos_candidate.hpp"
#include "support/chaos_chronicler.hpp"
#include "support/chaos_courier.hpp"
#include "support/chaos_employer.hpp"
#include "support/chaos_guest.hpp"
#include "support/chaos_holder.hpp"
#include "support/chaos_meeter.hpp"
#include "support/chaos_quorum_holder.hpp"
#include "support/chaos_staff.hpp"

#include <lockstep/client.hpp>
#include <lockstep/log.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace lockstep::chaos;

/// Until `stop`.
void keep_doing(actor& self, std::atomic<bool> const& stop, std::function<void()> const& something) {
    while (!stop) {
        something();
        std::this_thread::sleep_for(self.up_to(8));
    }
}

void work(actor self, lockstep::client& by, std::atomic<bool> const& stop) {
    holder holds{self, by};
    meeter meetings{self, by};
    candidate candidacies{self, by};
    courier errands{self, by};
    chronicler entries{self, by};
    guest visits{self, by};
    employer orders{self, by};
    keep_doing(self, stop, [&] {
        auto const kind = self.below(104);
        if (kind < 9) return holds.use_mutex();
        if (kind < 15) return holds.use_semaphore();
        if (kind < 21) return holds.use_shared();
        if (kind < 26) return meetings.set_event();
        if (kind < 32) return meetings.wait_for_event();
        if (kind < 37) return meetings.use_barrier();
        if (kind < 43) return candidacies.use_election();
        if (kind < 53) return errands.enqueue();
        if (kind < 64) return errands.take();
        if (kind < 69) return entries.add();
        if (kind < 75) return visits.ask_for_admission();
        if (kind < 83) return orders.schedule();
        if (kind < 91) return orders.change();
        if (kind < 96) return errands.push();
        if (kind < 101) return errands.take_or_steal();
        holds.adopt();
    });
}

void work(actor self, lockstep::redlock_nodes const& nodes, std::atomic<bool> const& stop) {
    quorum_holder holds{self, nodes};
    candidate candidacies{self, nodes};
    keep_doing(self, stop, [&] { return self.one_in(3) ? candidacies.use_election() : holds.use_redlock(); });
}

std::unique_ptr<staff> employ(lockstep::client& by, std::string const& referee, std::string const& who, std::uint64_t seed) {
    return std::make_unique<staff>(by, referee, who, seed);
}
std::unique_ptr<staff> employ(lockstep::redlock_nodes const&, std::string const&, std::string const&, std::uint64_t) { return nullptr; }

std::vector<std::string> parts_of(std::string const& list) {
    std::vector<std::string> found;
    std::istringstream in{list};
    for (std::string one; std::getline(in, one, ' ');) found.push_back(one);
    return found;
}

/// Works with what `by` is until it is told to rest.
template <class By>
bool work_until_told(By& by, std::string const& referee, std::string const& who, std::uint64_t seed, unsigned threads) {
    std::atomic<bool> stop{false};
    std::atomic<bool> failed{false};
    auto employed = employ(by, referee, who, seed + threads);
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; ++i) {
        all.emplace_back([&, i] {
            try {
                work(actor{referee, who + "." + std::to_string(i), seed + i}, by, stop);
            } catch (std::exception const& failure) {
                std::cerr << who << ": " << failure.what() << std::endl;
                failed = true;
            }
        });
    }
    std::string line;
    std::getline(std::cin, line);
    stop = true;
    for (auto& one : all) one.join();
    employed.reset();
    std::cout << "idle" << std::endl;
    std::getline(std::cin, line);
    return !failed;
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 6) return 2;
    lockstep::set_log_hook([](lockstep::log_level, std::string_view) {});  // leases are lost here all the time
    auto const urls = parts_of(arguments[1]);
    std::string const who = arguments[3];
    auto const seed = std::stoull(arguments[4]);
    auto const threads = static_cast<unsigned>(std::stoul(arguments[5]));
    if (urls.size() > 1 && (who.at(1) - '0') % 2 != 0) {
        std::vector<std::unique_ptr<lockstep::client>> clients;
        std::vector<lockstep::client*> pointers;
        for (auto const& url : urls) {
            clients.push_back(std::make_unique<lockstep::client>(lockstep::client_options{.url = url, .name = who}));
            pointers.push_back(clients.back().get());
        }
        lockstep::redlock_nodes nodes{std::span<lockstep::client* const>{pointers}};
        return work_until_told(nodes, arguments[2], who, seed, threads) ? 0 : 1;
    }
    if (urls.size() > 1) {
        lockstep::redlock_nodes nodes{urls};
        return work_until_told(nodes, arguments[2], who, seed, threads) ? 0 : 1;
    }
    lockstep::client by{{.url = urls.front(), .name = who}};
    bool const well = work_until_told(by, arguments[2], who, seed, threads);
    by.close();
    return well ? 0 : 1;
} catch (std::exception const& failure) {
    std::cerr << "failed: " << failure.what() << std::endl;
    return 1;
}
