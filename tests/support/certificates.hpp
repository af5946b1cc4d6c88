// Certificates for TLS tests, good and bad ones, made fresh for each test (EC P-256: a few milliseconds for all).
#pragma once

#include "endpoint.hpp"
#include "scratch_dir.hpp"

#include <string>

namespace lockstep::test {

class certificates {
public:
    certificates();

    // For a server: its certificate and key, and the CA against which it checks clients.
    [[nodiscard]] tls_files server() const { return files("server"); }                 // localhost and 127.0.0.1
    [[nodiscard]] tls_files expired_server() const { return files("expired"); }        // valid until yesterday
    [[nodiscard]] tls_files wrong_host_server() const { return files("wrong-host"); }  // elsewhere.invalid, 192.0.2.1
    [[nodiscard]] tls_files nameless_server() const { return files("nameless"); }      // localhost, but as common name only

    // For a client: the CA it trusts, with or without a certificate of its own.
    [[nodiscard]] tls_files client() const { return files("client"); }
    [[nodiscard]] tls_files client_with_encrypted_key() const { return files("encrypted"); }
    [[nodiscard]] tls_files client_without_certificate() const { return {.ca = ca(), .certificate = {}, .key = {}}; }

    [[nodiscard]] std::string ca() const { return directory_.file("ca.crt"); }
    [[nodiscard]] std::string other_ca() const { return directory_.file("other-ca.crt"); }  // signed none of the above

    // Writes all of them anew, under the same names: another CA, which has signed other certificates of other keys.
    void rotate();

private:
    [[nodiscard]] tls_files files(std::string const& name) const {
        return {.ca = ca(), .certificate = directory_.file(name + ".crt"), .key = directory_.file(name + ".key")};
    }

    scratch_dir directory_;
};

}  // namespace lockstep::test
