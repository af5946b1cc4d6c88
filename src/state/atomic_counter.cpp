#include <lockstep/atomic_counter.hpp>

#include "scripts/all.hpp"
#include "state/state_object.hpp"

#include <lockstep/codec.hpp>
#include <lockstep/error.hpp>

#include <string>
#include <utility>

namespace lockstep {

using std::chrono::milliseconds;

class detail::counter_state final : public detail::state_object {
public:
    counter_state(client& by, std::string_view name, atomic_counter_options const& options) : state_object(by, name, "counter"), how(options) {
        require_time(*this, "ttl", how.ttl, milliseconds{0});
    }
    atomic_counter_options how;
};

namespace {

using state = std::shared_ptr<detail::counter_state const>;

// How long the calls that were counted are remembered at least, where the counter itself is not to stay.
constexpr milliseconds memory{120'000};

struct numbers {
    std::int64_t before = 0;
    std::int64_t after = 0;
};

task<numbers> run_change(state at, std::string what, std::int64_t number, std::int64_t expected) {
    detail::change request{.script = &scripts::counter_change,
                           .keys = {at->key()},
                           .words = {at->rules(memory), std::move(what), std::to_string(number), std::to_string(expected),
                                     std::to_string(at->how.ttl.count())}};
    auto changing = detail::change_once(at, std::move(request));
    auto const said = co_await std::move(changing);
    if (said.size() < 4) detail::throw_unexpected_answer(*at);
    numbers made{.before = codec<std::int64_t>::decode(said[3].text())};
    made.after = said.size() > 4 ? codec<std::int64_t>::decode(said[4].text()) : made.before;
    co_return made;
}

task<std::int64_t> before(task<numbers> changing) {
    auto const made = co_await std::move(changing);
    co_return made.before;
}
task<std::int64_t> after(task<numbers> changing) {
    auto const made = co_await std::move(changing);
    co_return made.after;
}

task<std::int64_t> run_get(state at) {
    auto asking = at->command({"HMGET", at->key(), "v", "n"});
    auto const said = co_await std::move(asking);
    if (said.size() != 2) detail::throw_unexpected_answer(*at);
    if (said[1].is_null()) co_return 0;
    co_return codec<std::int64_t>::decode(said[1].text());
}

task<numbers> begin(state const& at, std::string what, std::int64_t number, std::int64_t expected = 0) {
    at->require_usable();
    return run_change(at, std::move(what), number, expected);
}

}  // namespace

atomic_counter::atomic_counter(client& by, std::string_view name, atomic_counter_options const& options)
    : state_(std::make_shared<detail::counter_state const>(by, name, options)) {}

std::int64_t atomic_counter::get(std::stop_token token) const {
    state_->require_blocking();
    return sync_wait(async_get(), std::move(token));
}
task<std::int64_t> atomic_counter::async_get() const {
    state_->require_usable();
    return run_get(state_);
}

std::int64_t atomic_counter::add(std::int64_t n, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_add(n), std::move(token));
}
task<std::int64_t> atomic_counter::async_add(std::int64_t n) { return after(begin(state_, "add", n)); }

std::int64_t atomic_counter::fetch_add(std::int64_t n, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_fetch_add(n), std::move(token));
}
task<std::int64_t> atomic_counter::async_fetch_add(std::int64_t n) { return before(begin(state_, "add", n)); }

std::int64_t atomic_counter::set(std::int64_t value, std::stop_token token) {
    state_->require_blocking();
    return sync_wait(async_set(value), std::move(token));
}
task<std::int64_t> atomic_counter::async_set(std::int64_t value) { return before(begin(state_, "set", value)); }

bool atomic_counter::compare_exchange(std::int64_t& expected, std::int64_t desired, std::stop_token token) {
    state_->require_blocking();
    auto const was = sync_wait(async_compare_exchange(expected, desired), std::move(token));
    return was == std::exchange(expected, was);
}
task<std::int64_t> atomic_counter::async_compare_exchange(std::int64_t expected, std::int64_t desired) {
    return before(begin(state_, "exchange", desired, expected));
}

}  // namespace lockstep
