// Where a server listens, and what a TLS client needs to trust it.
#pragma once

#include <optional>
#include <string>

namespace lockstep::test {

struct tls_files {
    std::string ca;           // PEM files
    std::string certificate;  // a client may leave these two empty
    std::string key;
};

struct endpoint {
    std::string unix_path{};  // set: the rest does not matter
    std::string host = "127.0.0.1";
    int port = 0;
    std::optional<tls_files> tls{};

    [[nodiscard]] std::string address() const {
        return unix_path.empty() ? host + ":" + std::to_string(port) : unix_path;
    }
};

}  // namespace lockstep::test
