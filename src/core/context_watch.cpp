#include "core/context_watch.hpp"

#include "core/core.hpp"

#include <utility>

namespace lockstep::detail {

boost::asio::execution_context::id context_watch::id;

void context_watch::add(std::weak_ptr<core> client) {
    std::lock_guard const guard{mutex_};
    std::erase_if(clients_, [](auto const& one) { return one.expired(); });
    clients_.push_back(std::move(client));
}

void context_watch::shutdown() {
    std::unique_lock guard{mutex_};
    auto const clients = std::exchange(clients_, {});
    guard.unlock();
    for (auto const& one : clients) {
        if (auto const alive = one.lock()) alive->close();
    }
}

}  // namespace lockstep::detail
