#pragma once

/// `job_client`: schedules jobs, and tells what became of them. `job_worker` runs them.
///
///     lockstep::job_client jobs{client, "shop"};
///     auto mail = jobs.schedule("mail", letter{"a@b.c", "Hello"}, {.delay = 5min, .attempts = 5});
///     jobs.cancel(mail.id);
///
///     auto report = jobs.schedule("report", std::string{"2026-11"});
///     if (auto end = jobs.wait(report.id, 30s)) std::cout << to_string(end->state) << ' ' << end->result << '\n';
///     jobs.cron("nightly", "report", std::string{"all"}, {.expression = "30 2 * * *", .zone = "Europe/Berlin"});
///
/// A job has a type, which says who handles it, and a payload (#include <lockstep/json.hpp> for types of your own). It is run at least once: again
/// when its worker dies, again when its handler throws, until it has been tried as often as it may be. Only one try can complete it: one that
/// was overtaken is refused by the server.
///
/// Order: jobs of one type are begun in the order of their priorities, and of one priority in that in which they came to the server.
///
/// Failure: `wait` gives nothing when the time is over; `cancel`, `requeue` and `move` are false when the job is not in a state for that. Everything else is
/// thrown: `indeterminate_error` (it may have been scheduled, once), `unavailable_error`, `cancelled_error`, `server_error`, `invalid_argument_error`. A
/// lost reply schedules nothing twice.
///
/// Threads: everything may be called from any thread; the object may be destroyed while its tasks go on. What is scheduled at the same time through one
/// object leaves together: use one object for all threads. In a Cluster all jobs of one name are in one slot.

#include <lockstep/codec.hpp>
#include <lockstep/detail/raw_crons.hpp>
#include <lockstep/detail/raw_jobs.hpp>
#include <lockstep/detail/time_after.hpp>
#include <lockstep/job_batch.hpp>
#include <lockstep/job_flow.hpp>

#include <map>
#include <span>
#include <string>
#include <utility>

namespace lockstep {

class job_client {
public:
    /// Does not ask the server. Throws `invalid_argument_error` for a name that is not 1 to 512 bytes.
    job_client(client& by, std::string_view name) : raw_(by, name), crons_(by, name) {}

    /// A type is 1 to 64 letters, digits, dots, dashes and underscores.
    template <class T, codec_for<T> Codec = codec<T>>
    scheduled schedule(std::string_view type, T const& payload, job_options const& how = {}, std::stop_token token = {}) {
        return blocking(async_schedule<T, Codec>(type, payload, how), std::move(token));
    }
    template <class T, codec_for<T> Codec = codec<T>>
    task<scheduled> async_schedule(std::string_view type, T const& payload, job_options const& how = {}) {
        std::vector<std::string> bytes;
        bytes.push_back(Codec::encode(payload));
        return only(raw_.async_schedule(type, std::move(bytes), how));
    }
    /// Up to 4,000 in one round trip, in order. They must have no key.
    template <class T, codec_for<T> Codec = codec<T>>
    std::vector<scheduled> schedule_many(std::string_view type, std::span<T const> payloads, job_options const& how = {}, std::stop_token token = {}) {
        return blocking(async_schedule_many<T, Codec>(type, payloads, how), std::move(token));
    }
    template <class T, codec_for<T> Codec = codec<T>>
    task<std::vector<scheduled>> async_schedule_many(std::string_view type, std::span<T const> payloads, job_options const& how = {}) {
        std::vector<std::string> bytes;
        bytes.reserve(payloads.size());
        for (auto const& one : payloads) bytes.push_back(Codec::encode(one));
        return raw_.async_schedule(type, std::move(bytes), how);
    }

    /// All or none: jobs that wait for one another. Returns their ids by their names. Throws `invalid_argument_error` for a flow that is not
    /// sound, and for a parent that there is not.
    std::map<std::string, std::string, std::less<>> add_flow(job_flow const& flow, std::stop_token token = {}) {
        return blocking(async_add_flow(flow), std::move(token));
    }
    task<std::map<std::string, std::string, std::less<>>> async_add_flow(job_flow const& flow) { return raw_.async_add_flow(flow); }

    /// `total` jobs that are or will be scheduled with this `batch`. The same again gives the same one. Throws `invalid_argument_error` if it has another total
    /// or policy.
    job_batch batch(std::string_view id, std::int64_t total, batch_options const& how = {}, std::stop_token token = {}) {
        return blocking(async_batch(id, total, how), std::move(token));
    }
    task<job_batch> async_batch(std::string_view id, std::int64_t total, batch_options const& how = {}) {
        return made(raw_.async_batch(id, total, how, {}, {}, {}), raw_, std::string{id});
    }
    /// The same, and when all have ended (with `fail_at_once`: completed), a job of this type is scheduled, once.
    template <class T, codec_for<T> Codec = codec<T>>
    job_batch batch(std::string_view id, std::int64_t total, batch_options const& how, std::string_view type, T const& payload, job_options const& then = {},
                    std::stop_token token = {}) {
        return blocking(async_batch<T, Codec>(id, total, how, type, payload, then), std::move(token));
    }
    template <class T, codec_for<T> Codec = codec<T>>
    task<job_batch> async_batch(std::string_view id, std::int64_t total, batch_options const& how, std::string_view type, T const& payload,
                                job_options const& then = {}) {
        return made(raw_.async_batch(id, total, how, type, Codec::encode(payload), then), raw_, std::string{id});
    }

