// How late the jobs of schedules come: from their due time to the moment when the server had them in their queue, both by its clock.
#include "jobs/cases.hpp"

#include <lockstep/job_client.hpp>
#include <lockstep/job_worker.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::system_clock;

constexpr int schedules = 10'000;

/// One call after the other would take long: some thousand at once.
void put_all(job_client& to, std::function<std::string(int)> const& expression) {
    std::vector<std::string> texts;
    for (int i = 0; i != schedules; ++i) texts.push_back(expression(i));
    std::vector<task<system_clock::time_point>> putting;
    for (std::size_t i = 0; i != texts.size(); ++i) {
        cron_options const how{.expression = texts[i]};
        putting.push_back(to.async_cron(fmt::format("n{}", i), "job", std::string{"x"}, how));
    }
    sync_wait(when_all(std::move(putting)));
}

std::vector<double> lateness(job_client& of) {
    std::vector<double> found;
    while (true) {
        auto const page = of.list("job", job_state::waiting, found.size(), 1'000);
        for (auto const& one : page) found.push_back(std::chrono::duration<double, std::milli>(one.created - one.due).count());
        if (page.size() < 1'000) return found;
    }
}

}  // namespace

void schedules_over_the_hour(stand& all, peer_kit&, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    job_client to{through, "bench"};
    put_all(to, [](int i) {
        auto const second = i * 3'600 / schedules;
        return fmt::format("{} {} * * * *", second % 60, second / 60);
    });
    job_worker worker{through, "bench"};
    worker.start();
    std::this_thread::sleep_for(all.chosen.is_quick() ? 10s : 60s);
    worker.stop();
    auto const seen = summarize(lateness(to));
    all.rows.add({.name = name + ", lateness", .value = seen.median, .unit = "ms", .kind = bar_kind::value_at_most, .bar = 20});
    all.redis.command({"FLUSHALL"});
}

void schedules_in_one_second(stand& all, peer_kit&, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    job_client to{through, "bench"};
    auto const soon = std::chrono::duration_cast<std::chrono::seconds>((system_clock::now() + 20s).time_since_epoch()).count();
    put_all(to, [&](int) { return fmt::format("{} * * * * *", soon % 60); });
    job_worker worker{through, "bench"};
    worker.start();
    while (to.counts("job").ever_added < schedules) std::this_thread::sleep_for(50ms);
    worker.stop();
    auto const times = lateness(to);
    all.rows.add({.name = name + ", until the last has its job",
                  .value = *std::max_element(times.begin(), times.end()),
                  .unit = "ms",
                  .kind = bar_kind::value_at_most,
                  .bar = 2'000});
    all.redis.command({"FLUSHALL"});
}

}  // namespace lockstep::bench
