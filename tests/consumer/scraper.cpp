// What a stranger's first scrape does, where lockstep::metrics was installed.
#include <lockstep/lockstep.hpp>
#include <lockstep/metrics.hpp>

#include <prometheus/text_serializer.h>

#include <cstdio>
#include <string>

int main() try {
    lockstep::embedded_server server;
    lockstep::client client{server.url()};
    lockstep::mutex(client, "name").acquire().release();
    lockstep::metrics const metrics{client, {.fleet = true}};
    auto const text = prometheus::TextSerializer{}.Serialize(metrics.Collect());
    bool const counted = text.find("lockstep_acquisitions_total{kind=\"lock\"} 1\n") != std::string::npos;
    std::puts(counted && check_health(client).state != lockstep::health_state::unhealthy ? "ok" : text.c_str());
} catch (lockstep::error const& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
}
