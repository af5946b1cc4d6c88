// A program that uses an embedded server, to be killed while it does.
//   embedded_owner private [data directory]   owns a server, made in a thread that has ended; says "<url> <pid>" and waits
//   embedded_owner shared                     says "ready", waits for a line, uses the shared server, says "<url> <pid>" and waits
//   embedded_owner shared_twice               uses it twice, with what Lockstep logs in its output, and says "done"
#include <lockstep/embedded_server.hpp>

#include <unistd.h>

#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

namespace {

void own_a_private_one(std::string const& data_directory) {
    std::optional<lockstep::embedded_server> server;
    std::thread{[&] { server.emplace(lockstep::embedded_server_options{.data_directory = data_directory}); }}.join();
    std::cout << server->url() << ' ' << server->pid() << std::endl;
    while (true) ::pause();
}

void use_the_shared_one() {
    std::cout << "ready" << std::endl;
    std::string line;
    std::getline(std::cin, line);
    auto const url = lockstep::ensure_shared_server({.announce = false});
    std::cout << url << ' ' << lockstep::shared_server_status().pid << std::endl;
    std::getline(std::cin, line);  // ends when the input does
}

}  // namespace

int main(int count, char** arguments) try {
    std::string const mode = count > 1 ? arguments[1] : "";
    if (mode == "private") own_a_private_one(count > 2 ? arguments[2] : "");
    if (mode == "shared") use_the_shared_one();
    if (mode == "shared_twice") {
        lockstep::ensure_shared_server();
        lockstep::ensure_shared_server();
        std::cout << "done" << std::endl;
    }
    return mode.starts_with("shared") ? 0 : 2;
} catch (std::exception const& failure) {
    std::cout << "failed: " << failure.what() << std::endl;
    return 1;
}
