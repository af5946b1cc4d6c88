// lockstep worker NAME --exec 'TYPE=COMMAND'...: jobs that any program handles.

#include "cli/commands.hpp"
#include "cli/errand.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/error.hpp>
#include <lockstep/job_client.hpp>
#include <lockstep/job_worker.hpp>
#include <lockstep/later.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace lockstep::cli {
namespace {

using namespace std::chrono_literals;

constexpr int code_of_reject = 100;
constexpr std::chrono::milliseconds usual_grace = 5s;
constexpr std::chrono::milliseconds usual_stop_after = 30s;
constexpr std::chrono::milliseconds longest_margin = 1s;  // of the time to stop, for killing commands and for telling the server
constexpr std::chrono::milliseconds hurry_time = 2s;      // the same, after a second signal

struct worker_words {
    std::string name;
    std::vector<std::string> commands;
    std::size_t concurrency = 1;
    std::optional<std::chrono::milliseconds> lease{}, grace{}, stop_after{};
    bool no_crons = false;
    bool pass_url = false;

    std::chrono::milliseconds lease_time() const { return lease.value_or(job_worker_options{}.lease); }
    /// Without a wish of the user's it ends before the job can be somebody else's: a tenth of the lease is left when it counts as lost here, some of
    /// which is for hearing of it and for the killing.
    std::chrono::milliseconds grace_time() const {
        auto const wanted = grace.value_or(std::min<std::chrono::milliseconds>(usual_grace, lease_time() / 10 * 9 / 10));
        return std::min(wanted, stop_time() - margin());
    }
    std::chrono::milliseconds stop_time() const { return stop_after.value_or(usual_stop_after); }
    std::chrono::milliseconds margin() const { return std::min(longest_margin, stop_time() / 10); }
    /// When we are to end, commands may go on undisturbed for this long.
    std::chrono::milliseconds undisturbed_time() const { return stop_time() - margin() - grace_time(); }
};

struct trade {
    std::string type;
    std::string command;
};

trade read_trade(std::string const& text) {
    auto const at = text.find('=');
    if (at == std::string::npos || at == 0 || text.find_first_not_of(" \t", at + 1) == std::string::npos) {
        throw failure{exit_code::usage, fmt::format("'{}' is no TYPE=COMMAND", printable(text)), "write it as in --exec 'mail=sendmail -t'"};
    }
    return {text.substr(0, at), text.substr(at + 1)};
}

std::string reason_of(errand_end const& how) {
    if (!how.complaint.empty()) return how.complaint;
    if (WIFSIGNALED(how.status)) return fmt::format("signal {} ended it", WTERMSIG(how.status));
    return fmt::format("it returned {}", WEXITSTATUS(how.status));
}

/// Tells the server of progress without waiting for it: who waits can't see the lease end. One report is under way at most; of those that come
/// meanwhile the last one counts.
class reporter : public std::enable_shared_from_this<reporter> {
public:
    explicit reporter(job_context const& job) : job_(job), stop_(job.stop_token()) {}

    void tell(std::string text) {
        {
            std::lock_guard const guard{mutex_};
            next_ = std::move(text);
            if (std::exchange(is_busy_, true)) return;
        }
        send();
    }
    /// Returns when all is told, or need not be any more.
    void finish() {
        std::unique_lock guard{mutex_};
        idle_.wait(guard, stop_, [this] { return !is_busy_; });
    }

private:
    void send() {
        while (auto text = next()) {
            try {
                auto telling = with_stop_token(job_.async_progress(std::move(*text)), stop_);
                start(std::move(telling), [self = shared_from_this()](std::exception_ptr) { self->send(); });
                return;
            } catch (error const&) {
                // It is told to stop if the job is not ours any more; one that can't be told is no reason to fail.
            }
        }
    }
    std::optional<std::string> next() {
        std::lock_guard const guard{mutex_};
        if (!next_) {
            is_busy_ = false;
            idle_.notify_all();
        }
        return std::exchange(next_, std::nullopt);
    }

    job_context job_;
    std::stop_token stop_;
    std::mutex mutex_;
    std::condition_variable_any idle_;
    std::optional<std::string> next_;
    bool is_busy_ = false;
};

class shop {
public:
    /// `url` is that of the command line, if there is one.
    shop(worker_words const& how, std::string url, command_groups& all, sigset_t const& mask) : how_(how), url_(std::move(url)), all_(all), mask_(mask) {}

