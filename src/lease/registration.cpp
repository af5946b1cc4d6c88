#include "lease/registration.hpp"

#include "base/names.hpp"
#include "lease/hub.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"
#include "scripts/all.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

namespace lockstep::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds first_after{1'000};
constexpr std::size_t most_lines = 1'000;  // of each list

std::int64_t wall_ms() {
    return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Without an answer to wait for: what is lost is said again next time.
void say(detail::core& to, scripts::script const& script, std::vector<std::string> const& keys, std::vector<std::string> const& words) {
    std::vector<std::string_view> const key_views{keys.begin(), keys.end()};
    std::vector<detail::argument> const arguments{words.begin(), words.end()};
    redis::command_terms const terms{.deadline = to.deadline({}),
                                     .slot = static_cast<std::int16_t>(redis::key_slot(keys.front())),
                                     .repeatable = true,
                                     .errors_are_replies = true};
    auto work = redis::run_script(to.way(), script, key_views, arguments, terms);
    start(std::move(work), [](std::exception_ptr, std::optional<reply>) {});
}

}  // namespace

void registration::begin() noexcept {
    if (std::exchange(begun_, true)) return;
    since_ms_ = wall_ms();
    hub_.reactor().arm(*this, hub_.reactor().now() + first_after);
}

void registration::end() noexcept {
    hub_.reactor().disarm(*this);
    if (!std::exchange(said_, false)) return;
    say(hub_.owner(), scripts::client_leave, keys(), {hub_.client_id()});
}

void registration::fire() noexcept {
    if (hub_.is_closing()) return;
    said_ = true;
    say(hub_.owner(), scripts::client_register, keys(), describe());
    hub_.reactor().arm(*this, hub_.reactor().now() + interval);
}

std::vector<std::string> registration::keys() const {
    auto const& prefix = hub_.owner().options().prefix;
    return {base::key_name(prefix, "clients", hub_.client_id()), base::key_name(prefix, "clients", "index")};
}

std::vector<std::string> registration::describe() const {
    std::string holds;
    std::string waits;
    std::size_t held = 0;
    std::size_t waiting = 0;
    // A line for each: what kind of thing, its fence if it is held, its name (percent-encoded as in its key).
    hub_.for_each_hold([&](hold const& one) {
        auto const& room = *one.what()->where;
        auto const name = base::encode_name(room.name());
        if (one.now() == hold::state::held && ++held <= most_lines) {
            holds += fmt::format("{} {} {}\n", room.kind().word, one.fence, name);
        } else if ((one.now() == hold::state::asking || one.now() == hold::state::waiting || one.now() == hold::state::claiming) &&
                   ++waiting <= most_lines) {
            waits += fmt::format("{} {}\n", room.kind().word, name);
        }
    });
    return {hub_.client_id(),
            fmt::format("{}", believed.count()),
            "name", hub_.owner().client_name(),
            "host", host_name(),
            "pid", fmt::format("{}", ::getpid()),
            "since", fmt::format("{}", since_ms_),
            "version", LOCKSTEP_VERSION,
            "held", fmt::format("{}", held),
            "waiting", fmt::format("{}", waiting),
            "holds", holds,
            "waits", waits};
}

}  // namespace lockstep::engine
