#include "messaging/message_counts.hpp"

#include "core/core.hpp"

#include <lockstep/error.hpp>

#include <functional>
#include <string>

namespace lockstep::detail {
namespace {

struct kept_counts final : core::extension {
    void close(std::function<void()> done) noexcept override { done(); }
    std::shared_ptr<message_counts> const counts = std::make_shared<message_counts>();
};

}  // namespace

std::shared_ptr<message_counts> message_counts::of(core& owner) {
    try {
        return static_cast<kept_counts&>(owner.extend("message_counts", [](core&) { return std::make_unique<kept_counts>(); })).counts;
    } catch (cancelled_error const&) {
        return std::make_shared<message_counts>();
    }
}

}  // namespace lockstep::detail
