#include "observe/probes.hpp"

#include "base/random.hpp"
#include "lease/awaiter.hpp"
#include "redis/subscriptions.hpp"
#include "scripts/all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

namespace lockstep::observe {
namespace {

using std::chrono::microseconds;

constexpr std::string_view probe_ttl_ms = "2000";  // what is left behind, should nobody come to take it away
constexpr std::string_view not_late = "9000000000000000";

microseconds since(clock::time_point begin) { return std::chrono::duration_cast<microseconds>(clock::now() - begin); }

std::string in_ms(microseconds time) { return fmt::format("{:.2f} ms", static_cast<double>(time.count()) / 1000); }

redis::command_terms terms_of(clock::time_point deadline, std::int16_t slot) {
    return {.deadline = deadline, .slot = slot, .repeatable = true, .errors_are_replies = true};
}

/// What a request came to, whatever that is. Never throws but `cancelled_error`.
task<answer> outcome_of(std::shared_ptr<detail::core> owner, task<reply> request) {
    answer made;
    auto const begin = clock::now();
    try {
        made.value = co_await std::move(request);
        if (made.value.is_error()) {
            made.reason = errc::server;
            made.problem = made.value.text();
        }
    } catch (cancelled_error const& problem) {
        if (!owner->closed()) throw;
        made.reason = problem.reason();
        made.problem = "the client is closed";
    } catch (error const& problem) {
        made.reason = problem.reason();
        made.problem = problem.what();
    }
    made.took = since(begin);
    co_return made;
}

/// A key beside that of the probe lock, in the same slot.
std::string beside(place const& at, std::string_view what) {
    return fmt::format("{}:{}", at.key.substr(0, at.key.rfind(':')), what);
}

task<answer> run_script(exam const& of, place const& at, scripts::script const& script, std::string key,
                        std::vector<std::string> arguments) {
    std::string_view const keys[] = {key};
    std::vector<detail::argument> const list{arguments.begin(), arguments.end()};
    return outcome_of(of.owner, redis::run_script(of.owner->way(), script, keys, list, terms_of(of.deadline, at.slot)));
}

std::string channel_of(exam const& of, place const& at, std::string_view id) {
    if (!of.owner->is_cluster()) return fmt::format("{}:wake:{}", of.by.prefix, id);
    return beside(at, fmt::format("wake:{}", id));  // the key's own slot, as for wake-ups
}

std::string where_to_look(answer const& of) {
    if (of.lacks_rights()) return "see `rights`";
    auto const word = of.problem.substr(0, of.problem.find(' '));
    if (word == "OOM") return "the server is full: see `memory`";
    if (word == "MISCONF") return "the server can't write to disk: see `persistence`";
    if (word == "NOREPLICAS") return "replicas are missing: see `replicas`";
    return advice_for(of.reason, of.problem);
}

finding slow_or_well(std::string_view check, std::string found, microseconds took, exam const& of) {
    auto made =
        took < of.by.slow
            ? well(check, std::move(found))
            : degraded(
                  check, std::move(found),
                  fmt::format(
                      "longer than {} ms: is the server overloaded (SLOWLOG GET, LATENCY DOCTOR), or the network slow?",
                      of.by.slow.count()));
    made.took = took;
    return made;
}

/// Listens to one channel of the client's own connection, in the frame of the coroutine that waits for it.
class ear final : redis::listener {
public:
    ear(std::shared_ptr<detail::core> owner, std::string channel)
        : owner_(std::move(owner)), channel_(std::move(channel)) {}
    ~ear() {
        if (!owner_->same_process()) return;
        owner_->home().in_turn([this] {
            if (std::exchange(listening_, false)) owner_->way()->listening().remove(kind(), channel_, *this);
        });
    }
    ear(ear const&) = delete;

    bool ready() const noexcept { return ready_; }
    std::optional<clock::time_point> heard_at() const noexcept { return heard_at_; }
    std::string const& problem() const noexcept { return problem_; }
    errc reason() const noexcept { return reason_; }

    /// co_await: until it is subscribed, then until something was heard; or there is a problem, or the time is over.
    class wait final : public engine::awaiter {
    public:
        wait(ear& at, clock::time_point until) noexcept : ear_(at), until_(until) {}
        ~wait() { withdraw(); }

