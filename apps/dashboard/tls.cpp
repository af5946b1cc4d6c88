#include "dashboard/tls.hpp"

#include <lockstep/error.hpp>

#include <openssl/ssl.h>

namespace lockstep::dashboard {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

std::shared_ptr<ssl::context> make_tls_context(std::string const& certificate_file, std::string const& key_file) {
    if (certificate_file.empty() && key_file.empty()) return nullptr;
    if (certificate_file.empty() || key_file.empty())
        throw invalid_argument_error{"the dashboard needs a certificate and its key for TLS: give both --tls-cert FILE and --tls-key FILE"};
    auto made = std::make_shared<ssl::context>(ssl::context::tls_server);
    made->set_options(ssl::context::no_sslv2 | ssl::context::no_sslv3 | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 |
                      ssl::context::no_compression | SSL_OP_NO_RENEGOTIATION);
    bool encrypted = false;  // a server has nobody to ask for a pass phrase
    made->set_password_callback([&encrypted](std::size_t, ssl::context::password_purpose) {
        encrypted = true;
        return std::string{};
    });
    error_code failure;
    made->use_certificate_chain_file(certificate_file, failure);
    if (failure) throw invalid_argument_error{"the dashboard can't use the certificate in " + certificate_file + ": " + failure.message()};
    made->use_private_key_file(key_file, ssl::context::pem, failure);
    if (encrypted)
        throw invalid_argument_error{"the key in " + key_file + " is encrypted; the dashboard needs one without a pass phrase, that only its user can read"};
    if (failure)
        throw invalid_argument_error{"the dashboard can't use the key in " + key_file + " with the certificate in " + certificate_file + ": " + failure.message()};
    made->set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string{}; });  // outlives `encrypted`
    return made;
}

}  // namespace lockstep::dashboard
