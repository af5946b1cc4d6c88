#include <lockstep/client.hpp>

#include "core/command_rules.hpp"
#include "core/core.hpp"
#include "core/session.hpp"
#include "core/subscription.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"

#include <lockstep/error.hpp>

#include <utility>

namespace lockstep {
namespace {

using detail::core;

task<reply> execute_in_cluster(std::shared_ptr<core> owner, std::string encoded, redis::command_terms terms) {
    terms.slot = co_await detail::find_slot(*owner, encoded, terms.deadline);
    auto way = owner->way();
    co_return co_await redis::run_encoded(std::move(way), encoded, terms);
}

redis::command_terms terms_of(core& owner, request const& command, bool errors_are_replies) {
    return {.deadline = owner.deadline(command.time()), .repeatable = command.is_repeatable(), .errors_are_replies = errors_are_replies};
}

task<reply> execute(core& owner, request const& command, bool errors_are_replies) {
    owner.require_same_process();
    detail::require_shareable(command.encoded());
    auto const terms = terms_of(owner, command, errors_are_replies);
    if (owner.is_cluster()) return execute_in_cluster(owner.shared_from_this(), command.encoded(), terms);
    return redis::run_encoded(owner.way(), command.encoded(), terms);
}

/// All slots before the first command: they must leave in their order, and finding a slot may take a question to the server.
task<std::vector<reply>> execute_pipeline_in_cluster(std::shared_ptr<core> owner, std::vector<request> commands) {
    std::vector<task<std::int16_t>> questions;
    for (auto const& one : commands) questions.push_back(detail::find_slot(*owner, one.encoded(), owner->deadline(one.time())));
    auto const slots = co_await when_all(std::move(questions));
    std::vector<task<reply>> all;
    for (std::size_t i = 0; i < commands.size(); ++i) {
        auto terms = terms_of(*owner, commands[i], true);
        terms.slot = slots[i];
        all.push_back(redis::run_encoded(owner->way(), commands[i].encoded(), terms));
    }
    co_return co_await when_all(std::move(all));
}

task<std::optional<std::vector<reply>>> execute_transaction(std::shared_ptr<core> owner, transaction commands) {
    redis::command_terms terms{.deadline = owner->deadline(commands.time()), .repeatable = commands.is_repeatable()};
    if (owner->is_cluster()) {
        for (auto const& command : commands.commands()) {
            auto const slot = co_await detail::find_slot(*owner, command.encoded(), terms.deadline);
            if (slot >= 0 && terms.slot >= 0 && slot != terms.slot) {
                throw invalid_argument_error("the keys of a transaction must share a slot: give them the same {hash tag}");
            }
            if (slot >= 0) terms.slot = slot;
        }
    }
    auto way = owner->way();
    co_return co_await redis::run_transaction(std::move(way), std::move(commands), terms);
}

}  // namespace

task<reply> detail::async_execute(core& owner, request const& command) { return execute(owner, command, false); }

task<reply> detail::async_command(core& owner, std::span<argument const> words) {
    if (owner.is_cluster()) return execute(owner, request::from(words), false);
    owner.require_same_process();
    require_shareable(words);
    return redis::run_command(owner.way(), words, {.deadline = owner.deadline({})});
}

client::client() : client(client_options{}) {}
client::client(std::string_view url) : client(client_options{.url = std::string{url}}) {
    if (url.empty()) throw invalid_argument_error("the URL is empty; use client{} for the default server");
}
client::client(client_options const& options) : core_(core::make(options)) {}
client::client(std::shared_ptr<core> core) noexcept : core_(std::move(core)) {}
client::client(client&&) noexcept = default;
client& client::operator=(client&& other) noexcept {
    std::swap(core_, other.core_);
    return *this;
}

client::~client() {
    if (!core_) return;
    if (core_->same_process()) {
        core_->close();
    } else {
        new std::shared_ptr<core>{core_};  // in a child of fork(): the thread to join is not here, so leave all as it is
    }
}

void client::require_blocking_is_allowed() const { core_->require_blocking_is_allowed(); }

std::vector<reply> client::execute(pipeline commands, std::stop_token token) {
    require_blocking_is_allowed();
    return sync_wait(async_execute(std::move(commands)), std::move(token));
}

task<std::vector<reply>> client::async_execute(pipeline commands) {
    core_->require_same_process();
    if (commands.size() == 0) throw invalid_argument_error("the pipeline is empty; add a command first");
    auto requests = commands.commands();
    for (auto& one : requests) {
        detail::require_shareable(one.encoded());
        if (commands.time().count() > 0) one.within(commands.time());
        if (commands.is_repeatable()) one.repeatable();
    }
    if (core_->is_cluster()) return execute_pipeline_in_cluster(core_, std::move(requests));
    std::vector<task<reply>> all;
    all.reserve(requests.size());
    for (auto const& one : requests) all.push_back(redis::run_encoded(core_->way(), one.encoded(), terms_of(*core_, one, true)));
    return when_all(std::move(all));
}

std::optional<std::vector<reply>> client::execute(transaction commands, std::stop_token token) {
    require_blocking_is_allowed();
    return sync_wait(async_execute(std::move(commands)), std::move(token));
}

task<std::optional<std::vector<reply>>> client::async_execute(transaction commands) {
    core_->require_same_process();
    detail::require_runnable(commands);
    return execute_transaction(core_, std::move(commands));
}

session client::open_session(std::string_view key) {
    require_blocking_is_allowed();
    return sync_wait(async_open_session(key));
}

task<session> client::async_open_session(std::string_view key) {
    core_->require_same_process();
    return detail::open_session(core_, key.empty() ? std::int16_t{-1} : static_cast<std::int16_t>(redis::key_slot(key)));
}

subscription client::subscribe(std::string_view channel, message_handler handler) {
    return subscribe(subscription_options{.channel = std::string{channel}, .handler = std::move(handler)});
}

subscription client::subscribe(subscription_options options) {
    require_blocking_is_allowed();
    return sync_wait(async_subscribe(std::move(options)));
}

task<subscription> client::async_subscribe(subscription_options options) {
    core_->require_same_process();
    if (options.channel.empty()) throw invalid_argument_error("the channel's name is empty");
    if (!options.handler) throw invalid_argument_error("the subscription has no handler");
    return detail::open_subscription(core_, std::move(options));
}

std::string client::description() const { return core_->description(); }
lockstep::statistics client::statistics() const { return core_->statistics(); }
void client::close() noexcept { core_->close(); }

}  // namespace lockstep
