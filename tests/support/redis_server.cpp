#include "redis_server.hpp"

#include "eventually.hpp"
#include "program_path.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace lockstep::test {

namespace {

using namespace std::chrono_literals;

// A user beside those under test, so that the test can look at a server whose default user is locked out.
constexpr auto const* administrator_name = "test-administrator";

std::string in_quotes(std::string const& text) {
    std::string result = "\"";
    for (auto const letter : text) {
        if (letter == '"' || letter == '\\') result += '\\';
        result += letter;
    }
    return result + "\"";
}

std::string server_binary() {
    auto const* const chosen = std::getenv("LOCKSTEP_TEST_REDIS_SERVER");
    return chosen != nullptr ? chosen : "redis-server";
}

}  // namespace

redis_server::redis_server(server_options options) : options_{std::move(options)} {
    if ((options_.cluster || options_.sentinel) && !options_.tls) options_.tcp = true;
    if (options_.data_dir.empty()) options_.data_dir = home_.path().string();
    reserve_ports();
    write_config();
    launch();
    if (options_.wait_until_ready) wait_until_ready();
}

redis_server::~redis_server() = default;

void redis_server::reserve_ports() {
    if (options_.tcp) tcp_port_.emplace();
    if (options_.tls) tls_port_.emplace();
    if (options_.cluster) bus_port_.emplace();
}

void redis_server::write_config() {
    std::ofstream file{home_.file("redis.conf")};
    file << "bind 127.0.0.1\nport " << (tcp_port_ ? tcp_port_->port() : 0) << "\nunixsocket " << socket_path()
         << "\nunixsocketperm 700\ndaemonize no\nlogfile \"\"\ndir " << in_quotes(options_.data_dir) << "\n";
    if (!options_.sentinel) {
        // No snapshots unless asked, and no pause before a replica's first copy: both only cost time here.
        file << "save \"\"\nenable-debug-command yes\nrepl-diskless-sync-delay 0\nrepl-ping-replica-period "
                "1\nappendonly "
             << (options_.append_only ? "yes" : "no") << "\n";
    }
    if (options_.tls) {
        file << "tls-port " << tls_port() << "\ntls-cert-file " << options_.tls->certificate << "\ntls-key-file "
             << options_.tls->key << "\ntls-ca-cert-file " << options_.tls->ca << "\ntls-auth-clients "
             << (options_.require_client_certificate ? "yes" : "no") << "\n";
        // Without a plain port the peers have only TLS to speak over.
        if (!options_.tcp) file << "tls-replication yes\n" << (options_.cluster ? "tls-cluster yes\n" : "");
    }
    if (!options_.password.empty() || !options_.users.empty())
        file << "user " << administrator_name << " on nopass ~* &* +@all\n";
    if (!options_.password.empty()) {
        file << "requirepass " << in_quotes(options_.password) << "\n";
        if (!options_.sentinel) file << "masterauth " << in_quotes(options_.password) << "\n";
    }
    for (auto const& user : options_.users) file << "user " << user << "\n";
    if (options_.cluster) file << "cluster-enabled yes\ncluster-port " << bus_port() << "\n";
    if (options_.replica_of)
        file << "replicaof " << options_.replica_of->host << " " << options_.replica_of->port << "\n";
    // A thread of its allocator's would wait until a time that the moved clock names, by the clock that is not moved: for ever, or never.
    if (options_.clock != nullptr) file << "jemalloc-bg-thread no\n";
    for (auto const& line : options_.config) file << line << "\n";
    if (!file.flush()) throw std::runtime_error{"can't write the server's configuration"};
}

void redis_server::launch() {
    child_options how{.output_file = home_.file("log")};
    if (options_.clock != nullptr) {
        how.environment = {{"LD_PRELOAD", program_path("libclock_shim.so")},
                           {"LOCKSTEP_CLOCK_FILE", options_.clock->path()}};
    }
    std::vector<std::string> arguments{server_binary(), home_.file("redis.conf")};
    if (options_.sentinel) arguments.emplace_back("--sentinel");
    child_.emplace(std::move(arguments), how);
    stopped_ = false;
}

bool redis_server::answers(readiness wanted) {
    try {
        auto const answer = connect().command({"PING"});
        return wanted == readiness::accepting || !answer.text.starts_with("LOADING");
    } catch (std::exception const&) {
        return false;  // not there yet
    }
}

