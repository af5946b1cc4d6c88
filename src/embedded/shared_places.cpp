#include "shared_places.hpp"

#include "files.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace lockstep::embedded {
namespace {

std::string variable(char const* name) {
    auto const* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

bool fits(shared_place const& place) { return place.socket().size() <= max_socket_path; }

shared_place checked(std::string directory, std::string_view from) {
    while (directory.size() > 1 && directory.back() == '/')
        directory.pop_back();  // "x/" would follow a symbolic link x
    if (!directory.starts_with('/')) {
        throw invalid_argument_error{fmt::format("{} must be an absolute path, not {}", from, directory)};
    }
    shared_place place{.directory = std::move(directory), .given = true};
    if (!fits(place)) {
        throw invalid_argument_error{fmt::format("{} is too long for a unix socket: {} has {} bytes, {} are allowed",
                                                 from, place.socket(), place.socket().size(), max_socket_path)};
    }
    return place;
}

// $HOME, unless it is another's, as under some forms of sudo; then what the user database says.
std::string home() {
    if (auto place = variable("HOME"); place.starts_with('/') && is_own_directory(place)) return place;
    std::vector<char> buffer(16'384);
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
    return is_own_directory(entry.pw_dir) ? entry.pw_dir : "";
}

std::string host_name() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    std::string host = name;
    std::replace(host.begin(), host.end(), '/', '_');
    return host.empty() || host.front() == '.' ? "localhost" : host;
}

// Empty where there is no home to put it in, or it belongs elsewhere.
std::string data_in_home(shared_place const& place) {
    if (place.given) return {};
    auto state = variable("XDG_STATE_HOME");
    if (!state.starts_with('/')) {
        state = home();
        if (state.empty()) return {};
        state += "/.local/state";
    }
    return fmt::format("{}/lockstep/{}", state, host_name());
}

}  // namespace

std::string shared_place::socket() const { return fmt::format("{}/{}", directory, socket_name); }

shared_place find_shared_place(shared_server_options const& options) {
    if (!options.directory.empty()) return checked(options.directory, "the option directory");
    if (auto const wanted = variable("LOCKSTEP_EMBEDDED_DIR"); !wanted.empty())
        return checked(wanted, "LOCKSTEP_EMBEDDED_DIR");
    // /run/user/<uid> is what XDG_RUNTIME_DIR says in a session; programs started by cron have no such variable. Another
    // user's (su keeps the variable) is passed over, and so is one that others can write to: they could exchange the socket.
    for (auto const& base : {variable("XDG_RUNTIME_DIR"), fmt::format("/run/user/{}", ::geteuid())}) {
        shared_place place{.directory = base + "/lockstep"};
        if (base.starts_with('/') && is_private_directory(base) && ::access(base.c_str(), W_OK | X_OK) == 0 && fits(place))
            return place;
    }
    return {.directory = fmt::format("/tmp/lockstep-{}", ::geteuid())};
}

std::string make_data_directory(shared_place const& place) {
    if (auto data = data_in_home(place); !data.empty()) {
        try {
            require_own_directory(data, "the data directory", links::follow);
            if (::access(data.c_str(), W_OK | X_OK) == 0) return data;
        } catch (error const& refused) {  // a read-only home, say
            log(log_level::debug, refused.what());
        }
    }
    require_own_directory(place.data_inside(), "the data directory", links::follow);
    return place.data_inside();
}

std::string likely_data_directory(shared_place const& place) {
    auto data = data_in_home(place);
    return !data.empty() && is_own_directory(data) ? data : place.data_inside();
}

std::chrono::milliseconds idle_time(shared_server_options const& options) {
    using namespace std::chrono_literals;
    if (options.idle) {
        if (*options.idle < 0ms) throw invalid_argument_error{"idle must not be negative"};
        return *options.idle;
    }
    auto const text = variable("LOCKSTEP_EMBEDDED_IDLE");
    if (text.empty()) return 15min;
    char* end = nullptr;
    auto const seconds = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !std::isfinite(seconds) || seconds < 0 || seconds > 1e9) {
        throw invalid_argument_error{fmt::format("LOCKSTEP_EMBEDDED_IDLE must be a number of seconds, not {}", text)};
    }
    return std::chrono::milliseconds{static_cast<std::int64_t>(seconds * 1000)};
}

}  // namespace lockstep::embedded
