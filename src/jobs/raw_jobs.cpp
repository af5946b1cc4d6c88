#include <lockstep/detail/raw_jobs.hpp>

#include "base/words.hpp"
#include "core/subscription.hpp"
#include "jobs/job_office.hpp"
#include "jobs/job_text.hpp"
#include "messaging/doorbell.hpp"
#include "messaging/raw_queue_parts.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/job_flow.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using place = std::shared_ptr<depot>;
using office = std::shared_ptr<job_office>;

constexpr milliseconds look_every = 30s;
constexpr std::size_t most_listed = 1'000;
constexpr std::size_t most_at_once = 4'000;

[[noreturn]] void refuse(std::string_view name, std::string_view what) { throw invalid_argument_error(fmt::format("jobs '{}': {}", name, what)); }

void check_page(std::string_view name, std::size_t most) {
    if (most < 1 || most > most_listed) refuse(name, fmt::format("1 to {} jobs are listed at once, not {}", most_listed, most));
}

/// As job_push.lua wants them.
std::string words_of(std::string_view name, job_options const& how, std::size_t count) {
    auto const where = write_place(how);
    if (how.key.size() > 512) refuse(name, fmt::format("a key must be 512 bytes at most, not {}", how.key.size()));
    if (how.key_window < 0ms || how.key_window > std::chrono::hours{24 * 366 * 10}) refuse(name, "key_window must be 0 to 10 years");
    if (!how.key.empty() && count > 1) refuse(name, "of many jobs with one key all but the first would be left out");
    bool const has_time = how.at != std::chrono::system_clock::time_point{};
    if (how.delay == 0ms && !has_time && how.priority == 0 && how.key.empty()) return {};
    return fmt::format("{} {} {}", where.substr(0, where.rfind(' ')), how.key.empty() ? 0 : how.key_window.count(), how.key);
}

task<std::vector<scheduled>> counted(office of, task<std::vector<scheduled>> adding) {
    auto all = co_await std::move(adding);
    auto const added = std::count_if(all.begin(), all.end(), [](scheduled const& one) { return one.is_new; });
    queue_tally::count(of->tally().scheduled, static_cast<std::uint64_t>(added));
    co_return all;
}

task<std::vector<scheduled>> schedule(place at, std::string type, cargo load) {
    auto sending = send(std::move(at), nullptr, std::move(load));
    auto const sent = co_await std::move(sending);
    std::vector<scheduled> all;
    all.reserve(sent.size());
    for (auto const& one : sent) all.push_back({type + '/' + one.id, one.is_new});
    co_return all;
}

using ids_by_name = std::map<std::string, std::string, std::less<>>;

/// Jobs that have to do with others. The words of each, as job_add.lua wants them.
task<std::vector<scheduled>> add_linked(office of, place at, std::vector<std::string> words) {
    std::vector<scheduled> all;
    for (std::size_t i = 0; i != words.size(); i += addition::words_of_each) all.push_back({words[i], true});
    addition adding{of->additions(), std::move(at), std::move(words)};
    co_await adding;
    for (std::size_t i = 0; i != all.size(); ++i) {
        all[i].id += '/' + adding.ids[i].first;
        all[i].is_new = adding.ids[i].second;
    }
    co_return all;
}

/// The same of one type, however many.
task<std::vector<scheduled>> schedule_linked(office of, place at, std::string type, std::array<std::string, 3> how, std::vector<std::string> payloads) {
    std::vector<scheduled> all;
    for (std::size_t i = 0; i != payloads.size();) {
        std::vector<std::string> words;
        for (std::size_t end = std::min(i + most_at_once, payloads.size()); i != end; ++i) {
            words.insert(words.end(), {type, how[0], how[1], how[2], {}, std::move(payloads[i])});
        }
        auto adding = add_linked(of, at, std::move(words));
        auto some = co_await std::move(adding);
        std::move(some.begin(), some.end(), std::back_inserter(all));
    }
    co_return all;
}

