// A process of a fleet behind a circuit breaker: `breaker_user <url> <name> <threshold> <recovery_ms> <probes> <reporters> <lease_ms> <host>`. Says "ready" when
// it has heard of the state. Each line of input is answered by one line:
//   ok, fail     makes a call that ends so      ok | fail | refused
//   allow        asks for a permit and keeps it  call | probe | refused
//   success, failure, drop   says so of it      said
//   state        closed | open | half_open
#include "support/on_host.hpp"

#include <lockstep/circuit_breaker.hpp>

#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

int main(int, char** arguments) {
    auto const number = [&](int i) { return std::stoi(arguments[i]); };
    lockstep::client client{{.url = arguments[1], .command_timeout = std::chrono::seconds{40}}};
    lockstep::test::on_host const there{arguments[8]};
    lockstep::circuit_breaker breaker{client,
                                      arguments[2],
                                      {.failure_threshold = number(3),
                                       .sampling = std::chrono::minutes{10},
                                       .recovery_timeout = std::chrono::milliseconds{number(4)},
                                       .half_open_probes = number(5),
                                       .probe_lease = std::chrono::milliseconds{number(7)},
                                       .quorum_of_reporters = number(6),
                                       .report_interval = std::chrono::milliseconds{20},
                                       .server_timeout = std::chrono::seconds{40}}};
    breaker.look();
    std::optional<lockstep::circuit_permit> permit;
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        std::string answer = "said";
        if (line == "ok" || line == "fail") {
            try {
                breaker.execute([&] {
                    if (line == "fail") throw std::runtime_error("it does not work");
                });
                answer = "ok";
            } catch (lockstep::circuit_open_error const&) {
                answer = "refused";
            } catch (std::runtime_error const&) {
                answer = "fail";
            }
        } else if (line == "allow") {
            auto given = breaker.try_allow();
            answer = !given ? "refused" : given->is_probe() ? "probe" : "call";
            permit = std::move(given);
        } else if (line == "state") {
            answer = to_string(breaker.state().state);
        } else if (permit) {
            if (line == "success") permit->success();
            if (line == "failure") permit->failure();
            permit.reset();
        }
        std::cout << answer << std::endl;
    }
}