    /// It is not run any more. One that runs is told to stop, and cannot complete.
    bool cancel(std::string_view id, std::stop_token token = {}) { return blocking(async_cancel(id), std::move(token)); }
    task<bool> async_cancel(std::string_view id) { return raw_.async_change("cancel", id, {}, 0); }
    /// One that has ended is run again, as if it had never been tried. Jobs of its flow that failed or were skipped because of it wait for it again.
    /// False also while another job has its key.
    bool requeue(std::string_view id, std::chrono::milliseconds delay = {}, std::int32_t priority = 0, std::stop_token token = {}) {
        return blocking(async_requeue(id, delay, priority), std::move(token));
    }
    task<bool> async_requeue(std::string_view id, std::chrono::milliseconds delay = {}, std::int32_t priority = 0) {
        return raw_.async_change("requeue", id, delay, priority);
    }
    /// One that waits is run after this delay from now on, with this priority.
    bool move(std::string_view id, std::chrono::milliseconds delay, std::int32_t priority = 0, std::stop_token token = {}) {
        return blocking(async_move(id, delay, priority), std::move(token));
    }
    task<bool> async_move(std::string_view id, std::chrono::milliseconds delay, std::int32_t priority = 0) {
        return raw_.async_change("move", id, delay, priority);
    }

    /// Requeues all jobs that this filter means: those that failed, unless it says otherwise. Those that failed because of their parents come back together
    /// with these, and are not counted. How many. Done in steps of some ms each, so that others are served meanwhile; jobs that end meanwhile are left
    /// alone. If it was interrupted, what is done is done, and calling it again does the rest. Observers are told of each job.
    std::int64_t retry_all(job_filter const& which = {}, std::chrono::milliseconds delay = {}, std::int32_t priority = 0, std::stop_token token = {}) {
        return blocking(async_retry_all(which, delay, priority), std::move(token));
    }
    task<std::int64_t> async_retry_all(job_filter const& which = {}, std::chrono::milliseconds delay = {}, std::int32_t priority = 0) {
        return raw_.async_change_all("requeue", which, delay, priority);
    }
    /// Cancels all jobs that this filter means and that have not ended, in the same way. Jobs that are scheduled meanwhile are left alone.
    std::int64_t cancel_all(job_filter const& which = {}, std::stop_token token = {}) { return blocking(async_cancel_all(which), std::move(token)); }
    task<std::int64_t> async_cancel_all(job_filter const& which = {}) { return raw_.async_change_all("cancel", which, {}, 0); }

    /// Nothing: there is none, or it ended long ago. What is too large for `client_options::max_reply_bytes` is cut (`job_info::is_cut`).
    std::optional<job_info> find(std::string_view id, std::stop_token token = {}) { return blocking(async_find(id), std::move(token)); }
    task<std::optional<job_info>> async_find(std::string_view id) { return raw_.async_find(id); }
    /// Those of one type that are in a state: the youngest first if they have ended, else in the order in which they will be run. Of payload, result, progress
    /// and failures 4 KiB each are told (`job_info::is_cut`); `find` tells all.
    std::vector<job_info> list(std::string_view type, job_state state, std::size_t from = 0, std::size_t most = 100, std::stop_token token = {}) {
        return blocking(async_list(type, state, from, most), std::move(token));
    }
    task<std::vector<job_info>> async_list(std::string_view type, job_state state, std::size_t from = 0, std::size_t most = 100) {
        return raw_.async_list(type, state, from, most);
    }
    /// Those of one type that wait and are delayed, the one that is due first in front. `list` tells them behind the others that wait.
    std::vector<job_info> delayed(std::string_view type, std::size_t from = 0, std::size_t most = 100, std::stop_token token = {}) {
        return blocking(async_delayed(type, from, most), std::move(token));
    }
    task<std::vector<job_info>> async_delayed(std::string_view type, std::size_t from = 0, std::size_t most = 100) {
        return raw_.async_delayed(type, from, most);
    }
    /// Those of one type that have this tag, in any state, the youngest first, as `list` tells them. A page may be shorter where some were forgotten meanwhile.
    std::vector<job_info> tagged(std::string_view type, std::string_view tag, std::size_t from = 0, std::size_t most = 100, std::stop_token token = {}) {
        return blocking(async_tagged(type, tag, from, most), std::move(token));
    }
    task<std::vector<job_info>> async_tagged(std::string_view type, std::string_view tag, std::size_t from = 0, std::size_t most = 100) {
        return raw_.async_tagged(type, tag, from, most);
    }
    /// The flow to which it belongs, at one time: all for which it waits or that wait for it, and theirs. A job of no flow is alone in it.
    flow_info flow_of(std::string_view id, std::size_t most = 200, std::stop_token token = {}) { return blocking(async_flow_of(id, most), std::move(token)); }
    task<flow_info> async_flow_of(std::string_view id, std::size_t most = 200) { return raw_.async_flow_of(id, most); }
    /// The types that there are.
    std::vector<std::string> types(std::stop_token token = {}) { return blocking(async_types(), std::move(token)); }
    task<std::vector<std::string>> async_types() { return raw_.async_types(); }
    job_counts counts(std::string_view type, std::stop_token token = {}) { return blocking(async_counts(type), std::move(token)); }
    task<job_counts> async_counts(std::string_view type) { return raw_.async_counts(type); }

