#include <lockstep/durable_bus.hpp>

#include "base/backoff.hpp"
#include "base/names.hpp"
#include "base/quiet_thread.hpp"
#include "messaging/consumer_state.hpp"
#include "messaging/glob.hpp"
#include "messaging/stream_read.hpp"
#include "messaging/stream_state.hpp"

#include <lockstep/error.hpp>
#include <lockstep/later.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace lockstep {
namespace detail {

using namespace std::chrono_literals;

using bus_executor = std::function<void(std::function<void()>)>;

/// What both kinds of subscription do with an entry. Kept by what runs its handler until `end`, which everybody calls.
class durable_listening : public std::enable_shared_from_this<durable_listening> {
public:
    durable_listening(std::string pattern, entry_handler handler, bus_executor executor)
        : pattern_(std::move(pattern)), handler_(std::move(handler)), executor_(std::move(executor)) {}
    virtual ~durable_listening() = default;
    void end() noexcept {
        {
            std::lock_guard const guard{errands_};
            ended_ = true;
        }
        changed_.notify_all();
        leave();
    }
    virtual durable_counters counters() const = 0;

protected:
    enum class heard { passed, handled, not_begun };
    virtual void leave() noexcept = 0;

    heard handle(stream_entry const& entry) {
        auto const* const channel = entry.find(durable_bus::channel_field);
        if (channel == nullptr || !fits_glob(pattern_, *channel)) {
            ++passed_;
            return heard::passed;
        }
        return run([&] { handler_(entry); }) ? heard::handled : heard::not_begun;
    }
    /// Here, or on the user's executor, which is waited for. False: it ended before that had begun; the executor may be what waits for the end.
    bool run(std::function<void()> const& work) {
        if (!executor_) {
            work();
            return true;
        }
        struct errand {
            bool is_begun = false;
            bool is_done = false;
            std::exception_ptr problem{};
        };
        auto const mine = std::make_shared<errand>();
        // Gone with the last copy of what the executor was given: it may have run nothing.
        std::shared_ptr<void> given{nullptr, [self = shared_from_this(), mine](void*) {
                                              std::lock_guard const guard{self->errands_};
                                              if (mine->is_begun) return;
                                              mine->is_done = true;
                                              mine->problem = make_error(errc::cancelled, "the executor did not run it");
                                              self->changed_.notify_all();
                                          }};
        executor_([self = shared_from_this(), mine, &work, given = std::move(given)] {
            std::unique_lock guard{self->errands_};
            if (self->ended_) return;  // and `work` may be gone
            mine->is_begun = true;
            guard.unlock();
            try {
                work();
            } catch (...) {
                mine->problem = std::current_exception();
            }
            guard.lock();
            mine->is_done = true;
            self->changed_.notify_all();
        });
        std::unique_lock guard{errands_};
        changed_.wait(guard, [&] { return mine->is_done || (ended_ && !mine->is_begun); });
        if (mine->problem) std::rethrow_exception(mine->problem);
        return mine->is_begun;
    }
    std::uint64_t passed() const noexcept { return passed_; }
    std::string const& pattern() const noexcept { return pattern_; }

private:
    std::string const pattern_;
    entry_handler const handler_;
    bus_executor const executor_;
    std::atomic<std::uint64_t> passed_{0};
    std::mutex errands_;
    std::condition_variable changed_;
    bool ended_ = false;
};

namespace {

class group_listening final : public durable_listening {
public:
    using durable_listening::durable_listening;
    ~group_listening() override { leave(); }

    void begin(keyed at, durable_subscribe_options const& options) {
        consumer_options how{.group = options.group, .start = options.from, .concurrency = options.concurrency};
        how.idle_limit = options.idle_limit;
        how.max_deliveries = options.max_deliveries;
        how.max_pending = options.max_pending;
        how.retry_min = options.retry_min;
        how.retry_max = options.retry_max;
        how.dead_retention = options.dead_retention;
        if (options.on_gap) {
            how.on_gap = [this, self = shared_from_this(), on_gap = options.on_gap] { run(on_gap); };
        }
        if (options.executor) how.stop_limit = 0ms;  // what stands in line does not begin any more, and is not counted for that
        auto const work = [this, self = shared_from_this()](delivery const& what) {
            if (handle(what) == heard::not_begun) throw later{0ms};  // others get it, and it counts for nothing
        };
        // With an executor a handler that runs when this ends runs to its end: as long as others would wait for it.
        auto const grace = options.executor ? options.idle_limit : 1'000ms;
        worker_.emplace(begin_consumer(std::move(at), work, std::move(how), grace));
    }
    durable_counters counters() const override {
        std::lock_guard const guard{mutex_};
        auto const seen = worker_ ? worker_->statistics() : last_;
        auto const skipped = std::min(passed(), seen.acknowledged);
        return {.delivered = seen.acknowledged - skipped, .failed = seen.failed, .passed = passed(), .gaps = seen.gaps};
    }

private:
    void leave() noexcept override {
        std::lock_guard const guard{mutex_};
        if (worker_) last_ = worker_->statistics();
        worker_.reset();
    }

