#include "cli/job.hpp"

#include "cli/duration.hpp"

#include <lockstep/counting_semaphore.hpp>
#include <lockstep/error.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/shared_mutex.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace lockstep::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds usual_ttl = 30s;
constexpr milliseconds usual_term_ttl = 15s;
constexpr milliseconds usual_grace = 5s;
constexpr milliseconds quiet_for = 1s;  // before a person is told what we wait for

using wish = std::function<task<std::optional<grip>>()>;

task<bool> take_each(std::vector<wish> wishes, std::vector<grip>& into) {
    for (auto const& one : wishes) {
        auto asking = one();
        auto got = co_await std::move(asking);
        if (!got) co_return false;
        into.push_back(std::move(*got));
    }
    co_return true;
}

task<std::optional<grip>> take_permit(client& by, std::string name, std::int64_t permits, lease_options how,
                                       std::optional<std::chrono::steady_clock::time_point> until) {
    semaphore_options options{.lease = how, .max_permits = 1'000'000'000};  // as `lockstep sem`
    auto creating = counting_semaphore::async_create(by, name, permits, options);
    auto semaphore = co_await std::move(creating);
    if (!until) {
        auto waiting = semaphore.async_acquire();
        auto held = co_await std::move(waiting);
        co_return std::optional<grip>{grip{std::move(held)}};
    }
    auto asking = semaphore.async_try_acquire_until(*until);
    auto got = co_await std::move(asking);
    if (!got) co_return std::nullopt;
    co_return std::optional<grip>{grip{std::move(*got)}};
}

task<std::optional<grip>> take_office(std::shared_ptr<election> in, std::optional<milliseconds> within) {
    if (!within) {
        auto standing = in->async_campaign();
        auto held = co_await std::move(standing);
        co_return std::optional<grip>{grip{std::move(held)}};
    }
    auto trying = in->async_try_campaign_for(*within);
    auto got = co_await std::move(trying);
    if (!got) co_return std::nullopt;
    co_return std::optional<grip>{grip{std::move(*got)}};
}

/// One of acquire, try_acquire and try_acquire_until, with one kind of result.
template <class Acquire, class TryUntil>
task<std::optional<grip>> take(Acquire acquire, TryUntil try_until, std::optional<std::chrono::steady_clock::time_point> until) {
    if (until) {
        auto asking = try_until(*until);
        auto got = co_await std::move(asking);
        if (!got) co_return std::nullopt;
        co_return std::optional<grip>{grip{std::move(*got)}};
    }
    auto waiting = acquire();
    auto held = co_await std::move(waiting);
    co_return std::optional<grip>{grip{std::move(held)}};
}

/// The last one first. A lease that was lost ends this with its error, after all others were given back.
task<void> release_each(std::vector<grip> all) {
    std::exception_ptr first;
    for (auto one = all.rbegin(); one != all.rend(); ++one) {
        try {
            auto giving = one->async_release();
            co_await std::move(giving);
        } catch (...) {
            if (!first) first = std::current_exception();
        }
    }
    if (first) std::rethrow_exception(first);
}

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

int code_of(int status) { return WIFSIGNALED(status) ? static_cast<int>(exit_code::signalled) + WTERMSIG(status) : WEXITSTATUS(status); }

bool ends_us(int number) { return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT; }

}  // namespace

// ---- the loop

job::bell::bell() : descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
}
job::bell::~bell() { ::close(descriptor); }

void job::bell::ring(std::atomic<bool>& flag) noexcept {
    flag = true;
    std::uint64_t const one = 1;
    [[maybe_unused]] auto const written = ::write(descriptor, &one, sizeof one);
}

