#pragma once

/// What Lockstep throws.
///
/// Everything is a `lockstep::error`, itself a `std::system_error`; catch the class you can act on. What is expected
/// (a lock that is busy, a wait that ran out) is a value and is not thrown by the `try_` forms. No message contains a password.

#include <exception>
#include <memory>
#include <string>
#include <system_error>

namespace lockstep {

/// The reason, also as `error::code()`. The order may grow; the names stay.
enum class errc {
    timeout = 1,        ///< not done in the time allowed; a request that ends so was not sent, or may run twice
    lease_lost,         ///< the lease ended before its holder released it
    leadership_lost,    ///< the term ended before the leader resigned
    not_held,           ///< released or used without holding
    invalid_argument,   ///< refused before anything was sent; the message names what is allowed
    count_mismatch,     ///< the object exists with another count
    unavailable,        ///< no usable server in the time allowed; the request did not run (a repeatable one may have, before)
    indeterminate,      ///< the request may have run: its reply was lost and could not be found out in time
    cancelled,          ///< cancelled by its stop token, its cancellation slot or by closing the client
    server,             ///< the server answered with an error; the message is the server's
    protocol,           ///< the peer sent something that is not RESP, or broke a limit
    conversion,         ///< the reply, or what is kept, is of another type than was asked for
    would_deadlock,     ///< a blocking form was called on the thread that does the I/O
    authentication,     ///< wrong user or password, or no right to log in; not retried
    unsuitable_server,  ///< too old, or configured to evict keys; the message says what to change
    broken_barrier,     ///< a participant died or gave up, so nobody passes the barrier this time
    stale_fence,        ///< somebody with a larger fence has written since; nothing was written
    circuit_open,       ///< the circuit breaker is open; the operation was not tried
    not_found,          ///< the object does not exist, or not any longer; it has to be created first
};

std::error_category const& error_category() noexcept;
std::error_code make_error_code(errc code) noexcept;

class error : public std::system_error {
public:
    error(errc code, std::string const& message);
    errc reason() const noexcept { return static_cast<errc>(code().value()); }
    /// The message alone, without the words of the code.
    char const* what() const noexcept override { return message_->c_str(); }

private:
    std::shared_ptr<std::string const> message_;  // shared: copying an exception must not throw
};

#define LOCKSTEP_ERROR(name, reason)                                                       \
    class name##_error : public error {                                                    \
    public:                                                                                \
        explicit name##_error(std::string const& message) : error(errc::reason, message) {} \
    }

LOCKSTEP_ERROR(timeout, timeout);
LOCKSTEP_ERROR(lease_lost, lease_lost);
LOCKSTEP_ERROR(leadership_lost, leadership_lost);
LOCKSTEP_ERROR(not_held, not_held);
LOCKSTEP_ERROR(invalid_argument, invalid_argument);
LOCKSTEP_ERROR(count_mismatch, count_mismatch);
LOCKSTEP_ERROR(unavailable, unavailable);
LOCKSTEP_ERROR(indeterminate, indeterminate);
LOCKSTEP_ERROR(cancelled, cancelled);
LOCKSTEP_ERROR(protocol, protocol);
LOCKSTEP_ERROR(conversion, conversion);
LOCKSTEP_ERROR(would_deadlock, would_deadlock);
LOCKSTEP_ERROR(authentication, authentication);
LOCKSTEP_ERROR(unsuitable_server, unsuitable_server);
LOCKSTEP_ERROR(broken_barrier, broken_barrier);
LOCKSTEP_ERROR(stale_fence, stale_fence);
LOCKSTEP_ERROR(circuit_open, circuit_open);
LOCKSTEP_ERROR(not_found, not_found);
#undef LOCKSTEP_ERROR

/// The server's own error. `prefix()` is its first word: "WRONGTYPE", "OOM", "NOPERM", "ERR" and so on.
class server_error : public error {
public:
    explicit server_error(std::string const& message) : error(errc::server, message) {}
    std::string prefix() const { return text().substr(0, text().find(' ')); }
    std::string text() const { return what(); }
};

/// Throws the class that belongs to `code`. For code that carries outcomes as values.
[[noreturn]] void throw_error(errc code, std::string const& message);
/// The same, not thrown yet.
std::exception_ptr make_error(errc code, std::string const& message) noexcept;

}  // namespace lockstep

template <>
struct std::is_error_code_enum<lockstep::errc> : std::true_type {};
