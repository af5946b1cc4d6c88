#include "redis/tls.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace lockstep::redis {
namespace {

std::string last_error() {
    auto const code = ERR_get_error();
    ERR_clear_error();
    if (code == 0) return "no reason given";
    char text[256];
    ERR_error_string_n(code, text, sizeof text);
    return text;
}

[[noreturn]] void refuse(char const* what, std::string const& file) {
    throw invalid_argument_error(fmt::format("tls: {} '{}' can't be used: {}", what, file, last_error()));
}

bool is_address(std::string const& peer) {
    std::shared_ptr<ASN1_OCTET_STRING> const parsed{a2i_IPADDRESS(peer.c_str()), ASN1_OCTET_STRING_free};
    return parsed != nullptr;
}

}  // namespace

tls_context::tls_context(tls_options const& options) : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    ERR_clear_error();
    auto* const context = context_.get();
    if (context == nullptr) throw invalid_argument_error("tls: OpenSSL can't be initialised: " + last_error());
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    if (options.ca_file.empty()) {
        SSL_CTX_set_default_verify_paths(context);
    } else if (SSL_CTX_load_verify_locations(context, options.ca_file.c_str(), nullptr) != 1) {
        refuse("ca_file", options.ca_file);
    }
    if (options.certificate_file.empty() != options.key_file.empty()) {
        throw invalid_argument_error("tls: certificate_file and key_file belong together: give both or neither");
    }
    if (!options.certificate_file.empty()) {
        if (SSL_CTX_use_certificate_chain_file(context, options.certificate_file.c_str()) != 1) {
            refuse("certificate_file", options.certificate_file);
        }
        if (SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
            SSL_CTX_check_private_key(context) != 1) {
            refuse("key_file", options.key_file);
        }
    }
    verifies_ = !options.dangerously_accept_any_certificate;
    SSL_CTX_set_verify(context, verifies_ ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
    if (!verifies_) {
        log(log_level::warning,
            "TLS verification is turned off (dangerously_accept_any_certificate): anybody on the way can read and change what is sent");
    }
}

tls_filter::tls_filter(tls_context const& context, std::string const& peer)
    : peer_(peer), ssl_(SSL_new(context.native()), SSL_free) {
    auto* const ssl = ssl_.get();
    if (ssl == nullptr) throw unavailable_error("tls: " + last_error());
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl);
    if (is_address(peer)) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), peer.c_str());
    } else {
        SSL_set_tlsext_host_name(ssl, peer.c_str());
        SSL_set1_host(ssl, peer.c_str());
    }
}

void tls_filter::fail(char const* doing) const {
    auto const verdict = SSL_get_verify_result(ssl_.get());
    if (verdict != X509_V_OK && (SSL_get_verify_mode(ssl_.get()) & SSL_VERIFY_PEER) != 0) {
        ERR_clear_error();
        throw unavailable_error(
            fmt::format("tls: the certificate of '{}' is not trusted: {}", peer_, X509_verify_cert_error_string(verdict)));
    }
    throw unavailable_error(fmt::format("tls: {} with '{}' failed: {}", doing, peer_, last_error()));
}

bool tls_filter::handshake() {
    ERR_clear_error();
    int const result = SSL_do_handshake(ssl_.get());
    if (result == 1) return true;
    int const reason = SSL_get_error(ssl_.get(), result);
    if (reason != SSL_ERROR_WANT_READ && reason != SSL_ERROR_WANT_WRITE) fail("the handshake");
    return false;
}

void tls_filter::from_wire(std::string_view bytes) {
    BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));  // a memory BIO takes all
}

std::size_t tls_filter::read(char* to, std::size_t size) {
    ERR_clear_error();
    std::size_t got = 0;
    if (SSL_read_ex(ssl_.get(), to, size, &got) == 1) return got;
    int const reason = SSL_get_error(ssl_.get(), 0);
    if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) return 0;
    if (reason == SSL_ERROR_ZERO_RETURN) throw unavailable_error("tls: the server closed the connection");
    fail("reading");
}

void tls_filter::write(std::string_view plain) {
    while (!plain.empty()) {
        ERR_clear_error();
        std::size_t taken = 0;
        if (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &taken) != 1) fail("writing");
        plain.remove_prefix(taken);
    }
}

void tls_filter::to_wire(resp::output& out) {
    auto* const bio = SSL_get_wbio(ssl_.get());
    while (auto const ready = BIO_pending(bio)) {
        auto* const at = out.reserve(static_cast<std::size_t>(ready));
        int const moved = BIO_read(bio, at, ready);
        if (moved <= 0) return;
        out.commit(at + moved);
    }
}

}  // namespace lockstep::redis
