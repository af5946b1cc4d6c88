#include <lockstep/monitor.hpp>

#include "lease/hub.hpp"
#include "lease/tally.hpp"
#include "observe/offload.hpp"
#include "observe/picture.hpp"
#include "observe/reader.hpp"
#include "resp/cursor.hpp"

#include "base/names.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

namespace lockstep {
namespace {

using observe::reader;
using observe::survey_terms;

reader reader_of(client& by, observe::latest_notes& notes, std::chrono::milliseconds within = {}) {
    auto const& core = detail::core_access::of(by);
    core->require_same_process();
    return reader{core, notes.begin(), within};
}

task<snapshot> look(reader from, survey_terms what) {
    auto looking = observe::take_picture(from, std::move(what));
    auto seen = co_await std::move(looking);
    auto describing = observe::describe_pairs_once(from, std::move(seen));
    co_return co_await std::move(describing);
}

task<std::vector<hold_info>> holds_of(reader from, survey_terms what, bool stale_only) {
    auto looking = look(std::move(from), std::move(what));
    auto seen = co_await std::move(looking);
    if (stale_only) std::erase_if(seen.holds, [](hold_info const& one) { return !one.stale; });
    co_return std::move(seen.holds);
}

task<std::vector<wait_info>> waits_of(reader from, survey_terms what) {
    auto looking = look(std::move(from), std::move(what));
    auto seen = co_await std::move(looking);
    co_return std::move(seen.waits);
}

task<std::vector<client_info>> clients_of(reader from) {
    auto asking = observe::take_census(std::move(from));
    auto const people = co_await std::move(asking);
    co_return observe::clients_of(people);
}

constexpr std::size_t fields_of_a_scan = 500;
constexpr std::size_t most_fields = 200'000;
constexpr std::size_t largest_field = std::size_t{16} << 10;  // twice what a client writes

timing as_timing(base::histogram const& from) {
    return {.count = from.count,
            .average = from.average(),
            .p50 = from.percentile(50),
            .p95 = from.percentile(95),
            .p99 = from.percentile(99),
            .max = std::chrono::microseconds{static_cast<std::int64_t>(from.max_us)}};
}

name_statistics as_statistics(std::string name, std::string kind, engine::counts const& from) {
    return {.name = std::move(name),
            .kind = std::move(kind),
            .acquisitions = from.acquisitions,
            .waits = from.waits,
            .timeouts = from.timeouts,
            .losses = from.losses,
            .held = as_timing(from.held),
            .waited = as_timing(from.waited)};
}

task<std::vector<name_statistics>> statistics_of(reader from, std::string wanted) {
    auto const key = from.key("statistics", "names");
    std::vector<name_statistics> all;
    engine::counts total;
    std::unordered_set<std::string> seen;  // HSCAN may show a field twice
    std::string cursor = "0";
    observe::walk_limit limit{from, key, fields_of_a_scan, most_fields};
    try {
        do {
            auto asking = observe::scan_page(from, "HSCAN", key, cursor, fields_of_a_scan, largest_field);
            auto const said = co_await std::move(asking);
            cursor = said[0].text();
            for (resp::cursor rest{said, 2}; rest.left() >= 2;) {
                auto const field = rest.next().text();
                auto const counted = engine::counts::from(rest.next().text());
                if (!counted || !seen.emplace(field).second) continue;
                auto const space = field.find(' ');
                std::string const kind{field.substr(0, space)};
                if (space == std::string_view::npos) {
                    total.add(*counted);
                    continue;
                }
                auto name = base::decode_name(field.substr(space + 1));
                if (!name || (!wanted.empty() && *name != wanted)) continue;
                all.push_back(as_statistics(std::move(*name), kind, *counted));
            }
        } while (cursor != "0" && limit.goes_on());
    } catch (server_error const& problem) {
        from.note_or_throw(key, problem);
    }
    auto const size = all.size();
    auto work = [all = std::move(all), first = as_statistics({}, {}, total)]() mutable {
        std::sort(all.begin(), all.end(), [](name_statistics const& a, name_statistics const& b) {
            return std::tie(b.acquisitions, a.name, a.kind) < std::tie(a.acquisitions, b.name, b.kind);
        });
        all.insert(all.begin(), std::move(first));
        return std::move(all);
    };
    auto sorting = observe::offload(from, size, std::move(work));
    co_return co_await std::move(sorting);
}

task<std::vector<contention_info>> contention_of(reader from, std::chrono::milliseconds limit) {
    auto looking = observe::take_picture(from, survey_terms{{}, false});
    auto picture = co_await std::move(looking);
    auto const size = observe::elements_of(picture);
    auto work = [picture = std::move(picture)] { return observe::describe(picture); };  // each queue by itself
    auto describing = observe::offload(from, size, std::move(work));
    auto const seen = co_await std::move(describing);
    auto counting = statistics_of(from, {});
    auto const counted = co_await std::move(counting);
    std::map<std::pair<std::string, std::string>, contention_info> all;
    auto const entry = [&](std::string const& name, std::string const& kind) -> contention_info& {
        auto& one = all[{name, kind}];
        one.name = name;
        one.kind = kind;
        return one;
    };
    for (auto const& one : seen.waits) {
        auto& known = entry(one.name, one.kind);
        ++known.queue;
        if (known.longest_by.id.empty() || one.waiting_for > known.longest) {
            known.longest = one.waiting_for;
            known.longest_by = one.who;
        }
    }
    for (auto const& one : seen.objects) {
        if (one.queue != 0) entry(one.name, one.kind).queue = one.queue;
    }
    for (auto const& one : counted) {
        if (one.name.empty()) continue;
        if (all.contains({one.name, one.kind}) || one.waited.average > limit) entry(one.name, one.kind).waited = one.waited;
    }
    std::vector<contention_info> sorted;
    for (auto& [key, one] : all) sorted.push_back(std::move(one));
    std::stable_sort(sorted.begin(), sorted.end(), [](contention_info const& a, contention_info const& b) {
        return std::tie(b.longest, b.queue, b.waited.average) < std::tie(a.longest, a.queue, a.waited.average);
    });
    co_return sorted;
}

/// Names as users give them; the empty one means all.
std::string checked(std::string_view name) {
    if (!name.empty()) base::encode_name(name);
    return std::string{name};
}

}  // namespace

monitor::monitor(client& by) : client_(&by), notes_(std::make_shared<observe::latest_notes>()) {}

std::vector<std::string> monitor::notes() const { return notes_->list(); }

std::string monitor::client_id() const {
    auto const& core = detail::core_access::of(*client_);
    core->require_same_process();
    return engine::hub::of(*core).client_id();
}

task<snapshot> monitor::async_snapshot(snapshot_options options) {
    checked(options.name);
    return look(reader_of(*client_, *notes_, options.within), survey_terms{options});
}
snapshot monitor::snapshot(snapshot_options options) { return sync_wait(async_snapshot(options)); }

task<std::vector<hold_info>> monitor::async_active(std::string_view name) {
    checked(name);
    return holds_of(reader_of(*client_, *notes_), survey_terms{{.name = name, .holders = observe::all_holds, .waiters = 0}, false}, false);
}
std::vector<hold_info> monitor::active(std::string_view name) { return sync_wait(async_active(name)); }

task<std::vector<wait_info>> monitor::async_waiters(std::string_view name) {
    checked(name);
    return waits_of(reader_of(*client_, *notes_), survey_terms{{.name = name, .waiters = 1'000}, false});
}
std::vector<wait_info> monitor::waiters(std::string_view name) { return sync_wait(async_waiters(name)); }

task<std::vector<hold_info>> monitor::async_stale() { return holds_of(reader_of(*client_, *notes_), survey_terms{{.holders = observe::all_holds, .waiters = 0}, false}, true); }
std::vector<hold_info> monitor::stale() { return sync_wait(async_stale()); }

task<std::vector<client_info>> monitor::async_clients() { return clients_of(reader_of(*client_, *notes_)); }
std::vector<client_info> monitor::clients() { return sync_wait(async_clients()); }

task<std::vector<name_statistics>> monitor::async_statistics(std::string_view name) { return statistics_of(reader_of(*client_, *notes_), checked(name)); }
std::vector<name_statistics> monitor::statistics(std::string_view name) { return sync_wait(async_statistics(name)); }

task<std::vector<contention_info>> monitor::async_contention(std::chrono::milliseconds limit) {
    return contention_of(reader_of(*client_, *notes_), limit);
}
std::vector<contention_info> monitor::contention(std::chrono::milliseconds limit) { return sync_wait(async_contention(limit)); }

}  // namespace lockstep