    /// No job of this type is begun any longer, by any worker, until `resume`: they may still be scheduled, and wait. Those that a worker has already go on
    /// and may complete; so may the few that it has fetched ahead. A type stays paused until it is resumed, even when there are no jobs of it. False: it was
    /// paused already.
    bool pause(std::string_view type, std::stop_token token = {}) { return blocking(async_pause(type), std::move(token)); }
    task<bool> async_pause(std::string_view type) { return raw_.async_pause(type, true); }
    /// Jobs that wait are begun at once. False: it was not paused.
    bool resume(std::string_view type, std::stop_token token = {}) { return blocking(async_resume(type), std::move(token)); }
    task<bool> async_resume(std::string_view type) { return raw_.async_pause(type, false); }

    /// How it ended, as soon as it has; nobody polls. Nothing: not in this time. Throws `protocol_error` for a result that is larger than
    /// `client_options::max_reply_bytes` allows.
    std::optional<job_outcome> wait(std::string_view id, std::chrono::milliseconds time, std::stop_token token = {}) {
        return blocking(async_wait(id, time), std::move(token));
    }
    task<std::optional<job_outcome>> async_wait(std::string_view id, std::chrono::milliseconds time) {
        return raw_.async_wait(id, detail::time_after(time));
    }

    /// What happens to jobs of a type, as it happens; `handler` runs on the client's I/O thread. At most once, as all that is published.
    subscription observe(std::string_view type, std::function<void(job_event const&)> handler, std::stop_token token = {}) {
        return blocking(async_observe(type, std::move(handler)), std::move(token));
    }
    task<subscription> async_observe(std::string_view type, std::function<void(job_event const&)> handler) {
        return raw_.async_observe(type, std::move(handler));
    }

    /// Schedules such a job whenever the expression says so, until it is dropped; kept at the server, and fired by one of the workers (`job_worker`),
    /// each due time once. An id is 1 to 128 letters, digits and . - _ : /. The same id again replaces it: it stays paused if it is, and with the same
    /// expression and zone it keeps its next due time, so a program may do this at every start. When it is due next; zero: it is paused.
    template <class T, codec_for<T> Codec = codec<T>>
    std::chrono::system_clock::time_point cron(std::string_view id, std::string_view type, T const& payload, cron_options const& how, std::stop_token token = {}) {
        return blocking(async_cron<T, Codec>(id, type, payload, how), std::move(token));
    }
    template <class T, codec_for<T> Codec = codec<T>>
    task<std::chrono::system_clock::time_point> async_cron(std::string_view id, std::string_view type, T const& payload, cron_options const& how) {
        return crons_.async_put(id, type, Codec::encode(payload), how);
    }
    /// False: there is none. What it has scheduled already stays.
    bool drop_cron(std::string_view id, std::stop_token token = {}) { return blocking(async_drop_cron(id), std::move(token)); }
    task<bool> async_drop_cron(std::string_view id) { return crons_.async_change("drop", id); }
    /// Due times while it is paused are left out, whatever its policy is. False: there is none.
    bool pause_cron(std::string_view id, std::stop_token token = {}) { return blocking(async_pause_cron(id), std::move(token)); }
    task<bool> async_pause_cron(std::string_view id) { return crons_.async_change("pause", id); }
    /// False: there is none that is paused.
    bool resume_cron(std::string_view id, std::stop_token token = {}) { return blocking(async_resume_cron(id), std::move(token)); }
    task<bool> async_resume_cron(std::string_view id) { return crons_.async_change("resume", id); }
    /// All of them: the one that is due next first, those that are paused last.
    std::vector<cron_info> crons(std::stop_token token = {}) { return blocking(async_crons(), std::move(token)); }
    task<std::vector<cron_info>> async_crons() { return crons_.async_list(); }

    std::string const& name() const noexcept { return raw_.name(); }

private:
    template <class R>
    R blocking(task<R> work, std::stop_token token) const {
        raw_.require_blocking();
        return sync_wait(std::move(work), std::move(token));
    }
    static task<job_batch> made(task<void> saying, detail::raw_jobs raw, std::string id) {
        co_await std::move(saying);
        co_return job_batch{std::move(raw), std::move(id)};
    }
    static task<scheduled> only(task<std::vector<scheduled>> sending) {
        auto all = co_await std::move(sending);
        co_return std::move(all.front());
    }

    detail::raw_jobs raw_;
    detail::raw_crons crons_;
};

}  // namespace lockstep
