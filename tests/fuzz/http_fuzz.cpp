// The dashboard's server, over sockets of the loopback interface. The first byte of the input chooses how the rest is sent: as it is, or as a request
// that is made of its lines: method and target, Host, another header, body. Whatever it is:
//   - the server goes on answering, and every answer is a whole one of HTTP/1.1;
//   - nobody who lacks the token sees what the token protects, nobody sees the token, and nobody acts;
//   - a foreign Host, as after DNS rebinding, sees nothing.

#include "dashboard/assets.hpp"
#include "dashboard/server.hpp"
#include "dashboard/text.hpp"

#include "support/fuzz.hpp"

#include <lockstep/client.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace lockstep::dashboard {

std::span<asset const> assets() {
    static constexpr std::array<asset, 2> all{{{"/", "text/html", "\"1\"", false, "<p>page</p>"}, {"/assets/app-1.js", "text/javascript", "\"2\"", true, "1"}}};
    return all;
}
std::string_view missing_page_reason() { return {}; }

}  // namespace lockstep::dashboard

namespace {

using namespace lockstep;
using namespace std::chrono_literals;
using fuzz::require;

constexpr std::string_view token = "9f1c6a0d3e7b5482c4d98e61b27f30a5d1648c2e0b937fa5";
constexpr std::string_view planted = "what-the-token-protects";

std::atomic<bool> may_act{false};

/// Has the planted word in every answer, and no Redis: questions about jobs fail.
class planted_backend final : public dashboard::backend {
public:
    planted_backend() { nowhere_.close(); }

    lockstep::snapshot snapshot() override {
        lockstep::snapshot seen;
        seen.holds = active({});
        seen.objects.push_back({.name = std::string{planted}, .kind = "lock"});
        return seen;
    }
    std::vector<name_statistics> statistics(std::string_view) override { return {{.name = std::string{planted}, .kind = "lock"}}; }
    explanation why(std::string_view) override { return {.name = std::string{planted}}; }
    std::vector<history_entry> history(std::string_view, std::size_t) override { return {{.name = std::string{planted}}}; }
    std::vector<leader_change> changes(std::string_view, std::size_t) override { return {}; }
    std::vector<audit_entry> audit(std::size_t) override { return {}; }
    std::vector<hold_info> active(std::string_view) override { return {{.name = std::string{planted}, .kind = "lock", .id = "h1"}}; }
    bool ask(hold_info const&, release_options) override { return act(); }
    bool release(hold_info const&, release_options) override { return act(); }
    bool set_queue_paused(std::string const&, bool, std::string const&, std::string const&) override { return act(); }
    health_report health() override { return {}; }
    health_state probe() override { return health_state::healthy; }
    std::string metrics() override { return std::string{planted}; }
    std::shared_ptr<void> watch(std::function<void(lockstep::snapshot const&)> handler) override {
        handler(snapshot());
        return std::make_shared<int>();
    }
    dashboard::job_desk& jobs() override { return jobs_; }
    std::string description() override { return std::string{planted}; }

private:
    static bool act() {
        require(may_act, "only a request with the token acts");
        return true;
    }

    client nowhere_{{.url = "unix:///nonexistent/socket"}};
    dashboard::job_desk jobs_{nowhere_};
};

struct servers {
    planted_backend from;
    dashboard::server open{from, {.port = 0, .by = "fuzz"}};
    dashboard::server closed{from, {.port = 0, .token = std::string{token}, .allow_actions = true, .by = "fuzz"}};
};

/// From an address of its own, so that what is limited for each address limits no other input. Sends, and reads until the server closes, or as long as
/// it says something.
std::string exchange(std::uint16_t port, std::string_view bytes) {
    static std::uint32_t next = 0;
    int const socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(socket >= 0, "there is a socket");
    linger const at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(0x7f010000U + next++ % 0xfff000U + 1);
    ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    require(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "the server takes connections");
    for (auto rest = bytes; !rest.empty();) {
        auto const sent = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (sent <= 0) break;  // refused meanwhile
        rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    ::shutdown(socket, SHUT_WR);
    std::string answer;
    std::array<char, 16'384> room;
    pollfd wanted{.fd = socket, .events = POLLIN, .revents = 0};
    for (;;) {
        bool const follows = answer.find("text/event-stream") != std::string::npos;
        int const ready = ::poll(&wanted, 1, follows ? 5 : 15'000);
        require(ready != 0 || follows, "the server answers", bytes);
        auto const count = ready > 0 ? ::recv(socket, room.data(), room.size(), 0) : 0;
        if (count <= 0) break;
        answer.append(room.data(), static_cast<std::size_t>(count));
    }
    ::close(socket);
    return answer;
}

void check_answer(std::string_view answer, std::string_view asked) {
    require(answer.empty() || answer.starts_with("HTTP/1.1 "), "an answer is one of HTTP", answer);
    require(answer.find(token) == std::string_view::npos, "no answer has the token", asked);
}

bool is_local(std::string_view host) {
    auto const name = dashboard::host_of(host);
    return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

/// A header's value ends where its line does.
std::string value_of(std::string_view text) {
    std::string value;
    for (char const c : text) {
        if (c != '\r' && c != '\n' && c != '\0') value += c;
    }
    return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    static servers& all = *new servers;  // never ended: threads run in it
    auto input = fuzz::text_of(data, size);
    if (input.find(token) != std::string_view::npos || input.find(planted) != std::string_view::npos) return 0;
    auto const choice = fuzz::take_choice(input, 4);
    if (choice == 0) {  // a stranger, with anything
        auto const answer = exchange(all.closed.port(), input);
        check_answer(answer, input);
        require(answer.find(planted) == std::string_view::npos, "nobody without the token sees anything", input);
        return 0;
    }
    bool const knows = choice == 1;
    auto& server = choice == 3 ? all.open : all.closed;
    auto const target = value_of(fuzz::take_line(input));
    auto const host = value_of(fuzz::take_line(input));
    auto const header = value_of(fuzz::take_line(input));
    std::string request = target + " HTTP/1.1\r\nHost: " + (host.empty() ? "localhost" : host) + "\r\nContent-Type: application/json\r\nConnection: close\r\n";
    if (knows) request.append("Authorization: Bearer ").append(token).append("\r\n");
    if (!header.empty()) request.append(header).append("\r\n");
    request.append("Content-Length: ").append(std::to_string(input.size())).append("\r\n\r\n").append(input);
    for (auto const& part : {target, host, header}) {
        if (part.find(token) != std::string::npos) return 0;  // it saw what they are compared with
    }
    may_act = knows;
    auto const answer = exchange(server.port(), request);
    may_act = false;
    check_answer(answer, request);
    bool const sees = answer.find(planted) != std::string_view::npos;
    require(!sees || choice != 2, "nobody without the token sees anything", request);
    require(!sees || host.empty() || is_local(host), "a foreign host sees nothing", request);
    return 0;
}
