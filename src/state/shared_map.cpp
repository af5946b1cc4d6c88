#include <lockstep/shared_map.hpp>

#include "lease/pause.hpp"
#include "scripts/all.hpp"
#include "state/newer.hpp"
#include "state/state_object.hpp"
#include "state/watching.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace lockstep::detail {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

class shared_map_state final : public state_object {
public:
    shared_map_state(client& by, std::string_view name, shared_map_options const& options)
        : state_object(by, name, "map"), how(options), about(key_of("about")) {
        require_time(*this, "ttl", how.ttl, 0ms);
        require_time(*this, "retention", how.retention, 1ms);
    }

    shared_map_options how;
    std::string about;  ///< the other key
};

namespace {

using state = std::shared_ptr<shared_map_state const>;
using fields = raw_shared_map::fields;
using edit = raw_shared_map::edit;
using outcome = raw_shared_map::outcome;

/// '<version> <bytes>'.
raw_value parse(shared_map_state const& at, std::string_view text) {
    raw_value made;
    auto const end = text.data() + text.size();
    auto const [rest, problem] = std::from_chars(text.data(), end, made.version);
    if (problem != std::errc{} || rest == end || *rest != ' ') throw_unexpected_answer(at);
    made.bytes.assign(rest + 1, end);
    return made;
}

struct picture {
    std::uint64_t version = 0;  ///< of the map
    fields all;
};

task<picture> run_look(state at, std::string what, std::vector<std::string> names) {
    std::string_view const keys[] = {at->key(), at->about};
    std::vector<argument> words{what};
    words.insert(words.end(), names.begin(), names.end());
    auto asking = at->run(scripts::map_read, keys, words, {});
    auto const said = co_await std::move(asking);
    if (said.size() % 2 != 1) throw_unexpected_answer(*at);
    picture made{.version = static_cast<std::uint64_t>(said[0].integer()), .all = {}};
    auto next = ++said.begin();
    for (auto left = said.size() - 1; left > 0; left -= 2) {
        std::string name{(*next++).text()};
        made.all.insert_or_assign(std::move(name), parse(*at, (*next++).text()));
    }
    co_return made;
}

task<fields> run_read(state at, std::string what, std::vector<std::string> names) {
    auto looking = run_look(std::move(at), std::move(what), std::move(names));
    auto found = co_await std::move(looking);
    co_return std::move(found.all);
}

task<outcome> run_change(state at, std::string what, std::vector<edit> edits, write_options how) {
    change request{.script = &scripts::map_change,
                   .keys = {at->key(), at->about},
                   .words = {at->rules(at->how.retention), std::to_string(at->how.ttl.count()), std::to_string(how.fence), std::move(what)}};
    for (auto& one : edits) {
        request.words.push_back(one.bytes ? "set" : "erase");
        request.words.push_back(std::move(one.field));
        request.words.push_back(one.expected ? std::to_string(*one.expected) : std::string{});
        request.words.push_back(std::move(one.bytes).value_or(std::string{}));
    }
    auto changing = change_once(at, std::move(request));
    auto const said = co_await std::move(changing);
    auto const word = said[0].text();
    auto const number = static_cast<std::uint64_t>(said[1].integer());
    if (word == "changed" && said.size() == 4) co_return outcome{number, static_cast<std::uint64_t>(said[3].integer())};
    if (word == "conflict") co_return outcome{};
    if (word != "stale") throw_unexpected_answer(*at);
    throw stale_fence_error(fmt::format("map '{}': the fence {} is stale: it was written with {}", at->name(), how.fence, number));
}

task<std::uint64_t> run_size(state at) {
    auto asking = at->command({"HLEN", at->key()});
    auto const said = co_await std::move(asking);
    co_return static_cast<std::uint64_t>(said.integer());
}

void check(shared_map_state const& at, write_options const& how) {
    if (how.fence > 9'000'000'000'000'000) throw invalid_argument_error(fmt::format("map '{}': a fence is at most 9*10^15", at.name()));
    if (how.ttl.count() >= 0) throw invalid_argument_error(fmt::format("map '{}': a field has no ttl of its own; the map's options have one", at.name()));
    at.require_usable();
}

// ---- watching

/// What map_change tells those who watch.
struct news {
    std::uint64_t version = 0;
    std::vector<std::string> fields{};  ///< that have changed; none: look at all
    bool is_told = false;               ///< it is one field, and `now` is what became of it
    std::optional<raw_value> now{};
};

/// The next '<length> <name>' of what is left. Nothing: it is not of that form.
std::optional<std::string_view> next_name(std::string_view& left) noexcept {
    std::size_t length = 0;
    auto const end = left.data() + left.size();
    auto const [name, problem] = std::from_chars(left.data(), end, length);
    if (problem != std::errc{} || static_cast<std::size_t>(end - name) <= length) return std::nullopt;  // anybody can publish: no sum that may wrap
    std::string_view const found{name + 1, length};
    left.remove_prefix(static_cast<std::size_t>(name + 1 - left.data()) + length);
    return found;
}

news parse_news(std::string_view payload) {
    news made;
    auto const end = payload.data() + payload.size();
    auto const [rest, problem] = std::from_chars(payload.data(), end, made.version);
    if (problem != std::errc{} || end - rest < 3) return made;
    auto const sign = rest[1];
    std::string_view left{rest + 2, end};
    if (sign != '=' && sign != '-' && sign != '?') return made;
    do {
        auto const name = next_name(left);
        if (!name) return news{.version = made.version};
        made.fields.emplace_back(*name);
    } while (sign == '?' && !left.empty());
    made.is_told = sign != '?';
    if (sign == '=') made.now = raw_value{std::string{left}, made.version};
    return made;
}

class map_watch final : public watch_state {
public:
    using handler = std::function<void(std::string const&, std::optional<raw_value> const&)>;
    map_watch(state at, handler told) : watch_state(at), at_(std::move(at)), handler_(std::move(told)) {}

private:
    static constexpr milliseconds push_delay = 300ms;    // what the server has told may arrive so much later than its answers
    static constexpr std::size_t most_at_once = 1'000;  // fields that are read by one script

    struct known {
        std::uint64_t version = 0;
        bool is_there = true;
        std::uint64_t since = 0;  ///< what `heard_` was when it was told
    };

    void heard(std::string_view payload) noexcept override {
        ++heard_;
        auto what = parse_news(payload);
        latest_ = what.version;
        if (what.is_told) return tell(std::move(what.fields.front()), what.version, what.now);
        if (what.fields.empty()) whole_ = true;
        for (auto& field : what.fields) changed_.insert(std::move(field));
        hinted_ = true;
        look();
    }
    void missed() noexcept override {
        whole_ = true;
        look();
    }

    task<void> look_once() override { return read(std::static_pointer_cast<map_watch>(shared_from_this())); }

    static task<void> read(std::shared_ptr<map_watch> self) {
        bool const is_hinted = std::exchange(self->hinted_, false);
        while (!self->whole_ && !self->changed_.empty()) {
            auto reading = read_changed(self);
            co_await std::move(reading);
        }
        if (is_hinted && !self->whole_) co_return;
        // An unchanged map is not read again, nor one of whose changes all were heard.
        auto const known = self->latest_;
        auto asking = run_look(self->at_, "version", {});
        auto const now = co_await std::move(asking);
        if (!self->whole_ && now.version > self->latest_) {
            engine::pause rest{self->at_->owner(), push_delay};
            co_await rest;
        }
        auto const asked = self->heard_;
        auto const latest = self->latest_;
        // A version that is smaller than what was known before: a server took over that does not have the last writes.
        bool const is_known = self->whole_ ? asked == self->looked_ && now.version == self->seen_ : known <= now.version && now.version <= latest;
        if (is_known) {
            self->whole_ = false;
            self->forget_erased();
            co_return;
        }
        self->whole_ = false;  // what is heard meanwhile may ask for another look
        self->changed_.clear();
        auto looking = run_look(self->at_, "all", {});
        picture found;
        try {
            found = co_await std::move(looking);
        } catch (...) {
            self->whole_ = true;
            throw;
        }
        if (self->latest_ == latest) self->latest_ = found.version;
        self->compare(found, asked);
    }

    /// Some of those fields of which it was told only that they have changed.
    static task<void> read_changed(std::shared_ptr<map_watch> self) {
        std::vector<std::string> names;
        while (!self->changed_.empty() && names.size() < most_at_once) names.push_back(std::move(self->changed_.extract(self->changed_.begin()).value()));
        auto const asked = self->heard_;
        auto looking = run_look(self->at_, "some", names);
        picture found;
        try {
            found = co_await std::move(looking);
        } catch (...) {
            self->changed_.insert(names.begin(), names.end());
            throw;
        }
        for (auto const& field : names) {
            auto const there = found.all.find(field);
            if (there != found.all.end()) {
                self->tell(field, there->second.version, there->second, asked);
            } else if (self->may_be_gone(field, found.version, asked)) {
                self->tell(field, found.version, std::nullopt, asked);
            }
        }
    }

    /// What was heard of since the look may be younger than it.
    bool may_be_gone(std::string_view field, std::uint64_t version, std::uint64_t asked) const noexcept {
        auto const one = known_.find(field);
        return one != known_.end() && one->second.is_there && (one->second.since <= asked || one->second.version <= version);
    }

    void compare(picture const& found, std::uint64_t asked) noexcept {
        looked_ = asked;
        seen_ = found.version;
        for (auto const& [field, value] : found.all) tell(field, value.version, value, asked);
        std::vector<std::string> gone;
        for (auto const& [field, one] : known_) {
            if (!found.all.contains(field) && may_be_gone(field, found.version, asked)) gone.push_back(field);
        }
        for (auto& field : gone) tell(std::move(field), found.version, std::nullopt, asked);
        forget_erased();
    }
    void forget_erased() noexcept {
        std::erase_if(known_, [](auto const& one) { return !one.second.is_there; });
    }

    /// `asked`: what `heard_` was when it was asked for; 0: it was pushed.
    void tell(std::string field, std::uint64_t version, std::optional<raw_value> const& now, std::uint64_t asked = 0) noexcept {
        auto const found = known_.find(field);
        if (found != known_.end()) {
            auto const& last = found->second;
            // A look that was asked for after it was told is what is there, also with a smaller version: a server took over that does not have the
            // last writes. An erased field has no later version than the look that did not find it.
            bool const is_older = last.since > asked && version < last.version;
            if (is_older || (version == last.version && now)) return;
        }
        bool const was_there = found != known_.end() && found->second.is_there;
        // Erased ones are remembered as long as a look that may still show them is under way.
        if (now || is_looking()) {
            known_.insert_or_assign(field, known{version, now.has_value(), heard_});
        } else {
            known_.erase(field);
        }
        if (now || was_there) guarded([&] { handler_(field, now); });
    }

    state at_;
    handler handler_;
    std::map<std::string, known, std::less<>> known_;
    std::uint64_t heard_ = 1;   ///< how many messages, and one
    std::uint64_t looked_ = 0;  ///< what that was at the last look; 0: there was none
    std::uint64_t seen_ = 0;    ///< the map's version then
    std::uint64_t latest_ = 0;  ///< the map's version, as far as it was heard or seen
    bool whole_ = true;         ///< messages may be missing: look at all of it
    bool hinted_ = false;       ///< a message asked for a look
    std::set<std::string> changed_;  ///< fields to look at
};

// ---- waiting for one field

task<std::optional<raw_value>> run_read_one(state at, std::string field) {
    std::vector<std::string> names;
    names.push_back(std::move(field));
    auto reading = run_read(std::move(at), "some", std::move(names));
    auto const all = co_await std::move(reading);
    if (all.empty()) co_return std::nullopt;
    co_return all.begin()->second;
}

/// Listens to the whole map, as its changes are told on one channel, but reads this field only.
class field_watch final : public watch_state {
public:
    field_watch(state at, std::string field, std::shared_ptr<newer> whom)
        : watch_state(at), at_(std::move(at)), field_(std::move(field)), whom_(std::move(whom)) {}

private:
    void heard(std::string_view payload) noexcept override {
        auto const what = parse_news(payload);
        bool const is_mine = what.fields.empty() || std::find(what.fields.begin(), what.fields.end(), field_) != what.fields.end();
        if (!is_mine) return;
        if (!what.is_told) return look();
        whom_->offer(what.now);
    }
    task<void> look_once() override { return read(std::static_pointer_cast<field_watch>(shared_from_this())); }
    static task<void> read(std::shared_ptr<field_watch> self) {
        auto reading = run_read_one(self->at_, self->field_);
        auto const now = co_await std::move(reading);
        self->whom_->offer(now);
    }

    state at_;
    std::string field_;
    std::shared_ptr<newer> whom_;
};

task<std::optional<raw_value>> wait_for_newer(state at, std::string field, std::uint64_t version, std::optional<milliseconds> time) {
    auto const mine = std::make_shared<newer>(version);
    auto watch = std::make_shared<field_watch>(at, field, mine);
    auto waiting = newer::wait(mine, std::move(watch), at->owner());
    if (!time) return waiting;
    return newer::no_longer_than(*time, mine, at, std::move(waiting), run_read_one(at, std::move(field)));
}

}  // namespace

raw_shared_map::raw_shared_map(client& by, std::string_view name, shared_map_options const& options)
    : state_(std::make_shared<shared_map_state const>(by, name, options)) {}

void raw_shared_map::require_blocking() const { state_->require_blocking(); }

task<fields> raw_shared_map::read(std::optional<std::vector<std::string>> names) const {
    state_->require_usable();
    if (!names) return run_read(state_, "all", {});
    return run_read(state_, "some", *std::move(names));
}
task<outcome> raw_shared_map::change(std::vector<edit> edits, write_options how) const {
    check(*state_, how);
    return run_change(state_, "change", std::move(edits), how);
}
task<outcome> raw_shared_map::clear(write_options how) const {
    check(*state_, how);
    return run_change(state_, "clear", {}, how);
}
task<std::uint64_t> raw_shared_map::size() const {
    state_->require_usable();
    return run_size(state_);
}
task<watching> raw_shared_map::watch(std::function<void(std::string const&, std::optional<raw_value> const&)> handler) const {
    state_->require_usable();
    if (!handler) throw invalid_argument_error(fmt::format("map '{}': the watch has no handler", state_->name()));
    return watch_state::begin(std::make_shared<map_watch>(state_, std::move(handler)));
}

task<std::optional<raw_value>> raw_shared_map::wait_newer(std::string field, std::uint64_t version, std::optional<milliseconds> time) const {
    state_->require_usable();
    if (time && time->count() <= 0) return if_newer(version, run_read_one(state_, std::move(field)));
    return wait_for_newer(state_, std::move(field), version, time);
}

update_attempts::update_attempts(raw_shared_map const& of) noexcept : what_(of.state_) {}

}  // namespace lockstep::detail
