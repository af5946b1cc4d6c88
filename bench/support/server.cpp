#include "support/server.hpp"

#include "support/cpu.hpp"

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace lockstep::bench {
namespace {

using namespace std::chrono_literals;

std::filesystem::path make_home() {
    auto name = (std::filesystem::temp_directory_path() / "lockstep-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("can't make a directory for the server");
    return name;
}

int free_port() {
    int const probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bool const found = bind(probe, reinterpret_cast<sockaddr const*>(&address), size) == 0 &&
                       getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    close(probe);
    if (!found) throw std::runtime_error("no free port on the loopback interface");
    return ntohs(address.sin_port);
}

}  // namespace

server::server(int core, bool by_unix_socket) : home_(make_home()) {
    try {
        // A free port may be somebody else's by the time the server binds it: try a few.
        for (int attempt = 0; attempt != 5; ++attempt)
            if (start(core, by_unix_socket)) return;
        throw std::runtime_error("redis-server did not start");
    } catch (...) {
        process_.reset();
        std::filesystem::remove_all(home_);
        throw;
    }
}

server::~server() {
    administrator_.reset();
    process_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(home_, ignored);
}

bool server::start(int core, bool by_unix_socket) {
    int const port = free_port();
    auto const socket = (home_ / "redis.sock").string();
    where_ = by_unix_socket ? endpoint{.path = socket} : endpoint{.port = port};
    process_ = std::make_unique<process>(
        std::vector<std::string>{"redis-server", "--bind", "127.0.0.1", "--port", std::to_string(port), "--unixsocket",
                                 socket, "--dir", home_.string(), "--save", "", "--appendonly", "no", "--daemonize",
                                 "no", "--loglevel", "warning", "--maxmemory-policy", "noeviction"},
        core);
    for (int look = 0; look != 1000 && process_->running(); ++look) {
        if (answers()) return true;
        std::this_thread::sleep_for(5ms);
    }
    return false;
}

bool server::answers() try {
    administrator_ = std::make_unique<raw_connection>(where_);
    // Not some other server that happened to take the port.
    return command({"INFO", "server"}).find("process_id:" + std::to_string(process_->pid()) + "\r") !=
           std::string::npos;
} catch (std::runtime_error const&) {
    return false;
}

std::string server::url() const {
    return where_.path.empty() ? "redis://127.0.0.1:" + std::to_string(where_.port) : "unix://" + where_.path;
}

command_counts server::counts() {
    command_counts counts;
    std::istringstream lines{command({"INFO", "commandstats"})};
    for (std::string line; std::getline(lines, line);) {
        constexpr std::string_view prefix = "cmdstat_";
        auto const colon = line.find(":calls=");
        if (!line.starts_with(prefix) || colon == std::string::npos) continue;
        auto const name = line.substr(prefix.size(), colon - prefix.size());
        if (name == "info" || name == "dbsize" || name.starts_with("config") || name.starts_with("client")) continue;
        counts[name] = std::stoull(line.substr(colon + 7));
    }
    return counts;
}

std::size_t server::connections_named(std::string_view name) {
    std::size_t count = 0;
    std::istringstream lines{command({"CLIENT", "LIST"})};
    auto const wanted = " name=" + std::string{name} + " ";
    for (std::string line; std::getline(lines, line);) count += line.find(wanted) != std::string::npos ? 1 : 0;
    return count;
}

double server::cpu_seconds() const { return process_cpu_seconds(process_->pid()); }
void server::pause() noexcept { process_->signal(SIGSTOP); }
void server::resume() noexcept { process_->signal(SIGCONT); }

}  // namespace lockstep::bench