    mutable std::mutex mutex_;
    std::optional<consumer> worker_;
    consumer_statistics last_{};
};

/// Reads by itself, on a thread that also runs the handler or waits for it: so it reads no faster than that works.
class reading_listening final : public durable_listening {
public:
    reading_listening(std::string pattern, entry_handler handler, durable_subscribe_options options, std::shared_ptr<stream_state> of, std::string from, bool from_is_entry)
        : durable_listening(std::move(pattern), std::move(handler), std::move(options.executor)), of_(std::move(of)), on_gap_(std::move(options.on_gap)),
          position_is_entry_(from_is_entry) {
        seen_.position = std::move(from);
    }
    ~reading_listening() override { leave(); }

    void begin() {
        thread_ = base::quiet_thread([this, self = shared_from_this()] { work(); });
    }
    durable_counters counters() const override {
        std::lock_guard const guard{mutex_};
        auto made = seen_;
        made.passed = passed();
        return made;
    }

private:
    void leave() noexcept override {
        stop_.request_stop();
        std::call_once(joined_, [this] {
            if (!thread_.joinable()) return;
            // The thread has this object, and may need the one that calls this to hear of the stop.
            if (!of_->at.owner()->may_block() || thread_.get_id() == std::this_thread::get_id()) {
                thread_.detach();
            } else {
                thread_.join();
            }
        });
    }

    static constexpr std::size_t at_once = 100;

    void work() noexcept {
        base::backoff pause{20ms, 2s};
        std::string complaint;
        int silent = 0;
        auto const stop = stop_.get_token();
        while (!stop.stop_requested()) {
            try {
                auto const entries = sync_wait(read_after(of_, position(), at_once, longest_block), stop);
                pause.reset();
                complaint.clear();
                if (entries.empty()) {
                    if (++silent % 2 == 0) look_for_a_new_stream();
                    continue;
                }
                silent = 0;
                look_for_a_gap();
                for (auto const& one : entries) {
                    if (stop.stop_requested()) return;
                    tell(one);
                }
            } catch (cancelled_error const&) {
                return;  // ended, or the client was closed
            } catch (entry_too_large const& problem) {
                log(log_level::error, fmt::format("the durable bus '{}' passes over a message: {}", of_->at.name(), problem.what()));
                std::lock_guard const guard{mutex_};
                seen_.position = problem.id();
                ++seen_.failed;
            } catch (std::exception const& problem) {
                if (complaint != problem.what()) log(log_level::warning, fmt::format("the durable bus '{}' can't be read, and is tried again: {}", of_->at.name(), problem.what()));
                complaint = problem.what();
                std::unique_lock guard{pause_mutex_};
                paused_.wait_for(guard, stop, pause.next(), [] { return false; });
            }
        }
    }

    std::string position() const {
        std::lock_guard const guard{mutex_};
        return seen_.position;
    }

    /// Trimming begins with the oldest: where one is there that is no newer than the last that was read, nothing after that is gone.
    void look_for_a_gap() {
        if (!std::exchange(position_is_entry_, true)) return;
        if (!sync_wait(has_entries(of_->at, "-", position()))) tell_gap();
    }
    /// One that was deleted begins with smaller ids where a clock or a failover went back.
    void look_for_a_new_stream() {
        auto const newest = entry_number::of(sync_wait(last_id(of_->at)));
        auto const last = entry_number::of(position());
        if (newest.ms > last.ms || (newest.ms == last.ms && newest.number >= last.number)) return;
        if (newest == entry_number{}) return;  // there is none
        {
            std::lock_guard const guard{mutex_};
            seen_.position = "0-0";
        }
        position_is_entry_ = false;
        tell_gap();
    }

    void tell_gap() noexcept {
        guarded([this] {
            if (on_gap_) run(on_gap_);
        });
        std::lock_guard const guard{mutex_};
        ++seen_.gaps;
    }
    void tell(stream_entry const& entry) noexcept {
        auto how = heard::passed;
        bool const went_well = guarded([&] { how = handle(entry); });
        if (how == heard::not_begun) return;
        std::lock_guard const guard{mutex_};
        seen_.position = entry.id;
        if (!went_well) ++seen_.failed;
        if (how == heard::handled) ++seen_.delivered;
    }
    template <class F>
    bool guarded(F const& call) noexcept {
        try {
            call();
            return true;
        } catch (std::exception const& problem) {
            log(log_level::error, fmt::format("the handler of durable bus '{}', '{}' threw: {}", of_->at.name(), pattern(), problem.what()));
        } catch (...) {
            log(log_level::error, fmt::format("the handler of durable bus '{}', '{}' threw", of_->at.name(), pattern()));
        }
        return false;
    }

