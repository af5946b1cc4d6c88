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

/// Certificates and rules as the files have them now. Throws `invalid_argument_error` for files that can't be used.
class tls_context {
public:
    explicit tls_context(tls_options const& options);

    ssl_ctx_st* native() const noexcept { return context_.get(); }
    bool verifies() const noexcept { return verifies_; }

private:
    std::shared_ptr<ssl_ctx_st> context_;
    bool verifies_ = true;
};

/// The TLS settings of a client, shared by its connections. Files that were replaced are read again for the next connection.
class tls_settings {
public:
    /// Throws as `tls_context` does.
    explicit tls_settings(tls_options const& options);

    /// For a new connection; in a turn. Throws `unavailable_error` if changed files can't be used: the next attempt may find them whole. A program that may
    /// no longer read them, because it has given up its privileges, goes on with what it has read.
    std::shared_ptr<tls_context const> context();

private:
    void warn(std::string const& problem);

    tls_options options_;
    std::string version_;  ///< of the files when they were last read
    std::shared_ptr<tls_context const> context_;
    std::string logged_;
};

class tls_filter {
public:
    /// `peer` is the name (or address) that the server's certificate must carry among its alternative names. Throws `unavailable_error`.
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
