#include <lockstep/detail/raw_jobs.hpp>

#include "base/stored_time.hpp"
#include "base/words.hpp"
#include "core/subscription.hpp"
#include "jobs/job_office.hpp"
#include "jobs/job_stage.hpp"
#include "jobs/job_text.hpp"
#include "messaging/doorbell.hpp"
#include "messaging/raw_queue_parts.hpp"
#include "resp/cursor.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/job_flow.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <mutex>
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
constexpr std::size_t most_read = 8U << 20;     // bytes, by one call
constexpr std::size_t listed_bytes = 4U << 10;  // of each text of a job in a list
constexpr std::size_t largest_trail = 24U << 10;

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

task<std::vector<scheduled>> add_nodes(office of, place at, std::vector<job_flow::node> all) {
    if (is_sent_in_parts(all)) return send_in_parts(std::move(of), std::move(at), std::move(all));
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
    return add_linked(std::move(of), std::move(at), std::move(words));
}

task<ids_by_name> add_flow(office of, place at, std::vector<job_flow::node> all) {
    std::vector<std::string> names;
    for (auto& one : all) names.push_back(std::move(one.name));
    auto adding = counted(of, add_nodes(of, std::move(at), std::move(all)));
    auto added = co_await std::move(adding);
    ids_by_name ids;
    for (std::size_t i = 0; i != names.size(); ++i) ids.emplace(std::move(names[i]), std::move(added[i].id));
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

/// What job_read.lua wants, for those that were not read yet.
std::vector<std::string> words_to_read(depot const& at, std::vector<std::string> const& ids, std::size_t done, std::size_t cut) {
    auto const most = std::min(most_read, at.owner()->options().max_reply_bytes / 2);
    std::vector<std::string> words{std::to_string(most), std::to_string(cut)};
    words.insert(words.end(), ids.begin() + static_cast<std::ptrdiff_t>(done), ids.end());
    return words;
}

/// Those that were read, of these ids in order.
void add_rows(std::vector<job_info>& all, std::string_view type, std::vector<std::string> const& ids, reply const& said) {
    for (auto const row : said.view()) {
        if (all.size() == ids.size()) return;
        all.push_back(read_job(type, ids[all.size()], row));
    }
}

/// `cut`: so many bytes are told of each text.
task<std::vector<job_info>> read(place at, std::string type, std::vector<std::string> ids, std::size_t cut) {
    // Not a local: g++ 12 returns a vector that it had before the last turn of the loop.
    auto const all = std::make_shared<std::vector<job_info>>();
    while (all->size() != ids.size()) {  // an answer is of as many as are not too large together
        auto words = words_to_read(*at, ids, all->size(), cut);
        auto asking = job_office::run(at, scripts::job_read, {"", "held", "absent"}, std::move(words));
        auto const said = co_await std::move(asking);
        add_rows(*all, type, ids, said);
    }
    auto found = std::move(*all);
    co_return found;
}

task<std::optional<job_info>> find(place at, job_name what) {
    std::vector<std::string> ids{what.id};
    auto const largest = at->owner()->options().max_reply_bytes / 5;  // there are four texts
    auto reading = read(std::move(at), what.type, std::move(ids), largest);
    auto all = co_await std::move(reading);
    if (all.front().state == job_state::unknown) co_return std::nullopt;
    co_return std::optional<job_info>{std::move(all.front())};
}

task<reply> list_ids(place at, std::string_view state, std::size_t from, std::size_t most) {
    std::vector<std::string> words{std::string{state}, std::to_string(from), std::to_string(most)};
    return job_office::run(std::move(at), scripts::job_list, {"", "ready", "ranked", "later", "held", "absent"}, std::move(words));
}

/// Ids of those that are delayed, and until when.
using delays = std::vector<std::pair<std::string, std::chrono::system_clock::time_point>>;
task<delays> list_delayed(place at, std::size_t from, std::size_t most) {
    auto asking = list_ids(std::move(at), "delayed", from, most);
    auto const said = co_await std::move(asking);
    delays found;
    for (resp::cursor rest{said, 1}; rest.left() >= 2;) {
        auto const id = rest.next().text();
        found.emplace_back(id, base::time_of_ms(rest.next().integer()));
    }
    co_return found;
}

/// Those that are still delayed until then; one that was moved may stand in two places.
task<std::vector<job_info>> read_delayed(place at, std::string type, delays which) {
    std::vector<std::string> ids;
    for (auto const& one : which) ids.push_back(one.first);
    auto reading = read(std::move(at), std::move(type), std::move(ids), listed_bytes);
    auto all = co_await std::move(reading);
    for (std::size_t i = 0; i != all.size(); ++i) all[i].delayed_until = which[i].second;
    std::erase_if(all, [](job_info const& one) { return one.state != job_state::waiting; });
    co_return all;
}

task<std::vector<job_info>> delayed(place at, std::string type, std::size_t from, std::size_t most) {
    auto listing = list_delayed(at, from, most);
    auto which = co_await std::move(listing);
    auto reading = read_delayed(std::move(at), std::move(type), std::move(which));
    co_return co_await std::move(reading);
}

/// Those that are put off wait, too: behind the others.
task<std::vector<job_info>> list(place at, std::string type, job_state state, std::size_t from, std::size_t most) {
    std::vector<std::string> ids;
    auto asking = list_ids(at, to_string(state), from, most);
    auto const said = co_await std::move(asking);
    for (resp::cursor rest{said, 1}; rest.left() != 0;) ids.emplace_back(rest.next().text());
    auto const left = most - std::min(most, ids.size());
    auto const ready = static_cast<std::size_t>(said[0].integer());
    auto reading = read(at, type, std::move(ids), listed_bytes);
    auto all = co_await std::move(reading);
    if (state == job_state::waiting && left > 0) {
        auto more = delayed(std::move(at), std::move(type), from > ready ? from - ready : 0, left);
        auto late = co_await std::move(more);
        std::move(late.begin(), late.end(), std::back_inserter(all));
    }
    std::set<std::string> seen;  // one that was moved may stand in two places
    std::erase_if(all, [&](job_info const& one) { return one.state != state || !seen.insert(one.id).second; });  // or changed meanwhile
    co_return all;
}

task<std::vector<job_info>> list_tagged(place at, std::string type, std::string tag, std::size_t from, std::size_t most) {
    auto asking = list_ids(at, "tag:" + tag, from, most);
    auto const said = co_await std::move(asking);
    std::vector<std::string> ids;
    for (resp::cursor rest{said, 1}; rest.left() != 0;) ids.emplace_back(rest.next().text());
    auto reading = read(std::move(at), std::move(type), std::move(ids), listed_bytes);
    auto all = co_await std::move(reading);
    std::erase_if(all, [](job_info const& one) { return one.state == job_state::unknown; });  // forgotten meanwhile
    co_return all;
}

task<flow_info> read_flow(place at, std::string id, std::size_t most) {
    auto const bytes = std::min(most_read, at->owner()->options().max_reply_bytes / 2);
    std::vector<std::string> words{std::move(id), std::to_string(most), std::to_string(bytes)};
    auto asking = job_office::run(std::move(at), scripts::job_graph, {"", "absent"}, std::move(words));
    auto const said = co_await std::move(asking);
    flow_info found{.is_whole = said[0].integer() == 0};
    for (resp::cursor rest{said, 1}; rest.left() != 0;) found.jobs.push_back(read_flow_job(rest.next()));
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
    resp::cursor rest{said};
    auto const number = [&rest] { return rest.next().integer(); };
    co_return job_counts{number(), number(), number(), number(), number(), number(), number(), number(), number(), number(), number(), number(),
                         number(), number(), number() == 1};
}

/// Rings when the job has ended, or may have.
struct job_end {
    doorbell bell;
    std::mutex mutex;
    std::optional<job_outcome> outcome;  // if it was in the message

    void hear(std::string_view text) {
        auto found = read_end(text);
        {
            std::lock_guard const guard{mutex};
            if (found) outcome = std::move(found);
        }
        bell.ring();
    }
    std::optional<job_outcome> take() {
        std::lock_guard const guard{mutex};
        return std::exchange(outcome, std::nullopt);
    }
};

task<std::optional<job_outcome>> wait(place at, std::string id, std::chrono::steady_clock::time_point until) {
    auto const end = std::make_shared<job_end>();
    auto hearing = job_office::listen(at, "ended:" + id, [end](std::string_view text) { end->hear(text); }, [end] { end->bell.ring(); });
    auto const ear = co_await std::move(hearing);
    while (true) {
        auto asking = job_office::ask_end(at, id);
        auto found = co_await std::move(asking);
        bool const goes_on = found.state == job_state::waiting || found.state == job_state::running || found.state == job_state::blocked;
        if (!goes_on) co_return std::optional<job_outcome>{std::move(found)};
        auto const left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
        if (left <= 0ms) co_return std::nullopt;
        auto resting = doorbell::wait(at->owner(), end->bell, std::min(left, look_every));
        co_await std::move(resting);
        if (auto heard = end->take()) co_return heard;
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

task<job_outcome> job_office::ask_end(place at, std::string id) {
    auto const largest = at->owner()->options().max_reply_bytes - largest_trail;
    std::vector<std::string> words{std::move(id), std::to_string(largest)};
    auto asking = run(at, scripts::job_wait, {"", "held", "absent"}, words);
    auto const said = co_await std::move(asking);
    if (auto const size = said[3].integer(); static_cast<std::size_t>(size) > largest) {
        throw protocol_error(fmt::format("the result of job {} has {} bytes; max_reply_bytes of this client lets through {}", words.front(), size, largest));
    }
    co_return job_outcome{.state = read_state(said[0].text()), .result = std::string{said[1].text()}, .reason = last_reason(said[2].text())};
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

task<std::vector<job_info>> raw_jobs::async_delayed(std::string_view type, std::size_t from, std::size_t most) {
    check_page(name(), most);
    return delayed(office_->queue_of(type), std::string{type}, from, most);
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

task<bool> raw_jobs::async_pause(std::string_view type, bool pauses) { return set_paused(office_->queue_of(type), pauses, std::string{type}); }

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
