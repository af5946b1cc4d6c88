#include "dashboard/server.hpp"

#include "dashboard/credentials.hpp"
#include "dashboard/session.hpp"
#include "dashboard/text.hpp"
#include "dashboard/tls.hpp"

#include <lockstep/error.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <thread>

namespace lockstep::dashboard {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t worker_threads = 4;  // they mostly wait for Redis
constexpr int send_buffer = 256 * 1024;    // a page that reads nothing keeps no more than about this of the kernel's memory

tcp::endpoint address_of(server_options const& options) {
    error_code failure;
    auto const address =
        asio::ip::make_address(options.address == "localhost" ? "127.0.0.1" : options.address, failure);
    if (failure)
        throw invalid_argument_error{"the dashboard listens on an IP address such as 127.0.0.1 or ::1, not on " +
                                     options.address};
    if (!address.is_loopback() && options.token.empty())
        throw invalid_argument_error{"on " + options.address +
                                     " others can reach the dashboard, so it needs a token. Without one (--no-token) it listens on 127.0.0.1 or ::1 only"};
    return {address, options.port};
}

void check_tokens(server_options const& options) {
    if (options.token.empty()) {
        if (options.allow_actions)
            throw invalid_argument_error{"without a token everybody who can connect could end holds: --allow-actions and --no-token exclude each other"};
        if (!options.metrics_token.empty())
            throw invalid_argument_error{"without a token everybody may read /metrics: --metrics-token-file and --no-token exclude each other"};
        return;
    }
    constexpr std::string_view advice = ". Make one with: openssl rand -hex 24";
    if (auto const weakness = weakness_of(options.token)) throw invalid_argument_error{"the dashboard's token is refused: " + *weakness + std::string{advice}};
    if (options.metrics_token.empty()) return;
    if (auto const weakness = weakness_of(options.metrics_token)) throw invalid_argument_error{"the token for /metrics is refused: " + *weakness + std::string{advice}};
    if (same_secret(options.token, options.metrics_token))
        throw invalid_argument_error{"the token for /metrics is that of the dashboard: whoever reads the metrics could log in. Give it one of its own"};
}

// As the library's own: who the audit names when nobody said.
std::string this_user() {
    std::array<char, 4'096> room{};
    std::array<char, 256> host{};
    passwd entry{};
    passwd* found = nullptr;
    bool const known = ::getpwuid_r(::geteuid(), &entry, room.data(), room.size(), &found) == 0 && found != nullptr;
    bool const named = ::gethostname(host.data(), host.size() - 1) == 0;
    return (known ? std::string{found->pw_name} : std::to_string(::geteuid())) + '@' + (named ? host.data() : "");
}

// Where no token is wanted nobody is told from others but by the network, and one has half of all places at most.
connection_limits limits_of(server_options const& options) {
    connection_limits limits{.total = options.max_connections,
                             .untrusted_per_network = options.max_untrusted_per_network,
                             .streams_per_network = std::max<std::size_t>(options.max_streams / 2, 1)};
    if (options.token.empty()) limits.untrusted_per_network = std::max<std::size_t>(options.max_connections / 2, 1);
    return limits;
}

std::string shown(asio::ip::address const& address) {
    return address.is_v6() ? '[' + address.to_string() + ']' : address.to_string();
}

}  // namespace

struct server::parts {
    parts(backend& from, server_options given)
        : options(std::move(given)), endpoint(address_of(options)), tls(make_tls_context(options.certificate_file, options.key_file)),
          connections(limits_of(options)), acceptor(io), again(io) {
        check_tokens(options);
        listen();
        guard_options gate_options{.token = options.token,
                                   .metrics_token = options.metrics_token,
                                   .hosts = {"localhost", "127.0.0.1", "[::1]", shown(endpoint.address())},
                                   .allow_actions = options.allow_actions,
                                   .any_address = endpoint.address().is_unspecified(),
                                   .tls = tls != nullptr,
                                   .delays = options.delays};
        for (auto const& host : options.allowed_hosts) gate_options.hosts.push_back(host_of(host));
        gate = std::make_unique<guard>(std::move(gate_options));
        news = std::make_shared<feed>(io, workers, from);
        routes = std::make_unique<router>(
            router_parts{.from = from,
                         .gate = *gate,
                         .by = options.by.empty() ? this_user() : options.by,
                         .work = [this](std::function<void()> job) { asio::post(workers, std::move(job)); },
                         .look = [this](std::function<void()> job) { asio::post(prober, std::move(job)); },
                         .samples = [this] { return news->samples(); },
                         .acted = [this] { asio::post(io, [feed = news] { feed->announce_audit(); }); }});
        shared = std::make_shared<session_parts>(session_parts{options, *routes, news, connections, refused, tls});
        accept();
        thread = std::thread{[this] { io.run(); }};
    }