task<ids_by_name> add_flow(office of, place at, std::vector<job_flow::node> all) {
    std::vector<std::string> words;
    words.reserve(addition::words_of_each * all.size());
    for (auto& one : all) {
        words.push_back(one.type);
        words.push_back(std::move(one.place));
        words.push_back(std::move(one.single));
        words.push_back(std::move(one.batch));
        words.push_back(fmt::format("{}", fmt::join(one.parents, " ")));
        words.push_back(std::move(one.payload));
    }
    auto adding = counted(of, add_linked(of, std::move(at), std::move(words)));
    auto added = co_await std::move(adding);
    ids_by_name ids;
    for (std::size_t i = 0; i != all.size(); ++i) ids.emplace(std::move(all[i].name), std::move(added[i].id));
    co_return ids;
}

task<bool> change(place at, std::string what, std::string id, milliseconds delay, std::int32_t priority) {
    std::vector<std::string> keys{at->what().key()};
    for (auto const* const part : {"ready", "ranked", "later", "held", "items", "dedup", "recent", "waiting", "absent"}) keys.push_back(at->what().key_of(part));
    std::vector<std::string> words{std::move(what), std::move(id), std::to_string(delay.count()), std::to_string(priority)};
    auto changing = depot::run_once(std::move(at), scripts::job_change, std::move(keys), std::move(words));
    auto const changed = co_await std::move(changing);
    co_return changed == 1;
}

task<std::vector<job_info>> read(place at, std::string type, std::vector<std::string> ids) {
    std::vector<job_info> all;
    if (ids.empty()) co_return all;
    auto asking = job_office::run(std::move(at), scripts::job_read, {"", "held", "absent"}, ids);
    auto const said = co_await std::move(asking);
    for (std::size_t i = 0; i != said.size(); ++i) all.push_back(read_job(type, ids[i], said[i]));
    co_return all;
}

task<std::optional<job_info>> find(place at, job_name what) {
    std::vector<std::string> ids{what.id};
    auto reading = read(std::move(at), what.type, std::move(ids));
    auto all = co_await std::move(reading);
    if (all.front().state == job_state::unknown) co_return std::nullopt;
    co_return std::optional<job_info>{std::move(all.front())};
}

task<reply> list_ids(place at, std::string_view state, std::size_t from, std::size_t most) {
    std::vector<std::string> words{std::string{state}, std::to_string(from), std::to_string(most)};
    return job_office::run(std::move(at), scripts::job_list, {"", "ready", "ranked", "later", "held", "absent"}, std::move(words));
}

/// Those that are put off wait, too: behind the others.
task<std::vector<job_info>> list(place at, std::string type, job_state state, std::size_t from, std::size_t most) {
    std::vector<std::string> ids;
    auto asking = list_ids(at, to_string(state), from, most);
    auto said = co_await std::move(asking);
    for (std::size_t i = 1; i < said.size(); ++i) ids.emplace_back(said[i].text());
    if (state == job_state::waiting && ids.size() < most) {
        auto const ready = static_cast<std::size_t>(said[0].integer());
        auto more = list_ids(at, "delayed", from > ready ? from - ready : 0, most - ids.size());
        said = co_await std::move(more);
        for (std::size_t i = 1; i < said.size(); ++i) ids.emplace_back(said[i].text());
    }
    auto reading = read(std::move(at), std::move(type), std::move(ids));
    auto all = co_await std::move(reading);
    std::set<std::string> seen;  // one that was moved may stand in two places
    std::erase_if(all, [&](job_info const& one) { return one.state != state || !seen.insert(one.id).second; });  // or changed meanwhile
    co_return all;
}

task<std::vector<job_info>> list_tagged(place at, std::string type, std::string tag, std::size_t from, std::size_t most) {
    auto asking = list_ids(at, "tag:" + tag, from, most);
    auto const said = co_await std::move(asking);
    std::vector<std::string> ids;
    for (std::size_t i = 1; i < said.size(); ++i) ids.emplace_back(said[i].text());
    auto reading = read(std::move(at), std::move(type), std::move(ids));
    auto all = co_await std::move(reading);
    std::erase_if(all, [](job_info const& one) { return one.state == job_state::unknown; });  // forgotten meanwhile
    co_return all;
}

