#include "certificates.hpp"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

namespace lockstep::test {

namespace {

struct free_openssl {
    void operator()(EVP_PKEY* value) const { EVP_PKEY_free(value); }
    void operator()(X509* value) const { X509_free(value); }
    void operator()(X509_EXTENSION* value) const { X509_EXTENSION_free(value); }
    void operator()(std::FILE* value) const { std::fclose(value); }
};
template <typename T>
using owned = std::unique_ptr<T, free_openssl>;

constexpr long day = 24L * 3600;

struct wanted {
    char const* name;
    char const* alternative_names = nullptr;  // in OpenSSL's notation; none for a CA
    long valid_from = -day;                   // seconds from now; a little back, for clocks that differ
    long valid_until = 30 * day;
};

struct issued {
    owned<EVP_PKEY> key;
    owned<X509> certificate;
};

void check(bool fine, char const* what) {
    if (!fine) throw std::runtime_error{std::string{"certificates: "} + what};
}

void add_extension(X509* certificate, X509* issuer, int id, char const* value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    owned<X509_EXTENSION> const extension{X509V3_EXT_conf_nid(nullptr, &context, id, value)};
    check(extension && X509_add_ext(certificate, extension.get(), -1) == 1, value);
}

// Without an issuer: a CA that signs itself.
issued issue(wanted const& what, issued const* issuer) {
    issued made{.key = owned<EVP_PKEY>{EVP_EC_gen("P-256")}, .certificate = owned<X509>{X509_new()}};
    check(made.key && made.certificate, "key");
    auto* const certificate = made.certificate.get();
    static long serial = 1000;  // unique per issuer is what matters
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), what.valid_from);
    X509_gmtime_adj(X509_getm_notAfter(certificate), what.valid_until);
    X509_set_pubkey(certificate, made.key.get());
    auto* const subject = X509_get_subject_name(certificate);
    auto const* const name = reinterpret_cast<unsigned char const*>(what.name);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, name, -1, -1, 0);
    auto* const parent = issuer != nullptr ? issuer->certificate.get() : certificate;
    X509_set_issuer_name(certificate, X509_get_subject_name(parent));
    add_extension(certificate, parent, NID_subject_key_identifier, "hash");
    add_extension(certificate, parent, NID_basic_constraints,
                  issuer != nullptr ? "critical,CA:FALSE" : "critical,CA:TRUE");
    add_extension(certificate, parent, NID_key_usage,
                  issuer != nullptr ? "critical,digitalSignature" : "critical,keyCertSign,cRLSign");
    // Both usages in one: a server of a cluster or of a replication chain is a client of its peers.
    if (issuer != nullptr) add_extension(certificate, parent, NID_ext_key_usage, "serverAuth,clientAuth");
    if (what.alternative_names != nullptr)
        add_extension(certificate, parent, NID_subject_alt_name, what.alternative_names);
    auto* const signing_key = issuer != nullptr ? issuer->key.get() : made.key.get();
    check(X509_sign(certificate, signing_key, EVP_sha256()) > 0, "sign");
    return made;
}

void save(issued const& made, scratch_dir const& directory, std::string const& name, std::string pass_phrase = {}) {
    auto const old_mask = ::umask(077);
    owned<std::FILE> const certificate{std::fopen(directory.file(name + ".crt").c_str(), "w")};
    owned<std::FILE> const key{std::fopen(directory.file(name + ".key").c_str(), "w")};
    ::umask(old_mask);
    check(certificate && PEM_write_X509(certificate.get(), made.certificate.get()) == 1, "write");
    auto const* const cipher = pass_phrase.empty() ? nullptr : EVP_aes_256_cbc();
    check(key && PEM_write_PrivateKey(key.get(), made.key.get(), cipher, nullptr, 0, nullptr, pass_phrase.empty() ? nullptr : pass_phrase.data()) == 1, "write");
}

}  // namespace

certificates::certificates() { rotate(); }

void certificates::rotate() {
    constexpr auto const* here = "DNS:localhost,IP:127.0.0.1";
    auto const ca = issue({.name = "Lockstep test CA"}, nullptr);
    save(ca, directory_, "ca");
    save(issue({.name = "another CA"}, nullptr), directory_, "other-ca");
    save(issue({.name = "localhost", .alternative_names = here}, &ca), directory_, "server");
    save(issue({.name = "localhost", .alternative_names = here, .valid_from = -30 * day, .valid_until = -day}, &ca),
         directory_, "expired");
    save(issue({.name = "elsewhere.invalid", .alternative_names = "DNS:elsewhere.invalid,IP:192.0.2.1"}, &ca),
         directory_, "wrong-host");
    save(issue({.name = "localhost"}, &ca), directory_, "nameless");
    save(issue({.name = "client"}, &ca), directory_, "client");
    save(issue({.name = "client"}, &ca), directory_, "encrypted", "open sesame");
}

}  // namespace lockstep::test
