// The dashboard's server, for the tests of the page.
//   dashboard_host <url> [--port N] [--token TOKEN] [--actions] [--prefix PREFIX] [--tls-cert FILE --tls-key FILE]
// With --actions and no token it makes one. Says its address; then, for each line of input, "ok" and a link that logs in once. Ends with its input.
#include "dashboard/credentials.hpp"
#include "dashboard/server.hpp"

#include <lockstep/client.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>

int main(int count, char** arguments) try {
    if (count < 2) return 2;
    lockstep::client_options connection{
        .url = arguments[1], .name = "dashboard", .command_timeout = std::chrono::seconds{3}};
    lockstep::dashboard::server_options options{.port = 0, .by = "tester"};
    for (int i = 2; i < count; ++i) {
        std::string const option = arguments[i];
        if (option == "--actions") {
            options.allow_actions = true;
            continue;
        }
        if (i + 1 == count) return 2;
        std::string const value = arguments[++i];
        if (option == "--port") options.port = static_cast<std::uint16_t>(std::stoi(value));
        if (option == "--token") options.token = value;
        if (option == "--prefix") connection.prefix = value;
        if (option == "--tls-cert") options.certificate_file = value;
        if (option == "--tls-key") options.key_file = value;
    }
    if (options.allow_actions && options.token.empty()) options.token = lockstep::dashboard::random_secret();
    lockstep::client client{connection};
    lockstep::dashboard::monitor_backend backend{client};
    lockstep::dashboard::server server{backend, options};
    std::cout << server.url() << std::endl;
    for (std::string line; std::getline(std::cin, line);) std::cout << "ok " << server.login_link(std::chrono::minutes{2}) << std::endl;
    return 0;
} catch (std::exception const& failure) {
    std::cerr << "dashboard_host: " << failure.what() << '\n';
    return 1;
}
