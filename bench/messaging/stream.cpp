// A stream's consumer whose handlers do nothing, against the loop that somebody would write by hand.

#include "messaging/cases.hpp"
#include "support/finish_line.hpp"
#include "support/load.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/stream.hpp>

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr std::size_t batch = 100;
constexpr auto* group = "bench";

/// XREADGROUP COUNT 100, look at each entry, XACK of all of them; on the client's connection.
worker read_and_acknowledge(load& work, client& through, std::string const& key) {
    while (true) {
        auto reading = through.async_command("XREADGROUP", "GROUP", group, "raw", "COUNT", batch, "STREAMS", key, ">");
        auto const said = co_await std::move(reading);
        if (said.is_null()) break;
        std::vector<std::string_view> words{"XACK", key, group};
        for (auto const entry : said[1]) {
            load::expect(work.take() && entry[1][1].text().size() == 32);
            words.push_back(entry[0].text());
        }
        auto const acknowledging = request::from(words);
        auto asking = through.async_execute(acknowledging);
        auto const number = co_await std::move(asking);
        load::expect(number.integer() == static_cast<std::int64_t>(words.size() - 3));
    }
    load::expect(!work.take());
}

}  // namespace

void stream_consumer(stand& all, peer_kit&, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    stream entries{through, "bench"};
    std::size_t const count = all.chosen.is_quick() ? 20'000 : 100'000;
    // Read again and again: a new group has all of them before it.
    std::vector<stream_fields> const some(1'000, {{"data", std::string(32, 'x')}});
    for (std::size_t i = 0; i != count; i += some.size()) entries.add_all(some);

    auto const measured = [&](auto run) {
        entries.create_group(group);
        auto const before = all.redis.cpu_seconds();
        measurement seen = run();
        seen.server_cpu = all.redis.cpu_seconds() - before;
        entries.destroy_group(group);
        return seen;
    };
    auto const ours = [&] {
        finish_line line{count};
        auto const begun = wall_seconds();
        consumer worker{through, "bench",
                        [&line](delivery const&) -> task<void> {
                            line.pass();
                            co_return;
                        },
                        {.group = group, .concurrency = 50, .batch = batch}};
        line.wait();
        worker.stop();  // all of them are acknowledged then
        measurement const seen{.operations = count, .seconds = wall_seconds() - begun};
        load::expect(worker.statistics().acknowledged == count);
        return seen;
    };
    auto const raw = [&] {
        return run_load(through, {1, count}, [&](load& work, client& by, std::size_t) { return read_and_acknowledge(work, by, entries.key()); });
    };
    rounds const seen{{{"ours", [&] { return measured(ours); }}, {"raw loop", [&] { return measured(raw); }}}, all.chosen};
    all.rows.add({.name = name + ", against a raw loop of XREADGROUP and XACK",
                  .value = seen.of(0, &measurement::rate).median,
                  .unit = "entries/s",
                  .baseline = seen.of(1, &measurement::rate).median,
                  .ratio = seen.ratio(0, 1, &measurement::rate),
                  .kind = bar_kind::ratio_at_least,
                  .bar = 0.8});
    all.rows.add({.name = name + ", server CPU, against the raw loop",
                  .value = seen.of(0, &measurement::server_micros).median,
                  .unit = "us",
                  .baseline = seen.of(1, &measurement::server_micros).median,
                  .ratio = seen.ratio(0, 1, &measurement::server_micros)});
}

}  // namespace lockstep::bench
