#include "core/core.hpp"

#include "core/context_watch.hpp"
#include "core/io_thread.hpp"
#include "redis/aside.hpp"
#include "redis/cluster_router.hpp"
#include "redis/sentinel.hpp"
#include "redis/single_router.hpp"

#include <lockstep/embedded_server.hpp>
#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <boost/asio/strand.hpp>
#include <fmt/format.h>
#include <pthread.h>

#include <cerrno>
#include <future>
#include <utility>

namespace lockstep::detail {
namespace {

std::atomic<int> forks{0};

constexpr std::chrono::milliseconds closing_time{1'000};  // for giving back what is held

int current_generation() {
    static int const registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    (void)registered;
    return forks.load(std::memory_order_relaxed);
}

/// Times beyond this are as good as for ever, and sums of them with a point in time must not overflow.
constexpr std::chrono::hours longest{24 * 365 * 10};

redis::connection_settings settings_of(client_options const& options, redis::location const& where) {
    redis::connection_settings settings{};
    settings.connect_timeout = std::min<std::chrono::milliseconds>(where.connect_timeout.value_or(options.connect_timeout), longest);
    settings.reconnect_min = options.reconnect_min;
    settings.reconnect_max = options.reconnect_max;
    settings.keepalive_interval = options.keepalive_interval;
    settings.keepalive_timeout = options.keepalive_timeout;
    settings.max_pending = options.max_pending;
    settings.max_batch_bytes = options.max_batch_bytes;
    settings.batch_delay = options.batch_delay;
    settings.limits.max_message = options.max_reply_bytes;
    settings.limits.max_bulk = std::min(settings.limits.max_bulk, options.max_reply_bytes);
    if (where.tls) settings.tls = std::make_shared<redis::tls_settings>(where.tls_files);
    settings.server_name = where.tls_files.server_name;
    return settings;
}

redis::handshake greeting_of(client_options const& options, redis::location const& where) {
    redis::handshake greeting;
    greeting.user = where.user;
    greeting.password = [where] { return redis::password_of(where); };
    greeting.client_name = redis::clean_client_name(where.name.empty() ? std::string{program_invocation_short_name} : where.name);
    greeting.database = where.database;
    greeting.allow_eviction = options.allow_eviction;
    greeting.require_master = where.kind == redis::topology::sentinel;
    return greeting;
}

void check(client_options& options) {
    for (auto* const one : {&options.connect_timeout, &options.command_timeout, &options.reconnect_min, &options.reconnect_max,
                            &options.keepalive_interval, &options.keepalive_timeout}) {
        *one = std::min<std::chrono::milliseconds>(*one, longest);
    }
    options.batch_delay = std::min<std::chrono::microseconds>(options.batch_delay, longest);
    auto const positive = [](auto value, char const* name) {
        if (value <= value.zero()) throw invalid_argument_error(fmt::format("{} must be longer than 0", name));
    };
    positive(options.connect_timeout, "connect_timeout");
    positive(options.command_timeout, "command_timeout");
    positive(options.reconnect_min, "reconnect_min");
    if (options.reconnect_max < options.reconnect_min) throw invalid_argument_error("reconnect_max must be at least reconnect_min");
    if (options.keepalive_interval.count() < 0) throw invalid_argument_error("keepalive_interval must be 0 (none) or longer");
    if (options.keepalive_interval.count() > 0) positive(options.keepalive_timeout, "keepalive_timeout");
    if (options.max_pending == 0) throw invalid_argument_error("max_pending must be at least 1");
    if (options.max_batch_bytes == 0) throw invalid_argument_error("max_batch_bytes must be at least 1");
    if (options.batch_delay.count() < 0) throw invalid_argument_error("batch_delay must be 0 or longer");
    if (options.max_reply_bytes < 64 * 1024) throw invalid_argument_error("max_reply_bytes must be at least 65536");
}

/// The prefix may come from elsewhere, too, and is needed by members that are initialized next.
redis::location locate_for(client_options& options) {
    auto where = redis::locate(options);
    options.prefix = where.prefix;
    return where;
}

struct found_server {
    std::string url;
    redis::permanent_failure problem;
};

found_server find_shared_server() {
    try {
        return {ensure_shared_server(), {}};
    } catch (error const& failure) {
        return {{}, {failure.reason(), failure.what()}};
    } catch (std::exception const& failure) {
        return {{}, {errc::unavailable, failure.what()}};
    }
}

/// Finds the embedded server on a thread of its own: starting it takes a while, and I/O must go on.
task<redis::endpoint> find_embedded(std::shared_ptr<redis::reactor> home) {
    redis::aside<found_server> search{*home};
    auto const found = co_await search.at(&find_shared_server);
    if (!found) throw cancelled_error("the client is closed");
    if (!found->problem.text.empty()) throw found->problem;  // it took its time already, and a missing program stays missing
    auto where = redis::parse_url(found->url).endpoints.front();
    where.same_user = true;
    co_return where;
}

task<redis::endpoint> find_fixed(redis::endpoint where) { co_return where; }

}  // namespace

core::core(client_options const& options, std::optional<home_executor> home)
    : options_(options), where_(locate_for(options_)), fork_generation_(current_generation()) {
    check(options_);
    settings_ = settings_of(options_, where_);
    greeting_ = greeting_of(options_, where_);
    if (home) {
        home_ = std::make_shared<redis::reactor>(boost::asio::make_strand(home->executor), std::move(home->running_here));
    } else {
        thread_ = std::make_shared<io_thread>();
        home_ = std::make_shared<redis::reactor>(thread_->executor());
    }
    way_ = make_way(greeting_, options_.prefix);
}

std::shared_ptr<core> core::make(client_options const& options, std::optional<home_executor> home) {
    boost::asio::execution_context* context = nullptr;
    if (home) context = &boost::asio::query(home->executor, boost::asio::execution::context);
    std::shared_ptr<core> const made{new core{options, std::move(home)}};
    if (context != nullptr) boost::asio::use_service<context_watch>(*context).add(made);
    return made;
}

core::~core() {
    close();
    // The last owner may be a coroutine that a connection has just resumed: then the connection must outlive that turn.
    home_->locked([this] {
        if (!home_->in_a_turn()) return;
        home_->keep_for_this_turn(std::move(way_));
        home_->keep_for_this_turn(std::move(bus_));
        home_->keep_for_this_turn(std::move(tracked_));
    });
    if (thread_) thread_->finish();
}

redis::connection::locator core::make_locator() {
    if (where_.embedded) return [home = home_] { return find_embedded(home); };
    return [where = where_.endpoints.front()] { return find_fixed(where); };
}

std::unique_ptr<redis::router> core::make_way(redis::handshake const& greeting, std::string const& prefix) {
    switch (where_.kind) {
        case redis::topology::cluster:
            return std::make_unique<redis::cluster_router>(home_, settings_, greeting, where_.endpoints, prefix);
        case redis::topology::sentinel:
            return redis::make_sentinel_router(home_, settings_, greeting, where_);
        case redis::topology::standalone: break;
    }
    return std::make_unique<redis::single_router>(home_, settings_, greeting, make_locator());
}

redis::router& core::bus() {
    if (!bus_) bus_ = make_way(greeting_);
    return *bus_;
}

std::shared_ptr<redis::router> core::tracked() {
    if (!tracked_) {
        auto greeting = greeting_;
        greeting.track = true;
        tracked_ = make_way(greeting);
    }
    return {shared_from_this(), tracked_.get()};
}

std::shared_ptr<redis::session_router> core::make_session(std::int16_t slot) {
    auto find = [self = weak_from_this(), slot]() -> task<redis::endpoint> {
        auto const alive = self.lock();
        if (!alive) throw cancelled_error("the client is closed");
        return alive->way()->find(slot);
    };
    auto astray = [self = weak_from_this()] {
        if (auto const alive = self.lock()) alive->way()->distrust();
    };
    return add_session(greeting_, std::move(find), std::move(astray));
}

std::shared_ptr<redis::session_router> core::make_sentinel_session(redis::endpoint const& sentinel) {
    return add_session(redis::sentinel_greeting(where_), [sentinel] { return find_fixed(sentinel); }, [] {});
}

std::shared_ptr<redis::session_router> core::add_session(redis::handshake const& greeting, redis::connection::locator find,
                                                         std::function<void()> astray) {
    std::lock_guard const guard{sessions_mutex_};
    if (closed_) throw cancelled_error("the client is closed");
    auto made = std::make_shared<redis::session_router>(home_, settings_, greeting, std::move(find), std::move(astray));
    std::erase_if(sessions_, [](auto const& one) { return one.expired(); });
    sessions_.push_back(made);
    return made;
}

std::optional<int> core::key_position(std::string const& command) const {
    std::lock_guard const guard{positions_mutex_};
    auto const found = positions_.find(command);
    return found == positions_.end() ? std::nullopt : std::optional{found->second};
}

void core::set_key_position(std::string const& command, int position) {
    std::lock_guard const guard{positions_mutex_};
    positions_.emplace(command, position);
}

core::extension& core::extend(std::string const& name, std::function<std::unique_ptr<extension>(core&)> const& make) {
    std::lock_guard const guard{extensions_mutex_};
    if (auto const found = extensions_.find(name); found != extensions_.end()) return *found->second;
    if (closed_) throw cancelled_error("the client is closed");  // it would not be closed with the others
    return *extensions_.emplace(name, make(*this)).first->second;
}

redis::reactor::clock::time_point core::deadline(std::chrono::milliseconds time) const noexcept {
    auto const effective = time.count() > 0 ? time : where_.command_timeout.value_or(options_.command_timeout);
    return (home_->here() ? home_->now() : redis::reactor::clock::now()) + std::min<std::chrono::milliseconds>(effective, longest);
}

// First of all, in both: in a child of fork() a lock may be held by a thread that is not there.
bool core::may_block() const noexcept { return same_process() && home_->may_block(); }

void core::require_blocking_is_allowed() const {
    require_same_process();
    home_->require_blocking_is_allowed();
}

bool core::same_process() const noexcept { return forks.load(std::memory_order_relaxed) == fork_generation_; }

void core::require_same_process() const {
    if (!same_process()) throw invalid_argument_error("this client was made before a fork(); make a new one in the child");
}

lockstep::statistics core::statistics() {
    require_same_process();
    return home_->locked([this] {
        lockstep::statistics sum;
        way_->add_to(sum);
        if (bus_) bus_->add_to(sum);
        if (tracked_) tracked_->add_to(sum);
        std::lock_guard const guard{sessions_mutex_};
        for (auto const& one : sessions_) {
            if (auto const alive = one.lock()) alive->add_to(sum);
        }
        return sum;
    });
}

std::string core::description() const {
    if (where_.embedded) return "this user's embedded server";
    std::string text;
    for (auto const& one : where_.endpoints) text += (text.empty() ? "" : ",") + redis::to_string(one);
    return where_.master_name.empty() ? text : fmt::format("{} of {}", where_.master_name, text);
}

void core::close() noexcept {
    if (!same_process() || closed_.exchange(true)) return;
    auto const at_once = [this] {
        close_extensions([] {});
        home_->settle();  // what they say leaves now or never
        close_here();
    };
    if (home_->here()) {
        at_once();
    } else if (thread_ && on_io_thread()) {
        // Another client's I/O thread: it must not wait for this one's, which may just be waiting for it.
        home_->post([self = weak_from_this().lock(), at_once] {
            if (self) at_once();
        });
    } else if (thread_) {
        auto const settled = std::make_shared<std::promise<void>>();
        home_->post([this, settled] { close_extensions([settled] { settled->set_value(); }); });
        settled->get_future().wait_for(closing_time);
        std::promise<void> done;
        home_->post([&] {
            close_here();
            done.set_value();
        });
        done.get_future().wait();
        thread_->finish();
    } else {
        // On the user's executor nobody knows whether it still runs: take the turn here.
        redis::reactor::turn const now{*home_};
        at_once();
    }
}

void core::close_extensions(std::function<void()> done) noexcept {
    std::unique_lock guard{extensions_mutex_};
    auto const open = std::make_shared<std::size_t>(extensions_.size() + 2);
    auto const one_less = [open, done = std::move(done)] {
        if (--*open == 0) done();
    };
    guard.unlock();  // none is added any more: the client is closed
    for (auto const& [name, one] : extensions_) one->close(one_less);
    objects_.close(one_less);  // behind them: they may have used something
    one_less();
}

void core::close_here() noexcept {
    way_->close();
    if (bus_) bus_->close();
    if (tracked_) tracked_->close();
    std::unique_lock guard{sessions_mutex_};
    auto const sessions = std::exchange(sessions_, {});
    guard.unlock();
    for (auto const& one : sessions) {
        if (auto const alive = one.lock()) alive->close();
    }
    home_->shut();
}

}  // namespace lockstep::detail
