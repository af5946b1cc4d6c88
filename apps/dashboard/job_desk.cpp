#include "dashboard/job_desk.hpp"

#include "common/job_json.hpp"
#include "observe/reader.hpp"

#include <lockstep/error.hpp>

#include <algorithm>
#include <utility>

namespace lockstep::dashboard {

namespace {

using std::chrono::seconds;

constexpr std::size_t most_queues = 500;
constexpr std::size_t requests_at_once = 50;
constexpr seconds counts_last{1};
constexpr seconds queue_sample_interval{2};
constexpr seconds longest_gap{30};       // a rate over more than this says nothing of a time
constexpr std::size_t queue_samples_kept = 300;  // ten minutes

// A key that another program put there hides nothing but itself.
task<std::optional<std::vector<std::string>>> types_of(job_client of) {
    try {
        auto asking = of.async_types();
        auto all = co_await std::move(asking);
        co_return std::optional{std::move(all)};
    } catch (server_error const&) {
        co_return std::nullopt;
    }
}

task<std::optional<job_counts>> counts_of(job_client of, std::string type) {
    try {
        auto asking = of.async_counts(type);
        auto const found = co_await std::move(asking);
        co_return std::optional{found};
    } catch (server_error const&) {
        co_return std::nullopt;
    } catch (invalid_argument_error const&) {  // no type that a job could have
        co_return std::nullopt;
    }
}

task<std::optional<std::vector<cron_info>>> crons_of(job_client of) {
    try {
        auto asking = of.async_crons();
        auto all = co_await std::move(asking);
        co_return std::optional{std::move(all)};
    } catch (server_error const&) {
        co_return std::nullopt;
    }
}

}  // namespace

std::int64_t count_in(job_counts const& counts, job_state state) {
    switch (state) {
        case job_state::waiting: return counts.waiting + counts.delayed;
        case job_state::blocked: return counts.blocked;
        case job_state::running: return counts.running;
        case job_state::completed: return counts.completed;
        case job_state::failed: return counts.failed;
        case job_state::cancelled: return counts.cancelled;
        case job_state::unknown: break;
    }
    return 0;
}

job_desk::job_desk(client& by) : client_(by), names_(by, most_queues) {}

std::shared_ptr<job_overview> job_desk::count() {
    auto const found = names_.last();
    auto const& names = found->names;
    std::vector<task<std::optional<std::vector<std::string>>>> asking;
    for (auto const& name : names) asking.push_back(types_of(job_client{client_, name}));
    auto const types = sync_wait(observe::in_groups(std::move(asking), requests_at_once));
    auto made = std::make_shared<job_overview>();
    made->left_out = found->left_out;
    std::vector<job_queue> queues;
    std::vector<task<std::optional<job_counts>>> counting;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!types[i]) ++made->left_out;
        for (auto const& type : types[i].value_or(std::vector<std::string>{})) {
            if (queues.size() == most_queues) {
                ++made->left_out;
                continue;
            }
            queues.push_back({.name = names[i], .type = type});
            counting.push_back(counts_of(job_client{client_, names[i]}, type));
        }
    }
    auto const counts = sync_wait(observe::in_groups(std::move(counting), requests_at_once));
    for (std::size_t i = 0; i < queues.size(); ++i) {
        if (!counts[i]) {
            ++made->left_out;
            continue;
        }
        queues[i].counts = *counts[i];
        made->queues.push_back(std::move(queues[i]));
    }
    return made;
}

void job_desk::follow(job_overview& all) {
    auto const at = clock::now();
    std::vector<job_queue const*> queues;
    for (auto& one : all.queues) {
        auto& of = tracks_[{one.name, one.type}];
        follow(of, {&one}, at);
        one.completed_per_s = of.completed_per_s;
        one.failed_per_s = of.failed_per_s;
        queues.push_back(&one);
    }
    std::erase_if(tracks_, [&](auto const& one) { return at - one.second.at > longest_gap; });
    follow(all_, queues, at);
}

