#include "core/keyed.hpp"

#include "base/names.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

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
      slot_(owner_->is_cluster() ? static_cast<std::int16_t>(redis::key_slot(key_)) : std::int16_t{-1}) {
    owner_->require_same_process();
}

task<reply> keyed::run(scripts::script const& script, std::span<std::string_view const> keys, std::span<argument const> words, terms how) const {
    redis::command_terms const with{.deadline = owner_->deadline(how.within), .slot = slot_, .repeatable = !how.once, .errors_are_replies = true, .yields = how.yields};
    return checked(redis::run_script(owner_->way(), script, keys, words, with), fmt::format("{} '{}'", kind_, name_));
}

task<reply> keyed::run(scripts::script const& script, std::initializer_list<argument> words) const {
    std::string_view const keys[] = {key_};
    return run(script, keys, {words.begin(), words.size()}, {});
}

task<reply> keyed::command(std::span<argument const> words, terms how) const {
    redis::command_terms const with{.deadline = owner_->deadline(how.within), .slot = slot_, .repeatable = !how.once, .errors_are_replies = true};
    return checked(redis::run_command(owner_->way(), words, with), fmt::format("{} '{}'", kind_, name_));
}

task<reply> keyed::command(std::initializer_list<argument> words) const { return command({words.begin(), words.size()}, {}); }

void keyed::require_usable() const { owner_->require_same_process(); }
void keyed::require_blocking() const {
    owner_->require_same_process();
    owner_->require_blocking_is_allowed();
}

}  // namespace lockstep::detail
