#pragma once

/// `watching`: a handler that is told of changes. Ends when it goes: when `stop` returns the handler does not run and will not run again,
/// unless it was called from the handler itself.

#include <memory>

namespace lockstep {

namespace detail {
class watch_state;
}

class [[nodiscard]] watching {
public:
    watching() noexcept = default;
    explicit watching(std::shared_ptr<detail::watch_state> state) noexcept;
    watching(watching&&) noexcept = default;
    watching& operator=(watching&& other) noexcept;
    ~watching();

    void stop() noexcept;
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    std::shared_ptr<detail::watch_state> state_;
};

}  // namespace lockstep