    private:
        std::shared_ptr<detail::core> const& owner() const noexcept override { return ear_.owner_; }
        clock::time_point deadline() const noexcept override { return until_; }
        void enter() override {
            if (ear_.owner_->closed()) return fail(errc::cancelled, "the client is closed");
            ear_.waiting_ = this;
            ear_.listen();
            if (ear_.waiting_ != nullptr && ear_.is_done()) ear_.wake();
        }
        void leave() noexcept override { ear_.waiting_ = nullptr; }
        void time_is_over() noexcept override { resume_soon(); }
        friend class ear;

        ear& ear_;
        clock::time_point until_;
    };

private:
    redis::channel_kind kind() const noexcept {
        return owner_->is_cluster() ? redis::channel_kind::shard : redis::channel_kind::plain;
    }
    void listen() {
        if (std::exchange(listening_, true)) return;
        owner_->way()->listening().add(kind(), channel_, *this);
    }
    bool is_done() const noexcept { return !problem_.empty() || heard_at_ || (ready_ && !wants_message_); }
    void wake() noexcept {
        if (!is_done()) return;
        if (ready_) wants_message_ = true;
        if (auto* const one = std::exchange(waiting_, nullptr)) one->resume_soon();
    }
    void message(std::string_view, std::string_view) noexcept override {
        if (!heard_at_) heard_at_ = clock::now();
        wake();
    }
    void subscribed() noexcept override {
        ready_ = true;
        wake();
    }
    void interrupted() noexcept override {}
    void refused(errc reason, std::string_view why) noexcept override {
        reason_ = reason;
        problem_ = why;
        wake();
    }

