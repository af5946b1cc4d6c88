#include "redis/tls.hpp"

#include "redis/config_file.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

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

[[noreturn]] void refuse(char const* option, std::string const& file, std::string const& reason) {
    throw invalid_argument_error(fmt::format("tls: {} '{}' {}", option, file, reason));
}
[[noreturn]] void refuse(char const* option, std::string const& file) { refuse(option, file, "can't be used: " + last_error()); }

bool is_address(std::string const& peer) {
    std::shared_ptr<ASN1_OCTET_STRING> const parsed{a2i_IPADDRESS(peer.c_str()), ASN1_OCTET_STRING_free};
    return parsed != nullptr;
}

/// OpenSSL itself would ask for the pass phrase on the terminal and wait there.
int refuse_pass_phrase(char*, int, int, void* was_asked) {
    if (was_asked != nullptr) *static_cast<bool*>(was_asked) = true;
    return -1;
}

void load_authorities(SSL_CTX* context, std::string const& file) {
    if (file.empty()) {
        if (SSL_CTX_set_default_verify_paths(context) != 1) throw invalid_argument_error("tls: the system's authorities can't be used: " + last_error());
        return;
    }
    if (auto const problem = problem_of_file(file); !problem.empty()) refuse("ca_file", file, problem);
    if (SSL_CTX_load_verify_locations(context, file.c_str(), nullptr) != 1) refuse("ca_file", file);
}

void load_certificate(SSL_CTX* context, tls_options const& options) {
    auto const& certificate = options.certificate_file;
    auto const& key = options.key_file;
    if (certificate.empty() != key.empty()) {
        throw invalid_argument_error("tls: certificate_file and key_file belong together: give both or neither");
    }
    if (certificate.empty()) return;
    if (auto const problem = problem_of_file(certificate); !problem.empty()) refuse("certificate_file", certificate, problem);
    if (auto const problem = problem_of_file(key); !problem.empty()) refuse("key_file", key, problem);
    bool is_encrypted = false;
    SSL_CTX_set_default_passwd_cb(context, refuse_pass_phrase);
    SSL_CTX_set_default_passwd_cb_userdata(context, &is_encrypted);
    bool const has_certificate = SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) == 1;
    bool const has_key = has_certificate && SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
    if (is_encrypted) {
        refuse(has_certificate ? "key_file" : "certificate_file", has_certificate ? key : certificate,
               "is encrypted with a pass phrase, which Lockstep does not ask for: decrypt it with `openssl pkey -in FILE -out NEW_FILE` and chmod 600 the result");
    }
    if (!has_certificate) refuse("certificate_file", certificate);
    if (!has_key || SSL_CTX_check_private_key(context) != 1) refuse("key_file", key);
    warn_if_exposed(key, "the TLS key file");
}

std::vector<std::string> files_of(tls_options const& options) {
    std::vector<std::string> files;
    for (auto const* const file : {&options.ca_file, &options.certificate_file, &options.key_file}) {
        if (!file->empty()) files.push_back(*file);
    }
    return files;
}

/// Changes whenever one of the files (or the system's authorities) is replaced or written.
std::string version_of_files(tls_options const& options) {
    auto files = files_of(options);
    if (options.ca_file.empty()) {
        auto const add_default = [&files](char const* variable, char const* usual) {
            auto const* const chosen = ::secure_getenv(variable);  // as OpenSSL does
            files.emplace_back(chosen != nullptr ? chosen : usual);
        };
        add_default(X509_get_default_cert_file_env(), X509_get_default_cert_file());
        add_default(X509_get_default_cert_dir_env(), X509_get_default_cert_dir());
    }
    std::string version;
    for (auto const& file : files) {
        struct stat info {};
        if (::stat(file.c_str(), &info) != 0) info = {};
        version += fmt::format("{}:{}:{}:{}.{}:{}.{} ", info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                               info.st_ctim.tv_nsec);
    }
    return version;
}

/// A file that may not be read; empty if there is none.
std::string forbidden_file(tls_options const& options) {
    for (auto& file : files_of(options)) {
        if (::faccessat(AT_FDCWD, file.c_str(), R_OK, AT_EACCESS) != 0 && errno == EACCES) return std::move(file);
    }
    return {};
}

/// The working directory may be another one when the file is read again.
void make_absolute(std::string& file) {
    std::error_code error;
    auto const path = file.empty() ? std::filesystem::path{} : std::filesystem::absolute(file, error);
    if (!error && !path.empty()) file = path.string();
}

}  // namespace

tls_context::tls_context(tls_options const& options)
    : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free), verifies_(!options.dangerously_accept_any_certificate) {
    ERR_clear_error();
    auto* const context = context_.get();
    if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
        throw invalid_argument_error("tls: OpenSSL can't be initialised: " + last_error());
    }
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    load_authorities(context, options.ca_file);
    load_certificate(context, options);
    SSL_CTX_set_verify(context, verifies_ ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
}

tls_settings::tls_settings(tls_options const& options) : options_(options) {
    for (auto* const file : {&options_.ca_file, &options_.certificate_file, &options_.key_file}) make_absolute(*file);
    version_ = version_of_files(options_);  // before they are read: a change meanwhile is seen the next time
    context_ = std::make_shared<tls_context const>(options_);
    if (!context_->verifies()) {
        log(log_level::warning,
            "TLS verification is turned off (dangerously_accept_any_certificate): anybody on the way can read and change what is sent");
    }
}

std::shared_ptr<tls_context const> tls_settings::context() {
    auto version = version_of_files(options_);
    if (version == version_) return context_;
    if (auto const file = forbidden_file(options_); !file.empty()) {
        warn(fmt::format("tls: '{}' may have changed and can no longer be read by this process: what it was before is used", file));
        return context_;
    }
    try {
        context_ = std::make_shared<tls_context const>(options_);
    } catch (invalid_argument_error const& problem) {
        warn(problem.what());
        throw unavailable_error(problem.what());
    }
    version_ = std::move(version);
    logged_.clear();
    return context_;
}

void tls_settings::warn(std::string const& problem) {
    if (std::exchange(logged_, problem) != problem) log(log_level::warning, problem);
}

tls_filter::tls_filter(tls_context const& context, std::string const& peer)
    : peer_(peer), ssl_(SSL_new(context.native()), SSL_free) {
    auto* const ssl = ssl_.get();
    std::unique_ptr<BIO, decltype(&BIO_free)> from{BIO_new(BIO_s_mem()), &BIO_free};
    std::unique_ptr<BIO, decltype(&BIO_free)> to{BIO_new(BIO_s_mem()), &BIO_free};
    if (ssl == nullptr || from == nullptr || to == nullptr) throw unavailable_error("tls: " + last_error());
    SSL_set_bio(ssl, from.release(), to.release());
    SSL_set_connect_state(ssl);
    if (peer.empty()) {  // to OpenSSL that means that any certificate will do
        if (!context.verifies()) return;
        throw unavailable_error("tls: the server was named without a host, so there is nothing to verify its certificate by: set server_name");
    }
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    bool const is_set = is_address(peer) ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), peer.c_str()) == 1
                                         : SSL_set_tlsext_host_name(ssl, peer.c_str()) == 1 && SSL_set1_host(ssl, peer.c_str()) == 1;
    if (!is_set) throw unavailable_error(fmt::format("tls: a certificate can't be verified for the name '{}': {}", peer, last_error()));
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
    auto const size = static_cast<int>(bytes.size());
    if (BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), size) != size) fail("reading");  // a memory BIO takes all
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
        if (moved <= 0) fail("writing");
        out.commit(at + moved);
    }
}

}  // namespace lockstep::redis