void job::wait_for_news(std::optional<clock::time_point> until, std::function<void(int)> const& on_signal) {
    int time = -1;
    if (until) time = static_cast<int>(std::clamp<std::int64_t>(std::chrono::ceil<milliseconds>(*until - clock::now()).count(), 0, 3'600'000));
    std::array<pollfd, 2> ready{{{signals_.descriptor(), POLLIN, 0}, {bell_->descriptor, POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), time);
    std::uint64_t rings = 0;
    [[maybe_unused]] auto const got = ::read(bell_->descriptor, &rings, sizeof rings);
    while (auto const number = signals_.next()) on_signal(*number);
}

bool job::may_chat() const { return all_.verbose || all_.json || ::isatty(STDERR_FILENO) == 1; }

// ---- from nothing to the command's end

int job::run() {
    if (!all_.has_words || all_.words.empty()) {
        throw failure{exit_code::usage, "there is no command to run", "write it after --, as in `lockstep run NAME -- backup.sh --all`"};
    }
    auto const path = find_program(all_.words.front());  // before anybody has waited for it
    guard_ = std::make_unique<guard>();
    auto const slash = path.rfind('/');
    auto own = all_.connection;
    own.trace = [bell = bell_](trace_record const& what) {
        if (what.what == trace_what::asked) bell->ring(bell->asked);
    };
    context with_trace = all_;
    with_trace.connection = own;
    auto by = with_trace.connect(path.substr(slash + 1));
    if (!obtain(by)) {
        if (interrupted_ != 0) return static_cast<int>(exit_code::signalled) + interrupted_;
        if (may_chat()) {
            all_.note(fmt::format("{} is taken{}", printable(how_.name), how_.wait > 0ms ? " still" : ""),
                      boost::json::object{{"event", "conflict"}, {"name", how_.name}});
        }
        return how_.conflict_code;
    }
    auto const since = clock::now();
    auto const code = supervise(by);
    guard_->watch(0);
    terminal_->take_back();
    if (how_.at_least && !told_lost_) linger(since + *how_.at_least);
    give_back();
    if (told_lost_) return static_cast<int>(exit_code::lost);
    bool const by_terminal = had_terminal_ && status_ && WIFSIGNALED(*status_) && (WTERMSIG(*status_) == SIGINT || WTERMSIG(*status_) == SIGQUIT);
    if (by_terminal) {
        // Ctrl-C went to the command alone, which had the terminal. A script around us must hear of it too, or it would go on.
        by.close();
        rlimit const none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        guard_.reset();
        signals::suffer(WTERMSIG(*status_), true);
    }
    if (interrupted_ != 0) return static_cast<int>(exit_code::signalled) + interrupted_;
    return code;
}

// ---- waiting for the lock

election_options run_options::candidacy() const {
    return {.id = id, .ttl = ttl, .priority = priority};
}

std::vector<wish> job::wishes(client& by) const {
    if (how_.elects) {
        auto const in = std::make_shared<election>(by, how_.name, how_.candidacy());
        return {[in, within = how_.wait] { return take_office(in, within); }};
    }
    lease_options const how{.ttl = how_.ttl, .max_hold = how_.max_hold};
    std::optional<clock::time_point> until;
    if (how_.wait) until = *how_.wait > 0ms ? clock::now() + *how_.wait : clock::time_point{};
    auto const& name = how_.name;
    if (how_.permits != 0) return {[=, &by, n = how_.permits] { return take_permit(by, name, n, how, until); }};
    auto const both = std::make_shared<shared_mutex>(by, name, how);
    if (how_.shared) {
        return {[=] { return take([=] { return both->async_acquire_shared(); }, [=](auto t) { return both->async_try_acquire_shared_until(t); }, until); }};
    }
    // Alone among all that `mutex` and `shared_mutex` have under this name, so that it excludes programs that use either, and -s. The first one is reported, and
    // monitors show both as that one.
    auto const alone = std::make_shared<mutex>(by, name, how);
    auto unreported = how;
    unreported.report = false;
    auto const writing = std::make_shared<shared_mutex>(by, name, unreported);
    return {[=] { return take([=] { return alone->async_acquire(); }, [=](auto t) { return alone->async_try_acquire_until(t); }, until); },
            [=] { return take([=] { return writing->async_acquire(); }, [=](auto t) { return writing->async_try_acquire_until(t); }, until); }};
}

bool job::obtain(client& by) {
    std::stop_source stop;
    bool got = false;
    auto const began = clock::now();
    start(with_stop_token(take_each(wishes(by), leases_), stop.get_token()), [&, bell = bell_](std::exception_ptr problem, std::optional<bool> all) {
        problem_ = std::move(problem);
        got = all.value_or(false);
        bell->ring(bell->done);
    });
    std::optional<clock::time_point> say_at;
    if (may_chat()) say_at = began + quiet_for;
    while (!bell_->done) {
        wait_for_news(say_at, [&](int number) {
            if (ends_us(number) && interrupted_ == 0) {
                interrupted_ = number;
                stop.request_stop();
            }
            if (number == SIGTSTP) signals::suffer(SIGTSTP, false);  // our place in the queue stays
        });
        if (say_at && clock::now() >= *say_at && !bell_->done) {
            all_.note(fmt::format("waiting for {}", printable(how_.name)), boost::json::object{{"event", "waiting"}, {"name", how_.name}});
            say_at.reset();
        }
    }
    if (interrupted_ != 0) return false;
    if (problem_) std::rethrow_exception(std::exchange(problem_, nullptr));
    if (got && (all_.verbose || all_.json)) {
        all_.note(fmt::format("holds {} with fence {} after {}", printable(how_.name), leases_.front().fence(), show(std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - began))),
                  boost::json::object{{"event", "acquired"}, {"name", how_.name}, {"fence", std::to_string(leases_.front().fence())},
                                      {"waited_ms", std::chrono::duration_cast<milliseconds>(clock::now() - began).count()}});
    }
    return got;
}

