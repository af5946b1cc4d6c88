#include "byte_stream.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace lockstep::test {

namespace {

void connect_to(int descriptor, endpoint const& to, bool may_be_in_progress) {
    int result = 0;
    if (to.unix_path.empty()) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(to.port));
        auto const host = to.host == "localhost" ? std::string{"127.0.0.1"} : to.host;
        if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) throw std::runtime_error{"no address: " + host};
        int const on = 1;
        ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        result = ::connect(descriptor, reinterpret_cast<sockaddr const*>(&address), sizeof address);
    } else {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (to.unix_path.size() >= sizeof address.sun_path) throw std::runtime_error{"too long: " + to.unix_path};
        std::memcpy(address.sun_path, to.unix_path.data(), to.unix_path.size());
        result = ::connect(descriptor, reinterpret_cast<sockaddr const*>(&address), sizeof address);
    }
    if (result != 0 && !(may_be_in_progress && errno == EINPROGRESS))
        throw std::system_error{errno, std::generic_category(), "connect " + to.address()};
}

class plain_stream final : public byte_stream {
public:
    plain_stream(endpoint const& to, std::chrono::milliseconds timeout)
        : descriptor_{connect_socket(to, false, timeout)} {}
    ~plain_stream() override { ::close(descriptor_); }
    plain_stream(plain_stream const&) = delete;
    plain_stream& operator=(plain_stream const&) = delete;

    std::size_t read_some(char* into, std::size_t room) override {
        auto const got = ::recv(descriptor_, into, room, 0);
        if (got < 0) throw std::system_error{errno, std::generic_category(), "recv"};
        return static_cast<std::size_t>(got);
    }

    void write_all(std::string_view bytes) override {
        while (!bytes.empty()) {
            auto const sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent < 0) throw std::system_error{errno, std::generic_category(), "send"};
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }

    bool closed_by_peer() override {
        char byte = 0;
        auto const got = ::recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    }

private:
    int descriptor_;
};

// TLS over memory buffers: OpenSSL's own socket writes would raise SIGPIPE, and ignoring that signal for the whole
// process would hide a library under test that raises it too.
class tls_stream final : public byte_stream {
public:
    tls_stream(endpoint const& to, std::chrono::milliseconds timeout) : socket_{to, timeout} {
        context_.reset(SSL_CTX_new(TLS_client_method()));
        SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
        check(SSL_CTX_load_verify_locations(context_.get(), to.tls->ca.c_str(), nullptr), "load the CA");
        if (!to.tls->certificate.empty()) {
            check(SSL_CTX_use_certificate_chain_file(context_.get(), to.tls->certificate.c_str()), "certificate");
            check(SSL_CTX_use_PrivateKey_file(context_.get(), to.tls->key.c_str(), SSL_FILETYPE_PEM), "key");
        }
        session_.reset(SSL_new(context_.get()));
        auto* const parameters = SSL_get0_param(session_.get());
        if (X509_VERIFY_PARAM_set1_ip_asc(parameters, to.host.c_str()) != 1)
            check(SSL_set1_host(session_.get(), to.host.c_str()), "host name");
        incoming_ = BIO_new(BIO_s_mem());
        outgoing_ = BIO_new(BIO_s_mem());
        SSL_set_bio(session_.get(), incoming_, outgoing_);  // the session owns both now
        drive([this] { return SSL_connect(session_.get()); });
    }

    std::size_t read_some(char* into, std::size_t room) override {
        return drive([&] { return SSL_read(session_.get(), into, static_cast<int>(room)); });
    }

    void write_all(std::string_view bytes) override {
        drive([&] { return SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size())); });
    }

    bool closed_by_peer() override { return socket_.closed_by_peer(); }

private:
    static void check(int result, std::string const& what) {
        if (result == 1) return;
        char text[256];
        ERR_error_string_n(ERR_get_error(), text, sizeof text);
        throw std::runtime_error{"TLS, " + what + ": " + text};
    }

    template <typename Step>
    std::size_t drive(Step step) {
        while (true) {
            ERR_clear_error();
            auto const result = step();
            flush();
            if (result > 0) return static_cast<std::size_t>(result);
            auto const reason = SSL_get_error(session_.get(), result);
            if (reason == SSL_ERROR_ZERO_RETURN) return 0;
            if (reason != SSL_ERROR_WANT_READ)
                check(0, X509_verify_cert_error_string(SSL_get_verify_result(session_.get())));
            char buffer[16384];
            auto const got = socket_.read_some(buffer, sizeof buffer);
            if (got == 0) throw std::runtime_error{"TLS: the server closed the connection"};
            BIO_write(incoming_, buffer, static_cast<int>(got));
        }
    }

    void flush() {
        char buffer[16384];
        for (int count = 0; (count = BIO_read(outgoing_, buffer, sizeof buffer)) > 0;)
            socket_.write_all({buffer, static_cast<std::size_t>(count)});
    }

    struct free_with {
        void operator()(SSL_CTX* value) const { SSL_CTX_free(value); }
        void operator()(SSL* value) const { SSL_free(value); }
    };

    plain_stream socket_;
    std::unique_ptr<SSL_CTX, free_with> context_;
    std::unique_ptr<SSL, free_with> session_;
    BIO* incoming_ = nullptr;
    BIO* outgoing_ = nullptr;
};

}  // namespace

int connect_socket(endpoint const& to, bool non_blocking, std::chrono::milliseconds timeout) {
    auto const family = to.unix_path.empty() ? AF_INET : AF_UNIX;
    auto const descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | (non_blocking ? SOCK_NONBLOCK : 0), 0);
    if (descriptor < 0) throw std::system_error{errno, std::generic_category(), "socket"};
    timeval const limit{.tv_sec = timeout.count() / 1000, .tv_usec = timeout.count() % 1000 * 1000};
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // connect() obeys it too
    try {
        connect_to(descriptor, to, non_blocking);
    } catch (...) {
        ::close(descriptor);
        throw;
    }
    return descriptor;
}

std::unique_ptr<byte_stream> open_stream(endpoint const& to, std::chrono::milliseconds timeout) {
    if (to.tls && to.unix_path.empty()) return std::make_unique<tls_stream>(to, timeout);
    return std::make_unique<plain_stream>(to, timeout);
}

}  // namespace lockstep::test