task<flow_info> read_flow(place at, std::string id, std::size_t most) {
    std::vector<std::string> words{std::move(id), std::to_string(most)};
    auto asking = job_office::run(std::move(at), scripts::job_graph, {"", "absent"}, std::move(words));
    auto const said = co_await std::move(asking);
    flow_info found{.is_whole = said[0].integer() == 0};
    for (std::size_t i = 1; i < said.size(); ++i) found.jobs.push_back(read_flow_job(said[i]));
    if (found.jobs.front().state == job_state::unknown) found.jobs.clear();
    co_return found;
}

task<std::vector<std::string>> read_types(office of) {
    auto asking = of->all().command({"ZRANGE", of->all().key_of("types"), 0, -1});
    auto const said = co_await std::move(asking);
    std::vector<std::string> all;
    for (auto const one : said) all.emplace_back(one.text());
    co_return all;
}

task<job_counts> count(place at) {
    auto asking = job_office::run(std::move(at), scripts::job_count, {"", "ready", "ranked", "later", "held", "absent"}, {});
    auto const said = co_await std::move(asking);
    auto const number = [&](std::size_t i) { return said[i].integer(); };
    co_return job_counts{number(0), number(1), number(2), number(3), number(4), number(5), number(6), number(7), number(8), number(9), number(10), number(11)};
}

/// Rings when the job has ended, or may have.
struct job_end {
    doorbell bell;
};

task<std::optional<job_outcome>> wait(place at, std::string id, std::chrono::steady_clock::time_point until) {
    auto const end = std::make_shared<job_end>();
    auto hearing = job_office::listen(at, "ended:" + id, [end](std::string_view) { end->bell.ring(); }, [end] { end->bell.ring(); });
    auto const ear = co_await std::move(hearing);
    while (true) {
        std::vector<std::string> words{id};
        auto asking = job_office::run(at, scripts::job_wait, {"", "held", "absent"}, std::move(words));
        auto const said = co_await std::move(asking);
        job_outcome found{.state = read_state(said[0].text()), .result = std::string{said[1].text()}, .reason = last_reason(said[2].text())};
        bool const goes_on = found.state == job_state::waiting || found.state == job_state::running || found.state == job_state::blocked;
        if (!goes_on) co_return std::optional<job_outcome>{std::move(found)};
        auto const left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
        if (left <= 0ms) co_return std::nullopt;
        auto resting = doorbell::wait(at->owner(), end->bell, std::min(left, look_every));
        co_await std::move(resting);
    }
}

/// '<what> <id>[ <id>]...' in each line.
void tell(std::string_view type, std::string_view text, std::function<void(job_event const&)> const& handler) {
    while (!text.empty()) {
        auto line = base::cut(text, '\n');
        auto const what = base::cut(line, ' ');
        while (!line.empty()) handler({std::string{what}, fmt::format("{}/{}", type, base::cut(line, ' '))});
    }
}

}  // namespace

// ---- the office

queue_options job_queue_options() noexcept { return {.retention = std::chrono::hours{24 * 7}}; }

std::shared_ptr<depot> job_office::queue_of(std::string_view type) {
    check_job_type(type);
    all_.require_usable();
    std::lock_guard const guard{mutex_};
    if (auto const known = queues_.find(type); known != queues_.end()) return known->second;
    auto made = depot::make(owner(), all_.name(), job_queue_options(), {.job_type = type, .job_words = "-\n"});
    queues_.emplace(type, made);
    return made;
}

task<reply> job_office::run(place at, scripts::script const& script, std::vector<std::string_view> parts, std::vector<std::string> words) {
    std::vector<std::string> keys;
    for (auto const part : parts) keys.push_back(part.empty() ? at->what().key() : at->what().key_of(part));
    std::vector<argument> given{words.begin(), words.end()};
    auto asking = run_on(at, script, keys, given);
    co_return co_await std::move(asking);
}

