#include <lockstep/error.hpp>

namespace lockstep {
namespace {

char const* words(errc code) {
    switch (code) {
        case errc::timeout: return "timed out";
        case errc::lease_lost: return "lease lost";
        case errc::leadership_lost: return "leadership lost";
        case errc::not_held: return "not held";
        case errc::invalid_argument: return "invalid argument";
        case errc::count_mismatch: return "count mismatch";
        case errc::unavailable: return "server unavailable";
        case errc::indeterminate: return "outcome unknown";
        case errc::cancelled: return "cancelled";
        case errc::server: return "server error";
        case errc::protocol: return "protocol error";
        case errc::conversion: return "reply of another type";
        case errc::would_deadlock: return "would deadlock";
        case errc::authentication: return "authentication failed";
        case errc::unsuitable_server: return "unsuitable server";
        case errc::broken_barrier: return "broken barrier";
        case errc::stale_fence: return "stale fence";
        case errc::circuit_open: return "circuit open";
        case errc::not_found: return "not found";
    }
    return "unknown error";
}

class category final : public std::error_category {
public:
    char const* name() const noexcept override { return "lockstep"; }
    std::string message(int code) const override { return words(static_cast<errc>(code)); }
};

}  // namespace

std::error_category const& error_category() noexcept {
    static category const instance;
    return instance;
}

std::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), error_category()};
}

error::error(errc code, std::string const& message)
    : std::system_error(make_error_code(code), message), message_(std::make_shared<std::string const>(message)) {}

void throw_error(errc code, std::string const& message) {
    switch (code) {
        case errc::timeout: throw timeout_error(message);
        case errc::lease_lost: throw lease_lost_error(message);
        case errc::leadership_lost: throw leadership_lost_error(message);
        case errc::not_held: throw not_held_error(message);
        case errc::invalid_argument: throw invalid_argument_error(message);
        case errc::count_mismatch: throw count_mismatch_error(message);
        case errc::unavailable: throw unavailable_error(message);
        case errc::indeterminate: throw indeterminate_error(message);
        case errc::cancelled: throw cancelled_error(message);
        case errc::server: throw server_error(message);
        case errc::protocol: throw protocol_error(message);
        case errc::conversion: throw conversion_error(message);
        case errc::would_deadlock: throw would_deadlock_error(message);
        case errc::authentication: throw authentication_error(message);
        case errc::unsuitable_server: throw unsuitable_server_error(message);
        case errc::broken_barrier: throw broken_barrier_error(message);
        case errc::stale_fence: throw stale_fence_error(message);
        case errc::circuit_open: throw circuit_open_error(message);
        case errc::not_found: throw not_found_error(message);
    }
    throw error(code, message);
}

std::exception_ptr make_error(errc code, std::string const& message) noexcept try {
    throw_error(code, message);
} catch (...) {
    return std::current_exception();
}

}  // namespace lockstep
