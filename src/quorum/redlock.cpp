#include <lockstep/redlock.hpp>

#include "core/core.hpp"
#include "quorum/caller.hpp"
#include "quorum/fleet.hpp"
#include "quorum/plan.hpp"
#include "quorum/room.hpp"
#include "quorum/seeker.hpp"
#include "sync/thread_leases.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

using clock = std::chrono::steady_clock;
using quorum::caller;
using quorum::grip;
using quorum::seeker;
using std::chrono::milliseconds;
using namespace std::chrono_literals;
using target_pointer = std::shared_ptr<quorum::target const>;

template <class Names>
target_pointer target_of(std::shared_ptr<quorum::anchor> const& nodes, Names const& names, redlock_options const& options) {
    nodes->of->require_usable();
    auto what = std::make_shared<quorum::plan const>(
        quorum::make_plan(*nodes->of, std::vector<std::string>(names.begin(), names.end()), options));
    auto where = nodes->of->room_for(what->keys);
    return std::make_shared<quorum::target const>(quorum::target{nodes, std::move(what), std::move(where)});
}

target_pointer target_of(std::shared_ptr<quorum::anchor> const& nodes, std::string_view name, redlock_options const& options) {
    return target_of(nodes, std::initializer_list<std::string_view>{name}, options);
}

task<redlock_lease> take(target_pointer what) {
    auto const& how = what->what->how;
    auto const until = how.wait_limit == 0ms ? clock::time_point::max() : clock::now() + how.wait_limit;
    seeker mine{what, {.deadline = until, .attempts = how.attempts}};
    co_await mine;
    if (mine.has_it()) co_return mine.take();
    if (how.attempts != 0 && mine.tries == how.attempts) {
        throw timeout_error(fmt::format("redlock {} was not obtained in {} attempts", what->what->name(), how.attempts));
    }
    throw timeout_error(fmt::format("redlock {} was not obtained within {} ms", what->what->name(), how.wait_limit.count()));
}

task<std::optional<redlock_lease>> try_take(target_pointer what, seeker::terms how) {
    seeker mine{std::move(what), how};
    co_await mine;
    if (!mine.has_it()) co_return std::nullopt;
    co_return std::optional<redlock_lease>{mine.take()};
}

// The lease is in the frame: its destructor gives it back if the coroutine never runs, or does not run to its end.
task<void> run_release(redlock_lease mine) {
    caller call{*grip::of(mine), caller::wish::release};
    co_await call;
}

/// Keeps a hold from being reused.
class reference {
public:
    reference(grip& held, std::shared_ptr<quorum::anchor> nodes) noexcept : held_(&held), nodes_(std::move(nodes)) { held.keep(); }
    reference(reference&& other) noexcept : held_(std::exchange(other.held_, nullptr)), nodes_(std::move(other.nodes_)) {}
    ~reference() {
        if (held_ != nullptr) held_->let_go();
    }
    grip& operator*() const noexcept { return *held_; }

private:
    grip* held_;
    std::shared_ptr<quorum::anchor> nodes_;
};

task<void> run_extend(reference held, milliseconds length) {
    caller call{*held, caller::wish::extend, length};
    co_await call;
}

}  // namespace

// ---- nodes

redlock_nodes::redlock_nodes(std::span<client_options const> nodes) : nodes_(std::make_shared<quorum::anchor>(quorum::fleet::make(nodes))) {}

redlock_nodes::redlock_nodes(std::initializer_list<std::string_view> urls)
    : redlock_nodes(std::vector<std::string>(urls.begin(), urls.end())) {}

redlock_nodes::redlock_nodes(std::span<std::string const> urls) {
    std::vector<client_options> nodes;
    for (auto const& one : urls) {
        if (one.empty()) throw invalid_argument_error("the URL of a redlock node is empty");
        nodes.push_back({.url = one});
    }
    nodes_ = std::make_shared<quorum::anchor>(quorum::fleet::make(std::span<client_options const>{nodes}));
}

redlock_nodes::redlock_nodes(std::span<client* const> nodes) {
    std::vector<std::shared_ptr<detail::core>> cores;
    for (auto* const one : nodes) {
        if (one == nullptr) throw invalid_argument_error("a redlock node is a null pointer");
        cores.push_back(detail::core_access::of(*one));
    }
    nodes_ = std::make_shared<quorum::anchor>(quorum::fleet::make(std::move(cores)));
}

redlock_nodes::redlock_nodes(client& node) : nodes_(quorum::fleet::over(detail::core_access::of(node))) {}

std::size_t redlock_nodes::size() const noexcept { return nodes_->of->size(); }
std::size_t redlock_nodes::quorum() const noexcept { return nodes_->of->quorum(); }
std::string redlock_nodes::description() const { return nodes_->of->description(); }

// ---- leases