task<subscription> job_office::listen(place at, std::string part, std::function<void(std::string_view)> handler, std::function<void()> on_gap) {
    subscription_options how;
    how.channel = at->what().key_of(part);
    how.kind = at->owner()->is_cluster() ? subscription_kind::shard : subscription_kind::channel;
    how.handler = [handler = std::move(handler)](message const& came) { handler(came.payload); };
    how.on_gap = std::move(on_gap);
    return open_subscription(at->owner(), std::move(how));
}

// ---- what users ask

raw_jobs::raw_jobs(client& by, std::string_view name) : office_(std::make_shared<job_office>(by, name)) {}

task<std::vector<scheduled>> raw_jobs::async_schedule(std::string_view type, std::vector<std::string> payloads, job_options const& how) {
    auto at = office_->queue_of(type);
    auto words = words_of(name(), how, payloads.size());
    auto const terms = write_terms(how) + '\n';
    for (auto& one : payloads) one.insert(0, terms);
    if (!how.single.empty() || !how.batch.empty()) {
        if (!how.batch.empty()) check_batch(how.batch);
        if (!how.batch.empty() && !how.key.empty()) refuse(name(), "a job with a key might be left out, and its batch would never end");
        std::array<std::string, 3> linked{write_place(how), write_single(how), std::string{how.batch}};
        return counted(office_, schedule_linked(office_, std::move(at), std::string{type}, std::move(linked), std::move(payloads)));
    }
    return counted(office_, schedule(std::move(at), std::string{type}, {std::move(payloads), std::move(words), !how.key.empty(), true, {}}));
}

task<std::map<std::string, std::string, std::less<>>> raw_jobs::async_add_flow(job_flow const& flow) {
    auto all = flow.checked();
    auto at = office_->queue_of(all.front().type);
    return add_flow(office_, std::move(at), std::move(all));
}

task<bool> raw_jobs::async_change(std::string_view what, std::string_view id, milliseconds delay, std::int32_t priority) {
    auto const which = read_job_name(id);
    check_place(delay, priority);
    return change(office_->queue_of(which.type), std::string{what}, which.id, delay, priority);
}

task<std::optional<job_info>> raw_jobs::async_find(std::string_view id) {
    auto which = read_job_name(id);
    auto at = office_->queue_of(which.type);
    return find(std::move(at), std::move(which));
}

task<std::vector<job_info>> raw_jobs::async_list(std::string_view type, job_state state, std::size_t from, std::size_t most) {
    if (state == job_state::unknown) refuse(name(), "jobs in an unknown state cannot be listed");
    check_page(name(), most);
    return list(office_->queue_of(type), std::string{type}, state, from, most);
}

task<std::vector<job_info>> raw_jobs::async_tagged(std::string_view type, std::string_view tag, std::size_t from, std::size_t most) {
    check_tag(tag);
    check_page(name(), most);
    return list_tagged(office_->queue_of(type), std::string{type}, std::string{tag}, from, most);
}

task<flow_info> raw_jobs::async_flow_of(std::string_view id, std::size_t most) {
    auto const which = read_job_name(id);
    check_page(name(), most);
    return read_flow(office_->queue_of(which.type), std::string{id}, most);
}

task<std::vector<std::string>> raw_jobs::async_types() {
    office_->all().require_usable();
    return read_types(office_);
}

task<job_counts> raw_jobs::async_counts(std::string_view type) { return count(office_->queue_of(type)); }

task<std::optional<job_outcome>> raw_jobs::async_wait(std::string_view id, std::chrono::steady_clock::time_point until) {
    auto which = read_job_name(id);
    return wait(office_->queue_of(which.type), std::move(which.id), until);
}

task<subscription> raw_jobs::async_observe(std::string_view type, std::function<void(job_event const&)> handler) {
    auto at = office_->queue_of(type);
    auto hear = [type = std::string{type}, handler = std::move(handler)](std::string_view text) { tell(type, text, handler); };
    return job_office::listen(std::move(at), "events", std::move(hear), {});
}

void raw_jobs::require_blocking() const { office_->all().require_blocking(); }
std::string const& raw_jobs::name() const noexcept { return office_->all().name(); }

}  // namespace lockstep::detail