    std::string handle(trade const& of, job_context& job, std::string const& payload) {
        remember(job);
        errand what;
        what.what = {.path = "/bin/sh", .words = {"sh", "-c", of.command}, .added = {{"LOCKSTEP_NAME", how_.name}}};
        auto& added = what.what.added;
        added.emplace_back("LOCKSTEP_JOB_ID", job.id());
        added.emplace_back("LOCKSTEP_JOB_TYPE", of.type);
        added.emplace_back("LOCKSTEP_JOB_ATTEMPT", std::to_string(job.attempt()));
        added.emplace_back("LOCKSTEP_JOB_DELIVERY", std::to_string(job.deliveries()));
        if (job.due() != std::chrono::system_clock::time_point{}) added.emplace_back("LOCKSTEP_JOB_DUE", std::to_string(job.due().time_since_epoch() / 1s));
        what.what.knows_server = how_.pass_url;
        if (how_.pass_url && !url_.empty()) added.emplace_back("LOCKSTEP_URL", url_);
        what.input = payload;
        what.stop = job.stop_token();
        what.grace = how_.grace_time();
        auto const progress = std::make_shared<reporter>(job);
        what.on_progress = [progress](std::string text) { progress->tell(std::move(text)); };
        what.mask = mask_;
        what.among = &all_;
        what.may_go_on = [&job] { return job.is_valid() && !job.stop_token().stop_requested(); };
        auto end = run_errand(std::move(what));
        progress->finish();  // before its end is told: then nobody may say more of it
        if (is_hurried_) throw later{0ms};  // it was killed because we are to end at once, which is no failure of the job
        if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != 0) {
            auto const why = reason_of(end);
            if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == code_of_reject) throw reject(why);
            throw std::runtime_error(why);
        }
        if (end.is_cut) throw reject("its result is larger than 16 MiB");
        return std::move(end.output);
    }

    /// Jobs that are ours still: their command runs, or the server has not answered yet to what became of it.
    std::vector<std::string> open_jobs() {
        std::lock_guard const guard{mutex_};
        std::erase_if(begun_, [](job_context const& one) { return !one.is_valid(); });
        std::vector<std::string> ids;
        for (auto const& one : begun_) ids.push_back(one.id());
        return ids;
    }
    void forget_all() noexcept {
        std::lock_guard const guard{mutex_};
        begun_.clear();
    }
    /// Commands are about to be killed.
    void hurry() noexcept { is_hurried_ = true; }
    void leave() {
        std::lock_guard const guard{mutex_};
        has_left_ = true;
        left_.notify_all();
    }
    /// Until all that is to be told to the server has been, or so long.
    void wait_until_left(std::chrono::milliseconds time) {
        std::unique_lock guard{mutex_};
        left_.wait_for(guard, time, [this] { return has_left_; });
    }

private:
    void remember(job_context const& job) {
        std::lock_guard const guard{mutex_};
        std::erase_if(begun_, [](job_context const& one) { return !one.is_valid(); });
        begun_.push_back(job);
    }

    worker_words const& how_;
    std::string url_;
    command_groups& all_;
    sigset_t mask_;
    std::atomic<bool> is_hurried_{false};
    std::mutex mutex_;
    std::condition_variable left_;
    bool has_left_ = false;
    std::vector<job_context> begun_;
};

std::string not_told(std::vector<std::string> const& jobs) {
    return fmt::format("the server was not told what became of {}: run again when their leases have ended", fmt::join(jobs, ", "));
}

/// Somebody does not want to wait for the end of commands, nor for long for a server that does not answer.
[[noreturn]] void end_at_once(context const& all, shop& here, command_groups& running, int number) {
    here.hurry();
    auto const killed = running.kill_all();
    here.wait_until_left(hurry_time);
    running.end();
    auto const open = here.open_jobs();
    auto text = fmt::format("ended at once by a second signal: {} commands were killed", killed);
    if (!open.empty()) text += "; " + not_told(open);
    boost::json::array ids;
    for (auto const& one : open) ids.emplace_back(one);
    all.note(text, boost::json::object{{"event", "ended"}, {"killed", killed}, {"not_told", std::move(ids)}});
    std::_Exit(static_cast<int>(exit_code::signalled) + number);
}

/// Takes no more jobs and lets commands go on for a while; then they are told to end, and killed, and their jobs are given back.
void finish(context const& all, worker_words const& how, job_worker& worker) {
    std::stop_source is_over;
    std::mutex mutex;
    std::condition_variable_any never;
    std::jthread const timer{[&](std::stop_token token) {
        std::unique_lock guard{mutex};
        if (!never.wait_for(guard, token, how.undisturbed_time(), [] { return false; }) && !token.stop_requested()) is_over.request_stop();
    }};
    try {
        worker.stop(is_over.get_token());
        return;
    } catch (cancelled_error const&) {
        if (all.verbose) all.note("commands still run: they are told to end, and their jobs are given back");
    }
    worker.stop(how.grace_time() + how.margin());
}

