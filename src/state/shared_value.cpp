#include <lockstep/shared_value.hpp>

#include "base/random.hpp"
#include "lease/pause.hpp"
#include "scripts/all.hpp"
#include "state/newer.hpp"
#include "state/state_object.hpp"
#include "state/watching.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

namespace lockstep::detail {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

class shared_value_state final : public state_object {
public:
    shared_value_state(client& by, std::string_view name, shared_value_options const& options) : state_object(by, name, "value"), how(options) {
        require_time(*this, "ttl", how.ttl, 0ms);
        require_time(*this, "retention", how.retention, 1ms);
    }

    shared_value_options how;
};

namespace {

using state = std::shared_ptr<shared_value_state const>;
using found = std::optional<raw_value>;

/// What value_read answers.
struct reading {
    found now;
    std::uint64_t version = 0;  ///< also of an erased one
};

reading read_answer(state_object const& at, reply const& said) {
    if (said.size() != 2 && said.size() != 4) throw_unexpected_answer(at);
    reading made{.now = {}, .version = static_cast<std::uint64_t>(said[0].integer())};
    if (said.size() == 4) made.now = raw_value{std::string{said[3].text()}, made.version};
    return made;
}

task<found> run_read(state at) {
    auto asking = at->run(scripts::value_read, {});
    auto const said = co_await std::move(asking);
    co_return read_answer(*at, said).now;
}

task<bool> run_exists(state at) {
    auto looking = run_read(std::move(at));
    auto const now = co_await std::move(looking);
    co_return now.has_value();
}

struct wish {
    bool erase = false;
    std::string bytes{};
    std::optional<std::uint64_t> expected{};
    write_options how{};
};

struct outcome {
    std::uint64_t version = 0;  ///< 0: it was not what was expected, and is as it was
    bool was_there = false;
};

task<outcome> run_change(state at, wish what) {
    auto const ttl = what.how.ttl.count() < 0 ? at->how.ttl : what.how.ttl;
    change request{.script = &scripts::value_change,
                   .keys = {at->key()},
                   .words = {at->rules(at->how.retention), what.erase ? "erase" : "set", std::move(what.bytes), std::to_string(ttl.count()),
                             what.expected ? std::to_string(*what.expected) : std::string{}, std::to_string(what.how.fence)}};
    auto changing = change_once(at, std::move(request));
    auto const said = co_await std::move(changing);
    auto const word = said[0].text();
    auto const number = static_cast<std::uint64_t>(said[1].integer());
    if (word == "changed" && said.size() == 4) co_return outcome{number, said[3].integer() == 1};
    if (word == "conflict") co_return outcome{};
    if (word != "stale") throw_unexpected_answer(*at);
    throw stale_fence_error(fmt::format("value '{}': the fence {} is stale: it was written with {}", at->name(), what.how.fence, number));
}

task<std::uint64_t> run_set(state at, wish what) {
    auto changing = run_change(std::move(at), std::move(what));
    auto const made = co_await std::move(changing);
    co_return made.version;
}

task<std::optional<std::uint64_t>> run_compare_and_set(state at, wish what) {
    auto changing = run_change(std::move(at), std::move(what));
    auto const made = co_await std::move(changing);
    if (made.version == 0) co_return std::nullopt;
    co_return made.version;
}

task<bool> run_erase(state at, wish what) {
    auto changing = run_change(std::move(at), std::move(what));
    auto const made = co_await std::move(changing);
    co_return made.was_there;
}

task<void> run_pause(std::shared_ptr<core> owner, milliseconds time) {
    engine::pause rest{std::move(owner), time};
    co_await rest;
}

void check(state_object const& at, write_options const& how) {
    if (how.ttl.count() >= 0) require_time(at, "ttl", how.ttl, 0ms);
    if (how.fence > 9'000'000'000'000'000) throw invalid_argument_error(fmt::format("value '{}': a fence is at most 9*10^15", at.name()));
    at.require_usable();
}

// ---- watching

class value_watch final : public watch_state {
public:
    using handler = std::function<void(found const&)>;
    value_watch(state at, handler told) : watch_state(at), at_(std::move(at)), handler_(std::move(told)) {}

private:
    void heard(std::string_view payload) noexcept override {
        std::uint64_t version = 0;
        auto const end = payload.data() + payload.size();
        auto const [rest, problem] = std::from_chars(payload.data(), end, version);
        if (problem != std::errc{} || end - rest < 2 || rest[1] == '?') return look();
        if (rest[1] == '=') return tell({.now = raw_value{std::string(rest + 2, end), version}, .version = version});
        tell({.now = {}, .version = version});
    }

    task<void> look_once() override { return read(std::static_pointer_cast<value_watch>(shared_from_this())); }

    static task<void> read(std::shared_ptr<value_watch> self) {
        auto const before = self->told_;
        auto asking = self->at_->run(scripts::value_read, {});
        auto const said = co_await std::move(asking);
        auto const seen = read_answer(*self->at_, said);
        if (self->told_ == before) {
            self->tell_latest(seen);
        } else {
            self->tell(seen);
        }
    }

    void tell(reading const& what) noexcept {
        if (told_ == 0 || what.version > last_) show(what);
    }
    /// What was asked for after all that was told is what is there, also with a smaller version: a server took over that does not have the last writes.
    void tell_latest(reading const& what) noexcept {
        bool const is_other = what.now.has_value() != is_there_ || (is_there_ && what.version != last_);
        if (is_other) return show(what);
        tell(what);
        last_ = what.version;
    }
    void show(reading const& what) noexcept {
        ++told_;
        last_ = what.version;
        is_there_ = what.now.has_value();
        guarded([&] { handler_(what.now); });
    }

    state at_;
    handler handler_;
    std::uint64_t told_ = 0;  ///< how often
    std::uint64_t last_ = 0;
    bool is_there_ = false;
};

// ---- waiting

task<found> wait_for_newer(state at, std::uint64_t version, std::optional<milliseconds> time) {
    auto const mine = std::make_shared<newer>(version);
    value_watch::handler told = [mine](found const& now) { mine->offer(now); };
    auto watch = std::make_shared<value_watch>(at, std::move(told));
    auto waiting = newer::wait(mine, std::move(watch), at->owner());
    if (!time) return waiting;
    return newer::no_longer_than(*time, mine, at, std::move(waiting), run_read(at));
}

}  // namespace

raw_shared_value::raw_shared_value(client& by, std::string_view name, shared_value_options const& options)
    : state_(std::make_shared<shared_value_state const>(by, name, options)) {}

void raw_shared_value::require_blocking() const { state_->require_blocking(); }

task<std::optional<raw_value>> raw_shared_value::read() const {
    state_->require_usable();
    return run_read(state_);
}
task<bool> raw_shared_value::exists() const {
    state_->require_usable();
    return run_exists(state_);
}
task<std::uint64_t> raw_shared_value::set(std::string bytes, write_options how) const {
    check(*state_, how);
    return run_set(state_, {.bytes = std::move(bytes), .how = how});
}
task<std::optional<std::uint64_t>> raw_shared_value::compare_and_set(std::uint64_t version, std::string bytes, write_options how) const {
    check(*state_, how);
    return run_compare_and_set(state_, {.bytes = std::move(bytes), .expected = version, .how = how});
}
task<bool> raw_shared_value::erase(write_options how) const {
    check(*state_, how);
    return run_erase(state_, {.erase = true, .how = how});
}
task<watching> raw_shared_value::watch(std::function<void(std::optional<raw_value> const&)> handler) const {
    state_->require_usable();
    if (!handler) throw invalid_argument_error(fmt::format("value '{}': the watch has no handler", state_->name()));
    return watch_state::begin(std::make_shared<value_watch>(state_, std::move(handler)));
}

task<std::optional<raw_value>> raw_shared_value::wait_newer(std::uint64_t version, std::optional<milliseconds> time) const {
    state_->require_usable();
    if (time && time->count() <= 0) return if_newer(version, run_read(state_));
    return wait_for_newer(state_, version, time);
}

// ---- updates

update_attempts::update_attempts(raw_shared_value const& of) noexcept : what_(of.state_) {}

milliseconds update_attempts::next() {
    constexpr int most = 100;
    if (++lost_ >= most) throw timeout_error(fmt::format("{} '{}': {} updates in a row lost against others", what_->kind(), what_->name(), most));
    auto const longest = std::uint64_t{1} << std::min(lost_, 6);
    return milliseconds{1 + base::random_below(longest)};
}

task<void> update_attempts::async_pause() { return run_pause(what_->owner(), next()); }

void update_attempts::pause(std::stop_token token) { sync_wait(async_pause(), std::move(token)); }

}  // namespace lockstep::detail