void redis_server::wait_until_ready(readiness wanted) {
    for (int attempt = 0; attempt < 5; ++attempt) {
        if (!eventually([&] { return answers(wanted) || !running(); }, 30s)) break;
        if (running()) return;
        if (log().find("Failed listening on port") == std::string::npos) break;
        // Someone who does not know of our reservations has the port: take others.
        reserve_ports();
        write_config();
        launch();
    }
    throw std::runtime_error{"redis-server does not start:\n" + log()};
}

endpoint redis_server::address() const {
    if (options_.tls)
        return {.port = tls_port(), .tls = tls_files{.ca = options_.tls->ca, .certificate = {}, .key = {}}};
    if (tcp_port_) return {.port = tcp_port_->port()};
    return {.unix_path = socket_path()};
}

int redis_server::port() const { return tcp_port_ ? tcp_port_->port() : tls_port(); }

std::string redis_server::url() const {
    auto const to = address();
    if (!to.unix_path.empty()) return "unix://" + to.unix_path;
    return (to.tls ? "rediss://" : "redis://") + to.address();
}

std::string redis_server::url(std::string const& user, std::string const& password) const {
    auto text = url();
    return text.insert(text.find("://") + 3, user + ":" + password + "@");
}

reply redis_server::command(std::vector<std::string> const& arguments) {
    std::lock_guard const lock{administrator_mutex_};
    // CLIENT KILL, by a test or by Sentinel, gets the administrator too: that is noticed before a command is risked on
    // it.
    if (administrator_ && administrator_->closed_by_server()) administrator_.reset();
    try {
        if (!administrator_) {
            administrator_.emplace(endpoint{.unix_path = socket_path()});
            if (!options_.password.empty() || !options_.users.empty())
                administrator_->must({"AUTH", administrator_name, "any"});
            administrator_->command({"CLIENT", "SETNAME", administrator_name});  // refused while loading: no matter
        }
        return administrator_->command(arguments);
    } catch (...) {
        administrator_.reset();  // what state it is in is anybody's guess: the next command gets a new one
        throw;
    }
}

reply redis_server::must(std::vector<std::string> const& arguments) {
    auto answer = command(arguments);
    if (answer.is_error()) throw std::runtime_error{arguments.front() + ": " + answer.text};
    return answer;
}

std::string redis_server::info(std::string const& field) {
    std::istringstream lines{must({"INFO", "everything"}).text};
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(field + ":")) return line.substr(field.size() + 1, line.size() - field.size() - 2);
    return {};
}

int redis_server::connections() {
    std::istringstream lines{must({"CLIENT", "LIST"}).text};
    int count = 0;
    for (std::string line; std::getline(lines, line);)
        if (line.find(std::string{" name="} + administrator_name + " ") == std::string::npos) ++count;
    return count;
}

void redis_server::forget_administrator() {
    std::lock_guard const lock{administrator_mutex_};
    administrator_.reset();
}

void redis_server::kill9() {
    child_->kill(SIGKILL);
    if (!child_->wait()) throw std::runtime_error{"redis-server survives SIGKILL"};
    forget_administrator();
    stopped_ = false;
}

void redis_server::stop() {
    child_->stop();
    stopped_ = true;
}

void redis_server::cont() {
    child_->cont();
    stopped_ = false;
}

void redis_server::shutdown() {
    try {
        static_cast<void>(command({"SHUTDOWN", "NOSAVE", "NOW"}));
    } catch (std::exception const&) {
        // The connection ends without a reply: that is the reply.
    }
    if (!child_->wait()) throw std::runtime_error{"redis-server does not shut down:\n" + log()};
    forget_administrator();
}

void redis_server::restart(readiness wanted) {
    if (running()) kill9();
    forget_administrator();
    // The port is still reserved, but a connection to the killed server may take a moment to let go of it.
    for (auto const deadline = now_ms() + 10000; now_ms() < deadline;) {
        launch();
        if (eventually([&] { return answers(wanted) || !running(); }, 30s) && running()) return;
        child_->kill();
    }
    throw std::runtime_error{"redis-server does not come back:\n" + log()};
}

std::string redis_server::log() const {
    std::ifstream file{home_.file("log")};
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace lockstep::test