    std::shared_ptr<stream_state> of_;
    std::function<void()> on_gap_;
    bool position_is_entry_;  // of the thread
    mutable std::mutex mutex_;
    durable_counters seen_;
    std::mutex pause_mutex_;
    std::condition_variable_any paused_;
    std::stop_source stop_;
    std::once_flag joined_;
    std::thread thread_;
};

task<durable_subscription> begin_reading(std::shared_ptr<stream_state> of, std::string pattern, entry_handler handler, durable_subscribe_options options) {
    auto from = options.from;
    bool from_is_entry = entry_number::of(from) != entry_number{};  // else it begins with what there is
    if (from == "$") {
        auto asking = last_id(of->at);
        from = co_await std::move(asking);
        auto looking = has_entries(of->at, from, from);
        from_is_entry = co_await std::move(looking);
    } else if (from.find('-') == std::string::npos) {
        from += "-0";  // and not up to the last of that millisecond
    }
    auto made = std::make_shared<reading_listening>(std::move(pattern), std::move(handler), std::move(options), of, std::move(from), from_is_entry);
    made->begin();
    co_return durable_subscription{std::move(made)};
}

/// Whoever is in a group at the server gets any of its entries and acknowledges what does not fit: so only those of one pattern share a group.
/// An encoded name has no brace: no other group and pattern make the same name.
std::string group_at_server(std::string_view group, std::string_view pattern) { return fmt::format("{}{{{}}}", base::encode_name(group), pattern); }

task<durable_subscription> begin_group(std::shared_ptr<stream_state> of, std::string pattern, entry_handler handler, durable_subscribe_options options) {
    auto making = create_group(of->at, options.group, options.from);  // before it returns: nothing after that is missed
    co_await std::move(making);
    auto made = std::make_shared<group_listening>(std::move(pattern), std::move(handler), options.executor);
    made->begin(of->at, options);
    co_return durable_subscription{std::move(made)};
}

}  // namespace
}  // namespace detail

durable_bus::durable_bus(client& by, std::string_view name, stream_options options)
    : stream_(by, name, options), state_(std::make_shared<detail::stream_state>(detail::keyed{by, name, "stream"}, options)) {}

durable_bus::durable_bus(client& by, lockstep::key const& at, stream_options options)
    : stream_(by, at, options), state_(std::make_shared<detail::stream_state>(detail::keyed::at_key(by, at, "stream"), options)) {}

stream_fields durable_bus::fields_of(std::string_view channel, std::string payload) const {
    detail::require(state_->at, !channel.empty() && channel.size() <= 512, "a channel's name has 1 to 512 bytes");
    return {{std::string{channel_field}, std::string{channel}}, {std::string{stream_entry::payload_field}, std::move(payload)}};
}

task<durable_subscription> durable_bus::async_subscribe_entries(std::string_view channel, bool is_pattern, detail::entry_handler handler, durable_subscribe_options options) {
    auto const& at = state_->at;
    at.require_usable();
    detail::require(at, !channel.empty() && channel.size() <= 512, "a channel or pattern has 1 to 512 bytes");
    auto pattern = is_pattern ? std::string{channel} : detail::quoted_glob(channel);
    detail::require(at, options.from == "$" || detail::is_stream_id(options.from), fmt::format("from is \"0\", \"$\" or an id, not '{}'", options.from));
    detail::require(at, options.concurrency >= 1 && (options.concurrency == 1 || !options.group.empty()), "concurrency is 1, or more with a group");
    // A connection of its own for each subscription, which waits on it.
    auto of = std::make_shared<detail::stream_state>(at, state_->options);
    if (options.group.empty()) return detail::begin_reading(std::move(of), std::move(pattern), std::move(handler), std::move(options));
    detail::require_consumer_name(at, "group", options.group);
    options.group = detail::group_at_server(options.group, pattern);
    detail::require_consumer_name(at, "group and the pattern together", options.group);
    return detail::begin_group(std::move(of), std::move(pattern), std::move(handler), std::move(options));
}

durable_subscription durable_bus::subscribe_entries(std::string_view channel, bool is_pattern, detail::entry_handler handler, durable_subscribe_options options) {
    state_->at.require_blocking();
    return sync_wait(async_subscribe_entries(channel, is_pattern, std::move(handler), std::move(options)));
}

durable_subscription::durable_subscription(std::shared_ptr<detail::durable_listening> state) noexcept : state_(std::move(state)) {}
durable_subscription& durable_subscription::operator=(durable_subscription&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}
durable_subscription::~durable_subscription() { end(); }
void durable_subscription::end() noexcept {
    if (auto const state = std::exchange(state_, nullptr)) state->end();
}
durable_counters durable_subscription::counters() const { return state_ ? state_->counters() : durable_counters{}; }

}  // namespace lockstep