// ---- the command

void job::watch_over_leases() {
    for (auto const& one : leases_) {
        std::function<void()> on_loss = [bell = bell_] { bell->ring(bell->lost); };
        std::function<void()> on_risk = [bell = bell_] { bell->ring(bell->at_risk); };
        callbacks_.push_back(std::make_unique<std::stop_callback<std::function<void()>>>(one.stop_token(), std::move(on_loss)));
        callbacks_.push_back(std::make_unique<std::stop_callback<std::function<void()>>>(one.at_risk_token(), std::move(on_risk)));
    }
}

command_line job::describe_command(client& by) const {
    auto path = find_program(all_.words.front());
    auto owner = all_.connection.name.empty() ? path.substr(path.rfind('/') + 1) : all_.connection.name;
    command_line made{.path = path,
                      .words = all_.words,
                      .added = {{"LOCKSTEP_NAME", how_.name},
                                {"LOCKSTEP_FENCE", std::to_string(leases_.front().fence())},
                                {"LOCKSTEP_OWNER", fmt::format("{}@{}:{}", owner, host_name(), ::getpid())},
                                {"LOCKSTEP_PARENT", monitor{by}.client_id()}}};
    if (how_.elects) made.added.emplace_back("LOCKSTEP_TERM", std::to_string(leases_.front().fence()));
    return made;
}

int job::supervise(client& by) {
    terminal_ = std::make_unique<terminal>();
    watch_over_leases();
    if (bell_->lost) throw lease_lost_error("the lease was lost before the command was started");
    pid_ = launch(describe_command(by), terminal_.get(), signals_.before(), guard_->line());
    try {
        return supervise_command();
    } catch (...) {
        ::kill(-pid_, SIGKILL);  // not for a moment without somebody who sees the lease end
        throw;
    }
}

int job::supervise_command() {
    had_terminal_ = terminal_->given();
    while (!status_) {
        wait_for_news(kill_at_, [&](int number) { pass_on(number); });
        int status = 0;
        while (::waitpid(pid_, &status, WNOHANG | WUNTRACED) == pid_) child_changed(status);
        if (status_) break;
        if (bell_->lost && !told_lost_) lease_is_lost();
        if (bell_->asked.exchange(false)) asked_to_yield();
        if (bell_->at_risk.exchange(false) && all_.verbose) all_.note("the lease is at risk");
        if (kill_at_ && clock::now() >= *kill_at_) {
            ::kill(-pid_, SIGKILL);
            kill_at_.reset();
        }
    }
    if (bell_->lost && !told_lost_) lease_is_lost();
    if (told_lost_) end_stragglers();
    return code_of(*status_);
}

void job::child_changed(int status) {
    if (!WIFSTOPPED(status)) {
        status_ = status;
        return;
    }
    int const why = WSTOPSIG(status);
    bool const wants_terminal = why == SIGTTIN || why == SIGTTOU;
    if (wants_terminal && !terminal_->given() && terminal_->ours()) return continue_child();
    pause_with_child();
}

/// The command was stopped, by Ctrl-Z say: so do we, for the shell to see. Meanwhile nothing is renewed, and nothing runs.
void job::pause_with_child() {
    bool const by_terminal = terminal_->given();
    terminal_->take_back();
    ::kill(-pid_, SIGSTOP);  // all that it started too: nobody watches the lease meanwhile
    signals::suffer(SIGTSTP, by_terminal);
    // Here we are again: continued by the shell, or never stopped, because there is no shell that could continue us.
    if (!std::all_of(leases_.begin(), leases_.end(), [](grip const& one) { return one.valid(); })) return bell_->ring(bell_->lost);
    continue_child();
}

