#include "core/keyed.hpp"

#include "base/names.hpp"
#include "core/object_kinds.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

task<reply> checked(task<reply> answer, std::string what) {
    auto said = co_await std::move(answer);
    if (!said.is_error()) co_return said;
    constexpr std::string_view argument = "LOCKSTEP_ARGUMENT ";
    std::string_view const text = said.text();
    if (text.starts_with(argument)) throw invalid_argument_error(fmt::format("{}: {}", what, text.substr(argument.size())));
    throw server_error(fmt::format("{} ({})", text, what));
}

}  // namespace

keyed::keyed(client& by, std::string_view name, std::string_view kind) : keyed(core_access::of(by), name, kind) {}
keyed::keyed(std::shared_ptr<core> owner, std::string_view name, std::string_view kind)
    : owner_(std::move(owner)), name_(name), kind_(kind), key_(base::key_name(owner_->options().prefix, name, kind)),
      slot_(owner_->is_cluster() ? static_cast<std::int16_t>(redis::key_slot(key_)) : std::int16_t{-1}), listing_(listing_of(kind)) {
    owner_->require_same_process();
}

namespace {

/// What Redis Cluster takes the slot of.
std::string_view hash_tag(std::string_view text) {
    auto const open = text.find('{');
    auto const close = open == std::string_view::npos ? open : text.find('}', open + 1);
    return close == std::string_view::npos || close == open + 1 ? text : text.substr(open + 1, close - open - 1);
}

}  // namespace

keyed keyed::at_key(client& by, lockstep::key const& at, std::string_view kind) {
    auto const encoded = base::encode_name(at.text);
    auto const tag = hash_tag(at.text);
    if (tag.find('}') != std::string_view::npos) {
        throw invalid_argument_error(fmt::format("the key '{}' has a '}}' but no hash tag: no other key can be in its slot; use one without braces, or with a tag such as 'a{{b}}'", at.text));
    }
    keyed object{by, "key", kind};
    object.name_ = object.key_ = at.text;
    object.helpers_ = fmt::format("{}:{{{}}}:key:{}:{}", object.owner_->options().prefix, tag, encoded, kind);
    if (object.slot_ >= 0) object.slot_ = static_cast<std::int16_t>(redis::key_slot(at.text));
    object.listing_ = listing::none;  // monitors list what has a name of ours
    return object;
}

keyed keyed::part(std::string_view part) const {
    keyed object{*this};
    object.key_ = key_of(part);
    object.helpers_.clear();
    object.kind_ = kind_ + ':' + std::string{part};
    object.listing_ = listing::none;
    return object;
}

task<reply> keyed::run(scripts::script const& script, std::span<std::string_view const> keys, std::span<argument const> words, terms how) const {
    note(keys);
    redis::command_terms const with{.deadline = owner_->deadline(how.within), .slot = slot_, .repeatable = !how.once, .errors_are_replies = true, .yields = how.yields};
    return checked(redis::run_script(owner_->way(), script, keys, words, with), fmt::format("{} '{}'", kind_, name_));
}

task<reply> keyed::run(scripts::script const& script, std::initializer_list<argument> words) const {
    std::string_view const keys[] = {key_};
    return run(script, keys, {words.begin(), words.size()}, {});
}

task<reply> keyed::command(std::span<argument const> words, terms how) const {
    note({});
    redis::command_terms const with{.deadline = owner_->deadline(how.within), .slot = slot_, .repeatable = !how.once, .errors_are_replies = true};
    return checked(redis::run_command(owner_->way(), words, with), fmt::format("{} '{}'", kind_, name_));
}

task<reply> keyed::command(std::initializer_list<argument> words) const { return command({words.begin(), words.size()}, {}); }

keyed::listing keyed::listing_of(std::string_view kind) noexcept {
    if (kind == "board") return listing::by_period;
    if (kind == "jobs" || kind.starts_with("jobs:")) return listing::as_jobs;
    return std::find(object_kinds.begin(), object_kinds.end(), kind) == object_kinds.end() ? listing::none : listing::by_key;
}

void keyed::note(std::span<std::string_view const> keys) const noexcept {
    if (listing_ == listing::none || !owner_->objects().is_new(noted_)) return;
    if (listing_ == listing::by_key) return owner_->objects().add(key_);
    if (listing_ == listing::by_period) {  // a board has a key for each period
        if (!keys.empty() && !keys.front().ends_with(":about")) owner_->objects().add(keys.front());
        return;
    }
    constexpr std::string_view word = "}:jobs:";
    auto const before = key_.find(word) + word.size() - 1;
    bool const is_of_crons = std::any_of(keys.begin(), keys.end(), [](std::string_view one) { return one.ends_with("}:jobs:crons"); });
    std::string const all = key_.find(word) == std::string::npos ? key_ : key_.substr(0, before);
    owner_->objects().add(all + (is_of_crons ? ":crons" : ":types"));
}

void keyed::note_use(std::string_view word, std::chrono::milliseconds listed_for) const noexcept {
    if (!owner_->objects().is_new(noted_)) return;
    // While it is used it is told anew before its time is over.
    constexpr std::chrono::milliseconds told_anew_within{45'000};
    constexpr std::chrono::hours longest{24 * 366};
    owner_->objects().add(base::key_name(owner_->options().prefix, name_, word), std::min<std::chrono::milliseconds>(listed_for, longest) + told_anew_within);
}

void keyed::require_usable() const { owner_->require_same_process(); }
void keyed::require_blocking() const {
    owner_->require_same_process();
    owner_->require_blocking_is_allowed();
}

}  // namespace lockstep::detail