    std::shared_ptr<detail::core> owner_;
    std::string channel_;
    bool listening_ = false;
    bool ready_ = false;
    bool wants_message_ = false;  // being subscribed was waited for already
    std::optional<clock::time_point> heard_at_;
    errc reason_{};
    std::string problem_;
    wait* waiting_ = nullptr;
};

}  // namespace

std::pair<std::uint64_t, std::string> refusals_of(detail::core& owner) {
    return owner.home().locked([&owner] {
        auto const way = owner.way();
        return std::pair{way->refusals(), way->last_refusal()};
    });
}

bool answer::lacks_rights() const noexcept {
    return problem.find("NOPERM") != std::string::npos ||
           problem.find("The user executing the script") != std::string::npos;
}

task<answer> ask(exam const& of, place const& at, std::vector<std::string> command) {
    std::vector<detail::argument> const list{command.begin(), command.end()};
    return outcome_of(of.owner, redis::run_command(of.owner->way(), list, terms_of(of.deadline, at.slot)));
}

task<answer> ask_by(exam const& of, std::shared_ptr<redis::router> way, clock::time_point deadline,
                    std::vector<std::string> command) {
    std::vector<detail::argument> const list{command.begin(), command.end()};
    return outcome_of(of.owner, redis::run_command(std::move(way), list, terms_of(deadline, -1)));
}

task<trial> try_lock(exam const& of, place const& at) {
    auto const hold = base::random_id().substr(0, 12) + ".1";
    auto const rules = fmt::format("500 1 {}:wake:", of.by.prefix);
    trial made;
    made.last = co_await run_script(of, at, scripts::lock_acquire, at.key,
                                    words(hold, probe_ttl_ms, not_late, "1", "0", rules));
    auto const acquired = made.last.took;
    bool const granted =
        made.last.ok() &&
        (made.last.value.type() == reply_type::integer ||
         (!made.last.value.empty() && made.last.value[0].is_text() && made.last.value[0].text() == "granted"));
    if (!granted) {
        auto const why =
            made.last.ok() ? std::string{"the server answered something else than a lock"} : made.last.problem;
        made.found =
            unhealthy("probe_lock", "a lock can't be acquired: " + why,
                      made.last.ok() ? "is another program using the keys of this prefix?" : where_to_look(made.last));
        made.found.took = acquired;
        co_return made;
    }
    made.last = co_await run_script(of, at, scripts::lock_release, at.key, words(hold, rules));
    auto const took = acquired + made.last.took;
    if (!made.last.ok()) {
        made.found = unhealthy("probe_lock", "a lock was acquired but can't be released: " + made.last.problem,
                               where_to_look(made.last));
        made.found.took = took;
        co_return made;
    }
    co_await ask(of, at, words("DEL", at.key));  // without that right it goes with its lease
    made.found = slow_or_well(
        "probe_lock", fmt::format("acquired in {}, released in {}", in_ms(acquired), in_ms(made.last.took)), took, of);
    co_return made;
}

task<trial> try_script(exam const& of, place const& at) {
    trial made;
    made.last = co_await run_script(of, at, scripts::compare_and_delete, beside(at, "health"),
                                    words("a value that nobody writes"));
    if (made.last.ok()) {
        made.found = slow_or_well("scripts", "the server runs scripts (EVALSHA, EVAL)", made.last.took, of);
    } else {
        made.found = unhealthy("scripts", "the server runs no script: " + made.last.problem, where_to_look(made.last));
        made.found.took = made.last.took;
    }
    co_return made;
}

task<trial> try_push(exam const& of, place const& at) {
    constexpr std::string_view meaning = "those who wait are not woken, and look only when a lease would have run out";
    trial made;
    auto const channel = channel_of(of, at, "health-" + base::random_id().substr(0, 12));
    ear listening{of.owner, channel};
    auto const begin = clock::now();
    {
        ear::wait subscribed{listening, of.deadline};
        co_await subscribed;
    }
    if (!listening.problem().empty() || !listening.ready()) {
        made.last.reason = listening.problem().empty() ? errc::timeout : listening.reason();
        made.last.problem =
            listening.problem().empty() ? "the server did not confirm the subscription in time" : listening.problem();
        made.found = degraded("push", fmt::format("can't listen to {}: {}; {}", channel, made.last.problem, meaning),
                              where_to_look(made.last));
        made.found.took = since(begin);
        co_return made;
    }
    auto const published = clock::now();
    made.last = co_await ask(of, at, words(of.owner->is_cluster() ? "SPUBLISH" : "PUBLISH", channel, "ping"));
    if (!made.last.ok()) {
        made.found = degraded("push", fmt::format("can't publish to {}: {}; {}", channel, made.last.problem, meaning),
                              where_to_look(made.last));
        made.found.took = made.last.took;
        co_return made;
    }
    {
        ear::wait heard{listening, of.deadline};
        co_await heard;
    }
    if (!listening.heard_at()) {
        made.found = degraded("push", fmt::format("a message to itself did not come back; {}", meaning),
                              "is a proxy between that does not pass pushes on (RESP3)? Connect to the server itself");
        made.found.took = since(published);
        co_return made;
    }
    auto const took = std::chrono::duration_cast<microseconds>(*listening.heard_at() - published);
    made.found = slow_or_well("push", fmt::format("a message to itself came back in {}", in_ms(took)), took, of);
    co_return made;
}

// ---- rights

namespace {

/// In this order: what is made is taken away by one of the last, whichever of them is allowed. `%k`, `%z`, `%x` and `%l`: keys of its own, `%c`: a
/// channel. With `?` it is for monitors, messages and state, and locks work without; with `#` it is tried in a Cluster only.
constexpr auto trials = std::to_array<std::string_view>({
    "EXISTS %k",
    "GET %k",
    "HGET %k f",
    "HMGET %k f",
    "HGETALL %k",
    "HKEYS %k",
    "PTTL %k",
    "TIME",
    "HSET %k f v",
    "PUBLISH %c ping",
    "#SPUBLISH %c ping",
    "PUBSUB NUMSUB %c",
    "?ZADD %z 1 m",
    "?ZRANGE %z 0 0",
    "?HLEN %k",
    "?HEXISTS %k f",
    "?HRANDFIELD %k",
    "?HSCAN %k 0",
    "?ZSCAN %z 0",
    "?XADD %x MAXLEN 1 * f v",
    "?XREVRANGE %x + - COUNT 1",
    "?HINCRBY %k n 1",
    "?SETRANGE %k 0 v",
    "?HSTRLEN %k f",
    "?PERSIST %z",
    "?RENAME %z %z",
    "?ZCARD %z",
    "?ZCOUNT %z 0 1",
    "?ZPOPMIN %z 0",
    "?ZRANK %z m",
    "?ZREVRANGE %z 0 0",
    "?ZSCORE %z m",
    "?RPUSH %l v",
    "?LPUSH %l v",
    "?LLEN %l",
    "?LINDEX %l 0",
    "?LRANGE %l 0 0",
    "?LSET %l 0 v",
    "?LTRIM %l 1 0",
    "?LREM %l 1 x",
    "?LPOS %l x",
    "?LPOP %l",
    "?RPOP %l",
    "?ZMSCORE %z m",
    "?ZREMRANGEBYRANK %z 1 0",
    "?XTRIM %x MAXLEN 1",
    "?MEMORY USAGE %x",
    "?XRANGE %x - + COUNT 1",
    "?XLEN %x",
    "?XDEL %x 1-1",
    "?XINFO STREAM %x",
    "?XGROUP DESTROY %x g",
    "?XPENDING %x g",
    "?XACK %x g 1-1",
    "?XCLAIM %x g c 0 1-1",
    "?XAUTOCLAIM %x g c 0 0",
    "?ZREM %z m",
    "?ZREMRANGEBYSCORE %z 0 1",
    "HDEL %k f",
    "PEXPIRE %k 1",
    "PEXPIREAT %k 1",
    "PEXPIRE %z 1",
    "PEXPIRE %x 1",
    "PEXPIRE %l 1",
    "DEL %k",
    "?SET %z v PX 1",
    "?PSETEX %z 1 v",
    "DEL %z",
    "DEL %x",
    "DEL %l",
    "?UNLINK %l",
    "EVALSHA ffffffffffffffffffffffffffffffffffffffff 1 %k",
    "EVAL return(0) 1 %k",
    "?EVALSHA_RO ffffffffffffffffffffffffffffffffffffffff 1 %k",
    "?EVAL_RO return(0) 1 %k",
});

void fill_in(std::vector<std::string>& command, place const& at, std::string const& channel) {
    for (auto& word : command) {
        if (word == "%k") word = beside(at, "health");
        if (word == "%z") word = beside(at, "health-set");
        if (word == "%x") word = beside(at, "health-stream");
        if (word == "%l") word = beside(at, "health-list");
        if (word == "%c") word = channel;
    }
}

}  // namespace

std::vector<std::string> tried_commands() {
    std::set<std::string> names;
    for (auto one : trials) {
        if (one.starts_with('?') || one.starts_with('#')) one.remove_prefix(1);
        names.insert(words_of(one).front());
    }
    return {names.begin(), names.end()};
}

std::string missing_right(std::string_view problem, std::string_view command, std::string_view prefix) {
    auto const about = [problem](std::string_view words) { return problem.find(words) != std::string_view::npos; };
    // Redis 7.0, and all later ones: "access one of the keys used as arguments", "access a key".
    if (about("one of the keys") || about("access a key")) return fmt::format("~{}:{{*}}:*", prefix);
    if (about("one of the channels") || about("access a channel")) return fmt::format("&{0}:wake:* &{0}:{{*}}:* &{0}:news", prefix);
    // Since Valkey 9.1. `db=0` would take away the databases that the user has.
    if (about("access database")) return "alldbs";
    std::string right = fmt::format("+{}", command);
    std::transform(right.begin(), right.end(), right.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return right;
}

task<finding> try_rights(exam const& of, place const& at, std::string user) {
    auto const begin = clock::now();
    auto const channel = channel_of(of, at, "health-rights");
    std::vector<task<answer>> questions;
    std::vector<std::string> names;
    std::vector<bool> needed;
    for (auto one : trials) {
        if (one.starts_with('#') && !of.by.cluster) continue;
        needed.push_back(!one.starts_with('?'));
        if (one.starts_with('?') || one.starts_with('#')) one.remove_prefix(1);
        auto command = words_of(one);
        fill_in(command, at, channel);
        names.push_back(command.front());
        questions.push_back(ask(of, at, std::move(command)));
    }
    auto const answers = co_await when_all(std::move(questions));
    std::set<std::string> missing;
    std::string unanswered;
    bool locks_work = true;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        auto const& one = answers[i];
        if (!one.answered()) unanswered = one.problem;
        if (!one.lacks_rights()) continue;
        missing.insert(missing_right(one.problem, names[i], of.by.prefix));
        locks_work = locks_work && !needed[i];
    }
    finding made;
    auto const who = user.empty() ? std::string{"this user"} : fmt::format("user {}", user);
    if (!missing.empty()) {
        std::string list;
        for (auto const& one : missing) list += " " + one;
        auto advice = fmt::format("ACL SETUSER {}{}; `lockstep acl --for ...` prints all that a use needs",
                                  user.empty() ? "<user>" : user, list);
        made =
            locks_work
                ? degraded("rights",
                           fmt::format("{} may use locks, but monitoring, messages or state need rights that it lacks:{}", who, list),
                           std::move(advice))
                : unhealthy("rights", fmt::format("{} lacks rights that locks need:{}", who, list), std::move(advice));
    } else if (!unanswered.empty()) {
        made = degraded("rights", "could not be tried: " + unanswered, advice_for(errc::timeout, unanswered));
    } else {
        made = well("rights", fmt::format("{} may do all that Lockstep needs", who));
    }
    made.took = since(begin);
    co_return made;
}

}  // namespace lockstep::observe