void job::continue_child() {
    if (terminal_->ours()) terminal_->give(pid_);
    had_terminal_ = had_terminal_ || terminal_->given();
    ::kill(-pid_, SIGCONT);
}

void job::pass_on(int number) {
    if (status_ || number == SIGCHLD) return;
    switch (number) {
        // What ends or stops is for the whole group, as if it came from a terminal. The others are for the command, whose helpers may not
        // expect them and would die.
        case SIGUSR1:
        case SIGUSR2: ::kill(pid_, number); break;
        case SIGCONT:
            if (!bell_->lost) continue_child();
            break;
        default: ::kill(-pid_, number);
    }
}

milliseconds job::grace() const {
    // Without a wish of the user's it ends before the lease can be somebody else's: a tenth of the ttl is left when it counts as lost here.
    // For a leader it is a third. Some of that is for hearing of it and for the killing.
    auto const left = how_.elects ? how_.ttl.value_or(usual_term_ttl) / 3 : how_.ttl.value_or(usual_ttl) / 10;
    return how_.kill_after.value_or(std::min(usual_grace, left * 9 / 10));
}

void job::lease_is_lost() {
    told_lost_ = true;
    bool const runs = !status_;
    if (runs) {
        ::kill(-pid_, SIGTERM);
        ::kill(-pid_, SIGCONT);  // one that is stopped would not hear it
        kill_at_ = clock::now() + grace();
    }
    all_.note(fmt::format("lost {}: the lease ended before the command did{}", printable(how_.name), runs ? fmt::format("; it gets SIGTERM, and SIGKILL in {}", show(grace())) : ""),
              boost::json::object{{"event", "lost"}, {"name", how_.name}});
}

void job::asked_to_yield() {
    all_.note(fmt::format("somebody asks for {} to be released{}", printable(how_.name), how_.yield ? ": the command gets SIGTERM" : " (see --yield)"),
              boost::json::object{{"event", "asked"}, {"name", how_.name}, {"yields", how_.yield}});
    if (how_.yield) ::kill(-pid_, SIGTERM);
}

/// The command is gone, but what it started in its group may not be: without the lock it may not go on.
void job::end_stragglers() {
    while (::kill(-pid_, 0) == 0) {
        if (!kill_at_ || clock::now() >= *kill_at_) {
            ::kill(-pid_, SIGKILL);
            return;
        }
        wait_for_news(std::min(*kill_at_, clock::now() + 10ms), [](int) {});
    }
}

// ---- after the command

void job::linger(clock::time_point until) {
    while (clock::now() < until && interrupted_ == 0 && !bell_->lost) {
        wait_for_news(until, [&](int number) {
            if (ends_us(number)) interrupted_ = number;
            if (number == SIGTSTP) signals::suffer(SIGTSTP, false);
        });
    }
    if (bell_->lost) all_.note(fmt::format("lost {} before its time was over; the command had ended already", printable(how_.name)));
}

void job::give_back() {
    callbacks_.clear();  // a release is no loss
    bell_->done = false;
    bool const lost_while_lingering = bell_->lost && !told_lost_;
    start(release_each(std::move(leases_)), [&, bell = bell_](std::exception_ptr problem) {
        problem_ = std::move(problem);
        bell->ring(bell->done);
    });
    while (!bell_->done) {
        int end = 0;
        wait_for_news(std::nullopt, [&](int number) {
            if (ends_us(number)) end = number;
        });
        // The server does not answer and a person does not want to wait. The lease ends by itself.
        if (end != 0 && !bell_->done) std::_Exit(static_cast<int>(exit_code::signalled) + end);
    }
    if (!problem_ || told_lost_ || lost_while_lingering) return;
    try {
        std::rethrow_exception(std::exchange(problem_, nullptr));
    } catch (error const& one) {
        if (one.reason() == errc::lease_lost || one.reason() == errc::leadership_lost) {
            told_lost_ = true;
            all_.note(fmt::format("lost {}: {}", printable(how_.name), printable(one.what())), boost::json::object{{"event", "lost"}, {"name", how_.name}});
            return;
        }
        // The command ran under the lock to its end: that is what counts. What is not given back ends by itself.
        all_.note(fmt::format("{} could not be given back and ends by itself: {}", printable(how_.name), printable(one.what())),
                  boost::json::object{{"event", "not_released"}, {"name", how_.name}});
    }
}

}  // namespace lockstep::cli
