#include "forms.hpp"

#include "core/core.hpp"

namespace lockstep::test {

namespace {

struct resumption final : redis::arrival {
    explicit resumption(std::coroutine_handle<> whom) : awaiting{whom} {}
    void arrive() noexcept override {
        auto const whom = awaiting;
        delete this;
        whom.resume();
    }
    void fire() noexcept override {}

    std::coroutine_handle<> awaiting;
};

}  // namespace

bool next_turn::await_suspend(std::coroutine_handle<> awaiting) const {
    auto* const later = new resumption{awaiting};
    if (detail::core_access::of(client_)->home().hand_in(*later)) return true;
    delete later;
    return false;
}

}  // namespace lockstep::test