    std::string url_at(asio::ip::address const& address) const {
        return (tls ? "https://" : "http://") + shown(address) + ':' + std::to_string(endpoint.port()) + '/';
    }

    void listen() try {
        acceptor.open(endpoint.protocol());
        acceptor.set_option(tcp::acceptor::reuse_address(true));
        acceptor.bind(endpoint);
        acceptor.listen();
        endpoint = acceptor.local_endpoint();
    } catch (boost::system::system_error const& failure) {
        throw unavailable_error{"the dashboard can't listen on " + shown(endpoint.address()) + ':' +
                                std::to_string(endpoint.port()) + ": " + failure.code().message() +
                                ". Another port: --port N, or 0 for one that is free"};
    }

    void accept() {
        acceptor.async_accept([this](error_code const& failure, tcp::socket socket) {
            if (!acceptor.is_open()) return;
            if (!failure) {
                error_code ignored;
                socket.set_option(tcp::no_delay(true), ignored);
                socket.set_option(tcp::socket::send_buffer_size(send_buffer), ignored);
                start_session(std::move(socket), shared);
                return accept();
            }
            // Out of descriptors, most likely: some will be free again.
            again.expires_after(std::chrono::milliseconds{50});
            again.async_wait([this](error_code const& stopped) {
                if (!stopped) accept();
            });
        });
    }

    void stop() noexcept try {
        if (!thread.joinable()) return;
        std::promise<std::shared_ptr<void>> watch;
        asio::post(io, [&] {
            error_code ignored;
            acceptor.close(ignored);
            again.cancel();
            watch.set_value(news->close());
        });
        watch.get_future().get().reset();
        io.stop();
        thread.join();
        for (auto* const pool : {&workers, &prober}) pool->stop();  // what nobody waits for any more
        for (auto* const pool : {&workers, &prober}) pool->join();
        news->close().reset();  // a watch that a worker began meanwhile
    } catch (std::exception const&) {
        std::terminate();  // a thread that can't be joined
    }

    server_options options;
    tcp::endpoint endpoint;
    connection::tls_context tls;
    connection_table connections;
    std::atomic<std::size_t> refused{0};
    std::unique_ptr<guard> gate;
    // Before the workers and the routes: jobs that never ran and answers that never came hold sessions, whose sockets belong to it.
    asio::io_context io{1};
    std::unique_ptr<router> routes;
    asio::thread_pool workers{worker_threads};
    asio::thread_pool prober{1};  // of /healthz
    std::shared_ptr<feed> news;
    std::shared_ptr<session_parts> shared;
    tcp::acceptor acceptor;
    asio::steady_timer again;
    std::thread thread;
};

server::server(backend& from, server_options options) : parts_(std::make_unique<parts>(from, std::move(options))) {}
server::~server() { stop(); }

std::string server::url() const { return parts_->url_at(parts_->endpoint.address()); }

std::string server::login_link(std::chrono::milliseconds lifetime) {
    auto const address = parts_->endpoint.address();
    // Browsers do not open 0.0.0.0 or [::].
    auto const reachable = !address.is_unspecified() ? address
                           : address.is_v6()         ? asio::ip::address{asio::ip::address_v6::loopback()}
                                                     : asio::ip::address{asio::ip::address_v4::loopback()};
    auto const link = parts_->url_at(reachable);
    if (!parts_->gate->wants_token()) return link;
    return link + "#code=" + parts_->gate->issue_code(guard::clock::now() + lifetime);
}

std::vector<std::string> server::warnings() const {
    if (parts_->tls || parts_->endpoint.address().is_loopback()) return {};
    return {"it is served without TLS on " + parts_->options.address +
            ": whoever is on the way can read the token and all that it shows. Give --tls-cert and --tls-key, or put a proxy with TLS before it"};
}

std::uint16_t server::port() const { return parts_->endpoint.port(); }
void server::stop() noexcept { parts_->stop(); }

}  // namespace lockstep::dashboard
