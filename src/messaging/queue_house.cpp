#include "messaging/queue_house.hpp"

#include "messaging/depot.hpp"

#include <utility>

namespace lockstep::detail {

queue_house& queue_house::of(core& owner) {
    return static_cast<queue_house&>(owner.extend("queues", [](core&) { return std::make_unique<queue_house>(); }));
}

void queue_house::add(std::shared_ptr<depot> const& one) {
    std::lock_guard const guard{mutex_};
    if (depots_.size() == depots_.capacity()) std::erase_if(depots_, [](auto const& known) { return known.expired(); });
    depots_.push_back(one);
}

void queue_house::close(std::function<void()> done) noexcept {
    std::vector<std::shared_ptr<depot>> alive;
    {
        std::lock_guard const guard{mutex_};
        for (auto const& known : depots_) {
            if (auto found = known.lock()) alive.push_back(std::move(found));
        }
    }
    auto const open = std::make_shared<std::size_t>(alive.size() + 1);
    auto const one_less = [open, done = std::move(done)] {
        if (--*open == 0) done();
    };
    for (auto const& one : alive) one->close(one_less);
    one_less();
}

}  // namespace lockstep::detail