exit_code work(context const& all, worker_words const& how) {
    // Otherwise commands, which run as the same user, could read its environment in /proc.
    if (!how.pass_url) ::prctl(PR_SET_DUMPABLE, 0);
    std::vector<trade> trades;
    for (auto const& one : how.commands) trades.push_back(read_trade(one));
    sigset_t before;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
    guard watched;  // before there are threads
    command_groups running{watched};
    shop here{how, all.connection.url, running, before};
    auto const run = [&](std::stop_token token) {
        auto by = all.connect("worker");
        job_client{by, how.name}.types(token);  // is there a server
        job_worker_options const options{.concurrency = how.concurrency, .lease = how.lease_time(), .fires_crons = !how.no_crons};
        struct cleared {
            shop& what;
            ~cleared() {
                what.leave();
                what.forget_all();
            }
        } const before_the_client_goes{here};
        job_worker worker{by, how.name, options};
        for (auto const& one : trades) {
            worker.handle<std::string>(one.type, [&here, &one](job_context& job, std::string const& payload) { return here.handle(one, job, payload); });
        }
        worker.start();
        std::mutex mutex;
        std::condition_variable_any never;
        {
            std::unique_lock guard{mutex};
            never.wait(guard, token, [] { return false; });
        }
        if (all.verbose) all.note("told to end: finishes what runs");
        finish(all, how, worker);
        if (auto const open = here.open_jobs(); !open.empty()) all.note(not_told(open));
        if (all.verbose) all.note(fmt::format("commands: {} succeeded, {} failed", worker.completed(), worker.failed()));
        return exit_code::ok;
    };
    // Stopped, we could not see a lease end: so nothing runs meanwhile.
    return interruptible(run, {.pause = [&](std::function<void()> const& stopped) { running.pause(stopped); },
                               .hurry = [&](int number) { end_at_once(all, here, running, number); }});
}

}  // namespace

void add_worker(CLI::App& command, context& all) {
    auto const how = std::make_shared<worker_words>();
    command.description("Runs jobs with programs:\n\n    lockstep worker NAME --exec 'TYPE=COMMAND' [--exec 'TYPE=COMMAND']...\n");
    command.footer(
        "The command is run by sh with the job's payload on its standard input, and LOCKSTEP_JOB_ID, LOCKSTEP_JOB_TYPE, LOCKSTEP_JOB_ATTEMPT\n"
        "and more in its environment. A line `progress: TEXT` of its output is progress; the rest is the job's result. It returns 0: the job is\n"
        "completed. 100: it has failed, and is not tried again. Else: this try has failed, and the last line of its standard error is why.\n"
        "The server's URL and other secrets of Lockstep are not in its environment unless --pass-url is given: LOCKSTEP_URL is none:, which programs refuse.\n"
        "SIGTERM, SIGINT, SIGHUP and SIGQUIT: it takes no more jobs, and ends when those that run have ended. What still runs shortly before --stop-after is over\n"
        "gets SIGTERM, then SIGKILL, and its jobs are run elsewhere, which counts as no failure. A second signal ends it at once.");
    add_name(command, how->name, "the jobs, as in `lockstep jobs`");
    command.add_option("--exec", how->commands, "handles jobs of a type with a command; may be given for several types")
        ->type_name("TYPE=COMMAND")
        ->required()
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command.add_option("--concurrency", how->concurrency, "how many jobs at once [1]")->type_name("N")->check(number_within(1, 1000));
    add_duration(command, "--lease", how->lease, "if this machine dies, its jobs are run elsewhere after this time [30s]");
    add_duration(command, "--grace", how->grace, "from SIGTERM to SIGKILL for the command of a job that was cancelled, lost, or took too long [5s, 9% of the lease at most]");
    add_duration(command, "--stop-after", how->stop_after, "it ends this long after SIGTERM at the latest, and gives back the jobs whose commands still run [30s]");
    command.add_flag("--pass-url", how->pass_url, "commands may use the server: they get its URL, with the password if one is in it");
    command.add_flag("--no-crons", how->no_crons, "leave it to others to fire schedules");
    command.callback([how, &all] { all.action = [how, &all] { return work(all, *how); }; });
}

}  // namespace lockstep::cli
