#include <lockstep/job_batch.hpp>

#include "core/subscription.hpp"
#include "jobs/job_office.hpp"
#include "jobs/job_text.hpp"
#include "messaging/doorbell.hpp"
#include "messaging/raw_queue_parts.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using office = std::shared_ptr<job_office>;

constexpr milliseconds look_every = 30s;
constexpr std::int64_t most_jobs = 1'000'000'000;

[[noreturn]] void refuse(std::string const& what) { throw invalid_argument_error("a batch of jobs: " + what); }

std::string key_of(office const& of, std::string_view id) { return of->all().key_of("batch:" + std::string{id}); }

task<void> say_batch(std::shared_ptr<depot> at, std::string key, std::vector<std::string> words) {
    std::vector<std::string> keys{at->what().key(), std::move(key), at->what().key_of("absent")};
    std::vector<argument> given{words.begin(), words.end()};
    auto asking = run_on(at, scripts::job_batch, keys, given);
    co_await std::move(asking);
}

task<batch_info> read_batch(office of, std::string id) {
    auto const key = key_of(of, id);
    auto asking = of->all().command({"HMGET", key, "total", "completed", "failed", "cancelled", "state", "then"});
    auto const said = co_await std::move(asking);
    auto const number = [](reply_view field) { return field.is_null() ? std::int64_t{0} : read_number(field.text()); };
    batch_info found{.total = number(said[0]), .completed = number(said[1]), .failed = number(said[2]), .cancelled = number(said[3])};
    if (!said[4].is_null()) found.state = read_state(said[4].text());
    else if (!said[0].is_null()) found.state = job_state::running;
    if (!said[5].is_null()) found.then = said[5].text();
    co_return found;
}

task<subscription> listen(office of, std::string id, std::shared_ptr<doorbell> bell) {
    subscription_options how;
    how.channel = key_of(of, id) + ":ended";
    how.kind = of->owner()->is_cluster() ? subscription_kind::shard : subscription_kind::channel;
    how.handler = [bell](message const&) { bell->ring(); };
    how.on_gap = [bell] { bell->ring(); };
    return open_subscription(of->owner(), std::move(how));
}

task<std::optional<batch_info>> wait_for_batch(office of, std::string id, std::chrono::steady_clock::time_point until) {
    auto const bell = std::make_shared<doorbell>();
    auto hearing = listen(of, id, bell);
    auto const ear = co_await std::move(hearing);
    while (true) {
        auto reading = read_batch(of, id);
        auto found = co_await std::move(reading);
        if (found.state != job_state::running) co_return std::optional<batch_info>{std::move(found)};
        auto const left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
        if (left <= 0ms) co_return std::nullopt;
        auto resting = doorbell::wait(of->owner(), *bell, std::min(left, look_every));
        co_await std::move(resting);
    }
}

}  // namespace

task<void> raw_jobs::async_batch(std::string_view id, std::int64_t total, batch_options const& how, std::string_view then_type, std::string then_payload,
                                 job_options const& then_how) {
    check_batch(id);
    if (total < 1 || total > most_jobs) refuse(fmt::format("its total must be 1 to 1,000,000,000, not {}", total));
    if (how.keep < 1ms || how.keep > std::chrono::hours{24 * 366}) refuse("keep must be 1 ms to a year");
    if (!then_how.key.empty() || !then_how.single.empty() || !then_how.batch.empty()) refuse("the job behind it has no key, no single name and no batch");
    if (!then_type.empty()) check_job_type(then_type);
    auto at = office_->queue_of(then_type.empty() ? "-" : then_type);
    std::vector<std::string> words{at->rules(), std::to_string(total), how.policy == batch_policy::fail_at_once ? "o" : "a", std::to_string(how.keep.count()),
                                   std::string{then_type}, write_place(then_how), write_terms(then_how) + '\n' + then_payload};
    return say_batch(std::move(at), key_of(office_, id), std::move(words));
}

task<batch_info> raw_jobs::async_find_batch(std::string_view id) {
    office_->all().require_usable();
    return read_batch(office_, std::string{id});
}

task<std::optional<batch_info>> raw_jobs::async_wait_batch(std::string_view id, std::chrono::steady_clock::time_point until) {
    office_->all().require_usable();
    return wait_for_batch(office_, std::string{id}, until);
}

}  // namespace lockstep::detail
