// A consumer of a stream that a test stops or kills in the middle.
//   stream_worker <url> <stream> <group> <idle limit ms> <where to halt> [<its name in the group> <max deliveries>]
// Says "got <n>" when its handler gets the entry whose value is n, and "did <n>" when it has handled it. It halts, says "halted" and waits to be killed
//   begin    at the begin of its first handler
//   end      at the end of its first handler, before the entry is acknowledged
//   never    not at all
//   poison   not at all, but it dies at the begin of its handler of an entry whose value is "poison"
// The end of its input ends it, in order, and it says "stopped".
#include <lockstep/client.hpp>
#include <lockstep/consumer.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <mutex>
#include <string>

namespace {

std::mutex output;

void say(std::string const& line) {
    std::lock_guard const guard{output};
    std::cout << line << std::endl;
}

void halt() {
    say("halted");
    while (true) ::pause();
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 6 && count != 8) return 2;
    std::string const where = arguments[5];
    lockstep::client client{{.url = arguments[1], .name = "stream_worker"}};
    lockstep::consumer_options options{.group = arguments[3]};
    options.idle_limit = std::chrono::milliseconds{std::stoi(arguments[4])};
    if (count == 8) {
        options.name = arguments[6];
        options.max_deliveries = std::stoi(arguments[7]);
    }
    lockstep::consumer worker{client, arguments[2],
                              [&](lockstep::delivery const& what) {
                                  auto const value = what.as<std::string>();
                                  say("got " + value);
                                  if (where == "begin") halt();
                                  if (where == "poison" && value == where) std::raise(SIGKILL);
                                  say("did " + value);
                                  if (where == "end") halt();
                              },
                              options};
    for (std::string line; std::getline(std::cin, line);) {
    }
    worker.stop();
    say("stopped");
    return 0;
} catch (std::exception const& failure) {
    say(std::string{"failed: "} + failure.what());
    return 1;
}