redlock_lease::redlock_lease(quorum::grip* held, std::shared_ptr<quorum::anchor> nodes) noexcept : held_(held), nodes_(std::move(nodes)) {}

redlock_lease::redlock_lease(redlock_lease&& other) noexcept
    : held_(std::exchange(other.held_, nullptr)), nodes_(std::move(other.nodes_)) {}

redlock_lease& redlock_lease::operator=(redlock_lease&& other) noexcept {
    if (this == &other) return *this;
    redlock_lease const before = std::move(*this);  // given back here
    held_ = std::exchange(other.held_, nullptr);
    nodes_ = std::move(other.nodes_);
    return *this;
}

redlock_lease::~redlock_lease() {
    if (held_ == nullptr) return;
    auto& held = *std::exchange(held_, nullptr);
    held.leave();
    held.let_go();
}

grip& redlock_lease::required() const {
    if (held_ == nullptr) throw not_held_error("the lease is empty: it was released or moved from");
    return *held_;
}

bool redlock_lease::valid() const noexcept { return remaining() > milliseconds::zero(); }

milliseconds redlock_lease::remaining() const noexcept {
    if (held_ == nullptr || !held_->nodes()->same_process()) return milliseconds::zero();
    return held_->remaining();
}

std::string redlock_lease::token() const { return required().token(); }

std::uint64_t redlock_lease::fence() const {
    auto const& held = required();
    if (!held.what().is_fenced()) {
        throw invalid_argument_error(fmt::format("the redlock of {} has no fence: it was made without .fence = true", held.what().name()));
    }
    return held.fence();
}

std::stop_token redlock_lease::stop_token() const { return required().stop_token(); }
std::stop_token redlock_lease::at_risk_token() const { return required().at_risk_token(); }

void redlock_lease::release() {
    required().nodes()->require_blocking();
    sync_wait(async_release());
}

task<void> redlock_lease::async_release() {
    required().nodes()->require_usable();
    return run_release(std::move(*this));
}

void redlock_lease::extend(milliseconds length) {
    required().nodes()->require_blocking();
    sync_wait(async_extend(length));
}

task<void> redlock_lease::async_extend(milliseconds length) {
    auto& held = required();
    held.nodes()->require_usable();
    if (length < 10ms || length > 30 * 24h) {
        throw invalid_argument_error(fmt::format("the redlock of {} can be extended to 10 ms to 30 days from now, not to {} ms",
                                                 held.what().name(), length.count()));
    }
    return run_extend(reference{held, nodes_}, length);
}

// ---- locks

class redlock::thread_leases : public detail::leases_by_thread<redlock_lease> {
public:
    thread_leases() : leases_by_thread("redlock", "") {}
};

redlock::redlock(redlock_nodes const& nodes, std::string_view resource, redlock_options const& options)
    : what_(target_of(nodes.nodes_, resource, options)), held_(std::make_unique<thread_leases>()) {}
redlock::redlock(redlock_nodes const& nodes, std::initializer_list<std::string_view> resources, redlock_options const& options)
    : what_(target_of(nodes.nodes_, resources, options)), held_(std::make_unique<thread_leases>()) {}
redlock::redlock(redlock_nodes const& nodes, std::vector<std::string> const& resources, redlock_options const& options)
    : what_(target_of(nodes.nodes_, resources, options)), held_(std::make_unique<thread_leases>()) {}
redlock::redlock(client& node, std::string_view resource, redlock_options const& options)
    : redlock(redlock_nodes{node}, resource, options) {}
redlock::~redlock() = default;
redlock::redlock(redlock&&) noexcept = default;
redlock& redlock::operator=(redlock&&) noexcept = default;

redlock_lease redlock::acquire(std::stop_token token) {
    what_->nodes->of->require_blocking();
    return sync_wait(async_acquire(), std::move(token));
}

task<redlock_lease> redlock::async_acquire() {
    what_->nodes->of->require_usable();
    return take(what_);
}

std::optional<redlock_lease> redlock::try_until(clock::time_point until, std::stop_token token) {
    what_->nodes->of->require_blocking();
    return sync_wait(async_try_until(until), std::move(token));
}

task<std::optional<redlock_lease>> redlock::async_try_until(clock::time_point until) {
    what_->nodes->of->require_usable();
    if (until > clock::now()) return try_take(what_, {.deadline = until});
    return try_take(what_, {.waits = false});
}

void redlock::lock() {
    held_->require_none();
    held_->put(acquire());
}

bool redlock::lock_until(clock::time_point until) {
    held_->require_none();
    auto got = try_until(until, {});
    if (!got) return false;
    held_->put(std::move(*got));
    return true;
}

void redlock::unlock() noexcept {
    if (auto held = held_->take()) detail::release_quietly(std::move(held), [this] { what_->nodes->of->require_blocking(); });
}
std::stop_token redlock::stop_token() const { return held_->stop_token(); }

}  // namespace lockstep
