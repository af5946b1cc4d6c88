#include <lockstep/event_bus.hpp>

#include "base/names.hpp"
#include "core/keyed.hpp"
#include "core/subscription.hpp"
#include "messaging/bus_listening.hpp"
#include "messaging/glob.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace lockstep {
namespace detail {

struct event_bus_state {
    std::shared_ptr<core> owner;
    std::string name;
    std::string kind;  ///< last part of its channels' names
    bool is_sharded;

    /// `<prefix>:{<channel>}:bus:<bus>`: in a Cluster each channel has its own slot.
    keyed channel(std::string_view of) const { return {owner, of, kind}; }
    std::string pattern(std::string_view of) const {
        auto const& prefix = owner->options().prefix;
        return fmt::format("{}:{{{}}}:{}", quoted_glob(prefix), base::encode_name(of), quoted_glob(kind));
    }
    /// The user's name of it.
    std::string channel_of(std::string_view whole) const {
        auto const before = owner->options().prefix.size() + 2;  // :{
        auto const after = kind.size() + 2;                      // }:
        if (whole.size() < before + after) return std::string{whole};
        auto const middle = whole.substr(before, whole.size() - before - after);
        return base::decode_name(middle).value_or(std::string{middle});
    }
};

namespace {

class channel_listening final : public bus_listening {
public:
    using bus_listening::bus_listening;
    ~channel_listening() override { leave(); }
    void leave() noexcept override { ear = {}; }

    std::optional<client> own;  ///< with `block`
    subscription ear;           ///< goes first
};

task<bus_subscription> listen(std::shared_ptr<event_bus_state> bus, std::string what, bool is_pattern, std::shared_ptr<channel_listening> made, bool alone) {
    auto owner = bus->owner;
    if (alone) {
        auto options = owner->options();
        options.keepalive_timeout = std::max(options.keepalive_timeout, std::chrono::milliseconds{60'000});  // its reader may be stopped for a while
        options.monitoring = false;
        made->own.emplace(options);
        owner = core_access::of(*made->own);
    }
    subscription_options how;
    how.channel = is_pattern ? bus->pattern(what) : bus->channel(what).key();
    how.kind = is_pattern ? subscription_kind::pattern : bus->is_sharded ? subscription_kind::shard : subscription_kind::channel;
    auto const box = made->box().shared_from_this();
    how.handler = [box, bus](message const& came) { box->put(bus->channel_of(came.channel), std::string{came.payload}); };
    how.on_gap = [box] { box->put_gap(); };
    box->begin();
    bus_subscription holding{made};  // ends it if this does not come to its end
    auto opening = open_subscription(std::move(owner), std::move(how));
    made->ear = co_await std::move(opening);
    co_return holding;
}

task<std::int64_t> publish(keyed to, bool is_sharded, std::string payload) {
    argument const words[] = {is_sharded ? "SPUBLISH" : "PUBLISH", to.key(), payload};
    auto asking = to.command(words, keyed::terms{.once = true});
    auto const said = co_await std::move(asking);
    co_return said.integer();
}

}  // namespace
}  // namespace detail

event_bus::event_bus(client& by, std::string_view name, event_bus_options options) {
    auto const& owner = detail::core_access::of(by);
    owner->require_same_process();
    bool const is_sharded = owner->is_cluster() && !options.patterns;
    state_ = std::make_shared<detail::event_bus_state>(detail::event_bus_state{owner, std::string{name}, "bus:" + base::encode_name(name), is_sharded});
}

task<std::int64_t> event_bus::async_publish_bytes(std::string_view channel, std::string payload) {
    auto to = state_->channel(channel);
    to.require_usable();
    return detail::publish(std::move(to), state_->is_sharded, std::move(payload));
}

std::int64_t event_bus::publish_bytes(std::string_view channel, std::string payload) {
    state_->owner->require_blocking_is_allowed();
    return sync_wait(async_publish_bytes(channel, std::move(payload)));
}

task<bus_subscription> event_bus::async_subscribe_bytes(std::string_view channel, bool is_pattern, detail::bus_handler handler, bus_subscribe_options options) {
    state_->owner->require_same_process();
    static_cast<void>(base::encode_name(channel));  // throws where it is no name
    if (options.capacity == 0) throw invalid_argument_error(fmt::format("event bus '{}': capacity must be at least 1", state_->name));
    if (is_pattern && state_->is_sharded) {
        throw invalid_argument_error(fmt::format("event bus '{}': in a Cluster, patterns need event_bus_options{{.patterns = true}}, in all programs of the bus", state_->name));
    }
    bool const alone = options.when_full == overflow::block;
    auto box = std::make_shared<detail::mailbox>(state_->owner, fmt::format("{} {}", state_->name, channel), std::move(handler), std::move(options));
    return detail::listen(state_, std::string{channel}, is_pattern, std::make_shared<detail::channel_listening>(std::move(box)), alone);
}

bus_subscription event_bus::subscribe_bytes(std::string_view channel, bool is_pattern, detail::bus_handler handler, bus_subscribe_options options) {
    state_->owner->require_blocking_is_allowed();
    return sync_wait(async_subscribe_bytes(channel, is_pattern, std::move(handler), std::move(options)));
}

bus_subscription::bus_subscription(std::shared_ptr<detail::bus_listening> state) noexcept : state_(std::move(state)) {}
bus_subscription& bus_subscription::operator=(bus_subscription&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}
bus_subscription::~bus_subscription() { end(); }

void bus_subscription::end() noexcept {
    auto const state = std::exchange(state_, nullptr);
    if (!state) return;
    state->box().close();  // first: with `block` the reader may be waiting in there
    state->leave();
}

bus_counters bus_subscription::counters() const { return state_ ? state_->counters() : bus_counters{}; }

}  // namespace lockstep
