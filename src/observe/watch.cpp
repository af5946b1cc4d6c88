#include "core/subscription.hpp"
#include "lease/pause.hpp"
#include "observe/picture.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>
#include <lockstep/monitor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

// Clients that are being watched say so after each change, and that is news for the watch: then it looks. Without news it looks now and
// then, since the dead say nothing. When looks take long it makes longer pauses, so that it takes a twentieth of the time or less; one that
// was slow by itself (the server slept for a moment) does not count.

namespace lockstep {

class watch::state {
public:
    using handler = std::function<void(snapshot const&)>;

    state(handler told, watch_options const& options)
        : handler_(std::move(told)), options_(options), name_(options.what.name), pattern_(options.what.pattern) {
        options_.what.name = name_;
        options_.what.pattern = pattern_;
    }

    watch_options const& options() const noexcept { return options_; }
    bool stopped() const noexcept { return stopped_; }
    void has_news() noexcept { news_ = true; }
    bool take_news() noexcept { return news_.exchange(false); }

    void tell(snapshot const& now) noexcept {
        std::lock_guard const guard{running_};
        if (stopped_) return;
        runs_on_ = std::this_thread::get_id();
        try {
            handler_(now);
        } catch (std::exception const& problem) {
            log(log_level::error, fmt::format("the handler of a watch threw: {}", problem.what()));
        } catch (...) {
            log(log_level::error, "the handler of a watch threw");
        }
        runs_on_ = std::thread::id{};
    }

    void stop() noexcept {
        stopped_ = true;
        if (runs_on_ == std::this_thread::get_id()) return;
        std::lock_guard const guard{running_};  // until the handler has returned
    }

private:
    handler handler_;
    watch_options options_;
    std::string name_, pattern_;
    std::mutex running_;
    std::atomic<std::thread::id> runs_on_{};
    std::atomic<bool> stopped_{false};
    std::atomic<bool> news_{false};
};

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds watch_for{60'000};
constexpr std::size_t most_registrations = 50;  // a second, of all clients together, for as long as they are watched

bool same(client_info const& a, client_info const& b) {
    return std::tie(a.id, a.name, a.connected, a.held, a.waiting) == std::tie(b.id, b.name, b.connected, b.held, b.waiting);
}
bool same(object_info const& a, object_info const& b) {
    auto const all = [](object_info const& o) {
        return std::tie(o.name, o.kind, o.type, o.count, o.taken, o.holders, o.queue, o.delayed, o.dead, o.blocked, o.paused, o.groups);
    };
    return all(a) == all(b);
}
bool same(hold_info const& a, hold_info const& b) {
    return std::tie(a.id, a.name, a.fence, a.permits, a.stale, a.offered, a.queue) ==
           std::tie(b.id, b.name, b.fence, b.permits, b.stale, b.offered, b.queue);
}
/// That a lease runs down is no news; that it was renewed, and so ends later, is.
bool same_ends(snapshot const& before, snapshot const& now) {
    return std::equal(before.holds.begin(), before.holds.end(), now.holds.begin(), now.holds.end(), [&](hold_info const& a, hold_info const& b) {
        auto const moved = (now.at + b.remaining) - (before.at + a.remaining);
        return moved > -60ms && moved < 60ms;
    });
}
bool same(wait_info const& a, wait_info const& b) {
    return std::tie(a.id, a.name, a.kind, a.who.id, a.position, a.waiters) == std::tie(b.id, b.name, b.kind, b.who.id, b.position, b.waiters) &&
           a.waiting_for.has_value() == b.waiting_for.has_value();
}

bool same(snapshot const& before, snapshot const& now) {
    auto const all = [](auto const& a, auto const& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto const& x, auto const& y) { return same(x, y); });
    };
    return before.trouble == now.trouble && before.left_out == now.left_out && before.notes == now.notes && all(before.objects, now.objects) && all(before.holds, now.holds) &&
           same_ends(before, now) &&
           all(before.waits, now.waits) && all(before.clients, now.clients);
}

