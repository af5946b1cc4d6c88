#include "chaos_actor.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace lockstep::chaos {

actor::actor(std::string const& referee, std::string who, std::uint64_t seed)
    : line_{referee}, about_{.who = std::move(who)}, random_{seed} {}

event actor::as(std::int64_t time, std::string const& what, std::string note) const {
    auto one = about_;
    one.t = time;
    one.what = what;
    one.note = std::move(note);
    return one;
}

void actor::report_at(std::int64_t time, std::string const& what, std::string note) {
    line_.report(to_json(as(time, what, std::move(note))));
}

std::string actor::ask(std::string const& what, std::string note) {
    return line_.ask(to_json(as(boot_ns(), what, std::move(note))));
}

second_thoughts::second_thoughts(std::optional<std::chrono::milliseconds> after) {
    if (!after) return;
    thread_ = std::jthread{[source = source_, time = *after](std::stop_token const& ended) mutable {
        std::mutex mutex;
        std::condition_variable_any sleep;
        std::unique_lock guard{mutex};
        sleep.wait_for(guard, ended, time, [] { return false; });
        source.request_stop();
    }};
}

}  // namespace lockstep::chaos