void job_desk::follow(track& of, std::vector<job_queue const*> const& queues, clock::time_point at) {
    auto const since = at - of.at;
    bool const is_first = of.at == clock::time_point{};
    if (!is_first && since < queue_sample_interval - std::chrono::milliseconds{100}) return;  // the clock of who calls every two seconds is not exact
    job_sample made{.at_ms = apps::in_ms(std::chrono::system_clock::now())};
    std::map<queue_key, ended> now;
    std::optional<ended> more;
    if (!is_first && queues.empty()) more.emplace();
    for (auto const* const one : queues) {
        made.waiting += count_in(one->counts, job_state::waiting);
        made.running += one->counts.running;
        ended const is{one->counts.ever_completed, one->counts.ever_failed};
        queue_key key{one->name, one->type};
        // What a queue did before it was seen was not done just now; and a count that is smaller than before begins anew.
        auto const was = of.before.find(key);
        if (was != of.before.end() && is.completed >= was->second.completed && is.failed >= was->second.failed) {
            if (!more) more.emplace();
            more->completed += is.completed - was->second.completed;
            more->failed += is.failed - was->second.failed;
        }
        now.emplace(std::move(key), is);
    }
    of.completed_per_s = of.failed_per_s = std::nullopt;
    if (more && since <= longest_gap) {
        double const time = std::chrono::duration<double>(since).count();
        of.completed_per_s = static_cast<double>(more->completed) / time;
        of.failed_per_s = static_cast<double>(more->failed) / time;
    }
    made.completed_per_s = of.completed_per_s;
    made.failed_per_s = of.failed_per_s;
    of.before = std::move(now);
    of.at = at;
    of.samples.push_back(made);
    if (of.samples.size() > queue_samples_kept) of.samples.pop_front();
}

std::shared_ptr<job_overview const> job_desk::look() {
    std::unique_lock lock{mutex_};
    if (auto const mine = last_; mine && (!mine->is_over || clock::now() - mine->over_at < counts_last)) {
        is_over_.wait(lock, [&] { return mine->is_over; });
        if (mine->failure) std::rethrow_exception(mine->failure);
        return mine->seen;
    }
    auto const mine = std::make_shared<attempt>();
    last_ = mine;
    lock.unlock();
    std::shared_ptr<job_overview> seen;
    std::exception_ptr failure;
    try {
        seen = count();
        lock.lock();
        follow(*seen);
    } catch (...) {
        failure = std::current_exception();
        if (!lock.owns_lock()) lock.lock();
    }
    mine->seen = std::move(seen);
    mine->failure = failure;
    mine->over_at = clock::now();
    mine->is_over = true;
    is_over_.notify_all();
    if (failure) std::rethrow_exception(failure);
    return mine->seen;
}

std::vector<job_sample> job_desk::samples(queue_filter const& which) {
    std::lock_guard const lock{mutex_};
    if (which.name.empty()) return {all_.samples.begin(), all_.samples.end()};
    auto const found = tracks_.find({which.name, which.type});
    if (found == tracks_.end()) return {};
    return {found->second.samples.begin(), found->second.samples.end()};
}

job_page job_desk::list(queue_filter const& which, job_state state, std::size_t from, std::size_t most) {
    std::vector<job_queue> queues;
    if (!which.name.empty() && !which.type.empty()) {
        queues.push_back({.name = which.name, .type = which.type, .counts = job_client{client_, which.name}.counts(which.type)});
    } else {
        for (auto const& one : look()->queues)
            if ((which.name.empty() || which.name == one.name) && (which.type.empty() || which.type == one.type)) queues.push_back(one);
    }
    job_page made;
    for (auto const& one : queues) {
        auto const here = static_cast<std::size_t>(std::max<std::int64_t>(count_in(one.counts, state), 0));
        made.total += static_cast<std::int64_t>(here);
        if (from >= here || made.jobs.size() >= most) {
            from -= std::min(from, here);
            continue;
        }
        for (auto& job : job_client{client_, one.name}.list(one.type, state, from, std::min(most - made.jobs.size(), here - from)))
            made.jobs.push_back({one.name, std::move(job)});
        from = 0;
    }
    return made;
}

std::optional<job_info> job_desk::find(std::string const& name, std::string_view id) { return job_client{client_, name}.find(id); }

flow_info job_desk::flow_of(std::string const& name, std::string_view id, std::size_t most) { return job_client{client_, name}.flow_of(id, most); }

cron_page job_desk::crons(std::string const& name) {
    found_names of{.names = {name}};
    if (name.empty()) of = *names_.last();
    std::vector<task<std::optional<std::vector<cron_info>>>> asking;
    for (auto const& one : of.names) asking.push_back(crons_of(job_client{client_, one}));
    auto lists = sync_wait(observe::in_groups(std::move(asking), requests_at_once));
    cron_page made{.left_out = of.left_out};
    for (std::size_t i = 0; i < of.names.size(); ++i) {
        if (!lists[i]) {
            ++made.left_out;
            continue;
        }
        for (auto& one : *lists[i]) made.crons.push_back({of.names[i], std::move(one)});
    }
    std::ranges::stable_sort(made.crons, [](named_cron const& a, named_cron const& b) {
        return a.is.next && b.is.next ? *a.is.next < *b.is.next : a.is.next.has_value() && !b.is.next.has_value();
    });
    return made;
}

}  // namespace lockstep::dashboard