task<snapshot> look(observe::reader from, observe::survey_terms what, clock::time_point& nudged) {
    auto looking = observe::take_picture(from, std::move(what));
    auto seen = co_await std::move(looking);
    if (clock::now() - nudged > watch_for / 2) {
        nudged = clock::now();
        std::vector<std::string> ids;
        for (auto const& [id, one] : seen.people) ids.push_back(id);
        auto const pace = std::max<milliseconds>(100ms, ids.size() * 1'000ms / most_registrations);
        auto asking = observe::nudge(from, std::move(ids), watch_for, pace);
        co_await std::move(asking);
    }
    auto describing = observe::describe_pairs_once(from, std::move(seen));
    co_return co_await std::move(describing);
}

task<subscription> listen(observe::reader const& from, std::shared_ptr<watch::state> const& shared) {
    return detail::open_subscription(from.owner(), {.channel = from.prefix() + ":news",
                                                    .handler = [weak = std::weak_ptr{shared}](message const&) {
                                                        if (auto const alive = weak.lock()) alive->has_news();
                                                    }});
}

task<void> run(observe::reader from, std::shared_ptr<watch::state> shared) {
    subscription news;
    snapshot last;
    bool first = true;
    clock::time_point nudged{};
    std::size_t clients = 0;
    clock::duration took{0};  // by the last look that succeeded
    while (!shared->stopped()) {
        auto const begun = clock::now();
        std::string trouble;
        clock::duration pace{0};
        try {
            if (!news) {
                auto listening = listen(from, shared);
                news = co_await std::move(listening);
            }
            observe::reader const fresh{from.owner(), std::make_shared<observe::notes>(), shared->options().what.within};
            auto looking = look(fresh, observe::survey_terms{shared->options().what}, nudged);
            auto now = co_await std::move(looking);
            if (now.clients.size() != clients) nudged = {};  // somebody came: it does not know yet that it is watched
            clients = now.clients.size();
            auto const length = clock::now() - begun;
            pace = 20 * std::min(std::exchange(took, length), length);
            bool const changed = first || !same(last, now);
            last = std::move(now);
            if (changed) shared->tell(last);
            first = false;
        } catch (cancelled_error const&) {
            throw;  // the client was closed
        } catch (error const& problem) {
            trouble = problem.what();
        }
        if (!trouble.empty() && last.trouble != trouble) {
            last.trouble = trouble;
            shared->tell(last);
        }
        auto const& how = shared->options();
        auto const soonest = clock::now() + std::max<clock::duration>(how.at_most_every, pace);
        auto const latest = std::max(soonest, begun + clock::duration{how.at_least_every});
        while (!shared->stopped() && clock::now() < latest && (clock::now() < soonest || !shared->take_news())) {
            engine::pause rest{from.owner(), std::clamp(how.at_most_every / 5, 5ms, 50ms)};
            co_await rest;
        }
    }
}

}  // namespace

watch& watch::operator=(watch&& other) noexcept {
    if (this == &other) return *this;
    stop();
    state_ = std::exchange(other.state_, nullptr);
    return *this;
}

watch::~watch() { stop(); }

void watch::stop() noexcept {
    if (auto const shared = std::exchange(state_, nullptr)) shared->stop();
}

watch monitor::watch(std::function<void(lockstep::snapshot const&)> handler, watch_options options) {
    auto const& core = detail::core_access::of(*client_);
    core->require_same_process();
    if (!handler) throw invalid_argument_error("the watch has no handler");
    if (options.at_most_every < 10ms || options.at_least_every < options.at_most_every) {
        throw invalid_argument_error(fmt::format("a watch looks at most every 10 ms, and at least as often as at_least_every: {} ms and {} ms are not possible",
                                                 options.at_most_every.count(), options.at_least_every.count()));
    }
    auto shared = std::make_shared<lockstep::watch::state>(std::move(handler), options);
    auto work = run(observe::reader{core}, shared);
    start(std::move(work), [](std::exception_ptr) {});
    return lockstep::watch{std::move(shared)};
}

}  // namespace lockstep
