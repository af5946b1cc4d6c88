// Starts a sleeper, from a thread that ends at once, prints its pid and waits to be killed: the sleeper must outlive the
// thread and die with this process.
#include "../child_process.hpp"
#include "../program_path.hpp"

#include <unistd.h>

#include <iostream>
#include <optional>
#include <thread>

int main() {
    std::optional<lockstep::test::child_process> child;
    std::thread{[&child] { child.emplace(std::vector{lockstep::test::program_path("sleeper")}); }}.join();
    if (!child->read_line() || !child->write_line("alive") || child->read_line() != "alive") return 1;
    std::cout << child->pid() << std::endl;
    while (true) ::pause();
}
