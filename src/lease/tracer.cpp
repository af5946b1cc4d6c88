#include "lease/tracer.hpp"

#include "base/host.hpp"
#include "base/names.hpp"
#include "core/core.hpp"
#include "lease/hub.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"

#include <lockstep/log.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

namespace lockstep::engine {
namespace {

constexpr std::chrono::milliseconds flush_after{100};
constexpr std::size_t most_waiting = 10'000;
constexpr std::size_t most_at_once = 500;

}  // namespace

tracer::tracer(hub& home) : hub_(home), owner_(home.owner()), on_(owner_.options().trace || owner_.options().record) {
    if (!owner_.options().record) return;
    key_ = base::key_name(owner_.options().prefix, record_name, record_word);
    self_ = fmt::format("{} {} {}", owner_.client_name(), base::host_name(), ::getpid());
}

void tracer::tell(trace_record const& record) noexcept {
    try {
        if (auto const& hook = owner_.options().trace) hook(record);
    } catch (std::exception const& problem) {
        log(log_level::error, fmt::format("the trace hook threw, and the record is dropped: {}", problem.what()));
    } catch (...) {
        log(log_level::error, "the trace hook threw, and the record is dropped");
    }
    if (key_.empty()) return;
    if (waiting_.size() >= most_waiting) {
        waiting_.pop_front();
        ++dropped_;
    }
    std::vector<std::string> words{"XADD", key_, "MAXLEN", "~", std::to_string(owner_.options().record_limit), "*"};
    auto const add = [&](std::string_view field, std::string_view value) {
        if (value.empty()) return;
        words.emplace_back(field);
        words.emplace_back(value);
    };
    auto const number = [&](std::string_view field, auto value) {
        if (value != 0) add(field, std::to_string(value));
    };
    add("what", to_string(record.what));
    add("kind", record.kind);
    add("use", record.use);
    add("name", record.name);
    add("hold", record.hold);
    number("fence", record.fence);
    number("permits", record.permits);
    number("waited", record.waited.count());
    number("held", record.held.count());
    number("at", std::chrono::duration_cast<std::chrono::milliseconds>(record.at.time_since_epoch()).count());
    add("trace", record.trace);
    add("detail", record.detail);
    add("owner", self_);
    number("missing", std::exchange(dropped_, 0));
    std::vector<detail::argument> const arguments(words.begin(), words.end());
    waiting_.push_back(detail::encode_command(arguments));
    if (!linked()) owner_.home().arm(*this, owner_.home().now() + flush_after);
}

void tracer::flush() {
    redis::command_terms const terms{.deadline = owner_.deadline({}),
                                     .slot = static_cast<std::int16_t>(redis::key_slot(key_)),
                                     .errors_are_replies = true};
    for (std::size_t sent = 0; sent < most_at_once && !waiting_.empty(); ++sent) {
        hub_.see_to(redis::run_encoded(owner_.way(), waiting_.front(), terms));
        waiting_.pop_front();
    }
}

void tracer::fire() noexcept {
    if (hub_.is_connected()) flush();
    if (!waiting_.empty()) owner_.home().arm(*this, owner_.home().now() + flush_after);
}

void tracer::end() noexcept {
    owner_.home().disarm(*this);
    while (!waiting_.empty()) flush();
}

}  // namespace lockstep::engine
