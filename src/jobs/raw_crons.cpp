#include <lockstep/detail/raw_crons.hpp>

#include "core/keyed.hpp"
#include "jobs/cron_text.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <array>
#include <utility>

namespace lockstep::detail {
namespace {

using office = std::shared_ptr<keyed const>;

constexpr std::size_t page = 1'000;

task<reply> ask(office of, scripts::script const& script, std::span<argument const> words) {
    auto const crons = of->key_of("crons");
    auto const specs = of->key_of("crons:specs");
    auto const last = of->key_of("crons:last");
    std::string_view const keys[] = {crons, specs, last};
    keyed::terms const how;
    auto asking = of->run(script, keys, words, how);
    co_return co_await std::move(asking);
}

/// Those who fire schedules hear it.
std::string tell_of(keyed const& of) { return fmt::format("{} {}", of.owner()->is_cluster() ? "SPUBLISH" : "PUBLISH", of.key_of("crons:changed")); }

task<system_time> server_time(office of) {
    auto asking = of->command({"TIME"});
    auto const said = co_await std::move(asking);
    co_return time_of_ms(said[0].as<std::int64_t>() * 1'000 + said[1].as<std::int64_t>() / 1'000);
}

task<system_time> put(office of, std::string id, cron_schedule when, std::string spec) {
    auto looking = server_time(of);
    auto const now = co_await std::move(looking);
    auto const tell = tell_of(*of);
    auto const next = std::to_string(ms_of(when.next(now)));
    std::array<argument, 4> const words{tell, id, next, spec};
    auto asking = ask(of, scripts::cron_put, words);
    auto const said = co_await std::move(asking);
    co_return time_of_ms(said[0].integer());
}

task<bool> change(office of, std::string what, std::string id) {
    auto const tell = tell_of(*of);
    std::int64_t version = 0;
    std::int64_t next = 0;
    if (what == "resume") {
        auto reading = of->command({"HGET", of->key_of("crons:specs"), id});
        auto const spec = co_await std::move(reading);
        if (spec.is_null()) co_return false;
        auto const head = read_cron_head(spec.text().substr(0, spec.text().find('\n')));
        cron_schedule const when{head.expression, head.zone};
        auto looking = server_time(of);
        auto const now = co_await std::move(looking);
        version = head.version;
        next = ms_of(when.next(now));
    }
    std::array<argument, 5> const words{tell, id, what, version, next};
    auto asking = ask(of, scripts::cron_change, words);
    auto const said = co_await std::move(asking);
    co_return said.integer() == 1;
}

task<std::vector<cron_info>> list(office of) {
    std::vector<cron_info> all;
    for (std::size_t from = 0;; from += page) {
        std::array<argument, 2> const words{from, page};
        auto asking = ask(of, scripts::cron_list, words);
        auto const said = co_await std::move(asking);
        for (auto const row : said) all.push_back(read_cron(row[0].text(), row[1].integer(), row[2].text(), row[3].text()));
        if (said.size() < page) co_return all;
    }
}

}  // namespace

raw_crons::raw_crons(client& by, std::string_view name) : all_(std::make_shared<keyed const>(by, name, "jobs")) {}

task<system_time> raw_crons::async_put(std::string_view id, std::string_view type, std::string payload, cron_options const& how) {
    all_->require_usable();
    auto spec = write_cron(id, type, payload, how);
    return put(all_, std::string{id}, cron_schedule{how.expression, how.zone}, std::move(spec));
}

task<bool> raw_crons::async_change(std::string_view what, std::string_view id) {
    check_cron_id(id);
    all_->require_usable();
    return change(all_, std::string{what}, std::string{id});
}

task<std::vector<cron_info>> raw_crons::async_list() {
    all_->require_usable();
    return list(all_);
}

}  // namespace lockstep::detail
