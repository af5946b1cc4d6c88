#pragma once

// TLS as a filter on bytes, on OpenSSL, without sockets: what came from the wire goes in, what goes to the wire comes out.

#include "resp/output.hpp"

#include <lockstep/options.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

namespace lockstep::redis {

/// Certificates and rules, shared by the connections of a client. Throws `invalid_argument_error` for files that can't be used.
class tls_context {
public:
    explicit tls_context(tls_options const& options);

    ssl_ctx_st* native() const noexcept { return context_.get(); }
    bool verifies() const noexcept { return verifies_; }

private:
    std::shared_ptr<ssl_ctx_st> context_;
    bool verifies_ = true;
};

class tls_filter {
public:
    /// `peer` is the name (or address) that the server's certificate must carry.
    tls_filter(tls_context const& context, std::string const& peer);

    /// One step of the handshake. True when it is done. Throws `unavailable_error` with the reason when it failed.
    bool handshake();

    void from_wire(std::string_view bytes);
    /// Decrypted bytes, 0 when more must come from the wire first. Throws `unavailable_error` when the peer ended it or broke the rules.
    std::size_t read(char* to, std::size_t size);
    void write(std::string_view plain);
    /// Moves what has to go to the wire to the end of `out`.
    void to_wire(resp::output& out);

private:
    [[noreturn]] void fail(char const* doing) const;

    std::string peer_;
    std::shared_ptr<ssl_st> ssl_;
};

}  // namespace lockstep::redis
